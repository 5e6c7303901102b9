package compiler

// The root: consequences of the formula alone, and of trying every literal once.

import (
	"context"
	"slices"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/logic/sat"
)

// prepare returns a search over the residue of p after propagation and probing at the root, with a
// guide; nil where no assignment is left.
func prepare(ctx context.Context, p *problem, o Options) (*search, error) {
	s, err := root(ctx, p, o)
	if err != nil || s == nil {
		return nil, err
	}
	_, _, err = s.follow()
	return s, err
}

// root is prepare without a guide.
func root(ctx context.Context, p *problem, o Options) (*search, error) {
	if p.empty {
		return nil, nil
	}
	r := sat.New(p.first)
	for _, c := range p.clauses {
		if len(c) > 1 {
			r.Attach(slices.Clone(c), 0)
			continue
		}
		if r.Value[c[0]] < 0 {
			return nil, nil
		}
		if r.Value[c[0]] == 0 {
			r.Assign(c[0], sat.Fact)
		}
	}
	ok, err := probe(ctx, r)
	if err != nil || !ok {
		return nil, err
	}
	s, err := newSearch(ctx, p, r.Trail, reduced(r, p.clauses), o)
	if err == nil {
		s.Work += r.Work // the work of probing
	}
	return s, err
}

// probe propagates, and tries both values of every variable until a round finds nothing or the work is spent: a value that
// leads to a conflict is excluded. It reports whether an assignment may be left.
func probe(ctx context.Context, s *sat.Solver) (bool, error) {
	if !s.Propagate() {
		return false, nil
	}
	for found := true; found; {
		found = false
		for l := range lit(len(s.Value)) {
			if s.Value[l] != 0 {
				continue
			}
			if s.Work > policy.ProbeRootWork {
				return true, nil
			}
			if l%256 == 0 && ctx.Err() != nil {
				return false, ctx.Err()
			}
			s.Open()
			s.Assign(l, sat.Decided)
			fine := s.Propagate()
			s.Close()
			if fine {
				continue
			}
			found = true
			s.Assign(l.Not(), sat.Fact)
			if !s.Propagate() {
				return false, nil
			}
		}
	}
	return true, nil
}

// reduced returns the clauses as they stand at the root: without satisfied ones, without false
// literals, each once, binary ones first.
func reduced(s *sat.Solver, clauses [][]lit) [][]lit {
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
