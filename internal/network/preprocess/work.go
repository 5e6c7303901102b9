package preprocess

// The expression while it is being simplified.

import (
	"context"
	"fmt"
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// work is the state between two rules.
// Every table in at is as large as the dimensions of its indices say.
type work struct {
	options Options
	dims    []int
	origins origins
	tables  []*table
	at      [][]int  // per index: tables that have it, ascending in time
	bits    []uint64 // per table: bitsOf its scope, or more
	scale   scaled.Number
	zero    *Reason // why Z is 0; nil: it is not known to be
	report  Report

	domains   agenda // tables whose zeros have to be looked at
	merges    agenda // tables whose scope or entries are new
	indices   agenda // indices whose tables are new
	splits    agenda // tables whose structure is unknown
	probes    agenda // indices whose values have not been assumed
	probing   int    // entries probing has looked at
	probed    consequences
	filters   agenda // tables whose zeros have not been carried over to others
	filtering int    // entries filters have looked at
	shared    []int  // scratch of filter: per table, the number of indices that it shares with the one at hand

	alive alive

	signed bool       // an entry is below 0
	err    float64    // of the scale, as table.err
	pace   *pace.Pace // once it is over nothing goes on, and the state is of no use any more
}

// load takes the tables of e in and puts them on every agenda.
func load(ctx context.Context, e *sumproduct.Expression, o Options) (*work, error) {
	if o.MaxEntries <= 0 {
		o.MaxEntries = defaultMaxEntries
	}
	if o.Probes == 0 {
		o.Probes = defaultProbes
	}
	o.NoStructure = o.NoStructure || o.Terms
	if err := e.ValidateShape(); err != nil {
		return nil, err
	}

	w := &work{
		options: o,
		dims:    slices.Clone(e.Dims),
		scale:   e.Scale,
		at:      make([][]int, len(e.Dims)),
		pace:    pace.New(ctx),
	}

	for _, d := range e.Dims {
		w.origins.add(d, o.Marginals)
	}
	for _, i := range o.Keep {
		if i < 0 || i >= len(e.Dims) {
			return nil, fmt.Errorf("%w: index %d is to be kept, there are %d",
				sumproduct.ErrExpression, i, len(e.Dims))
		}
		w.origins.needed[i] = true
	}

	w.alive.empty = -1
	for i, d := range e.Dims {
		w.resize(i, d)
	}

	if !e.Scale.IsFinite() {
		return nil, fmt.Errorf("%w: the scale", sumproduct.ErrNotFinite)
	}

	w.report.Before = countExpression(e)
	w.signed = e.Signed()
	if e.Scale.IsZero() {
		w.zero = &Reason{Index: -1, Table: -1}
	}

	for t, in := range e.Tables {
		if w.pace.Over(int64(ruleWork + len(in.Data))) {
			return nil, w.pace.Err()
		}
		if err := e.Finite(t); err != nil {
			return nil, err
		}

		err := 0.0
		switch {
		case t < len(o.Roundings):
			err = o.Roundings[t]
		case in.Rounded && !plain(in.Data):
			err = 1
		}

		w.add(&table{
			scope: slices.Clone(in.Scope),
			data:  in.Data,
			from:  &source{table: t},
			err:   err,
		})
	}

	for i := range w.dims {
		w.indices.push(i)
	}
	return w, nil
}

// add takes a new table in, and returns its number.
func (w *work) add(t *table) int {
	n := len(w.tables)
	w.tables = append(w.tables, t)
	w.bits = append(w.bits, 0)
	for _, i := range t.scope {
		w.join(n, i)
	}
	w.changed(n)
	return n
}

// join puts table n, whose scope has index i, into the list of i.
func (w *work) join(n, i int) {
	w.at[i] = append(w.at[i], n)
	w.bits[n] |= 1 << (i % 64)
}

// drop takes table n out.
func (w *work) drop(n int) {
	t := w.tables[n]
	t.gone = true
	for _, i := range t.scope {
		w.leave(n, i)
	}
	t.data = nil
	t.nonzero = support{}
}

// leave takes table n out of the list of index i.
func (w *work) leave(n, i int) {
	k := slices.Index(w.at[i], n)
	w.at[i] = slices.Delete(w.at[i], k, k+1)
	w.indices.push(i)
}

// changed puts table n, whose entries or scope are new, where the rules will find it: modes of one
// value go, the largest entry comes into [1, 2), and a table without indices goes into the scale.
func (w *work) changed(n int) {
	t := w.tables[n]
	t.nonzero = support{}
	w.trim(n)
	if exp := t.normalise(); exp != 0 {
		w.scale = w.scale.Mul(scaled.Make(1, int64(exp)))
	}

	if len(t.scope) == 0 {
		w.scale = w.scale.Mul(scaled.FromFloat(t.data[0]))
		w.err += t.err + 1
		if t.data[0] == 0 && w.zero == nil {
			r := &Reason{Index: -1, Tables: t.from.list()}
			r.Table = r.Tables[0]
			w.zero = r
		}
		w.drop(n)
		return
	}

	w.domains.push(n)
	w.merges.push(n)
	w.filters.push(n)
	w.splits.push(n)

	for _, i := range t.scope {
		w.indices.push(i)
		w.probes.push(i)
	}
}

// trim removes the modes of table n that have one value.
func (w *work) trim(n int) {
	t := w.tables[n]
	if !slices.ContainsFunc(t.scope, func(i int) bool { return w.dims[i] == 1 }) {
		return
	}

	scope := make([]int, 0, len(t.scope))
	for _, i := range t.scope {
		if w.dims[i] > 1 {
			scope = append(scope, i)
		} else {
			w.leave(n, i)
		}
	}
	t.scope = scope
}
