package pairwise

// The work of one thread on a merge.

import "github.com/basetensor/basetensor/internal/base/kernel"

// worker is one thread's workspace.
type worker struct {
	outer, step odometer
	inside      odometer
	place       [2]place     // of staged operands
	run         [2][]int     // offsets of the run, where an operand is not contiguous along it
	sum         [2][]int     // offsets of the values summed within a block
	rows        []int        // offsets of the rows of S
	apart       int          // of values of the sum in S, 0 where it is packed
	packed      [2][]float64 // panels and runs written out
	held        [2]int       // offset of the panel that is written out, −1 for none
	at          []int        // where the rows of the panel of V are
	direct      [2]bool      // by operand: it is read where it is
	matrices    kernel.Places
}

// start fills in the offsets of a merge.
func (w *worker) start(k *merger) {
	x := k.spec
	for i := range 2 {
		w.direct[i] = x.contiguous(i)
		if x.kind == panel && i == 1 {
			w.direct[i] = !x.packs()
		}
		w.run[i] = w.run[i][:0]
		if !w.direct[i] {
			w.run[i] = offsets(w.run[i], x.run, i)
		}
		w.sum[i] = offsets(w.sum[i], x.sum, i)
		w.held[i] = -1
		w.place[i].start(&x.staged[i])
	}
	switch x.kind {
	case panel:
		w.rows = offsets(w.rows, x.rows, 0)
		w.apart = x.apart()
	case batched:
		p := &w.matrices
		p.ARows, p.OutRows = offsets(p.ARows, x.rows, 0), offsets(p.OutRows, x.rows, 2)
		p.BColumns, p.OutColumns = offsets(p.BColumns, x.columns, 1), offsets(p.OutColumns, x.columns, 2)
		p.ASum, p.BSum = w.sum[0], w.sum[1]
	}
}

// span does tasks from to to−1.
func (w *worker) span(k *merger, from, to int) {
	switch k.spec.kind {
	case panel:
		w.panels(k, from, to)
	case blend:
		w.blends(k, from, to)
	case batched:
		w.batches(k, from, to)
	case inner:
		for t := from; t < to; t++ {
			w.inners(k, t)
		}
	}
}

// tiny is a plain loop over all entries.
func (w *worker) tiny(k *merger) {
	x := k.spec
	a, b := k.operands[0], k.operands[1]
	w.sum[0] = offsets(w.sum[0], x.sum, 0)
	w.sum[1] = offsets(w.sum[1], x.sum, 1)
	w.run[0] = offsets(w.run[0], x.outer, 0)
	w.run[1] = offsets(w.run[1], x.outer, 1)

	sumA, sumB, runB := w.sum[0], w.sum[1][:len(w.sum[0])], w.run[1][:len(w.run[0])]
	for o, i := range w.run[0] {
		j := runB[o]
		t := 0.0
		for s, d := range sumA {
			t += a[i+d] * b[j+sumB[s]]
		}
		k.out[o] = t
	}
}

// room returns n entries, in b where there are as many.
func room(b []float64, n int) []float64 {
	if cap(b) < n {
		return make([]float64, n)
	}
	return b[:n]
}

// panels does tasks of a panel merge:
// a task is a piece of the rows and a piece of the run at a place of the outer axes.
func (w *worker) panels(k *merger, from, to int) {
	x := k.spec
	inBlock := k.runs * k.rows
	w.outer.seek(x.outer, from/inBlock)
	n, m := count(x.run), len(w.rows)
	for t := from; t < to; t++ {
		row, run := t%k.rows, t/k.rows%k.runs
		r0, r1 := row*m/k.rows, (row+1)*m/k.rows
		j0, j1 := run*n/k.runs, (run+1)*n/k.runs

		w.step.seek(x.steps, 0)
		for step := range count(x.steps) {
			w.stage(k)
			w.inside.seek(x.inside, 0)
			for range count(x.inside) {
				out := k.out[w.outer.off[2]+w.inside.off[2]+r0*n+j0:]
				for s0 := 0; s0 < len(w.sum[0]); s0 += maxSum {
					if k.ctx.Err() != nil {
						return
					}
					s1 := min(s0+maxSum, len(w.sum[0]))
					whole := s1-s0 == len(w.sum[0])
					v, at, apart := w.packV(k, j0, j1, s0, s1, whole && k.runs == 1)
					for r := r0; r < r1; r += maxRows {
						end := min(r+maxRows, r1)
						first := step+s0 == 0
						if w.apart > 0 {
							rows, from := w.source(k, 0)
							kernel.PanelOf(out[(r-r0)*n:], n, end-r, j1-j0, rows[from+s0*w.apart+r:], w.apart, v, at, apart, first)
							continue
						}
						w.packS(k, r, end, s0, s1, whole && m <= maxRows)
						kernel.Panel(out[(r-r0)*n:], n, end-r, j1-j0, w.packed[0], v, at, apart, first)
					}
				}
				w.inside.next()
			}
			w.step.next()
		}
		if t%inBlock == inBlock-1 {
			w.outer.next()
		}
	}
}

// stage copies the staged operands' entries for the block at this place.
func (w *worker) stage(k *merger) {
	for i := range 2 {
		if k.spec.staged[i].size > 0 && w.place[i].fill(k.operands[i], w.beyond(k, i)) {
			w.held[i] = -1
		}
	}
}

// beyond is where an operand has the block at this place.
func (w *worker) beyond(k *merger, i int) int {
	if k.spec.kind == inner {
		return w.step.off[i]
	}
	return w.outer.off[i] + w.step.off[i]
}

// source returns an operand, or its copy, and where the block at this place of inside begins in it.
func (w *worker) source(k *merger, i int) ([]float64, int) {
	if k.spec.staged[i].size > 0 {
		at := w.inside.off[i]
		if k.spec.kind == inner {
			at += w.outer.off[i]
		}
		return w.place[i].data, at
	}
	return k.operands[i], w.outer.off[i] + w.step.off[i] + w.inside.off[i]
}

// packS writes out a block of S, row by row.
func (w *worker) packS(k *merger, r0, r1, s0, s1 int, same bool) {
	from, at := w.source(k, 0)
	if same && w.held[0] == at {
		return
	}
	w.held[0] = at
	rows := w.rows[r0:r1]
	sum := w.sum[0][s0:s1]
	w.packed[0] = room(w.packed[0], len(rows)*len(sum))
	kernel.PackRows(w.packed[0], from[at:], rows, sum)
}

// packV returns the panel of V, where it is or written out: its rows begin at the places of the list,
// and its panels are step entries apart.
func (w *worker) packV(k *merger, j0, j1, s0, s1 int, same bool) ([]float64, []int, int) {
	from, at := w.source(k, 1)
	sum := w.sum[1][s0:s1]
	if w.direct[1] {
		return from[at+j0:], sum, kernel.Columns
	}
	if !same || w.held[1] != at {
		w.held[1] = at
		w.packed[1] = room(w.packed[1], kernel.PackedColumns(j1-j0, len(sum)))
		kernel.PackColumns(w.packed[1], from[at:], sum, w.run[1][j0:j1])
	}
	return w.packed[1], w.places(kernel.Columns, len(sum)), kernel.Columns * len(sum)
}

// gather copies entries of a list together.
func gather(out, from []float64, at []int) {
	at = at[:len(out)]
	for i, j := range at {
		out[i] = from[j]
	}
}
