package compiler

// The root: consequences of the formula alone, and of trying every literal once.

import (
	"context"
	"slices"

	"github.com/basetensor/basetensor/internal/methods/circuits/sat"
)

// prepare returns a search over the residue of p after propagation and probing at the root, with a
// guide; nil if no assignment is left.
func prepare(ctx context.Context, p *problem, o Options) (*search, error) {
	r := sat.NewSatisfier(p.first)
	for _, c := range p.clauses {
		r.Add(c...)
	}
	if err := probe(ctx, r); err != nil || r.False {
		return nil, err
	}
	clauses := reduced(r, p.clauses)
	s := newSearch(p, r.Trail, clauses, o)
	s.solver.Work += r.Work // the work of probing
	return s, s.follow(ctx, clauses)
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
		var left []lit
		holds := false
		for _, l := range c {
			holds = holds || s.Value[l] > 0
			if s.Value[l] == 0 {
				left = append(left, l)
			}
		}
		if !holds {
			out = append(out, left)
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
