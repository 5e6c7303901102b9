package einsum

// The work of one goroutine on a step: block after block of the output.

import (
	"github.com/basetensor/basetensor/pkg/scaled"
)

// worker is one goroutine's place in a step.
type worker struct {
	top     uint64
	at      []int // position on the outer axes
	scalars []int // offset of every scalar operand at this position
	vectors []int
	buffers [2][][]float64 // per slot and vector: an indexed operand's run, written out
	held    [2][]int       // offset whose run a buffer holds, −1 for none
	product [2][]float64   // product of all vectors but the last
}

func (w *worker) start(k *kernel) {
	w.top = 0
	w.scalars = append(w.scalars[:0], make([]int, len(k.scalars))...)
	w.vectors = append(w.vectors[:0], make([]int, len(k.vectors))...)
	for slot := range 2 {
		w.held[slot] = w.held[slot][:0]
		for v := range k.vectors {
			w.held[slot] = append(w.held[slot], -1)
			if v == len(w.buffers[slot]) {
				w.buffers[slot] = append(w.buffers[slot], nil)
			}
			if len(k.vectors[v].index) > 0 {
				w.buffers[slot][v] = resize(w.buffers[slot][v], k.block)
			}
		}
		if len(k.vectors) > 2 {
			w.product[slot] = resize(w.product[slot], k.block)
		}
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
		w.top = max(w.top, scaled.LargestBits(out))
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

// compute adds up a block, two values of the sum at a time. Values whose scalar is 0 are passed over.
func (w *worker) compute(k *kernel, out []float64) {
	written := false
	for s := 0; s < k.sums; {
		f, first := w.next(k, &s)
		if first < 0 {
			break
		}
		g, second := w.next(k, &s)
		a, b := w.pair(k, 0, first)
		switch {
		case second < 0 && written:
			add(out, f, a, b)
		case second < 0:
			set(out, f, a, b)
		default:
			c, d := w.pair(k, 1, second)
			if written {
				addTwo(out, f, a, b, g, c, d)
			} else {
				setTwo(out, f, a, b, g, c, d)
			}
		}
		written = true
	}
	if !written {
		clear(out)
	}
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

// pair returns the vectors of value s as two factors; the second is nil when there is one vector.
func (w *worker) pair(k *kernel, slot, s int) (a, b []float64) {
	last := len(k.vectors) - 1
	a = w.vector(k, slot, 0, s)
	if last == 0 {
		return a, nil
	}
	if last > 1 {
		p := w.product[slot]
		multiply(p, a, w.vector(k, slot, 1, s))
		for v := 2; v < last; v++ {
			multiply(p, p, w.vector(k, slot, v, s))
		}
		a = p
	}
	return a, w.vector(k, slot, last, s)
}

// vector returns the run of operand v for value s: where it is, or written out through its index list.
func (w *worker) vector(k *kernel, slot, v, s int) []float64 {
	o := k.vectors[v]
	at := w.vectors[v] + o.sum[s]
	if len(o.index) == 0 {
		return o.data[at : at+k.block]
	}
	buf := w.buffers[slot][v]
	if w.held[slot][v] != at {
		w.held[slot][v] = at
		from := o.data[at:]
		for i, j := range o.index {
			buf[i] = from[j]
		}
	}
	return buf
}
