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

// tableModel is a model over indices of any number of values, in the form for the loops. A step of an index needs only differences: the
// logarithm of a table at value a of the index less that at value 0, given the other indices. Eight chains have rows of eight integers, one
// for each chain: a row for the value of every index, then a row for the present entry of every table over three or more indices.
type tableModel struct {
	dims             []int
	tables           []logTable
	rowCount         int         // number of rows
	tableRows        []int32     // by table: its row, 0 if it has none
	sites            []site      // in the sequence of steps
	ops              []op        // of all sites, one site after the other
	differences      []float32   // of the tables over two or more indices
	unaryDifferences []float32   // of the tables over one index, less startDifferences in nats: for values 1, 2 … of each site in turn
	startDifferences []float32   // of the log-probabilities where chains begin, in powers of 2, in the same sequence
	startLn          [][]float64 // startLn[i][a] is the log-probability that a chain begins with value a of index i
	maxValues        int         // largest number of values of an index
	sweepFlops       float64     // flops of a sweep of one chain
}

// logTable has the logarithms of the entries of a table. An entry of 0 has the least of the others less hardness.
type logTable struct {
	scope  []int
	ln     []float64
	isZero []bool
}

// site is an index that takes steps. The assembly knows the layout.
type site struct {
	rowOffset  int32 // offset of the index's row, in bytes
	valueCount int32
	movingEnd  int32 // end in ops of the operations of tables with a row of their own, which changes with the index
	end        int32 // end in ops of all operations; they begin where those of the previous site end
}

// op adds the differences of a table to those of a site's values. Eight or sixteen entries are permuted, more are gathered. The assembly
// knows the layout.
type op struct {
	rowOffset   int32 // offset in bytes of the row that selects the difference: that of the table, or of its other index
	valueStep   int32 // bytes in differences from a value of the site to the next
	tableOffset int32 // offset in bytes of the table in differences
	entryStride int32 // change of the table's row if the value of the site rises by 1
}

// maxDifferences limits the differences of a model.
const maxDifferences = 1 << 26

// newTableModel returns the model of an expression for chains that begin with log-probabilities startLn. A difference is the logarithm of a
// table at value a > 0 of one of its indices less that at value 0, at given values of the other indices. A row has one number for each
// chain. Error: unsupported if there are more than maxDifferences.
func newTableModel(e *sumproduct.Expression, startLn [][]float64) (*tableModel, error) {
	// Give a row, for the chains' present entries, to every table over three or more indices, and count the differences.
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

	// List what the steps of each index read. An index of one value takes no steps. offsets lets equal differences share their memory.
	offsets := map[string]int32{}
	for i, d := range e.Dims {
		f.maxValues = max(f.maxValues, d)
		if d > 1 {
			f.addSite(i, tablesOf[i], offsets)
		}
	}
	return f, nil
}

// addSite adds index i to the sites, the indices that take steps. Each table that has i and other indices gets an operation: it adds the
// differences of the table, ln at value a of i less ln at value 0, to those of the site. tables are the numbers of the tables that have i.
// offsets has the places of the differences added before (addDifferences).
func (f *tableModel) addSite(i int, tables []int32, offsets map[string]int32) {
	d := f.dims[i]
	unary := make([]float64, d) // by value: Σ of the logarithms of tables over i alone
	var moving, fixed []op      // of tables whose row changes with i, and of tables that use the row of their other index
	for _, t := range tables {
		switch table := &f.tables[t]; len(table.scope) {
		case 1:
			for a := range unary {
				unary[a] += table.ln[a]
			}
		case 2:
			fixed = append(fixed, f.pairOp(i, table, offsets))
		default:
			o := f.tableOp(i, table, offsets)
			o.rowOffset = f.tableRows[t] * rowBytes
			moving = append(moving, o)
		}
	}

	f.ops = append(f.ops, moving...)
	movingEnd := len(f.ops)
	f.ops = append(f.ops, fixed...)
	f.sites = append(f.sites, site{int32(i) * rowBytes, int32(d), int32(movingEnd), int32(len(f.ops))})
	for a := 1; a < d; a++ {
		// At β the log odds of value a to value 0 are start + β·(ln of the tables − start), so the two parts are stored apart.
		start := f.startLn[i][a] - f.startLn[i][0]
		f.unaryDifferences = append(f.unaryDifferences, float32(unary[a]-unary[0]-start))
		f.startDifferences = append(f.startDifferences, float32(start*math.Log2E))
	}
	f.sweepFlops += f.stepFlops(d, moving, fixed)
}

// rowBytes is the size of a row: GroupSize numbers of 4 bytes.
const rowBytes = 4 * GroupSize

// pairOp returns the operation that a step of index i does for a table over two indices: it adds a difference of the table's logarithms to
// those of each value of i. It also adds these differences to the model. Which one a chain reads depends on the value of the other index,
// so o.rowOffset is the row of that index.
func (f *tableModel) pairOp(i int, table *logTable, offsets map[string]int32) op {
	other, stride, otherStride := table.scope[1], f.dims[table.scope[1]], 1 // the other index, and the strides of i and of it
	if other == i {
		other, stride, otherStride = table.scope[0], 1, f.dims[i]
	}
	lnAt := func(a, k int) float64 { return table.ln[a*stride+k*otherStride] } // at value k of the other index
	o := f.addDifferences(offsets, f.dims[i], f.dims[other], lnAt)
	o.rowOffset = int32(other) * rowBytes
	return o
}

// tableOp returns the operation that a step of index i does for a table over three or more indices: it adds a difference of the table's
// logarithms to those of each value of i. It also adds these differences to the model. Which one a chain reads depends on its present entry
// k of the table, which the table has a row for; the caller sets that row as rowOffset. Entry k has value k/stride%d of index i; replacing
// it by a moves to entry k + (a − k/stride%d)·stride.
func (f *tableModel) tableOp(i int, table *logTable, offsets map[string]int32) op {
	d, stride := f.dims[i], 1
	for k := len(table.scope) - 1; table.scope[k] != i; k-- {
		stride *= f.dims[table.scope[k]]
	}
	o := f.addDifferences(offsets, d, len(table.ln), func(a, k int) float64 { return table.ln[k+(a-k/stride%d)*stride] })
	o.entryStride = int32(stride)
	return o
}

// newLogTable returns the logarithms of a table's entries t.Data[k]·2^t.Exp[k]. An entry of 0 gets a finite logarithm, so that chains can
// cross states of weight 0: the smallest one of the other entries less hardness, nats.
func newLogTable(t sumproduct.Table) logTable {
	logs := logTable{scope: t.Scope, ln: make([]float64, len(t.Data)), isZero: make([]bool, len(t.Data))}
	smallestLn := math.Inf(1)
	for k, x := range t.Data {
		logs.isZero[k] = x == 0
		if x > 0 {
			logs.ln[k] = floats.Ln(x)
			if t.Exp != nil {
				logs.ln[k] += float64(t.Exp[k]) * math.Ln2
			}
			smallestLn = min(smallestLn, logs.ln[k])
		}
	}
	for k, isZero := range logs.isZero {
		if isZero && !math.IsInf(smallestLn, 1) {
			logs.ln[k] = smallestLn - hardness
		}
	}
	return logs
}

// addDifferences appends the differences ln(a, k) − ln(0, k) for 0 < a < d and 0 ≤ k < n to f.differences, and returns an operation that
// points to them. The differences of one value a are padded to a full vector if they are few. If the same differences are there already,
// the operation points to those: offsets maps their bytes to their offset in bytes.
func (f *tableModel) addDifferences(offsets map[string]int32, d, n int, ln func(a, k int) float64) op {
	size := n // padded
	switch {
	case n <= GroupSize:
		size = GroupSize
	case n <= 2*GroupSize:
		size = 2 * GroupSize
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
	return op{valueStep: int32(4 * size), tableOffset: offset}
}

// stepFlops returns the time of one chain's step at an index of d values in flops, with eight chains side by side. moving and fixed are the
// operations of the step; the rows of the moving ones change. Measured on Potts models, colourings, and tables of arity 2 to 5.
func (f *tableModel) stepFlops(d int, moving, fixed []op) float64 {
	flops := 6.0
	perOp := 1.0
	if d > 2 {
		flops, perOp = 4+2.5*float64(d), 0.7*float64(d-1)
	}
	for _, o := range append(moving[:len(moving):len(moving)], fixed...) {
		if o.valueStep > 8*GroupSize { // more than 2·GroupSize differences a value, of 4 bytes: they are gathered one by one
			flops += 4 * perOp
		} else {
			flops += perOp
		}
	}
	return flops + float64(len(moving)) // for changing the rows
}

// tableChains are eight chains over a tableModel: row r of chain c is rows[r·8+c].
type tableChains struct {
	*tableModel
	random
	rows   []int32
	buffer []float32          // scratch: two rows for each value of an index
	energy [GroupSize]float64 // ln of the product of the tables less the log-probability of the start, at the present state
}

// anneal carries chains first to first+7 along a path, and adds their log-weights to ln. With keepsStates it returns their last states:
// states[i·8+c] is the value of index i in the c-th chain. It returns nil if the context ends.
func (f *tableModel) anneal(ctx context.Context, p Path, first int64, ln []float64, keepsStates bool) (states []uint8) {
	w := f.startChains(p.Seed, uint64(first))
	for k := range p.Rungs {
		if ctx.Err() != nil {
			return nil
		}
		if k%renewalRungs == 0 || k+1 == p.Rungs { // sweeps change energies step by step, and roundings add up
			w.recomputeEnergies()
		}
		for c, e := range w.energy { // ln ψ_β(x) grows by e per unit of β
			ln[c] += e * (p.Beta(k+1) - p.Beta(k))
		}
		if part := p.checkpointAt(k + 1); part >= 0 { // record the log-weights at the end of this part of the rungs
			copy(p.checkpoints.lnWeights[part][first-p.checkpoints.first:], ln)
		}
		if k+1 < p.Rungs { // the last weight needs no sweep at β = 1
			w.sweep(p.Beta(k+1), p.Step)
		}
	}

	// On the way an entry of 0 counted as a small one; now it counts as 0.
	for c := range ln {
		if w.isImpossible(c) {
			ln[c] = math.Inf(-1)
		}
	}
	if keepsStates {
		states = make([]uint8, len(f.dims)*GroupSize)
		for k := range states { // the first rows are those of the indices
			states[k] = uint8(w.rows[k])
		}
	}
	return states
}

// startChains returns chains first to first+7, each at a state that is drawn from the start distribution.
func (f *tableModel) startChains(seed, first uint64) *tableChains {
	w := &tableChains{
		tableModel: f, random: newRandom(seed, first),
		rows: make([]int32, f.rowCount*GroupSize), buffer: make([]float32, 2*f.maxValues*GroupSize),
	}

	// Draw the value a of each index: the first at which the probabilities exceed a uniform number.
	for i, d := range f.dims {
		for c := range GroupSize {
			remaining, a := float64(w.nextWord(c))*0x1p-32, 0 // a word has 32 bits: uniform in [0, 1)
			for ; a < d-1; a++ {
				if remaining -= math.Exp(f.startLn[i][a]); remaining < 0 {
					break
				}
			}
			w.rows[i*GroupSize+c] = int32(a)
		}
	}

	// Set the rows of the tables that have one.
	for t := range f.tables {
		for c := range GroupSize {
			if row := int(f.tableRows[t]); row > 0 { // row 0 is that of an index
				w.rows[row*GroupSize+c] = int32(w.entryIndex(t, c))
			}
		}
	}
	return w
}

// entryIndex returns the number of the entry of table t at the state of chain c. The last index of the table's scope varies fastest.
func (w *tableChains) entryIndex(t, c int) (index int) {
	for _, i := range w.tables[t].scope {
		index = index*w.dims[i] + int(w.rows[i*GroupSize+c])
	}
	return index
}

// recomputeEnergies computes the energies anew from the states, so that roundings do not add up. The energy of a chain is ln of the product
// of the tables less the log-probability of the start.
func (w *tableChains) recomputeEnergies() {
	for c := range GroupSize {
		e := 0.0
		for t := range w.tables {
			e += w.tables[t].ln[w.entryIndex(t, c)]
		}
		for i := range w.dims {
			e -= w.startLn[i][w.rows[i*GroupSize+c]]
		}
		w.energy[c] = e
	}
}

// isImpossible reports whether a table is 0 at the state of chain c.
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
	siteCount        int64
	sites            *site
	rows             *int32
	ops              *op
	differences      *float32
	unaryDifferences *float32
	startDifferences *float32
	generators       *random
	buffer           *float32
	energy           *[GroupSize]float64
	scale            float32 // β log2 e
	step             Step
}

// sweep takes a step at every index of all eight chains, which keeps the distribution ψ_β. If step is Metropolis, indices of two values
// take Metropolis steps, and all others steps of the heat bath.
func (w *tableChains) sweep(beta float64, step Step) {
	scale := float32(beta * math.Log2E)
	if !vectors || len(w.sites) == 0 {
		w.sweepPortable(scale, step)
		return
	}
	a := crowdArgs{
		siteCount: int64(len(w.sites)), sites: &w.sites[0], rows: &w.rows[0],
		unaryDifferences: &w.unaryDifferences[0], startDifferences: &w.startDifferences[0],
		generators: &w.random, buffer: &w.buffer[0], energy: &w.energy, scale: scale, step: step,
	}
	if len(w.ops) > 0 {
		a.ops, a.differences = &w.ops[0], &w.differences[0]
	}
	crowdVector(&a)
}

// sweepPortable is sweep without vectors: every site, an index of several values, takes a step in each of the eight chains. An operation of
// a site adds the differences of one table; the row at its rowOffset selects which. scale is β log2 e. Offsets of rows and tables are in
// bytes, and a number has four.
func (w *tableChains) sweepPortable(scale float32, step Step) {
	firstOp, firstUnary := 0, 0 // of the site, in ops and in unaryDifferences
	for _, s := range w.sites {
		row := w.rows[s.rowOffset/4:][:GroupSize] // by chain: the value of the site
		d := int(s.valueCount)
		for c := range row {
			w.fillBuffer(d, w.ops[firstOp:s.end], w.unaryDifferences[firstUnary:], c)

			// Draw the new value with u, which is uniform in [0, 1). buffer[a] is the energy at value a less that at value 0.
			u := float32(float32(int32(w.nextWord(c)>>1)) * 0x1p-31)
			var value int32
			if d == 2 {
				value = stepTwo(row[c], w.buffer[1], scale, w.startDifferences[firstUnary], u, step)
			} else {
				value = stepMany(w.buffer[:2*d], scale, w.startDifferences[firstUnary:], u)
			}

			// Update the energy, the rows of the tables and the value.
			w.buffer[0] = 0 // of value 0, which fillBuffer leaves out
			if d == 2 {
				w.energy[c] += float64(float32(float32(value-row[c]) * w.buffer[1]))
			} else {
				w.energy[c] += float64(w.buffer[value] - w.buffer[row[c]])
			}
			for _, o := range w.ops[firstOp:s.movingEnd] { // rows that change with the value of the site
				w.rows[int(o.rowOffset)/4+c] += o.entryStride * (value - row[c])
			}
			row[c] = value
		}
		firstOp, firstUnary = int(s.end), firstUnary+d-1 // d − 1: one for each value but 0
	}
}

// fillBuffer sets buffer[a], for 0 < a < d, to the energy of chain c with a site, an index that takes steps, at value a less that at value
// 0. That is the sum of the differences of the tables over the site alone, unary, and of one difference for each operation, which stands
// for another table of the site.
func (w *tableChains) fillBuffer(d int, ops []op, unary []float32, c int) {
	for a := 1; a < d; a++ {
		w.buffer[a] = unary[a-1]
		for _, o := range ops {
			differences := w.differences[int(o.tableOffset+int32(a-1)*o.valueStep)/4:] // of the table at value a
			w.buffer[a] += differences[w.rows[int(o.rowOffset)/4+c]]
		}
	}
}

// stepTwo returns the value after a step of an index of two values from value old. The log odds of value 1 are x·scale + start, in powers
// of 2: its probability over that of value 0 is 2^(x·scale + start). u is uniform in [0, 1).
func stepTwo(old int32, x, scale, start, u float32, step Step) int32 {
	logOdds := float32(x*scale) + start
	// ratio is the probability of the less likely value over that of the other one. exp2Minus takes arguments up to 126.
	ratio := exp2Minus(min(float32(math.Abs(float64(logOdds))), 126))
	likely := int32(1)
	if math.Signbit(float64(logOdds)) {
		likely = 0
	}
	if step == Metropolis { // the other value is accepted if it is likely, else with probability ratio
		if likely != old || u < ratio {
			return 1 - old
		}
		return old
	}
	if float32(u*float32(1+ratio)) < ratio { // heat bath: the less likely value has probability ratio/(1+ratio)
		return 1 - likely
	}
	return likely
}

// stepMany returns the value after a heat-bath step of an index of d values. Value a has log odds buffer[a]·scale + start[a−1] to value 0,
// in powers of 2. buffer has 2d entries, and its second half is overwritten. u is uniform in [0, 1).
func stepMany(buffer []float32, scale float32, start []float32, u float32) (value int32) {
	d := len(buffer) / 2
	sums := buffer[d:] // first the log odds, then the sums of probabilities up to a value
	sums[0] = 0
	top := float32(0)
	for a := 1; a < d; a++ {
		sums[a] = float32(buffer[a]*scale) + start[a-1]
		top = max(top, sums[a])
	}
	total := float32(0)
	for a := range sums {
		total += exp2Minus(min(top-sums[a], 126)) // 126: the range of exp2Minus
		sums[a] = total
	}

	// The value is the first one whose sum exceeds a uniform share of the total.
	threshold := float32(u * total)
	for _, sum := range sums[:d-1] {
		if sum <= threshold {
			value++
		}
	}
	return value
}
