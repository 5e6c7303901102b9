package compiler

// The root: consequences of the formula alone, and of trying every literal once.

import (
	"context"
	"slices"

	"github.com/basetensor/basetensor/internal/methods/circuits/sat"
)

// prepare returns a search over what propagation and probing at the root leave of p. It is not ok if no assignment is left.
func prepare(ctx context.Context, p *problem, o Options) (s *search, ok bool, err error) {
	satisfier := sat.NewSatisfier(p.first)
	for _, c := range p.clauses {
		satisfier.Add(c...)
	}
	if err := probe(ctx, satisfier); err != nil || satisfier.False {
		return nil, false, err
	}
	clauses := reduced(satisfier, p.clauses)
	numbers := newDrawer(p, clauses)
	r := newResidual(p, satisfier.Trail, clauses, numbers)
	tree, steps, err := bestDecomposition(ctx, r.hypergraph(clauses), o.Work)
	if err != nil {
		return nil, false, err
	}
	r.solver.Work += satisfier.Work + steps
	return newSearch(r, clauses, tree, numbers, o), true, nil
}

// probeRootWork bounds the steps of trying literals at the root: half a second.
// Chosen; the work of it is counted.
const probeRootWork = 1 << 26

// probe tries both values of every variable until a round finds nothing or the work is spent: a value that leads to a conflict is excluded.
func probe(ctx context.Context, s *sat.Satisfier) error {
	for found := true; found; {
		found = false
		for l := range lit(len(s.Value)) {
			if s.False || s.Work > probeRootWork {
				return nil
			}
			if l%256 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			if s.Value[l] == 0 && !s.Possible(l) {
				found = true
				s.Add(l.Not())
			}
		}
	}
	return nil
}

// reduced returns the clauses as they stand at the root: without satisfied ones, without false
// literals, each once, binary ones first.
func reduced(s *sat.Satisfier, clauses [][]lit) [][]lit {
	var out [][]lit
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
			out = append(out, open)
		}
	}
	slices.SortFunc(out, func(a, b []lit) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return slices.Compare(a, b)
	})
	return slices.CompactFunc(out, slices.Equal[[]lit])
}
