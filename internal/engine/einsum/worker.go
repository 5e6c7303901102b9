package einsum

// The work of one goroutine on a step: block after block of the output.

import (
	"github.com/basetensor/basetensor/internal/base/floats"
	loops "github.com/basetensor/basetensor/internal/base/kernel"
)

// zeroOffset is the list of offsets of a single factor that begins at the start of its list.
var zeroOffset = []int{0}

// maxTerms is the largest number of terms (values of the indices summed over) that are added to a block at a time.
const maxTerms = 4

// worker is the state of one goroutine in a step. It computes blocks of the output one after the other, and adds up to maxTerms terms to
// a block at a time, each in a slot. In a term, a scalar operand is one number for the whole block, and a vector has a run of numbers,
// one for each entry of the block.
type worker struct {
	top      uint64            // bits of the largest entry so far
	position []int             // of the current block: its value on each outer axis
	scalars  []int             // by scalar operand: its offset for the current block
	vectors  []int             // by vector: its offset for the current block
	buffers  [][]float64       // by vector with an index list: copies of its runs, one for each slot
	copied   [][maxTerms]int   // by vector and slot: the offset of the run that was copied into the buffer, −1 if none was
	product  []float64         // by slot: the products of all vectors but the last
	weight   [maxTerms]float64 // by slot: the product of the term's scalars
	offset   [2][]int          // by factor and slot: where the run of the factor begins in its list
}

// reset prepares the worker for the first block of the step of k: all offsets are 0, and no run is copied. It makes buffers for vectors
// with an index list and, if there are more than two vectors, for products of vectors. Memory is used again.
func (w *worker) reset(k *kernel) {
	w.top = 0
	w.scalars = append(w.scalars[:0], make([]int, len(k.scalars))...)
	w.vectors = append(w.vectors[:0], make([]int, len(k.vectors))...)
	for i := range w.offset {
		w.offset[i] = append(w.offset[i][:0], make([]int, maxTerms)...)
	}
	w.copied = w.copied[:0]
	for v := range k.vectors {
		w.copied = append(w.copied, [maxTerms]int{-1, -1, -1, -1}) // −1: no run is copied
		if v == len(w.buffers) {
			w.buffers = append(w.buffers, nil)
		}
		if len(k.vectors[v].index) > 0 {
			w.buffers[v] = resize(w.buffers[v], maxTerms*k.blockSize)
		}
	}
	if len(k.vectors) > 2 {
		w.product = resize(w.product, maxTerms*k.blockSize)
	}
}

// resize returns a slice of n numbers, which may have any values, in the memory of b if its capacity is enough.
func resize(b []float64, n int) []float64 {
	if cap(b) < n {
		return make([]float64, n)
	}
	return b[:n]
}

// computeBlocks computes the blocks first ≤ b < end of the output, and updates w.top to their largest entry.
func (w *worker) computeBlocks(k *kernel, first, end int) {
	w.seek(k, first)
	for b := first; b < end; b++ {
		out := k.out[b*k.blockSize : (b+1)*k.blockSize]
		if len(k.vectors) == 0 {
			w.computeConstant(k, out)
		} else {
			w.computeBlock(k, out)
		}
		w.top = max(w.top, floats.LargestBits(out))
		w.advance(k)
	}
}

// seek moves to block b: it sets its value on each outer axis, the last axis fastest, and the offsets of all operands.
func (w *worker) seek(k *kernel, b int) {
	w.position = append(w.position[:0], make([]int, len(k.outer))...)
	for a := len(k.outer) - 1; a >= 0; a-- {
		w.position[a] = b % k.outer[a]
		b /= k.outer[a]
	}
	offset := func(o *operand) int {
		sum := 0
		for a, x := range w.position {
			sum += x * o.outer[a]
		}
		return sum
	}
	for i := range k.scalars {
		w.scalars[i] = offset(k.scalars[i])
	}
	for i := range k.vectors {
		w.vectors[i] = offset(k.vectors[i])
	}
}

// advance moves to the next block: it counts the position up like an odometer, the last axis fastest, and updates the offsets of all
// operands.
func (w *worker) advance(k *kernel) {
	for a := len(k.outer) - 1; a >= 0; a-- {
		w.position[a]++
		change := 1                      // of the position on axis a
		if w.position[a] == k.outer[a] { // a carry, as in 09 + 1 = 10
			w.position[a] = 0
			change = 1 - k.outer[a]
		}
		for i := range k.scalars {
			w.scalars[i] += change * k.scalars[i].outer[a]
		}
		for i := range k.vectors {
			w.vectors[i] += change * k.vectors[i].outer[a]
		}
		hasCarry := change != 1
		if !hasCarry {
			return
		}
	}
}

// computeConstant computes a block in which no operand varies: all its entries are the sum over the terms of the product of all operands.
func (w *worker) computeConstant(k *kernel, out []float64) {
	sum := 0.0
	for term := range k.terms {
		sum += w.scalarProduct(k, term)
	}
	for i := range out {
		out[i] = sum
	}
}

// scalarProduct returns the product, in one term, of the operands that do not vary within the current block.
func (w *worker) scalarProduct(k *kernel, term int) float64 {
	product := 1.0
	for i := range k.scalars {
		o := k.scalars[i]
		product *= o.data[w.scalars[i]+o.sum[term]]
	}
	return product
}

// computeBlock sets out, a block of the output, to the sum over all terms of the product of the operands. It collects up to maxTerms terms,
// each in a slot of its own, and adds them at once. Terms whose scalarProduct is 0 are skipped.
func (w *worker) computeBlock(k *kernel, out []float64) {
	isSet := false
	for next := 0; next < k.terms; {
		slots := 0
		for ; slots < maxTerms; slots++ {
			weight, term := w.nextTerm(k, &next)
			if term < 0 {
				break
			}
			w.weight[slots] = weight
			w.locateFactors(k, slots, term)
		}
		if slots == 0 {
			break
		}
		isFirst := !isSet
		w.addTerms(k, out, slots, isFirst)
		isSet = true
	}
	if !isSet {
		clear(out)
	}
}

// addTerms adds Σ weight·a·b over the first n of the terms that locateFactors has prepared to a block of the output; if isFirst is set, it
// sets the block to that sum. The last vector is b, and the product of all others a. A single vector is a, without b.
func (w *worker) addTerms(k *kernel, out []float64, n int, isFirst bool) {
	weight := w.weight[:n]
	a := w.data(k, 0)
	if len(k.vectors) > 2 {
		a = w.product
	}
	switch {
	case len(k.vectors) == 1: // as a matrix of one row: out = Σ weight · the run of a
		loops.Panel(out, len(out), 1, len(out), weight, a, w.offset[0][:n], loops.Columns, isFirst)
	case areOnes(weight):
		loops.Blend(out, a, w.data(k, len(k.vectors)-1), w.offset[0][:n], w.offset[1][:n], isFirst)
	default:
		loops.Weighted(out, a, w.data(k, len(k.vectors)-1), w.offset[0][:n], w.offset[1][:n], weight, isFirst)
	}
}

// areOnes reports whether all weights are 1.
func areOnes(weight []float64) bool {
	for _, f := range weight {
		if f != 1 {
			return false
		}
	}
	return true
}

// nextTerm returns the first term from *next on whose scalarProduct is not 0, with that product as its weight, and sets *next to the term
// behind it. The term is −1 if there is none.
func (w *worker) nextTerm(k *kernel, next *int) (weight float64, term int) {
	for *next < k.terms {
		term := *next
		*next++
		if weight := w.scalarProduct(k, term); weight != 0 {
			return weight, term
		}
	}
	return 0, -1
}

// locateFactors sets w.offset[0][slot] and w.offset[1][slot] to where the two factors of a term begin. The second factor is the last
// vector, the first the product of all other vectors, which is computed here if there are several. A single vector is the first factor,
// and there is no second.
func (w *worker) locateFactors(k *kernel, slot, term int) {
	last := len(k.vectors) - 1
	w.offset[0][slot] = w.locate(k, slot, 0, term)
	if last == 0 {
		return
	}
	if last > 1 {
		const isFirst = true // Blend sets the product instead of adding to it
		product := w.product[slot*k.blockSize:][:k.blockSize]
		left := w.data(k, 0)[w.offset[0][slot]:]
		for v := 1; v < last; v++ {
			begin := w.locate(k, slot, v, term)
			loops.Blend(product, left, w.data(k, v)[begin:], zeroOffset, zeroOffset, isFirst)
			left = product
		}
		w.offset[0][slot] = slot * k.blockSize
	}
	w.offset[1][slot] = w.locate(k, slot, last, term)
}

// data returns the list in which vector v has its runs: its table or, if it has an index list, the buffer into which locate copies them.
func (w *worker) data(k *kernel, v int) []float64 {
	if len(k.vectors[v].index) == 0 {
		return k.vectors[v].data
	}
	return w.buffers[v]
}

// locate returns where the run of vector v for a term begins in the list that data returns. If the vector has an index list, it copies the
// run into this slot's part of the vector's buffer. It copies nothing if the run is there, or in the part of slot 0, already.
func (w *worker) locate(k *kernel, slot, v, term int) int {
	o := k.vectors[v]
	begin := w.vectors[v] + o.sum[term]
	if len(o.index) == 0 {
		return begin
	}
	copied := &w.copied[v] // by slot: where the run begins that was copied last
	if copied[0] == begin {
		return 0
	}
	if copied[slot] != begin {
		copied[slot] = begin
		entries := o.data[begin:]
		run := w.buffers[v][slot*k.blockSize:][:len(o.index)]
		for i, offset := range o.index {
			run[i] = entries[offset]
		}
	}
	return slot * k.blockSize
}
