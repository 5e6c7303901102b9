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

// worker is the state of one goroutine in a step.
type worker struct {
	top      uint64            // bits of the largest entry so far
	position []int             // by outer axis
	scalars  []int             // offset of every scalar operand at this position
	vectors  []int             // offset of every vector at this position
	buffers  [][]float64       // per vector: runs of an indexed operand, written out one after the other
	copied   [][maxTerms]int   // per vector and slot of its buffer: the offset of the run that was copied there, −1 if none was
	product  []float64         // products of all vectors but the last
	weight   [maxTerms]float64 // per slot: the scalarProduct of the term
	offset   [2][]int          // per factor and slot: where the factor of a term begins
}

// reset prepares the worker for the first block of a step.
func (w *worker) reset(k *kernel) {
	w.top = 0
	w.scalars = append(w.scalars[:0], make([]int, len(k.scalars))...)
	w.vectors = append(w.vectors[:0], make([]int, len(k.vectors))...)
	for i := range w.offset {
		w.offset[i] = append(w.offset[i][:0], make([]int, maxTerms)...)
	}
	w.copied = w.copied[:0]
	for v := range k.vectors {
		w.copied = append(w.copied, [maxTerms]int{-1, -1, -1, -1})
		if v == len(w.buffers) {
			w.buffers = append(w.buffers, nil)
		}
		if len(k.vectors[v].index) > 0 {
			w.buffers[v] = resize(w.buffers[v], maxTerms*k.block)
		}
	}
	if len(k.vectors) > 2 {
		w.product = resize(w.product, maxTerms*k.block)
	}
}

// resize returns a list of n numbers of any value, in the memory of b if its capacity is enough.
func resize(b []float64, n int) []float64 {
	if cap(b) < n {
		return make([]float64, n)
	}
	return b[:n]
}

// computeBlocks computes the blocks from ≤ b < to of the output.
func (w *worker) computeBlocks(k *kernel, from, to int) {
	w.seek(k, from)
	for b := from; b < to; b++ {
		out := k.out[b*k.block : (b+1)*k.block]
		if len(k.vectors) == 0 {
			w.computeConstant(k, out)
		} else {
			w.compute(k, out)
		}
		w.top = max(w.top, floats.LargestBits(out))
		w.advance(k)
	}
}

// seek sets the position to block b.
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

// advance moves to the next block: it counts the position up, the last axis fastest, and updates the offsets of all operands.
func (w *worker) advance(k *kernel) {
	for a := len(k.outer) - 1; a >= 0; a-- {
		w.position[a]++
		move := 1
		if w.position[a] == k.outer[a] { // a carry, as in 09 + 1 = 10
			w.position[a] = 0
			move = 1 - k.outer[a]
		}
		for i := range k.scalars {
			w.scalars[i] += move * k.scalars[i].outer[a]
		}
		for i := range k.vectors {
			w.vectors[i] += move * k.vectors[i].outer[a]
		}
		if move == 1 {
			return
		}
	}
}

// computeConstant computes a block within which no operand varies: all its entries are the same.
func (w *worker) computeConstant(k *kernel, out []float64) {
	sum := 0.0
	for s := range k.sums {
		sum += w.scalarProduct(k, s)
	}
	for i := range out {
		out[i] = sum
	}
}

// scalarProduct returns the product, for term s, of the operands that do not vary within the block.
func (w *worker) scalarProduct(k *kernel, s int) float64 {
	f := 1.0
	for i := range k.scalars {
		o := k.scalars[i]
		f *= o.data[w.scalars[i]+o.sum[s]]
	}
	return f
}

// compute computes a block, some terms at a time. Terms whose scalarProduct is 0 are skipped.
func (w *worker) compute(k *kernel, out []float64) {
	written := false
	for s := 0; s < k.sums; {
		n := 0
		for ; n < maxTerms; n++ {
			f, at := w.nextTerm(k, &s)
			if at < 0 {
				break
			}
			w.weight[n] = f
			w.locateFactors(k, n, at)
		}
		if n == 0 {
			break
		}
		w.addUp(k, out, n, !written)
		written = true
	}
	if !written {
		clear(out)
	}
}

// addUp adds the n located terms to a block; if first, it sets the block to them.
func (w *worker) addUp(k *kernel, out []float64, n int, first bool) {
	weight := w.weight[:n]
	a := w.data(k, 0)
	if len(k.vectors) > 2 {
		a = w.product
	}
	switch {
	case len(k.vectors) == 1:
		loops.Panel(out, len(out), 1, len(out), weight, a, w.offset[0][:n], loops.Columns, first)
	case areOnes(weight):
		loops.Blend(out, a, w.data(k, len(k.vectors)-1), w.offset[0][:n], w.offset[1][:n], first)
	default:
		loops.Weighted(out, a, w.data(k, len(k.vectors)-1), w.offset[0][:n], w.offset[1][:n], weight, first)
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

// nextTerm finds the first term from *s on whose scalarProduct is not 0, and moves *s behind it. It returns that product and the term. The
// term is −1 if there is none.
func (w *worker) nextTerm(k *kernel, s *int) (weight float64, term int) {
	for *s < k.sums {
		at := *s
		*s++
		if f := w.scalarProduct(k, at); f != 0 {
			return f, at
		}
	}
	return 0, -1
}

// locateFactors writes the offsets of the two factors of term s to w.offset[0][slot] and w.offset[1][slot]. One factor is the last vector,
// the other the product of all other vectors, which is computed here if there are several. A single vector is the only factor.
func (w *worker) locateFactors(k *kernel, slot, s int) {
	last := len(k.vectors) - 1
	w.offset[0][slot] = w.locate(k, slot, 0, s)
	if last == 0 {
		return
	}
	if last > 1 {
		p := w.product[slot*k.block:][:k.block]
		a := w.data(k, 0)[w.offset[0][slot]:]
		for v := 1; v < last; v++ {
			at := w.locate(k, slot, v, s)
			loops.Blend(p, a, w.data(k, v)[at:], zeroOffset, zeroOffset, true)
			a = p
		}
		w.offset[0][slot] = slot * k.block
	}
	w.offset[1][slot] = w.locate(k, slot, last, s)
}

// data returns the list in which operand v has its runs: its table, or the buffer into which locate copies them.
func (w *worker) data(k *kernel, v int) []float64 {
	if len(k.vectors[v].index) == 0 {
		return k.vectors[v].data
	}
	return w.buffers[v]
}

// locate returns the offset in data of the run of vector v for term s. If the operand has an index list, it copies the run into the part of
// the buffer for this slot, unless the run is there or in slot 0 already.
func (w *worker) locate(k *kernel, slot, v, s int) int {
	o := k.vectors[v]
	at := w.vectors[v] + o.sum[s]
	if len(o.index) == 0 {
		return at
	}
	copied := &w.copied[v]
	if copied[0] == at {
		return 0
	}
	if copied[slot] != at {
		copied[slot] = at
		from := o.data[at:]
		buf := w.buffers[v][slot*k.block:][:len(o.index)]
		for i, j := range o.index {
			buf[i] = from[j]
		}
	}
	return slot * k.block
}
