package preprocess

// The expression under reduction.

import (
	"slices"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// expression is scale · Σ_x Π tables[x] under reduction. Tables and indices keep their numbers. A rule that has changed a table calls
// noteChange, which puts it on the agenda. Indices are removed by sumOut and replaceIndex and lose values by shrinkIndex; these record from
// what the marginals can be restored.
type expression struct {
	dims       []int         // by index: its dimension; 1 if it was removed
	tables     []*table      // nil for a table that was removed
	tablesOf   [][]int       // by index: the tables that have it, in the order in which they came
	indexMasks []uint64      // by table: bit i%64 is set if its scope has index i; other bits may be set, too
	scale      scaled.Number // the constant factor, with tables that have no index left
	scaleErr   float64       // bound of the relative error of scale, in units of 2^-53
	isSigned   bool          // an entry may be below 0

	agenda  agenda
	origins origins
	report  Report // Zero is not nil if the expression is known to be 0
}

// addIndices adds new indices of the given dimensions, which are in no table yet. isNeeded is true if their marginals have to be found.
func (e *expression) addIndices(dims []int, isNeeded bool) {
	e.dims = append(e.dims, dims...)
	e.tablesOf = append(e.tablesOf, make([][]int, len(dims))...)
	e.origins.addIndices(dims, isNeeded)
}

// addTable adds a new table, and puts it on the agenda, which lists what the rules have to look at. noteChange may divide its entries by a
// power of two, and makes a table without indices a part of the scale.
func (e *expression) addTable(t *table) {
	n := len(e.tables)
	e.tables = append(e.tables, t)
	e.indexMasks = append(e.indexMasks, 0)
	for _, i := range t.scope {
		e.linkTable(n, i)
	}
	e.noteChange(n)
}

// linkTable adds table n, whose scope has index i, to the list of tables of i, and notes the index in the table's mask, bit i%64.
func (e *expression) linkTable(n, i int) {
	e.tablesOf[i] = append(e.tablesOf[i], n)
	e.indexMasks[n] |= 1 << (i % 64)
}

// unlinkTable removes table n from the list of tables of index i, and puts the index on the agenda, which lists what the rules have to
// look at: it may be summed out now.
func (e *expression) unlinkTable(n, i int) {
	k := slices.Index(e.tablesOf[i], n)
	e.tablesOf[i] = slices.Delete(e.tablesOf[i], k, k+1)
	e.agenda.indices.push(i)
}

// removeTable removes table n from the expression.
func (e *expression) removeTable(n int) {
	for _, i := range e.tables[n].scope {
		e.unlinkTable(n, i)
	}
	e.tables[n] = nil
}

// noteChange must be called when the entries or the scope of table n have changed. It removes modes of one value and puts the table on the
// agenda, which lists what the rules of simplification have to look at. It divides the table by a power of two, so that its largest entry
// is in [1, 2), and multiplies the scale by that power. A table without indices becomes a factor of the scale.
func (e *expression) noteChange(n int) {
	t := e.tables[n]
	t.cachedSupport = support{} // it is computed anew when it is needed
	e.removeFixedModes(n)
	if exp := t.normalise(); exp != 0 {
		e.scale = e.scale.Mul(scaled.Make(1, int64(exp)))
	}

	if len(t.scope) > 0 {
		e.agenda.addTable(n, t.scope)
		return
	}

	// The table is a number now: it moves into the scale, and errors are counted in units of 2^-53.
	e.scale = e.scale.Mul(scaled.FromFloat(t.data[0]))
	e.scaleErr += t.err + 1 // 1 for the rounding of the product
	if t.data[0] == 0 && e.report.Zero == nil {
		const noIndex = -1
		e.report.Zero = newReason(noIndex, t.source)
	}
	e.removeTable(n)
}

// sumOut records that index i, which is in no table any more, was summed out. conditional has a row P(i | parent) for every value of the
// index parent, from which the marginal of i can be restored. If parent is −1, there is one row, P(i). conditional is nil if it is not
// known.
func (e *expression) sumOut(i, parent int, conditional []float64) {
	e.origins.recordSum(i, parent, conditional)
	e.dims[i] = 1
	e.report.SummedOut++
}

// replaceIndex removes index y from the expression. Its value must be f[x] for every value x of another index, also called x: all terms
// with y ≠ f[x] must be 0. Index x takes the place of y in every table. A table that has both indices keeps only the entries with y =
// f[x].
func (e *expression) replaceIndex(y, x int, f []int) {
	tables := e.tablesOf[y]
	for _, n := range tables {
		t := e.tables[n]
		if !slices.Contains(t.scope, x) {
			e.linkTable(n, x)
		}
		t.replaceIndex(e.dims, y, x, f)
	}

	e.origins.recordAlias(y, x, f)
	e.tablesOf[y] = nil
	e.dims[y] = 1 // no table has y any more
	e.report.Aliases++
	for _, n := range tables {
		e.noteChange(n) // normalises the table, and puts it on the agenda of the simplifications
	}
}

// shrinkIndex removes the values of index i that are not alive. Its tables have lost their entries already.
func (e *expression) shrinkIndex(i int, isAlive []bool) {
	e.origins.recordValues(i, isAlive)
	e.dims[i] = len(e.origins.values[i])
	if e.dims[i] == 1 {
		e.report.Fixed++
	}
	e.agenda.indices.push(i)
}

// removeFixedModes removes the indices of dimension 1 from the scope of table n. Its entries stay as they are.
func (e *expression) removeFixedModes(n int) {
	t := e.tables[n]
	hasFixed := slices.ContainsFunc(t.scope, func(i int) bool { return e.dims[i] == 1 })
	if !hasFixed {
		return
	}

	scope := make([]int, 0, len(t.scope))
	for _, i := range t.scope {
		if e.dims[i] > 1 {
			scope = append(scope, i)
		} else {
			e.unlinkTable(n, i)
		}
	}
	t.scope = scope
}

// smallestTableWith returns the table with the fewest entries whose scope contains scope, or −1 if there is none. scope must not be empty.
// Table excluded is not considered.
func (e *expression) smallestTableWith(scope []int, excluded int) int {
	rarest := scope[0] // the index in the fewest tables
	for _, i := range scope {
		if len(e.tablesOf[i]) < len(e.tablesOf[rarest]) {
			rarest = i
		}
	}

	smallest, mask := -1, indexMask(scope) // bit i%64 for each index i
	for _, n := range e.tablesOf[rarest] {
		lacksIndex := e.indexMasks[n]&mask != mask // a quick test, which misses an index whose bit another index of the table has
		if n == excluded || lacksIndex || !containsAll(e.tables[n].scope, scope) {
			continue
		}
		if smallest < 0 || len(e.tables[n].data) < len(e.tables[smallest].data) {
			smallest = n
		}
	}
	return smallest
}

// tablesInside returns the tables other than n whose scope is part of the scope of table n.
func (e *expression) tablesInside(n int) []int {
	commonCount := map[int]int{} // by table: how many of its indices table n has
	var tables []int
	for _, i := range e.tables[n].scope {
		for _, s := range e.tablesOf[i] {
			commonCount[s]++
			isInside := commonCount[s] == len(e.tables[s].scope)
			if s != n && isInside {
				tables = append(tables, s)
			}
		}
	}
	return tables
}

// hypergraph returns the shape of the expression: the dimensions of its indices, and the scope of every table.
func (e *expression) hypergraph() contractionorder.Hypergraph {
	h := contractionorder.Hypergraph{Dims: e.dims}
	for _, t := range e.tables {
		if t != nil {
			h.Edges = append(h.Edges, t.scope)
		}
	}
	return h
}

// clone returns a copy of the expression. It must be called between two rules, not within one. The copy shares the entries of tables with
// e: no table owns its data any more, so either expression copies the data of a table before it changes them.
func (e *expression) clone() *expression {
	c := *e
	c.dims = slices.Clone(e.dims)
	c.indexMasks = slices.Clone(e.indexMasks)
	c.agenda = e.agenda.clone()
	c.origins = e.origins.clone()

	c.tablesOf = make([][]int, len(e.tablesOf))
	for i := range e.tablesOf {
		c.tablesOf[i] = slices.Clone(e.tablesOf[i])
	}

	c.tables = make([]*table, len(e.tables))
	for n, t := range e.tables {
		if t != nil {
			t.ownsData = false // in e, and by the next line in the copy
			copied := *t
			c.tables[n] = &copied
		}
	}
	return &c
}
