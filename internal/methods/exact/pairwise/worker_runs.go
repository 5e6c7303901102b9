package pairwise

// The other kinds of block.

import "github.com/basetensor/basetensor/internal/base/kernel"

// maxTerms is the number of pairs of runs multiplied and added at a time: their lines stay in the
// first-level cache.
const maxTerms = 16

// blends does tasks of a blend merge: a run at every place of the outer axes.
func (w *worker) blends(k *merger, from, to int) {
	x := k.spec
	w.outer.seek(x.outer, from)
	n := count(x.run)
	for range to - from {
		w.step.seek(x.steps, 0)
		for step := range count(x.steps) {
			if step%64 == 63 && k.ctx.Err() != nil {
				return
			}
			w.stage(k)
			w.inside.seek(x.inside, 0)
			for range count(x.inside) {
				w.blend(k, k.out[w.outer.off[2]+w.inside.off[2]:][:n], step == 0)
				w.inside.next()
			}
			w.step.next()
		}
		w.outer.next()
	}
}

// blend adds the products of one block to a run of the result, or sets it.
func (w *worker) blend(k *merger, out []float64, first bool) {
	a, atA := w.operand(k, 0, len(out))
	b, atB := w.operand(k, 1, len(out))
	for s := 0; s < len(atA); s += maxTerms {
		end := min(s+maxTerms, len(atA))
		kernel.Blend(out, a, b, atA[s:end], atB[s:end], first && s == 0)
	}
}

// batches does tasks of a batched merge: matrices side by side at every place of the outer axes.
func (w *worker) batches(k *merger, from, to int) {
	x := k.spec
	w.outer.seek(x.outer, from)
	w.step.seek(nil, 0)
	n := count(x.run)
	for range to - from {
		if k.ctx.Err() != nil {
			return
		}
		w.stage(k)
		w.inside.seek(x.inside, 0)
		for range count(x.inside) {
			a, i := w.source(k, 0)
			b, j := w.source(k, 1)
			kernel.Batch(k.out[w.outer.off[2]+w.inside.off[2]:], a[i:], b[j:], n, &w.matrices)
			w.inside.next()
		}
		w.outer.next()
	}
}

// operand returns the runs of an operand for all values summed within the block:
// where they are, or written out.
func (w *worker) operand(k *merger, i, n int) ([]float64, []int) {
	from, at := w.source(k, i)
	if w.direct[i] {
		return from[at:], w.sum[i]
	}

	places := w.places(n, len(w.sum[i]))
	if w.held[i] != at {
		w.held[i] = at
		w.packed[i] = room(w.packed[i], n*len(w.sum[i]))
		for s, d := range w.sum[i] {
			gather(w.packed[i][s*n:][:n], from[at+d:], w.run[i])
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
	for step := range to - from {
		if step%64 == 63 && k.ctx.Err() != nil {
			return
		}
		w.stage(k)
		w.inside.seek(x.inside, 0)
		for range count(x.inside) {
			w.outer.seek(x.outer, 0)
			for o := range sums {
				sums[o] += kernel.Dot(w.summed(k, 0, n), w.summed(k, 1, n))
				w.outer.next()
			}
			w.inside.next()
		}
		w.step.next()
	}
}

// summed returns a run of an operand, where it is or written out.
func (w *worker) summed(k *merger, i, n int) []float64 {
	from, at := w.source(k, i)
	if w.direct[i] {
		return from[at:][:n]
	}
	if w.held[i] != at {
		w.held[i] = at
		w.packed[i] = room(w.packed[i], n)
		gather(w.packed[i], from[at:], w.run[i])
	}
	return w.packed[i]
}
