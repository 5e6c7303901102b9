package pairwise

// The work of one thread on a merge.

import "github.com/basetensor/basetensor/internal/base/kernel"

// worker is one thread's workspace for a merge. S, V, blocks, steps and runs are those of spec.
type worker struct {
	outerLoop, stepLoop odometer       // the block
	insideLoop          odometer       // the place within staged data
	staged              [2]stagedBlock // of operands that are staged
	runOffsets          [2][]int       // by operand: offsets of the run; empty if it is read directly
	sumOffsets          [2][]int       // by operand: offsets of the values summed within a block
	rowOffsets          []int          // offsets of the rows of S
	strideInS           int            // of values of the sum, if S is read where it is staged; 0 if it is packed
	packed              [2][]float64   // by operand: panels and runs written out
	packedAt            [2]int         // by operand: offset of what is written out; −1 if nothing is
	multiples           []int          // memory of multiplesOf
	isDirect            [2]bool        // by operand: it is read where it is, not from packed
	matrices            kernel.Places
}

// start fills in the offsets for the merge of k.
func (w *worker) start(k *merger) {
	x := k.spec
	for i := range 2 {
		w.isDirect[i] = x.isContiguous(i)
		if x.kind == panel && i == 1 {
			w.isDirect[i] = !x.packsV()
		}
		w.runOffsets[i] = w.runOffsets[i][:0]
		if !w.isDirect[i] {
			w.runOffsets[i] = offsets(w.runOffsets[i], x.run, i)
		}
		w.sumOffsets[i] = offsets(w.sumOffsets[i], x.sum, i)
		w.packedAt[i] = -1
		w.staged[i].start(&x.staged[i])
	}
	switch x.kind {
	case panel:
		w.rowOffsets = offsets(w.rowOffsets, x.rows, 0)
		w.strideInS = x.strideInS()
	case batched:
		p := &w.matrices
		p.ARows, p.OutRows = offsets(p.ARows, x.rows, 0), offsets(p.OutRows, x.rows, 2)
		p.BColumns, p.OutColumns = offsets(p.BColumns, x.columns, 1), offsets(p.OutColumns, x.columns, 2)
		p.ASum, p.BSum = w.sumOffsets[0], w.sumOffsets[1]
	}
}

// doTasks does the tasks from ≤ t < to. It leaves out tasks if the context ends.
func (w *worker) doTasks(k *merger, from, to int) {
	switch k.spec.kind {
	case panel:
		w.doPanels(k, from, to)
	case blend:
		w.doBlends(k, from, to)
	case batched:
		w.doBatches(k, from, to)
	case inner:
		for t := from; t < to; t++ {
			w.doInner(k, t)
		}
	}
}

// doTiny computes a whole merge of kind tiny by a plain loop over all entries.
func (w *worker) doTiny(k *merger) {
	x := k.spec
	a, b := k.operands[0], k.operands[1]
	w.sumOffsets[0] = offsets(w.sumOffsets[0], x.sum, 0)
	w.sumOffsets[1] = offsets(w.sumOffsets[1], x.sum, 1)
	w.runOffsets[0] = offsets(w.runOffsets[0], x.outer, 0)
	w.runOffsets[1] = offsets(w.runOffsets[1], x.outer, 1)

	sumA, sumB, runB := w.sumOffsets[0], w.sumOffsets[1][:len(w.sumOffsets[0])], w.runOffsets[1][:len(w.runOffsets[0])]
	for o, i := range w.runOffsets[0] {
		j := runB[o]
		t := 0.0
		for s, d := range sumA {
			t += a[i+d] * b[j+sumB[s]]
		}
		k.out[o] = t
	}
}

// resize returns n entries of any value, in the memory of b if that has room for them.
func resize(b []float64, n int) []float64 {
	if cap(b) < n {
		return make([]float64, n)
	}
	return b[:n]
}

// doPanels does tasks of a panel merge. A task is a piece of the rows and a piece of the run at one place of the outer axes.
func (w *worker) doPanels(k *merger, from, to int) {
	x := k.spec
	tasksPerPlace := k.runPieces * k.rowPieces
	w.outerLoop.seek(x.outer, from/tasksPerPlace)
	n, m := count(x.run), len(w.rowOffsets)
	for t := from; t < to; t++ {
		row, run := t%k.rowPieces, t/k.rowPieces%k.runPieces
		p := panelPiece{
			r0: row * m / k.rowPieces, r1: (row + 1) * m / k.rowPieces,
			j0: run * n / k.runPieces, j1: (run + 1) * n / k.runPieces,
			n: n,
		}
		w.stepLoop.seek(x.steps, 0)
		for step := range count(x.steps) {
			w.stage(k)
			w.insideLoop.seek(x.insideAxes, 0)
			for range count(x.insideAxes) {
				if !w.addPanel(k, p, step == 0) {
					return
				}
				w.insideLoop.next()
			}
			w.stepLoop.next()
		}
		if t%tasksPerPlace == tasksPerPlace-1 {
			w.outerLoop.next()
		}
	}
}

// panelPiece is the part of a panel that a task computes.
type panelPiece struct {
	r0, r1 int // rows
	j0, j1 int // of the run
	n      int // entries of the whole run, and so the distance of rows in the result
}

// addPanel adds S·V at one place to a piece of the result, or sets it if isFirst. It returns false if the context has ended.
func (w *worker) addPanel(k *merger, p panelPiece, isFirst bool) bool {
	out := k.out[w.outerLoop.offsets[2]+w.insideLoop.offsets[2]+p.r0*p.n+p.j0:]
	for s0 := 0; s0 < len(w.sumOffsets[0]); s0 += maxSum {
		if k.ctx.Err() != nil {
			return false
		}
		s1 := min(s0+maxSum, len(w.sumOffsets[0]))
		isWholeSum := s1-s0 == len(w.sumOffsets[0])
		v, sumV, apartV := w.packV(k, p.j0, p.j1, s0, s1, isWholeSum && k.runPieces == 1)
		for r := p.r0; r < p.r1; r += maxRows {
			end := min(r+maxRows, p.r1)
			isSet := isFirst && s0 == 0
			if w.strideInS > 0 {
				s, offset := w.source(k, 0)
				kernel.PanelOf(out[(r-p.r0)*p.n:], p.n, end-r, p.j1-p.j0, s[offset+s0*w.strideInS+r:], w.strideInS, v, sumV, apartV, isSet)
				continue
			}
			w.packS(k, r, end, s0, s1, isWholeSum && len(w.rowOffsets) <= maxRows)
			kernel.Panel(out[(r-p.r0)*p.n:], p.n, end-r, p.j1-p.j0, w.packed[0], v, sumV, apartV, isSet)
		}
	}
	return true
}

// stage copies the block of each staged operand, if it is another than before.
func (w *worker) stage(k *merger) {
	for i := range 2 {
		if k.spec.staged[i].size > 0 && w.staged[i].fill(k.operands[i], w.blockOffset(k, i)) {
			w.packedAt[i] = -1
		}
	}
}

// blockOffset returns the offset of the current block in an operand.
func (w *worker) blockOffset(k *merger, i int) int {
	if k.spec.kind == inner { // its outer axes are within the block
		return w.stepLoop.offsets[i]
	}
	return w.outerLoop.offsets[i] + w.stepLoop.offsets[i]
}

// source returns where to read an operand at the current place of inside: the operand or its staged copy, and the offset in it.
func (w *worker) source(k *merger, i int) (data []float64, offset int) {
	if k.spec.staged[i].size > 0 {
		offset = w.insideLoop.offsets[i]
		if k.spec.kind == inner {
			offset += w.outerLoop.offsets[i]
		}
		return w.staged[i].data, offset
	}
	return k.operands[i], w.outerLoop.offsets[i] + w.stepLoop.offsets[i] + w.insideLoop.offsets[i]
}

// packS writes the rows r0 ≤ r < r1 of S, for the values s0 ≤ s < s1 of the sum, into packed. mayReuse states that a packed S at the same
// offset has the same rows and values.
func (w *worker) packS(k *merger, r0, r1, s0, s1 int, mayReuse bool) {
	from, offset := w.source(k, 0)
	if mayReuse && w.packedAt[0] == offset {
		return
	}
	w.packedAt[0] = offset
	rows := w.rowOffsets[r0:r1]
	sum := w.sumOffsets[0][s0:s1]
	w.packed[0] = resize(w.packed[0], len(rows)*len(sum))
	kernel.PackRows(w.packed[0], from[offset:], rows, sum)
}

// packV returns V for the entries j0 ≤ j < j1 of the run and the values s0 ≤ s < s1 of the sum, where it is or written out. It consists of
// panels of kernel.Columns columns, which are apart entries apart; sum has the offsets of the values in a panel. mayReuse states that a
// packed V at the same offset has the same entries and values.
func (w *worker) packV(k *merger, j0, j1, s0, s1 int, mayReuse bool) (v []float64, sum []int, apart int) {
	from, offset := w.source(k, 1)
	sum = w.sumOffsets[1][s0:s1]
	if w.isDirect[1] {
		return from[offset+j0:], sum, kernel.Columns
	}
	if !mayReuse || w.packedAt[1] != offset {
		w.packedAt[1] = offset
		w.packed[1] = resize(w.packed[1], kernel.PackedColumns(j1-j0, len(sum)))
		kernel.PackColumns(w.packed[1], from[offset:], sum, w.runOffsets[1][j0:j1])
	}
	return w.packed[1], w.multiplesOf(kernel.Columns, len(sum)), kernel.Columns * len(sum)
}

// gather copies the entries at some offsets into out.
func gather(out, from []float64, offsets []int) {
	offsets = offsets[:len(out)]
	for i, j := range offsets {
		out[i] = from[j]
	}
}
