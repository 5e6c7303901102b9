package pairwise

// The other two kinds of block.

import "github.com/basetensor/basetensor/internal/kernel"

// maxTerms is how many pairs of runs are multiplied and added at a time: their lines of the first
// cache stay.
const maxTerms = 16

// blends does tasks of a blend merge: a run at every place of the outer axes.
func (w *worker) blends(k *merger, from, to int) {
	x := k.spec
	w.outer.seek(x.outer, from)
	n := count(x.run)
	for t := from; t < to; t++ {
		out := k.out[t*n:][:n]
		first := true
		w.step.seek(x.steps, 0)
		for range count(x.steps) {
			a, atA := w.operand(k, 0, n)
			b, atB := w.operand(k, 1, n)
			for s := 0; s < len(atA); s += maxTerms {
				end := min(s+maxTerms, len(atA))
				kernel.Blend(out, a, b, atA[s:end], atB[s:end], first)
				first = false
			}
			w.step.next()
		}
		w.outer.next()
	}
}

// operand returns the runs of an operand for all values summed within the block:
// where they are, or written out.
func (w *worker) operand(k *merger, i, n int) ([]float64, []int) {
	at := w.outer.off[i] + w.step.off[i]
	if w.direct[i] {
		return k.operands[i][at:], w.sum[i]
	}

	places := w.places(n, len(w.sum[i]))
	if w.held[i] != at {
		w.held[i] = at
		w.packed[i] = room(w.packed[i], n*len(w.sum[i]))
		for s, d := range w.sum[i] {
			gather(w.packed[i][s*n:][:n], k.operands[i][at+d:], w.run[i])
		}
	}
	return w.packed[i], places
}

// places lists 0, n, 2n …
func (w *worker) places(n, times int) []int {
	w.at = w.at[:0]
	for i := range times {
		w.at = append(w.at, i*n)
	}
	return w.at
}

// inners does part t of all sums of an inner merge.
func (w *worker) inners(k *merger, t int) {
	x := k.spec
	steps := count(x.steps)
	from, to := t*steps/k.tasks, (t+1)*steps/k.tasks
	sums := k.partial[t*len(k.out):][:len(k.out)]
	n := count(x.run)

	w.step.seek(x.steps, from)
	for range to - from {
		w.outer.seek(x.outer, 0)
		for o := range sums {
			var v [2][]float64
			for i := range 2 {
				at := w.outer.off[i] + w.step.off[i]
				if w.direct[i] {
					v[i] = k.operands[i][at:]
					continue
				}
				if w.held[i] != at {
					w.held[i] = at
					w.packed[i] = room(w.packed[i], n)
					gather(w.packed[i], k.operands[i][at:], w.run[i])
				}
				v[i] = w.packed[i]
			}
			sums[o] += kernel.Dot(v[0][:n], v[1][:n])
			w.outer.next()
		}
		w.step.next()
	}
}
