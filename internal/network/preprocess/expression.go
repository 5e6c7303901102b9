package preprocess

// The expression under reduction.

import (
	"fmt"
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// expression is scale · Σ_x Π tables[x]. Rules change it by its methods, which keep its lists right and
// put what has changed on the agenda. Numbers of tables and indices stay theirs.
type expression struct {
	dims   []int         // by index; 1 if it is gone
	tables []*table      // nil: it is gone
	at     [][]int       // by index: the tables that have it, in the order in which they came
	masks  []uint64      // by table: maskOf its scope, or more
	scale  scaled.Number // also of tables that have no index left
	err    float64       // of scale, as table.err
	signed bool          // an entry may be below 0

	agenda  agenda
	origins origins
	report  Report // Zero is not nil if the expression is known to be 0
}

// load takes an expression in, and puts all of it on the agenda.
func load(given *sumproduct.Expression, o Options, p *pace.Pace) (*expression, error) {
	if err := given.ValidateShape(); err != nil {
		return nil, err
	}

	e := &expression{scale: given.Scale}
	for _, d := range given.Dims {
		e.addIndex(d, o.Marginals)
	}
	for _, i := range o.Keep {
		if i < 0 || i >= len(e.dims) {
			return nil, fmt.Errorf("%w: index %d is to be kept, there are %d",
				sumproduct.ErrExpression, i, len(e.dims))
		}
		e.origins.needed[i] = true
	}

	if !given.Scale.IsFinite() {
		return nil, fmt.Errorf("%w: the scale", sumproduct.ErrNotFinite)
	}

	e.report.Before = countExpression(given)
	e.signed = given.Signed()
	if given.Scale.IsZero() {
		e.report.Zero = because(-1, nil)
	}

	for n, t := range given.Tables {
		if p.Over(int64(ruleWork + len(t.Data))) {
			return nil, p.Err()
		}
		if err := given.Finite(n); err != nil {
			return nil, err
		}

		err := 0.0
		switch {
		case n < len(o.Roundings):
			err = o.Roundings[n]
		case t.Rounded && !plain(t.Data):
			err = 1
		}
		e.add(&table{scope: slices.Clone(t.Scope), data: t.Data, from: &source{table: n}, err: err})
	}

	for i := range e.dims {
		e.agenda.indices.push(i)
	}
	return e, nil
}

// addIndex takes a new index in. needed says that its marginal has to be found.
func (e *expression) addIndex(d int, needed bool) {
	e.dims = append(e.dims, d)
	e.at = append(e.at, nil)
	e.origins.add(d, needed)
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
	e.at[i] = append(e.at[i], n)
	e.masks[n] |= 1 << (i % 64)
}

// leave takes table n out of the list of index i.
func (e *expression) leave(n, i int) {
	k := slices.Index(e.at[i], n)
	e.at[i] = slices.Delete(e.at[i], k, k+1)
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

// sumOut takes note that index i is summed out, and of P(i | parent) as origins.sumOut does.
func (e *expression) sumOut(i, parent int, given []float64) {
	e.origins.sumOut(i, parent, given)
	e.dims[i] = 1
	e.report.SummedOut++
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
		if len(e.at[i]) < len(e.at[rare]) {
			rare = i
		}
	}

	best, mask := -1, maskOf(scope)
	for _, n := range e.at[rare] {
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
	var found []int
	for _, i := range e.tables[n].scope {
		for _, s := range e.at[i] {
			if common[s]++; s != n && common[s] == len(e.tables[s].scope) {
				found = append(found, s)
			}
		}
	}
	return found
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

	c.at = make([][]int, len(e.at))
	for i := range e.at {
		c.at[i] = slices.Clone(e.at[i])
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
