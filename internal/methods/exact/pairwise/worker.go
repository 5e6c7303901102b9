package pairwise

// The work of one thread on a merge.

import "github.com/basetensor/basetensor/internal/base/kernel"

// worker is one thread's workspace for a merge. S and V are operands 0 and 1 of a panel merge, out[rows, run] += S[rows, k] · V[k, run].
// Blocks, steps, runs, rows and sums are those of the spec.
type worker struct {
	outerLoop, stepLoop odometer       // the current block
	insideLoop          odometer       // the position within staged data
	staged              [2]stagedBlock // by operand: the copy of the current block, if the operand is staged
	runOffsets          [2][]int       // by operand: offsets of the entries of a run; empty if it is read directly
	sumOffsets          [2][]int       // by operand: offsets of the values summed within a block
	rowOffsets          []int          // offsets of the rows of S
	strideInS           int            // of the values of the sum, if S is read where it is staged; 0 if it is packed
	packed              [2][]float64   // by operand: a part of it, written out in the sequence that the kernel reads
	packedAt            [2]int         // by operand: the offset of what is written out; −1 if nothing is
	multiples           []int          // memory of multiplesOf
	isDirect            [2]bool        // by operand: the kernel reads it where it is, not from packed
	matrices            kernel.Places  // offsets for matrices side by side
}

// start prepares the worker for the merge of m: it fills in the offsets of runs, sums and rows in the operands, and has nothing staged or
// packed yet. An operand is direct if the kernel reads its runs where they are; otherwise they are packed first.
func (w *worker) start(m *merger) {
	x := m.spec
	for operand := range 2 {
		w.isDirect[operand] = x.isContiguous(operand)
		if isV := x.kind == panel && operand == 1; isV {
			w.isDirect[operand] = !x.packsV()
		}
		w.runOffsets[operand] = w.runOffsets[operand][:0]
		if !w.isDirect[operand] {
			w.runOffsets[operand] = offsets(w.runOffsets[operand], x.run, operand)
		}
		w.sumOffsets[operand] = offsets(w.sumOffsets[operand], x.sum, operand)
		w.packedAt[operand] = -1 // nothing is packed yet, from any offset
		w.staged[operand].start(&x.staged[operand])
	}

	const a, b, result = 0, 1, 2
	switch x.kind {
	case panel:
		w.rowOffsets = offsets(w.rowOffsets, x.rows, a)
		w.strideInS = x.strideInS()
	case batched:
		p := &w.matrices
		p.ARows, p.OutRows = offsets(p.ARows, x.rows, a), offsets(p.OutRows, x.rows, result)
		p.BColumns, p.OutColumns = offsets(p.BColumns, x.columns, b), offsets(p.OutColumns, x.columns, result)
		p.ASum, p.BSum = w.sumOffsets[a], w.sumOffsets[b]
	}
}

// doTasks computes the tasks from ≤ t < to of a merge. If the context ends, it leaves out tasks.
func (w *worker) doTasks(m *merger, from, to int) {
	switch m.spec.kind {
	case panel:
		w.doPanels(m, from, to)
	case blend:
		w.doBlends(m, from, to)
	case batched:
		w.doBatches(m, from, to)
	case inner:
		for t := from; t < to; t++ {
			w.doInner(m, t)
		}
	}
}

// doTiny computes a merge of kind tiny by a plain loop: each entry of the result is Σ A·B over the values of the sum.
func (w *worker) doTiny(m *merger) {
	x := m.spec
	a, b := m.operands[0], m.operands[1]
	w.sumOffsets[0] = offsets(w.sumOffsets[0], x.sum, 0)
	w.sumOffsets[1] = offsets(w.sumOffsets[1], x.sum, 1)
	w.runOffsets[0] = offsets(w.runOffsets[0], x.outer, 0)
	w.runOffsets[1] = offsets(w.runOffsets[1], x.outer, 1)

	// All offsets of b are as many as those of a, so that bounds are checked once.
	sumA, outA := w.sumOffsets[0], w.runOffsets[0]
	sumB, outB := w.sumOffsets[1][:len(sumA)], w.runOffsets[1][:len(outA)]
	for entry, i := range outA {
		j := outB[entry]
		total := 0.0
		for s, d := range sumA {
			total += a[i+d] * b[j+sumB[s]]
		}
		m.out[entry] = total
	}
}

// resize returns a slice of n entries with any content. It uses the memory of b if that is large enough.
func resize(b []float64, n int) []float64 {
	if cap(b) < n {
		return make([]float64, n)
	}
	return b[:n]
}

// doPanels computes the tasks from ≤ t < to of a panel merge, out[rows, run] += S[rows, k] · V[k, run]. The result has one block for each
// combination of values of the outer axes. A task is a piece of the rows and a piece of the run of one block; the tasks of a block follow
// each other, those with the same piece of the run first. A task goes through all steps, blocks of the values k of the sum, and within a
// step through all positions in the staged data (insideAxes).
func (w *worker) doPanels(m *merger, from, to int) {
	x := m.spec
	tasksPerBlock := m.runPieces * m.rowPieces
	w.outerLoop.seek(x.outer, from/tasksPerBlock)
	runEntries := count(x.run)
	for t := from; t < to; t++ {
		p := panelPiece{
			rows:       pieceOf(len(w.rowOffsets), m.rowPieces, t%m.rowPieces),
			run:        pieceOf(runEntries, m.runPieces, t/m.rowPieces%m.runPieces),
			runEntries: runEntries,
		}
		w.stepLoop.seek(x.steps, 0)
		for step := range count(x.steps) {
			w.stage(m) // copies the blocks of staged operands, unless they are there already
			w.insideLoop.seek(x.insideAxes, 0)
			for range count(x.insideAxes) {
				if isFirst := step == 0; !w.addPanel(m, p, isFirst) { // the first step sets the piece, the others add to it
					return // the context has ended
				}
				w.insideLoop.next()
			}
			w.stepLoop.next()
		}
		if isLastOfBlock := t%tasksPerBlock == tasksPerBlock-1; isLastOfBlock {
			w.outerLoop.next()
		}
	}
}

// interval is the positions start ≤ i < end.
type interval struct{ start, end int }

// length returns the number of positions.
func (i interval) length() int { return i.end - i.start }

// pieceOf returns piece k of the positions 0 ≤ i < n, which are cut into that number of parts of almost equal length.
func pieceOf(n, parts, k int) interval { return interval{k * n / parts, (k + 1) * n / parts} }

// panelPiece is the part of a panel that a task computes: some rows, and some entries of the run.
type panelPiece struct {
	rows, run  interval
	runEntries int // entries of the whole run, and so the distance of rows in the result
}

// addPanel adds the product of matrices Σ_k S[rows, k] · V[k, run], for the values k of the sum in the current block, to a piece of the
// result, or sets the piece to it if isFirst. It goes through the sum by at most maxSum values, and through the rows by at most maxRows
// rows at a time, for which S and V are packed if the kernel cannot read them where they are. It returns false if the context has ended.
func (w *worker) addPanel(m *merger, p panelPiece, isFirst bool) bool {
	out := m.out[w.outerLoop.offsets[2]+w.insideLoop.offsets[2]+p.rows.start*p.runEntries+p.run.start:]
	columns := p.run.length()
	sumLength := len(w.sumOffsets[0])
	for start := 0; start < sumLength; start += maxSum {
		if m.ctx.Err() != nil {
			return false
		}
		sum := interval{start, min(start+maxSum, sumLength)}
		isWholeSum := sum.length() == sumLength
		mayReuseV := isWholeSum && m.runPieces == 1 // a V that was packed for other rows
		v, sumV, groupDistance := w.packV(m, p.run, sum, mayReuseV)
		for row := p.rows.start; row < p.rows.end; row += maxRows {
			rows := interval{row, min(row+maxRows, p.rows.end)}
			rowOut := out[(row-p.rows.start)*p.runEntries:] // from the first of these rows on
			isSet := isFirst && start == 0                  // the kernel sets the piece; otherwise it adds to it
			if w.strideInS > 0 {                            // S is read where it is staged
				s, offset := w.source(m, 0)
				s = s[offset+start*w.strideInS+row:]
				kernel.PanelOf(rowOut, p.runEntries, rows.length(), columns, s, w.strideInS, v, sumV, groupDistance, isSet)
				continue
			}
			mayReuseS := isWholeSum && len(w.rowOffsets) <= maxRows // an S that was packed for another piece of the run
			w.packS(m, rows, sum, mayReuseS)
			kernel.Panel(rowOut, p.runEntries, rows.length(), columns, w.packed[0], v, sumV, groupDistance, isSet)
		}
	}
	return true
}

// stage copies the current block of each operand that is staged, if it is another block than before.
func (w *worker) stage(m *merger) {
	for operand := range 2 {
		isStaged := m.spec.staged[operand].size > 0
		if isStaged && w.staged[operand].fill(m.operands[operand], w.blockOffset(m, operand)) {
			w.packedAt[operand] = -1 // what is packed is of another block
		}
	}
}

// blockOffset returns the offset of the current block in an operand. Of an inner merge all entries of the result are within a block.
func (w *worker) blockOffset(m *merger, operand int) int {
	if m.spec.kind == inner {
		return w.stepLoop.offsets[operand]
	}
	return w.outerLoop.offsets[operand] + w.stepLoop.offsets[operand]
}

// source returns where the kernel reads an operand at the current position of all loops: the operand or its staged copy, and the offset in
// it. The copy is of the current block. So the loops over blocks have no part in the offset, except that a block of an inner merge has all
// values of the outer axes.
func (w *worker) source(m *merger, operand int) (data []float64, offset int) {
	if isStaged := m.spec.staged[operand].size > 0; isStaged {
		offset = w.insideLoop.offsets[operand]
		if m.spec.kind == inner {
			offset += w.outerLoop.offsets[operand]
		}
		return w.staged[operand].data, offset
	}
	return m.operands[operand], w.outerLoop.offsets[operand] + w.stepLoop.offsets[operand] + w.insideLoop.offsets[operand]
}

// packS writes the matrix S[rows, k] of a panel merge, which is operand 0, for some rows and some values k of the sum into packed[0], in
// the sequence that the kernel reads. mayReuse states that an S that was packed before from the same offset has the same rows and values.
func (w *worker) packS(m *merger, rows, sum interval, mayReuse bool) {
	data, offset := w.source(m, 0)
	if mayReuse && w.packedAt[0] == offset {
		return
	}
	w.packedAt[0] = offset
	rowOffsets := w.rowOffsets[rows.start:rows.end]
	sumOffsets := w.sumOffsets[0][sum.start:sum.end]
	w.packed[0] = resize(w.packed[0], len(rowOffsets)*len(sumOffsets))
	kernel.PackRows(w.packed[0], data[offset:], rowOffsets, sumOffsets)
}

// packV returns the matrix V[k, run] of a panel merge, out[rows, run] += S[rows, k] · V[k, run], for some values k of the sum and some
// entries of the run, which are the columns of V. The kernel reads the columns in groups of kernel.Columns: group g of row k begins at
// v[sumOffsets[k] + g·groupDistance]. If the operand has the columns of a row next to each other (isDirect), v is the operand itself, or
// its staged copy. Otherwise packV writes V into packed[1], group by group, and v is that. mayReuse states that a V that was packed before
// from the same offset has the same rows and columns.
func (w *worker) packV(m *merger, run, sum interval, mayReuse bool) (v []float64, sumOffsets []int, groupDistance int) {
	data, offset := w.source(m, 1)
	sumOffsets = w.sumOffsets[1][sum.start:sum.end]
	if w.isDirect[1] { // the columns of a row, and so its groups, follow each other
		return data[offset+run.start:], sumOffsets, kernel.Columns
	}
	if !mayReuse || w.packedAt[1] != offset {
		w.packedAt[1] = offset
		w.packed[1] = resize(w.packed[1], kernel.PackedColumns(run.length(), sum.length()))
		kernel.PackColumns(w.packed[1], data[offset:], sumOffsets, w.runOffsets[1][run.start:run.end])
	}
	return w.packed[1], w.multiplesOf(kernel.Columns, sum.length()), kernel.Columns * sum.length()
}

// gather sets out[i] to data[offsets[i]] for all entries of out.
func gather(out, data []float64, offsets []int) {
	offsets = offsets[:len(out)]
	for i, j := range offsets {
		out[i] = data[j]
	}
}
