package pairwise

// The work of one thread on blends, batches and inner products.

import "github.com/basetensor/basetensor/internal/base/kernel"

// maxTerms is the number of pairs of runs multiplied and added at a time: their lines stay in the
// first-level cache.
const maxTerms = 16

// doBlends does tasks of a blend merge. A task is a run of the result, at one place of the outer axes.
func (w *worker) doBlends(k *merger, from, to int) {
	x := k.spec
	w.outerLoop.seek(x.outer, from)
	n := count(x.run)
	for range to - from {
		w.stepLoop.seek(x.steps, 0)
		for step := range count(x.steps) {
			if step%64 == 63 && k.ctx.Err() != nil {
				return
			}
			w.stage(k)
			w.insideLoop.seek(x.insideAxes, 0)
			for range count(x.insideAxes) {
				w.addBlend(k, k.out[w.outerLoop.offsets[2]+w.insideLoop.offsets[2]:][:n], step == 0)
				w.insideLoop.next()
			}
			w.stepLoop.next()
		}
		w.outerLoop.next()
	}
}

// addBlend adds the products of one block to a run of the result, or sets the run if isFirst.
func (w *worker) addBlend(k *merger, out []float64, isFirst bool) {
	a, offsetsA := w.runs(k, 0, len(out))
	b, offsetsB := w.runs(k, 1, len(out))
	for s := 0; s < len(offsetsA); s += maxTerms {
		end := min(s+maxTerms, len(offsetsA))
		kernel.Blend(out, a, b, offsetsA[s:end], offsetsB[s:end], isFirst && s == 0)
	}
}

// doBatches does tasks of a batched merge. A task is a product of matrices side by side, at one place of the outer axes.
func (w *worker) doBatches(k *merger, from, to int) {
	x := k.spec
	w.outerLoop.seek(x.outer, from)
	w.stepLoop.seek(nil, 0)
	n := count(x.run)
	for range to - from {
		if k.ctx.Err() != nil {
			return
		}
		w.stage(k)
		w.insideLoop.seek(x.insideAxes, 0)
		for range count(x.insideAxes) {
			a, i := w.source(k, 0)
			b, j := w.source(k, 1)
			kernel.Batch(k.out[w.outerLoop.offsets[2]+w.insideLoop.offsets[2]:], a[i:], b[j:], n, &w.matrices)
			w.insideLoop.next()
		}
		w.outerLoop.next()
	}
}

// runs returns the runs of n entries of an operand for all values summed within the block, and the offset of each: where they are, or
// written out.
func (w *worker) runs(k *merger, i, n int) (data []float64, offsets []int) {
	from, offset := w.source(k, i)
	if w.isDirect[i] {
		return from[offset:], w.sumOffsets[i]
	}

	offsets = w.multiplesOf(n, len(w.sumOffsets[i]))
	if w.packedAt[i] != offset {
		w.packedAt[i] = offset
		w.packed[i] = resize(w.packed[i], n*len(w.sumOffsets[i]))
		for s, d := range w.sumOffsets[i] {
			gather(w.packed[i][s*n:][:n], from[offset+d:], w.runOffsets[i])
		}
	}
	return w.packed[i], offsets
}

// multiplesOf returns the first multiples of n: 0, n, 2n …. The list is valid until the next call, whose list begins with the same
// numbers if n is the same.
func (w *worker) multiplesOf(n, times int) []int {
	w.multiples = w.multiples[:0]
	for i := range times {
		w.multiples = append(w.multiples, i*n)
	}
	return w.multiples
}

// doInner does task t of an inner merge: for every entry of the result, the sum over a part of the steps.
func (w *worker) doInner(k *merger, t int) {
	x := k.spec
	steps := count(x.steps)
	from, to := t*steps/k.tasks, (t+1)*steps/k.tasks
	sums := k.partialSums[t*len(k.out):][:len(k.out)]
	n := count(x.run)

	w.stepLoop.seek(x.steps, from)
	for step := range to - from {
		if step%64 == 63 && k.ctx.Err() != nil {
			return
		}
		w.stage(k)
		w.insideLoop.seek(x.insideAxes, 0)
		for range count(x.insideAxes) {
			w.outerLoop.seek(x.outer, 0)
			for o := range sums {
				sums[o] += kernel.Dot(w.oneRun(k, 0, n), w.oneRun(k, 1, n))
				w.outerLoop.next()
			}
			w.insideLoop.next()
		}
		w.stepLoop.next()
	}
}

// oneRun returns the current run of n entries of an operand, where it is or written out.
func (w *worker) oneRun(k *merger, i, n int) []float64 {
	from, offset := w.source(k, i)
	if w.isDirect[i] {
		return from[offset:][:n]
	}
	if w.packedAt[i] != offset {
		w.packedAt[i] = offset
		w.packed[i] = resize(w.packed[i], n)
		gather(w.packed[i], from[offset:], w.runOffsets[i])
	}
	return w.packed[i]
}
