package preprocess

// The expression under reduction.

import (
	"slices"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// expression is scale · Σ_x Π tables[x]. Tables and indices keep their numbers. A rule that has changed a
// table calls changed, which puts it on the agenda. Indices go by sumOut, follow and shrink, which
// record their origin.
type expression struct {
	dims     []int         // by index; 1 if it is gone
	tables   []*table      // nil: it is gone
	tablesOf [][]int       // by index: the tables that have it, in the order in which they came
	masks    []uint64      // by table: maskOf its scope, or more
	scale    scaled.Number // also of tables that have no index left
	err      float64       // of scale, as table.err
	signed   bool          // an entry may be below 0

	agenda  agenda
	origins origins
	report  Report // Zero is not nil if the expression is known to be 0
}

// addIndices takes new indices in. needed says that their marginals have to be found.
func (e *expression) addIndices(dims []int, needed bool) {
	e.dims = append(e.dims, dims...)
	e.tablesOf = append(e.tablesOf, make([][]int, len(dims))...)
	e.origins.add(dims, needed)
}

// add takes a new table in.
func (e *expression) add(t *table) {
	n := len(e.tables)
	e.tables = append(e.tables, t)
	e.masks = append(e.masks, 0)
	for _, i := range t.scope {
		e.join(n, i)
	}
	e.changed(n)
}

// join puts table n, whose scope has index i, into the list of i.
func (e *expression) join(n, i int) {
	e.tablesOf[i] = append(e.tablesOf[i], n)
	e.masks[n] |= 1 << (i % 64)
}

// leave takes table n out of the list of index i.
func (e *expression) leave(n, i int) {
	k := slices.Index(e.tablesOf[i], n)
	e.tablesOf[i] = slices.Delete(e.tablesOf[i], k, k+1)
	e.agenda.indices.push(i)
}

// drop takes table n out.
func (e *expression) drop(n int) {
	for _, i := range e.tables[n].scope {
		e.leave(n, i)
	}
	e.tables[n] = nil
}

// changed takes note that the entries or the scope of table n are new: modes of one value go, the
// largest entry comes into [1, 2), and a table without indices goes into the scale.
func (e *expression) changed(n int) {
	t := e.tables[n]
	t.nonzero = support{}
	e.trim(n)
	if exp := t.normalise(); exp != 0 {
		e.scale = e.scale.Mul(scaled.Make(1, int64(exp)))
	}

	if len(t.scope) > 0 {
		e.agenda.addTable(n, t.scope)
		return
	}

	e.scale = e.scale.Mul(scaled.FromFloat(t.data[0]))
	e.err += t.err + 1
	if t.data[0] == 0 && e.report.Zero == nil {
		e.report.Zero = because(-1, t.from)
	}
	e.drop(n)
}

// sumOut takes note that index i, which is in no table any more, is summed out. conditional is P(i | parent)
// as for origins.sumOut.
func (e *expression) sumOut(i, parent int, conditional []float64) {
	e.origins.sumOut(i, parent, conditional)
	e.dims[i] = 1
	e.report.SummedOut++
}

// follow replaces index y by f(x) in every table. All terms with y ≠ f(x) must be 0: tables that have
// both indices keep the entries with y = f(x) only.
func (e *expression) follow(y, x int, f []int) {
	tables := e.tablesOf[y]
	for _, n := range tables {
		t := e.tables[n]
		if !slices.Contains(t.scope, x) {
			e.join(n, x)
		}
		t.substitute(e.dims, y, x, f)
	}

	e.origins.follow(y, x, f)
	e.tablesOf[y] = nil
	e.dims[y] = 1
	e.report.Aliases++
	for _, n := range tables {
		e.changed(n)
	}
}

// shrink leaves index i the positions that are alive. Its tables have them alone already.
func (e *expression) shrink(i int, alive []bool) {
	e.origins.restrict(i, alive)
	e.dims[i] = len(e.origins.values[i])
	if e.dims[i] == 1 {
		e.report.Fixed++
	}
	e.agenda.indices.push(i)
}

// trim removes the modes of table n that have one value.
func (e *expression) trim(n int) {
	t := e.tables[n]
	if !slices.ContainsFunc(t.scope, func(i int) bool { return e.dims[i] == 1 }) {
		return
	}

	scope := make([]int, 0, len(t.scope))
	for _, i := range t.scope {
		if e.dims[i] > 1 {
			scope = append(scope, i)
		} else {
			e.leave(n, i)
		}
	}
	t.scope = scope
}

// around returns the smallest table over scope and possibly more, −1 for none; excluded is not it.
func (e *expression) around(scope []int, excluded int) int {
	rare := scope[0]
	for _, i := range scope {
		if len(e.tablesOf[i]) < len(e.tablesOf[rare]) {
			rare = i
		}
	}

	best, mask := -1, maskOf(scope)
	for _, n := range e.tablesOf[rare] {
		if e.masks[n]&mask != mask {
			continue
		}
		if t := e.tables[n]; n != excluded && contains(t.scope, scope) &&
			(best < 0 || len(t.data) < len(e.tables[best].data)) {
			best = n
		}
	}
	return best
}

// inside lists the tables whose scope is part of table n's.
func (e *expression) inside(n int) []int {
	common := map[int]int{}
	var parts []int
	for _, i := range e.tables[n].scope {
		for _, s := range e.tablesOf[i] {
			if common[s]++; s != n && common[s] == len(e.tables[s].scope) {
				parts = append(parts, s)
			}
		}
	}
	return parts
}

// hypergraph returns the shape of the expression.
func (e *expression) hypergraph() contractionorder.Hypergraph {
	h := contractionorder.Hypergraph{Dims: e.dims}
	for _, t := range e.tables {
		if t != nil {
			h.Edges = append(h.Edges, t.scope)
		}
	}
	return h
}

// clone copies the expression between two rules. Entries are shared until one of the two changes them.
func (e *expression) clone() *expression {
	c := *e
	c.dims = slices.Clone(e.dims)
	c.masks = slices.Clone(e.masks)
	c.agenda = e.agenda.clone()
	c.origins = e.origins.clone()

	c.tablesOf = make([][]int, len(e.tablesOf))
	for i := range e.tablesOf {
		c.tablesOf[i] = slices.Clone(e.tablesOf[i])
	}

	c.tables = make([]*table, len(e.tables))
	for n, t := range e.tables {
		if t != nil {
			t.owned = false
			copied := *t
			c.tables[n] = &copied
		}
	}
	return &c
}
