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
	minArity          = 4       // tables over fewer indices stay whole
	maxRank           = 4       // limit of the terms of a star
	minFlops          = 1e5     // structure is not looked for if the contraction costs fewer flops
	maxEntriesTried   = 1 << 20 // limit of the entries of all tables in which structure is looked for
	maxEntriesForStar = 1 << 16 // limit of the entries times indices of all tables in which a star is looked for
	maxTrials         = 4       // sets of tables that are tried
)

// decomposition is a list of tables whose product, summed over hidden indices, is a given table.
type decomposition struct {
	kind   kind
	hidden []int   // dimensions of the hidden indices
	tables []table // with scope, data and err; in a scope, −1−h stands for hidden index h
}

// kind is the structure found in a table.
type kind int

const (
	starKind    kind = iota
	chainKind        // of counters
	classesKind      // of values
)

// add appends a table to the decomposition. err bounds the relative error of its entries, in units of 2^-53.
func (d *decomposition) add(scope []int, data []float64, err float64) {
	d.tables = append(d.tables, table{scope: scope, data: data, err: err})
}

// replaceTable replaces table n by the tables of a decomposition. In their scopes −1−h stands for hidden index h, which becomes a new index
// of the expression.
func (e *expression) replaceTable(n int, d decomposition) {
	source := e.tables[n].source
	e.removeTable(n)

	// Add the hidden indices, then the tables.
	firstHidden := len(e.dims)
	marginalsNeeded := false
	e.addIndices(d.hidden, marginalsNeeded)
	for _, t := range d.tables {
		t.scope = slices.Clone(t.scope)
		for k, i := range t.scope {
			if i < 0 {
				hidden := -1 - i
				t.scope[k] = firstHidden + hidden
			}
		}

		t.source = source
		t.hasNewScope = true // so that tables inside this scope will be multiplied into it
		e.isSigned = e.isSigned || slices.ContainsFunc(t.data, func(x float64) bool { return x < 0 })
		e.addTable(&t)
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

// simplify returns the simplest expression of the value of e. It applies the rules to e itself if there is nothing more to try, else to a
// copy of e. If the contraction of the result still costs much, it also tries e with tables replaced by decompositions: smaller tables
// with hidden indices. It looks for these before the rules multiply tables, which would hide them. Of the results it returns the one that
// is the cheapest to contract along the min-fill order. But a decomposition into classes of values is taken without a comparison, since
// contraction trees gain from it and orders do not. e itself is of no use afterwards.
func simplify(ctx context.Context, e *expression, o Options, p *pace.Pace) (*expression, error) {
	if e.report.Zero == nil {
		newDomains(e, p).propagate() // removes the values that meet only zeros
	}

	mayHaveStructure := hasTableOfArity(e, minArity) || o.Classes && hasTableOfArity(e, 2)
	if e.report.Zero != nil || o.NoStructure || !mayHaveStructure {
		reduce(e, o, p)
		return e, p.Err()
	}

	// Without structure. e keeps its tables for the next steps.
	best := e.clone()
	reduce(best, o, p)
	_, flops, err := minFillFlops(ctx, best, p)
	if err != nil || flops < minFlops && !o.always { // o.always is for tests
		return best, err
	}

	// With classes of values.
	if o.Classes && (flops >= classFlops || o.always) && decomposeAllClasses(e, p) { // it replaces tables of e
		best = e.clone()
		reduce(best, o, p)
		if _, flops, err = minFillFlops(ctx, best, p); err != nil {
			return nil, err
		}
	}

	// With stars and chains.
	if hasTableOfArity(e, minArity) {
		return withStructure(ctx, e, best, flops, o, p)
	}
	return best, nil
}

// withStructure returns the expression that is the cheapest to contract. It compares best, which takes the given flops, with e after
// tables were replaced by stars and chains and it was reduced. It tries at most maxTrials sets of tables to replace: all candidates, then
// only those with more and more indices (a larger arity). Source: P. Savický and J. Vomlel, Exploiting tensor rank-one decomposition in
// probabilistic inference (2007).
func withStructure(
	ctx context.Context, e, best *expression, flops float64, o Options, p *pace.Pace,
) (*expression, error) {
	candidates, err := findCandidates(ctx, e, p) // by arity
	if err != nil {
		return nil, err
	}

	trialCount := 0
	for k := range candidates {
		// One trial for every arity: all tables of that many indices and more are replaced.
		if k > 0 && candidates[k].arity == candidates[k-1].arity {
			continue
		}
		trialCount++
		if trialCount > maxTrials {
			break
		}

		trial := e.clone()
		for _, c := range candidates[k:] {
			trial.replaceTable(c.table, c.decomposition)
		}
		reduce(trial, o, p)

		_, trialFlops, err := minFillFlops(ctx, trial, p)
		if err != nil || o.always { // with o.always, for tests, the first trial counts at any cost
			return trial, err
		}
		if trialFlops < flops {
			best, flops = trial, trialFlops
		}
	}
	return best, nil
}

// minFillFlops returns the min-fill order of e and the flops of the contraction along it, at most policy.OutOfReach. Both are zero if e is
// 0.
func minFillFlops(ctx context.Context, e *expression, p *pace.Pace) (order []int, flops float64, err error) {
	if err := p.Err(); e.report.Zero != nil || err != nil {
		return nil, 0, err
	}
	order, cost, _, err := contractionorder.MinFillCost(ctx, e.hypergraph(), policy.OutOfReach, policy.MostFill)
	return order, min(cost.Flops, policy.OutOfReach), err
}

// hasTableOfArity reports whether some table of e has minArity indices or more.
func hasTableOfArity(e *expression, minArity int) bool {
	return slices.ContainsFunc(e.tables,
		func(t *table) bool { return t != nil && len(t.scope) >= minArity })
}

// candidate is a decomposition that may replace a table.
type candidate struct {
	table int // its number
	arity int // the number of its indices
	decomposition
}

// findCandidates returns a decomposition, a chain or else a star, for every table of e that has one, sorted by the number of indices
// (arity). It looks at tables of minArity indices and more. It skips tables with which the entries looked at would exceed maxEntriesTried.
// A star takes an operation for each entry and index; it does not look for stars with which these would exceed maxEntriesForStar.
func findCandidates(ctx context.Context, e *expression, p *pace.Pace) ([]candidate, error) {
	order, _, err := minFillFlops(ctx, e, p)
	if err != nil {
		return nil, err
	}
	positionInOrder := make([]int, len(e.dims)) // by index
	for k, i := range order {
		positionInOrder[i] = k
	}

	var candidates []candidate
	entriesTried, entriesForStar := 0, 0 // so far
	for n, t := range e.tables {
		if t == nil || len(t.scope) < minArity || entriesTried+len(t.data) > maxEntriesTried {
			continue
		}
		entriesTried += len(t.data)
		d, ok := decomposeChain(e.dims, t, positionInOrder)
		starCost := len(t.data) * len(t.scope)
		if !ok && entriesForStar+starCost <= maxEntriesForStar {
			entriesForStar += starCost
			d, ok = decomposeStar(e.dims, t)
		}

		if ok {
			candidates = append(candidates, candidate{n, len(t.scope), d})
		}
	}
	slices.SortStableFunc(candidates, func(a, b candidate) int { return cmp.Compare(a.arity, b.arity) })
	return candidates, nil
}
