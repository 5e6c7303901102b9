package einsum

// The work of one goroutine on the way back: unit after unit, block after block, value after value of the sum.

import (
	"context"

	loops "github.com/basetensor/basetensor/internal/base/kernel"
)

// backWorker is one goroutine's place in a step.
type backWorker struct {
	at      []int // position of every loop
	g       int   // offset of the block in ∂Z/∂out
	scalars []int // offset of every scalar operand at this position
	vectors []int
	value   []float64   // of every scalar at a value of the sum
	run     [][]float64 // of every vector: in place, or written out into buffer
	buffer  [][]float64
	front   [][]float64 // front[v] = g · Π_{u<v} run[u]
	back    []float64   // Π_{u>v} run[u]
	share   []float64   // contribution of a block to a derivative
	left    int         // work until the next look at the context
}

func (w *backWorker) start(b *backKernel) {
	w.at = append(w.at[:0], make([]int, len(b.loops))...)
	w.scalars = append(w.scalars[:0], make([]int, len(b.scalars))...)
	w.value = append(w.value[:0], make([]float64, len(b.scalars))...)
	w.vectors = append(w.vectors[:0], make([]int, len(b.vectors))...)
	w.run = append(w.run[:0], make([][]float64, len(b.vectors))...)
	for v := range b.vectors {
		if v == len(w.buffer) {
			w.buffer, w.front = append(w.buffer, nil), append(w.front, nil)
		}
		if len(b.vectors[v].index) > 0 {
			w.buffer[v] = resize(w.buffer[v], b.block)
		}
		w.front[v] = resize(w.front[v], b.block)
	}
	w.back, w.share = resize(w.back, b.block), resize(w.share, b.block)
	w.left = chunkWork
}

// unit computes everything at one position of the common loops.
func (w *backWorker) unit(ctx context.Context, b *backKernel, u int) {
	part := u % b.parts
	u /= b.parts
	for l := range w.at {
		w.at[l] = 0
		if l < b.common {
			w.at[l] = u % b.loops[l].dim
			u /= b.loops[l].dim
		}
	}
	w.seek(b)
	for range b.rest {
		if w.left -= b.block * b.sums * 3 * (len(b.vectors) + 1); w.left < 0 {
			if ctx.Err() != nil {
				return
			}
			w.left = chunkWork
		}
		for s := part * b.sums; s < (part+1)*b.sums; s++ {
			w.block(b, s)
		}
		w.advance(b)
	}
}

// seek sets the offsets to the position at.
func (w *backWorker) seek(b *backKernel) {
	w.g = 0
	clear(w.scalars)
	clear(w.vectors)
	for l, x := range w.at {
		w.move(b, l, x)
	}
}

// move goes x positions along loop l.
func (w *backWorker) move(b *backKernel, l, x int) {
	axis := b.loops[l].axis
	w.g += x * b.loops[l].step
	for i := range b.scalars {
		w.scalars[i] += x * b.scalars[i].outer[axis]
	}
	for i := range b.vectors {
		w.vectors[i] += x * b.vectors[i].outer[axis]
	}
}

// advance moves to the unit's next block.
func (w *backWorker) advance(b *backKernel) {
	for l := b.common; l < len(b.loops); l++ {
		if w.at[l]++; w.at[l] < b.loops[l].dim {
			w.move(b, l, 1)
			return
		}
		w.at[l] = 0
		w.move(b, l, 1-b.loops[l].dim)
	}
}

// block adds the contribution of one block at one value of the sum.
func (w *backWorker) block(b *backKernel, s int) {
	f, zeros, wanted := 1.0, 0, false
	for i := range b.scalars {
		o := &b.scalars[i]
		w.value[i] = o.data[w.scalars[i]+o.sum[s]]
		wanted = wanted || o.into != nil
		if w.value[i] == 0 {
			zeros++
		}
		f *= w.value[i]
	}
	if zeros > 1 || zeros == 1 && !wanted {
		return
	}
	g := b.g[w.g : w.g+b.block]
	for v := range b.vectors {
		o := &b.vectors[v]
		at := w.vectors[v] + o.sum[s]
		if len(o.index) == 0 {
			w.run[v] = o.data[at : at+b.block]
			continue
		}
		w.run[v] = w.buffer[v]
		from := o.data[at:]
		for i, j := range o.index {
			w.run[v][i] = from[j]
		}
	}
	if f != 0 {
		w.addVectors(b, s, f, g)
	}
	if wanted {
		w.addScalars(b, s, w.total(len(b.vectors), g))
	}
}

// addScalars adds total · Π of the other scalars to every scalar's derivative.
func (w *backWorker) addScalars(b *backKernel, s int, total float64) {
	for i := range b.scalars {
		o := &b.scalars[i]
		if o.into == nil {
			continue
		}
		p := total
		for k, v := range w.value {
			if k != i {
				p *= v
			}
		}
		o.into[w.scalars[i]+o.sum[s]] += p
	}
}

// addVectors adds f · g · Π of the other vectors to every vector's derivative.
func (w *backWorker) addVectors(b *backKernel, s int, f float64, g []float64) {
	n := len(b.vectors)
	switch n {
	case 0:
	case 1:
		if b.vectors[0].into != nil {
			w.add(b, 0, s, f, g, nil)
		}
	case 2:
		for v := range 2 {
			if b.vectors[v].into != nil {
				w.add(b, v, s, f, g, w.run[1-v])
			}
		}
	default:
		front := g
		for v := range n - 1 {
			multiply(w.front[v+1], front, w.run[v])
			front = w.front[v+1]
		}
		back := []float64(nil)
		for v := n - 1; v >= 0; v-- {
			if b.vectors[v].into != nil {
				front = g
				if v > 0 {
					front = w.front[v]
				}
				w.add(b, v, s, f, front, back)
			}
			if back == nil {
				back = w.run[v]
			} else if v > 0 {
				multiply(w.back, back, w.run[v])
				back = w.back
			}
		}
	}
}

// add adds f·x·y, y nil for ones, to a block of the derivative by vector v.
func (w *backWorker) add(b *backKernel, v, s int, f float64, x, y []float64) {
	o := &b.vectors[v]
	at := w.vectors[v] + o.sum[s]
	if len(o.index) == 0 {
		add(o.into[at:at+b.block], f, x, y)
		return
	}
	set(w.share, f, x, y)
	into := o.into[at:]
	for i, j := range o.index {
		into[j] += w.share[i]
	}
}

// total returns Σ g · Π vectors over the block.
func (w *backWorker) total(n int, g []float64) float64 {
	p := g
	for v := 0; v < n-1; v++ {
		multiply(w.front[v+1], p, w.run[v])
		p = w.front[v+1]
	}
	if n > 0 {
		return loops.Dot(p, w.run[n-1])
	}
	sum := 0.0
	for _, x := range g {
		sum += x
	}
	return sum
}
