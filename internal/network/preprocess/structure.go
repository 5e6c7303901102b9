package preprocess

// Structure: which tables become stars, chains and matrices over classes of values.

import (
	"cmp"
	"context"
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
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

// replace puts a decomposition in the place of table n.
func (e *expression) replace(n int, d decomposition) {
	from := e.tables[n].from
	e.drop(n)

	first := len(e.dims)
	e.addIndices(d.hidden, false)
	for _, t := range d.tables {
		t.scope = slices.Clone(t.scope)
		for k, i := range t.scope {
			if i < 0 {
				t.scope[k] = first - 1 - i
			}
		}

		t.from = from
		t.wider = true
		e.signed = e.signed || slices.ContainsFunc(t.data, func(x float64) bool { return x < 0 })
		e.add(&t)
	}

	switch d.kind {
	case chainKind:
		e.report.Chains++
	case classesKind:
		e.report.Coarse++
	case starKind:
		e.report.Stars++
	}
}

// simplest applies the rules to e, and to e with tables replaced by decompositions, and returns the cheapest
// to contract along the min-fill order. Structure is looked for before anything is multiplied into the
// tables, and only if the contraction costs much. Classes of values are not compared in that way: an
// order sums an index out with all of its tables at once, and only a tree gets from an index to its
// classes on the way. e itself is of no use afterwards.
func simplest(ctx context.Context, e *expression, o Options, p *pace.Pace) (*expression, error) {
	if e.report.Zero == nil {
		newDomains(e, p).propagate()
	}

	structured := anyArity(e, minArity) || o.Classes && anyArity(e, 2)
	if e.report.Zero != nil || o.NoStructure || !structured {
		reduce(e, o, p)
		return e, p.Err()
	}

	best := e.clone()
	reduce(best, o, p)
	_, flops, err := minFill(ctx, best, p)
	if err != nil || flops < worthwhile && !o.always {
		return best, err
	}

	if o.Classes && (flops >= classFlops || o.always) && coarsen(e, p) {
		best = e.clone()
		reduce(best, o, p)
		if _, flops, err = minFill(ctx, best, p); err != nil {
			return nil, err
		}
	}

	if anyArity(e, minArity) {
		return withStructure(ctx, e, best, flops, o, p)
	}
	return best, nil
}

// withStructure returns the cheapest of best, which costs flops, and of e with tables replaced by stars and
// chains: all that can be, or only those over many indices. Source: P. Savický and J. Vomlel, Exploiting
// tensor rank-one decomposition in probabilistic inference (2007).
func withStructure(
	ctx context.Context, e, best *expression, flops float64, o Options, p *pace.Pace,
) (*expression, error) {
	list, err := candidates(ctx, e, p)
	if err != nil {
		return nil, err
	}

	trials := 0
	for k := range list {
		// One trial for every arity: all tables of that many indices and more are replaced.
		if k > 0 && list[k].arity == list[k-1].arity {
			continue
		}
		if trials++; trials > maxTrials {
			break
		}

		trial := e.clone()
		for _, c := range list[k:] {
			trial.replace(c.table, c.decomposition)
		}
		reduce(trial, o, p)

		_, trialFlops, err := minFill(ctx, trial, p)
		if err != nil || o.always {
			return trial, err
		}
		if trialFlops < flops {
			best, flops = trial, trialFlops
		}
	}
	return best, nil
}

// minFill returns the min-fill order of e and its flops as far as they are within reach.
func minFill(ctx context.Context, e *expression, p *pace.Pace) (order []int, flops float64, err error) {
	if err := p.Err(); e.report.Zero != nil || err != nil {
		return nil, 0, err
	}
	order, cost, _, err := contractionorder.MinFillCost(ctx, e.hypergraph(), policy.OutOfReach, policy.MostFill)
	return order, min(cost.Flops, policy.OutOfReach), err
}

// anyArity reports whether a table has so many indices.
func anyArity(e *expression, arity int) bool {
	return slices.ContainsFunc(e.tables,
		func(t *table) bool { return t != nil && len(t.scope) >= arity })
}

// candidate is a possible replacement of a table.
type candidate struct {
	table int
	arity int // of the table
	decomposition
}

// candidates lists stars and chains for the tables of e, by arity, smaller ones first.
func candidates(ctx context.Context, e *expression, p *pace.Pace) ([]candidate, error) {
	order, _, err := minFill(ctx, e, p)
	if err != nil {
		return nil, err
	}
	place := make([]int, len(e.dims))
	for k, i := range order {
		place[i] = k
	}

	var list []candidate
	looked, ranked := 0, 0
	for n, t := range e.tables {
		if t == nil || len(t.scope) < minArity || looked+len(t.data) > maxLooked {
			continue
		}
		looked += len(t.data)
		d, ok := chain(e.dims, t, place)
		if cost := len(t.data) * len(t.scope); !ok && ranked+cost <= maxRanked {
			ranked += cost
			d, ok = star(e.dims, t)
		}

		if ok {
			list = append(list, candidate{n, len(t.scope), d})
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int { return cmp.Compare(a.arity, b.arity) })
	return list, nil
}
