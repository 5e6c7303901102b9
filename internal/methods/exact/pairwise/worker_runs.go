package pairwise

// The work of one thread on blends, batches and inner products.

import "github.com/basetensor/basetensor/internal/base/kernel"

// maxTerms is the largest number of pairs of runs that are multiplied and added at a time: their lines stay in the first-level cache.
const maxTerms = 16

// doBlends computes the tasks from ≤ t < to of a blend merge, out[run] += A[k, run] · B[k, run]. A task is a block of the result: its
// runs at one combination of values of the outer axes. It is summed step by step: a step is a block of the values k of the sum. Blocks of
// staged operands are copied first; insideAxes are the axes of the result within such a block.
func (w *worker) doBlends(m *merger, from, to int) {
	x := m.spec
	w.outerLoop.seek(x.outer, from)
	runEntries := count(x.run)
	for range to - from {
		w.stepLoop.seek(x.steps, 0)
		for step := range count(x.steps) {
			if step%64 == 63 && m.ctx.Err() != nil { // looked at once in 64 steps
				return
			}
			w.stage(m) // copies the blocks of staged operands, unless they are there already
			w.insideLoop.seek(x.insideAxes, 0)
			for range count(x.insideAxes) {
				out := m.out[w.outerLoop.offsets[2]+w.insideLoop.offsets[2]:][:runEntries]
				w.addBlend(m, out, step == 0) // the first step sets out, the others add to it
				w.insideLoop.next()
			}
			w.stepLoop.next()
		}
		w.outerLoop.next()
	}
}

// addBlend adds the products A[s, run] · B[s, run] of the current block, for all values s summed within it, to a run of the result, out. If
// isFirst, it sets the run to their sum.
func (w *worker) addBlend(m *merger, out []float64, isFirst bool) {
	a, offsetsA := w.runs(m, 0, len(out))
	b, offsetsB := w.runs(m, 1, len(out))
	for start := 0; start < len(offsetsA); start += maxTerms {
		end := min(start+maxTerms, len(offsetsA))
		kernel.Blend(out, a, b, offsetsA[start:end], offsetsB[start:end], isFirst && start == 0)
	}
}

// doBatches computes the tasks from ≤ t < to of a batched merge. A task is one combination of values of the outer axes. For it, matrices
// side by side are multiplied: out[rows, columns, run] = Σ_k A[rows, k, run] · B[k, columns, run], one product for each position in the
// run. Both operands are staged: a block of each is copied first, and the values of insideAxes are gone through within the block.
func (w *worker) doBatches(m *merger, from, to int) {
	x := m.spec
	w.outerLoop.seek(x.outer, from)
	w.stepLoop.seek(nil, 0) // a batched merge sums within a block only, so it has no steps
	matrices := count(x.run)
	for range to - from {
		if m.ctx.Err() != nil {
			return
		}
		w.stage(m) // copies the blocks of the operands, unless the task before had the same
		w.insideLoop.seek(x.insideAxes, 0)
		for range count(x.insideAxes) {
			a, offsetA := w.source(m, 0) // the copy, and the offset in it at the position of the loops
			b, offsetB := w.source(m, 1)
			out := m.out[w.outerLoop.offsets[2]+w.insideLoop.offsets[2]:]
			kernel.Batch(out, a[offsetA:], b[offsetB:], matrices, &w.matrices)
			w.insideLoop.next()
		}
		w.outerLoop.next()
	}
}

// runs returns the runs of n entries of an operand for all values summed within the current block, and the offset of each run in data. A
// run is what the innermost loop reads. If runs are not contiguous in the operand, they are written out one after the other, unless those
// at the same offset are there already (packedAt).
func (w *worker) runs(m *merger, operand, n int) (data []float64, offsets []int) {
	source, offset := w.source(m, operand)
	if w.isDirect[operand] {
		return source[offset:], w.sumOffsets[operand]
	}

	offsets = w.multiplesOf(n, len(w.sumOffsets[operand]))
	if w.packedAt[operand] != offset {
		w.packedAt[operand] = offset
		w.packed[operand] = resize(w.packed[operand], n*len(w.sumOffsets[operand]))
		for s, d := range w.sumOffsets[operand] {
			gather(w.packed[operand][s*n:][:n], source[offset+d:], w.runOffsets[operand])
		}
	}
	return w.packed[operand], offsets
}

// multiplesOf returns the list 0, n, 2n, … of count multiples of n. It is valid until the next call, or longer if that has the same n.
func (w *worker) multiplesOf(n, count int) []int {
	w.multiples = w.multiples[:0]
	for i := range count {
		w.multiples = append(w.multiples, i*n)
	}
	return w.multiples
}

// doInner computes task t of an inner merge, out[o] = Σ_run A[o, run] · B[o, run]: for every entry o of the result, the sum over the t-th
// part of the steps. The sum goes over steps, and within each over insideAxes, the axes of a staged block, and over a run of both operands.
func (w *worker) doInner(m *merger, t int) {
	x := m.spec
	steps := count(x.steps)
	from, to := t*steps/m.tasks, (t+1)*steps/m.tasks
	sums := m.partialSums[t*len(m.out):][:len(m.out)]
	runEntries := count(x.run)

	w.stepLoop.seek(x.steps, from)
	for step := range to - from {
		if step%64 == 63 && m.ctx.Err() != nil { // looked at once in 64 steps
			return
		}
		w.stage(m) // copies the blocks of staged operands, unless they are there already
		w.insideLoop.seek(x.insideAxes, 0)
		for range count(x.insideAxes) {
			w.outerLoop.seek(x.outer, 0)
			for o := range sums {
				sums[o] += kernel.Dot(w.currentRun(m, 0, runEntries), w.currentRun(m, 1, runEntries))
				w.outerLoop.next()
			}
			w.insideLoop.next()
		}
		w.stepLoop.next()
	}
}

// currentRun returns the run of n entries of an operand at the current position of all loops, which the innermost loop reads. If it is not
// contiguous in the operand, it is written out, unless it is there already (packedAt).
func (w *worker) currentRun(m *merger, operand, n int) []float64 {
	source, offset := w.source(m, operand)
	if w.isDirect[operand] {
		return source[offset:][:n]
	}
	if w.packedAt[operand] != offset {
		w.packedAt[operand] = offset
		w.packed[operand] = resize(w.packed[operand], n)
		gather(w.packed[operand], source[offset:], w.runOffsets[operand])
	}
	return w.packed[operand]
}
