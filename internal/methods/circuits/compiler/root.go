package compiler

// The root: consequences of the formula alone, and of trying every literal once.

import (
	"context"
	"slices"

	"github.com/basetensor/basetensor/internal/methods/circuits/sat"
)

// prepare returns a search over the formula p, simplified by propagation and probing at the root. isPossible is false if these show that
// p has no assignment.
func prepare(ctx context.Context, p *problem, o Options) (s *search, isPossible bool, err error) {
	// Facts.
	satisfier := sat.NewSatisfier(p.firstBoolean)
	for _, c := range p.clauses {
		satisfier.Add(c...)
	}
	if err := probe(ctx, satisfier); err != nil || satisfier.IsContradictory {
		return nil, false, err
	}
	clauses := clausesAtRoot(satisfier, p.clauses)

	// The residual formula and a tree decomposition of it. digestDrawer draws random numbers by which the cache knows components.
	digestDrawer := newDrawer(p, clauses)
	r := newResidual(p, satisfier.Trail, clauses, digestDrawer)
	tree, steps, err := bestDecomposition(ctx, r.hypergraph(clauses), o.Work)
	if err != nil {
		return nil, false, err
	}
	r.solver.Work += satisfier.Work + steps
	return newSearch(r, clauses, tree, digestDrawer, o), true, nil
}

// probeRootWork bounds the steps of trying literals at the root: half a second.
// Chosen; the work of it is counted.
const probeRootWork = 1 << 26

// probe assumes the literals one by one and excludes each that leads to a conflict, in rounds until one finds nothing or the work is
// spent. The only error is that of the context.
func probe(ctx context.Context, s *sat.Satisfier) error {
	for hasFound := true; hasFound; {
		hasFound = false
		for l := range lit(len(s.Value)) {
			if s.IsContradictory || s.Work > probeRootWork {
				return nil
			}
			if l%256 == 0 && ctx.Err() != nil { // looks at the context now and then
				return ctx.Err()
			}
			if s.Value[l] == 0 && !s.IsPossible(l) {
				hasFound = true
				s.Add(l.Not())
			}
		}
	}
	return nil
}

// clausesAtRoot returns the clauses that the facts of s leave: without satisfied ones and without false literals, each once, shorter ones
// first.
func clausesAtRoot(s *sat.Satisfier, clauses [][]lit) [][]lit {
	var remaining [][]lit
	for _, c := range clauses {
		var open []lit
		holds := false
		for _, l := range c {
			holds = holds || s.Value[l] > 0
			if s.Value[l] == 0 {
				open = append(open, l)
			}
		}
		if !holds {
			remaining = append(remaining, open)
		}
	}

	slices.SortFunc(remaining, func(a, b []lit) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return slices.Compare(a, b)
	})
	return slices.CompactFunc(remaining, slices.Equal[[]lit])
}
