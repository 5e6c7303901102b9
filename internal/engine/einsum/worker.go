package einsum

// The work of one goroutine on a step: block after block of the output.

import (
	"github.com/basetensor/basetensor/internal/base/floats"
	loops "github.com/basetensor/basetensor/internal/base/kernel"
)

// begin is the place of a run in itself.
var begin = []int{0}

// together is the number of values of the sum added at a time.
const together = 4

// worker is one goroutine's place in a step.
type worker struct {
	top     uint64
	at      []int // position on the outer axes
	scalars []int // offset of every scalar operand at this position
	vectors []int
	buffers [][]float64     // per vector: runs of an indexed operand, written out one after the other
	held    [][together]int // per vector: the offsets whose runs they are, −1 for none
	product []float64       // products of all vectors but the last
	weight  [together]float64
	place   [2][]int // where the factors of values of the sum are
}

func (w *worker) start(k *kernel) {
	w.top = 0
	w.scalars = append(w.scalars[:0], make([]int, len(k.scalars))...)
	w.vectors = append(w.vectors[:0], make([]int, len(k.vectors))...)
	for i := range w.place {
		w.place[i] = append(w.place[i][:0], make([]int, together)...)
	}
	w.held = w.held[:0]
	for v := range k.vectors {
		w.held = append(w.held, [together]int{-1, -1, -1, -1})
		if v == len(w.buffers) {
			w.buffers = append(w.buffers, nil)
		}
		if len(k.vectors[v].index) > 0 {
			w.buffers[v] = resize(w.buffers[v], together*k.block)
		}
	}
	if len(k.vectors) > 2 {
		w.product = resize(w.product, together*k.block)
	}
}

func resize(b []float64, n int) []float64 {
	if cap(b) < n {
		return make([]float64, n)
	}
	return b[:n]
}

// span computes blocks from to to−1.
func (w *worker) span(k *kernel, from, to int) {
	w.seek(k, from)
	for b := from; b < to; b++ {
		out := k.out[b*k.block : (b+1)*k.block]
		if len(k.vectors) == 0 {
			w.number(k, out)
		} else {
			w.compute(k, out)
		}
		w.top = max(w.top, floats.LargestBits(out))
		w.advance(k)
	}
}

// seek sets the position to block b.
func (w *worker) seek(k *kernel, b int) {
	w.at = append(w.at[:0], make([]int, len(k.outer))...)
	for a := len(k.outer) - 1; a >= 0; a-- {
		w.at[a] = b % k.outer[a]
		b /= k.outer[a]
	}
	offset := func(o *operand) int {
		sum := 0
		for a, x := range w.at {
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

// advance moves to the next block.
func (w *worker) advance(k *kernel) {
	for a := len(k.outer) - 1; a >= 0; a-- {
		w.at[a]++
		move := 1
		if w.at[a] == k.outer[a] {
			w.at[a] = 0
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

// number is a block on which no operand varies.
func (w *worker) number(k *kernel, out []float64) {
	sum := 0.0
	for s := range k.sums {
		sum += w.scalar(k, s)
	}
	for i := range out {
		out[i] = sum
	}
}

// scalar is the product of the operands that do not vary within the block.
func (w *worker) scalar(k *kernel, s int) float64 {
	f := 1.0
	for i := range k.scalars {
		o := k.scalars[i]
		f *= o.data[w.scalars[i]+o.sum[s]]
	}
	return f
}

// compute adds up a block, some values of the sum at a time. Values whose scalar is 0 are passed over.
func (w *worker) compute(k *kernel, out []float64) {
	written := false
	for s := 0; s < k.sums; {
		n := 0
		for ; n < together; n++ {
			f, at := w.next(k, &s)
			if at < 0 {
				break
			}
			w.weight[n] = f
			w.pair(k, n, at)
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

// addUp adds n values of the sum to a block, or sets it.
func (w *worker) addUp(k *kernel, out []float64, n int, first bool) {
	weight := w.weight[:n]
	a := w.source(k, 0)
	if len(k.vectors) > 2 {
		a = w.product
	}
	switch {
	case len(k.vectors) == 1:
		loops.Panel(out, len(out), 1, len(out), weight, a, w.place[0][:n], loops.Columns, first)
	case unweighted(weight):
		loops.Blend(out, a, w.source(k, len(k.vectors)-1), w.place[0][:n], w.place[1][:n], first)
	default:
		loops.Weighted(out, a, w.source(k, len(k.vectors)-1), w.place[0][:n], w.place[1][:n], weight, first)
	}
}

// unweighted says that all weights are 1.
func unweighted(weight []float64) bool {
	for _, f := range weight {
		if f != 1 {
			return false
		}
	}
	return true
}

// next finds the next value of the sum from *s on whose scalar is not 0, and moves *s behind it; −1 when there is none.
func (w *worker) next(k *kernel, s *int) (float64, int) {
	for *s < k.sums {
		at := *s
		*s++
		if f := w.scalar(k, at); f != 0 {
			return f, at
		}
	}
	return 0, -1
}

// pair finds the two factors of value s, or the only one, and says where they are: the last vector, and the
// product of the others.
func (w *worker) pair(k *kernel, slot, s int) {
	last := len(k.vectors) - 1
	w.place[0][slot] = w.vector(k, slot, 0, s)
	if last == 0 {
		return
	}
	if last > 1 {
		p := w.product[slot*k.block:][:k.block]
		a := w.source(k, 0)[w.place[0][slot]:]
		for v := 1; v < last; v++ {
			at := w.vector(k, slot, v, s)
			loops.Blend(p, a, w.source(k, v)[at:], begin, begin, true)
			a = p
		}
		w.place[0][slot] = slot * k.block
	}
	w.place[1][slot] = w.vector(k, slot, last, s)
}

// source is where the runs of operand v are: in its table, or written out through its index list.
func (w *worker) source(k *kernel, v int) []float64 {
	if len(k.vectors[v].index) == 0 {
		return k.vectors[v].data
	}
	return w.buffers[v]
}

// vector returns the place of the run of operand v for value s.
func (w *worker) vector(k *kernel, slot, v, s int) int {
	o := k.vectors[v]
	at := w.vectors[v] + o.sum[s]
	if len(o.index) == 0 {
		return at
	}
	held := &w.held[v]
	if held[0] == at {
		return 0
	}
	if held[slot] != at {
		held[slot] = at
		from := o.data[at:]
		buf := w.buffers[v][slot*k.block:][:len(o.index)]
		for i, j := range o.index {
			buf[i] = from[j]
		}
	}
	return slot * k.block
}
