package bp

// Contradictions: Z = 0, or the end of float64?

import (
	"context"
	"fmt"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
)

// confirm looks at a contradiction between entries ≥ 0 again, with 1 for every entry above 0 and
// every message rounded to 0 and 1: values excluded by messages then (arc consistency) have no term
// in Z at all.
func (s *State) confirm(ctx context.Context) error {
	if s.Contradiction < 0 || s.Signed {
		return nil
	}
	e := &sumproduct.Expression{
		Dims:   s.g.e.Dims,
		Tables: make([]sumproduct.Table, len(s.g.e.Tables)),
		Scale:  s.g.e.Scale,
	}
	for t, table := range s.g.e.Tables {
		e.Tables[t] = sumproduct.Table{
			Scope: table.Scope,
			Data:  indicators(append([]float64(nil), table.Data...)),
		}
	}

	g := *s.g
	g.e = e
	support := newState(&g)
	r := &runner{State: support, c: newKernel(&g, support.m, support.v), ctx: ctx}
	for a := range support.m {
		support.m[a] = 1
	}

	excluded, err := r.arcConsistent()
	if err != nil {
		return err
	}
	if !excluded {
		return fault.New(fault.Unsupported, "%w: messages to index %d exclude all its values",
			sumproduct.ErrSpan, s.Contradiction)
	}
	return nil
}

// arcConsistent excludes values until nothing changes, and says whether an index is left without
// any.
func (r *runner) arcConsistent() (bool, error) {
	for i := range r.g.e.Dims {
		if r.send(i); r.Contradiction >= 0 {
			return true, nil
		}
	}

	for changed := true; changed; {
		changed = false
		for n := range 2 * len(r.g.order) {
			i := int(r.g.order[min(n, 2*len(r.g.order)-1-n)])
			for k := r.g.begin[i]; k < r.g.end[i]; k++ {
				if err := r.look(len(r.g.e.Tables[r.g.table[k]].Data)); err != nil {
					return false, fmt.Errorf("bp: %w", err)
				}
				out, ok := r.c.toIndex(k)
				if !ok {
					return true, nil
				}
				m := r.g.message(r.m, k)
				for a, x := range indicators(out) {
					changed = changed || x != m[a]
					m[a] = x
				}
			}

			if r.send(i); r.Contradiction >= 0 {
				return true, nil
			}
			indicators(r.v[r.g.at[r.g.begin[i]]:r.g.at[r.g.end[i]]])
		}
	}

	return false, nil
}

// indicators replaces every nonzero entry by 1.
func indicators(x []float64) []float64 {
	for a := range x {
		if x[a] != 0 {
			x[a] = 1
		}
	}
	return x
}
