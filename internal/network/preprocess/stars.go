package preprocess

// Structure: which tables become stars and chains.

import (
	"cmp"
	"context"
	"slices"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
)

const (
	minArity   = 4       // tables over fewer indices stay whole
	maxRank    = 4       // of a star
	worthwhile = 1e5     // flops of the contraction below which structure is not looked for
	maxLooked  = 1 << 20 // entries of all tables together that are looked at
	maxRanked  = 1 << 16 // entries times indices of all tables whose rank is looked for
	maxTrials  = 4       // sets of tables that are tried
)

// decomposition is tables whose product, summed over hidden indices, is a given table.
type decomposition struct {
	kind   kind
	hidden []int   // dimensions of the hidden indices
	tables []table // scope, data and err; index −1−h of a scope is hidden index h
}

// kind is the structure found in a table.
type kind int

const (
	starKind    kind = iota
	chainKind        // of counters
	classesKind      // of values
)

// add appends a table.
func (d *decomposition) add(scope []int, data []float64, err float64) {
	d.tables = append(d.tables, table{scope: scope, data: data, err: err})
}

// candidate is a possible replacement of table n.
type candidate struct {
	n int
	decomposition
}

// classFlops is the work, by a quick order, above which matrices whose rows are equal in part are
// written over classes of rows.
// Measured: four protein models take 2 to 50 times fewer flops along the trees found, 50 other
// models have no such matrices, decision 12.
const classFlops = policy.HeavyFlops

// simplified applies the rules to w, and to w with tables replaced by stars and chains if there are
// any, and returns the cheapest to contract along the min-fill order: with tables as they are, with
// all replaced that can be, or only those over many indices. Classes of values are not compared in
// that way: an order sums an index out with all of its tables at once, and only a tree gets from an
// index to its classes on the way. Structure is looked for before anything is multiplied into the
// tables. Source: P. Savický and J. Vomlel, Exploiting tensor rank-one decomposition in
// probabilistic inference (2007).
func (w *work) simplified(ctx context.Context) (*work, error) {
	if w.zero == nil {
		w.propagate()
	}

	looked := w.anyArity(minArity) || w.options.Classes && w.anyArity(2)
	if w.zero != nil || w.options.NoStructure || !looked {
		w.simplify()
		return w, w.pace.Err()
	}

	best := w.clone()
	best.simplify()
	_, flops, err := best.minFill(ctx)
	if err != nil || flops < worthwhile && !w.options.always {
		return best, err
	}

	if w.options.Classes && (flops >= classFlops || w.options.always) && w.coarsen() {
		best = w.clone()
		best.simplify()
		if _, flops, err = best.minFill(ctx); err != nil {
			return best, err
		}
	}

	if !w.anyArity(minArity) {
		return best, nil
	}
	found, err := w.candidates(ctx)
	if err != nil {
		return nil, err
	}

	trials := 0

	// One trial for every arity: all tables of that many indices and more are replaced.
	for k := range found {
		if k > 0 && w.arity(found[k]) == w.arity(found[k-1]) {
			continue
		}
		if trials++; trials > maxTrials {
			break
		}

		trial := w.clone()
		for _, c := range found[k:] {
			trial.replace(c.n, c.decomposition)
		}
		trial.simplify()

		_, f, err := trial.minFill(ctx)
		if err != nil || w.options.always {
			return trial, err
		}
		if f < flops {
			best = trial
			flops = f
		}
	}
	return best, nil
}

// minFill returns the min-fill order and its flops as far as they are within reach.
func (w *work) minFill(ctx context.Context) (order []int, flops float64, err error) {
	if err := w.pace.Err(); w.zero != nil || err != nil {
		return nil, 0, err
	}
	order, cost, _, err := contractionorder.MinFillCost(ctx, w.hypergraph(), policy.OutOfReach, policy.MostFill)
	return order, min(cost.Flops, policy.OutOfReach), err
}

// anyArity reports whether a table has so many indices.
func (w *work) anyArity(arity int) bool {
	return slices.ContainsFunc(w.tables,
		func(t *table) bool { return !t.gone && len(t.scope) >= arity })
}

// candidates lists possible replacements of tables, by arity, smaller ones first.
func (w *work) candidates(ctx context.Context) ([]candidate, error) {
	place := make([]int, len(w.dims))
	order, _, err := w.minFill(ctx)
	if err != nil {
		return nil, err
	}

	for p, i := range order {
		place[i] = p
	}

	var found []candidate
	looked, ranked := 0, 0
	for n, t := range w.tables {
		if t.gone || len(t.scope) < minArity || looked+len(t.data) > maxLooked {
			continue
		}
		looked += len(t.data)
		d, ok := chain(w.dims, t, place)

		if cost := len(t.data) * len(t.scope); !ok && ranked+cost <= maxRanked {
			ranked += cost
			d, ok = star(w.dims, t)
		}

		if ok {
			found = append(found, candidate{n, d})
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(w.arity(a), w.arity(b)) })
	return found, nil
}

// arity is the number of indices of the table that is to be replaced.
func (w *work) arity(c candidate) int { return len(w.tables[c.n].scope) }

// hypergraph returns the shape of the remaining tables.
func (w *work) hypergraph() contractionorder.Hypergraph {
	h := contractionorder.Hypergraph{Dims: w.dims}
	for _, t := range w.tables {
		if !t.gone {
			h.Edges = append(h.Edges, t.scope)
		}
	}
	return h
}

// clone copies the work between two rules. Entries are shared until one of the two changes them.
func (w *work) clone() *work {
	c := *w
	c.dims = slices.Clone(w.dims)
	c.origins = w.origins.clone()

	c.at = make([][]int, len(w.at))
	for i := range w.at {
		c.at[i] = slices.Clone(w.at[i])
	}

	c.bits = slices.Clone(w.bits)
	c.tables = make([]*table, len(w.tables))
	for n, t := range w.tables {
		t.owned = false
		copied := *t
		c.tables[n] = &copied
	}

	for _, a := range []*agenda{
		&c.domains, &c.merges, &c.indices, &c.splits, &c.probes, &c.filters,
	} {
		a.list = slices.Clone(a.list)
		a.in = slices.Clone(a.in)
	}

	c.alive = alive{empty: -1, spent: w.alive.spent}
	for i := range c.dims {
		c.resize(i, c.dims[i])
	}
	return &c
}

// replace puts a decomposition in the place of table n.
func (w *work) replace(n int, d decomposition) {
	from := w.tables[n].from
	w.drop(n)

	first := len(w.dims)
	for _, dim := range d.hidden {
		w.grow(dim)
	}

	for _, t := range d.tables {
		t.scope = slices.Clone(t.scope)
		for k, i := range t.scope {
			if i < 0 {
				t.scope[k] = first - 1 - i
			}
		}

		t.from = from
		t.wider = true
		w.signed = w.signed || slices.ContainsFunc(t.data, func(x float64) bool { return x < 0 })
		w.add(&t)
	}

	switch d.kind {
	case chainKind:
		w.report.Chains++
	case classesKind:
		w.report.Coarse++
	case starKind:
		w.report.Stars++
	}
}

// grow makes a new index.
func (w *work) grow(d int) {
	i := len(w.dims)
	w.dims = append(w.dims, d)
	w.origins.add(d, false)
	w.at = append(w.at, nil)
	w.resize(i, d)
}
