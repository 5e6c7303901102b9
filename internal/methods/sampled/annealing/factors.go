package annealing

// Any tables: eight chains side by side over indices of any number of values, with vectors and without, with the same bits.

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
)

// tableModel is a model over indices of any number of values, in the form for the loops. The tables are differences of the logarithm at a
// value from that at value 0, given the other indices. A row has one integer for each of eight chains.
type tableModel struct {
	dims             []int
	tables           []logTable
	rowCount         int     // rows of a group of chains: the values of the indices, then the entries of the tables over three or more indices
	tableRows        []int32 // by table: its row, 0 if it has none
	sites            []site
	ops              []op
	differences      []float32
	unaryDifferences []float32 // by index of two or more values, by value from 1 on: of the tables over that index only, less the start
	startDifferences []float32 // the same of where chains begin, in powers of 2
	startLn          [][]float64
	maxValues        int     // of an index
	sweepFlops       float64 // of one chain
}

// logTable has the logarithms of a table. An entry of 0 has the least of the others less hardness.
type logTable struct {
	scope  []int
	ln     []float64
	isZero []bool
}

// site is an index that takes steps. Its operations begin where those of the previous site end. The operations before movingEnd are of
// tables with a row of their own, which changes with the index. The assembly knows the layout.
type site struct{ row, valueCount, movingEnd, end int32 }

// op adds the differences of a table to those of the values of a site. row is the offset in bytes of the row that selects the entry, step
// the number of bytes from a value to the next, table the offset in bytes in differences, and stride what the row changes by when the value
// rises by 1. Eight or sixteen entries are permuted, more are gathered. The assembly knows the layout.
type op struct{ row, step, table, stride int32 }

// maxDifferences limits the differences of a model.
const maxDifferences = 1 << 26

// newTableModel returns the model of an expression for chains that begin with log-probabilities startLn. Error: unsupported if there are
// more than maxDifferences.
func newTableModel(e *sumproduct.Expression, startLn [][]float64) (*tableModel, error) {
	f := &tableModel{dims: e.Dims, rowCount: len(e.Dims), tableRows: make([]int32, len(e.Tables)), startLn: startLn}
	tablesOf := make([][]int32, len(e.Dims)) // by index
	differences := 0.0
	for t, table := range e.Tables {
		f.tables = append(f.tables, newLogTable(table))
		for _, i := range table.Scope {
			tablesOf[i] = append(tablesOf[i], int32(t))
			differences += float64(e.Dims[i]-1) * float64(len(table.Data))
		}
		if len(table.Scope) > 2 {
			f.tableRows[t] = int32(f.rowCount)
			f.rowCount++
		}
	}
	if differences > maxDifferences {
		return nil, fault.New(fault.Unsupported, "annealing: %.3g differences of tables, at most %d", differences, int64(maxDifferences))
	}
	offsets := map[string]int32{}
	for i, d := range e.Dims {
		f.maxValues = max(f.maxValues, d)
		if d > 1 {
			f.addSite(i, tablesOf[i], offsets)
		}
	}
	return f, nil
}

// addSite adds index i, which the tables are over, with its operations and differences. offsets has those of equal differences that are
// there already (see addDifferences).
func (f *tableModel) addSite(i int, tables []int32, offsets map[string]int32) {
	d := f.dims[i]
	unary := make([]float64, d)
	var moving, fixed []op
	for _, t := range tables {
		table := &f.tables[t]
		switch len(table.scope) {
		case 1:
			for a := range unary {
				unary[a] += table.ln[a]
			}
		case 2:
			other, stride, otherStride := table.scope[1], f.dims[table.scope[1]], 1
			if other == i {
				other, stride, otherStride = table.scope[0], 1, d
			}
			o := f.addDifferences(offsets, d, f.dims[other], func(a, k int) float64 { return table.ln[a*stride+k*otherStride] })
			o.row = int32(other) * 4 * Group
			fixed = append(fixed, o)
		default:
			stride := 1
			for k := len(table.scope) - 1; table.scope[k] != i; k-- {
				stride *= f.dims[table.scope[k]]
			}
			// Entry k with the value of index i replaced by a.
			o := f.addDifferences(offsets, d, len(table.ln), func(a, k int) float64 { return table.ln[k+(a-k/stride%d)*stride] })
			o.row, o.stride = f.tableRows[t]*4*Group, int32(stride)
			moving = append(moving, o)
		}
	}
	f.ops = append(f.ops, moving...)
	movingEnd := len(f.ops)
	f.ops = append(f.ops, fixed...)
	f.sites = append(f.sites, site{int32(i) * 4 * Group, int32(d), int32(movingEnd), int32(len(f.ops))})
	for a := 1; a < d; a++ {
		start := f.startLn[i][a] - f.startLn[i][0]
		f.unaryDifferences = append(f.unaryDifferences, float32(unary[a]-unary[0]-start))
		f.startDifferences = append(f.startDifferences, float32(start*math.Log2E))
	}
	f.sweepFlops += f.stepFlops(d, moving, fixed)
}

// newLogTable returns the logarithms of a table.
func newLogTable(t sumproduct.Table) logTable {
	logs := logTable{scope: t.Scope, ln: make([]float64, len(t.Data)), isZero: make([]bool, len(t.Data))}
	least := math.Inf(1)
	for k, x := range t.Data {
		if logs.isZero[k] = x == 0; x > 0 {
			logs.ln[k] = floats.Ln(x)
			if t.Exp != nil {
				logs.ln[k] += float64(t.Exp[k]) * math.Ln2
			}
			least = min(least, logs.ln[k])
		}
	}
	for k, isZero := range logs.isZero {
		if isZero && !math.IsInf(least, 1) {
			logs.ln[k] = least - hardness
		}
	}
	return logs
}

// addDifferences returns an operation with the differences ln(a, k) − ln(0, k) of 0 < a < d and k < n, padded to a full vector for each
// value a. It appends them to f.differences unless the same ones are there: offsets has the offset in bytes by content.
func (f *tableModel) addDifferences(offsets map[string]int32, d, n int, ln func(a, k int) float64) op {
	size := n
	switch {
	case n <= Group:
		size = Group
	case n <= 2*Group:
		size = 2 * Group
	}
	differences, content := make([]float32, (d-1)*size), make([]byte, 0, 4*(d-1)*size)
	for a := 1; a < d; a++ {
		for k := range n {
			differences[(a-1)*size+k] = float32(ln(a, k) - ln(0, k))
		}
	}
	for _, x := range differences {
		content = binary.LittleEndian.AppendUint32(content, math.Float32bits(x))
	}
	offset, ok := offsets[string(content)]
	if !ok {
		offset = int32(4 * len(f.differences))
		f.differences = append(f.differences, differences...)
		offsets[string(content)] = offset
	}
	return op{step: int32(4 * size), table: offset}
}

// stepFlops returns the time of a step at an index of d values in flops, with eight chains side by side. Measured on Potts models,
// colourings, and tables of arity 2 to 5.
func (f *tableModel) stepFlops(d int, moving, fixed []op) float64 {
	flops := 6.0
	perOp := 1.0
	if d > 2 {
		flops, perOp = 4+2.5*float64(d), 0.7*float64(d-1)
	}
	for _, o := range append(moving[:len(moving):len(moving)], fixed...) {
		if o.step > 8*Group { // gathered
			flops += 4 * perOp
		} else {
			flops += perOp
		}
	}
	return flops + float64(len(moving))
}

// tableChains are eight chains over a tableModel: row r of chain c is rows[r·8+c].
type tableChains struct {
	*tableModel
	random
	rows   []int32
	buffer []float32      // scratch: two rows for each value of an index
	energy [Group]float64 // ln of the product of the tables less the log-probability of the start, at the present state
}

// anneal carries chains first to first+7 along a path, and adds their log-weights to ln. It returns their last states if isEndWanted, index
// by index. It ends early with the context.
func (f *tableModel) anneal(ctx context.Context, p Path, first int64, ln []float64, isEndWanted bool) (end []uint8) {
	w := f.startChains(p.Seed, uint64(first))
	for k := range p.Rungs {
		if ctx.Err() != nil {
			return nil
		}
		if k%renewalRungs == 0 || k+1 == p.Rungs {
			w.recomputeEnergies()
		}
		for c, e := range w.energy {
			ln[c] += e * (p.Beta(k+1) - p.Beta(k))
		}
		if part := p.checkpointAt(k + 1); part >= 0 {
			copy(p.checkpoints.ln[part][first-p.checkpoints.first:], ln)
		}
		if k+1 < p.Rungs {
			w.sweep(p.Beta(k+1), p.Step)
		}
	}
	for c := range ln {
		if w.isImpossible(c) {
			ln[c] = math.Inf(-1)
		}
	}
	if isEndWanted {
		end = make([]uint8, len(f.dims)*Group)
		for k := range end {
			end[k] = uint8(w.rows[k])
		}
	}
	return end
}

// startChains returns chains first to first+7 at states drawn from the start.
func (f *tableModel) startChains(seed, first uint64) *tableChains {
	w := &tableChains{
		tableModel: f, random: newRandom(seed, first), rows: make([]int32, f.rowCount*Group), buffer: make([]float32, 2*f.maxValues*Group),
	}
	for i, d := range f.dims {
		for c := range Group {
			u, a := float64(w.nextWord(c))*0x1p-32, 0
			for ; a < d-1; a++ {
				if u -= math.Exp(f.startLn[i][a]); u < 0 {
					break
				}
			}
			w.rows[i*Group+c] = int32(a)
		}
	}
	for t := range f.tables {
		for c := range Group {
			if row := int(f.tableRows[t]); row > 0 {
				w.rows[row*Group+c] = int32(w.entryIndex(t, c))
			}
		}
	}
	return w
}

// entryIndex returns the index of the entry of table t at the state of chain c.
func (w *tableChains) entryIndex(t, c int) (index int) {
	for _, i := range w.tables[t].scope {
		index = index*w.dims[i] + int(w.rows[i*Group+c])
	}
	return index
}

// recomputeEnergies computes the energies anew, so that roundings do not add up.
func (w *tableChains) recomputeEnergies() {
	for c := range Group {
		e := 0.0
		for t := range w.tables {
			e += w.tables[t].ln[w.entryIndex(t, c)]
		}
		for i := range w.dims {
			e -= w.startLn[i][w.rows[i*Group+c]]
		}
		w.energy[c] = e
	}
}

// isImpossible reports whether an entry is 0 at the state of chain c.
func (w *tableChains) isImpossible(c int) bool {
	for t := range w.tables {
		if w.tables[t].isZero[w.entryIndex(t, c)] {
			return true
		}
	}
	return false
}

// crowdArgs are the arguments of crowdVector. The assembly knows the layout.
type crowdArgs struct {
	n      int64
	sites  *site
	rows   *int32
	ops    *op
	ln     *float32
	own    *float32
	base   *float32
	state  *random
	buffer *float32
	energy *[Group]float64
	scale  float32 // β log2 e
	step   Step
}

// sweep takes a step at every index of every chain: Metropolis steps only if an index has two values.
func (w *tableChains) sweep(beta float64, step Step) {
	scale := float32(beta * math.Log2E)
	if !vectors || len(w.sites) == 0 {
		w.sweepPortable(scale, step)
		return
	}
	a := crowdArgs{
		n: int64(len(w.sites)), sites: &w.sites[0], rows: &w.rows[0], own: &w.unaryDifferences[0], base: &w.startDifferences[0],
		state: &w.random, buffer: &w.buffer[0], energy: &w.energy, scale: scale, step: step,
	}
	if len(w.ops) > 0 {
		a.ops, a.ln = &w.ops[0], &w.differences[0]
	}
	crowdVector(&a)
}

// sweepPortable is the loop of sweep without vectors.
func (w *tableChains) sweepPortable(scale float32, step Step) {
	firstOp, firstUnary := 0, 0
	for _, s := range w.sites {
		row := w.rows[s.row/4:][:Group]
		ops := w.ops[firstOp:s.end]
		d := int(s.valueCount)
		for c := range row {
			// buffer[a] is the difference of the energy at value a from that at value 0.
			for a := 1; a < d; a++ {
				w.buffer[a] = w.unaryDifferences[firstUnary+a-1]
				for _, o := range ops {
					w.buffer[a] += w.differences[int(o.table+int32(a-1)*o.step)/4+int(w.rows[int(o.row)/4+c])]
				}
			}
			u := float32(float32(int32(w.nextWord(c)>>1)) * 0x1p-31)
			var value int32
			if d == 2 {
				value = stepTwo(row[c], w.buffer[1], scale, w.startDifferences[firstUnary], u, step)
			} else {
				value = stepMany(w.buffer[:2*d], scale, w.startDifferences[firstUnary:], u)
			}
			w.buffer[0] = 0
			if d == 2 {
				w.energy[c] += float64(float32(float32(value-row[c]) * w.buffer[1]))
			} else {
				w.energy[c] += float64(w.buffer[value] - w.buffer[row[c]])
			}
			for _, o := range w.ops[firstOp:s.movingEnd] {
				w.rows[int(o.row)/4+c] += o.stride * (value - row[c])
			}
			row[c] = value
		}
		firstOp, firstUnary = int(s.end), firstUnary+d-1
	}
}

// stepTwo returns the value after a step of an index of two values, where value 1 has log odds x·scale + start in powers of 2. u is uniform
// in [0, 1).
func stepTwo(old int32, x, scale, start, u float32, step Step) int32 {
	logOdds := float32(x*scale) + start
	e := exp2(min(float32(math.Abs(float64(logOdds))), 126)) // probability of the less likely value over that of the other
	likely := int32(1)
	if math.Signbit(float64(logOdds)) {
		likely = 0
	}
	if step == Metropolis {
		if likely != old || u < e {
			return 1 - old
		}
		return old
	}
	if float32(u*float32(1+e)) < e {
		return 1 - likely
	}
	return likely
}

// stepMany returns the value after a step of an index of d values, where value a has log odds buffer[a]·scale + start[a−1] to value 0 in
// powers of 2. buffer has 2d entries, and its second half is overwritten. u is uniform in [0, 1).
func stepMany(buffer []float32, scale float32, start []float32, u float32) (value int32) {
	d := len(buffer) / 2
	sums := buffer[d:] // log odds, then sums of probabilities up to a value
	sums[0] = 0
	top := float32(0)
	for a := 1; a < d; a++ {
		sums[a] = float32(buffer[a]*scale) + start[a-1]
		top = max(top, sums[a])
	}
	total := float32(0)
	for a := range sums {
		total += exp2(min(top-sums[a], 126))
		sums[a] = total
	}
	threshold := float32(u * total)
	for _, x := range sums[:d-1] {
		if x <= threshold {
			value++
		}
	}
	return value
}
