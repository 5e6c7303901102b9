package bp

// Contradictions: Z = 0, or the end of float64?

import (
	"context"
	"fmt"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
)

// leastAllowed is the least entry of a message of a bounded run, of a sum of 1, for a value that arc consistency allows.
const leastAllowed = 0x1p-30

// contradictInside marks a contradiction of messages that have not converged: sent once more to all tables, as Restore has them, they
// leave an index or a table without any value.
func (s *State) contradictInside() {
	if s.Converged || s.Contradiction >= 0 || s.Signed || s.g.e.Scale.IsZero() {
		return
	}
	sent := newState(s.g)
	copy(sent.m, s.m)
	s.Contradiction = sent.sendAll()
}

// sendAll computes the messages to all tables. It returns an index without any value, or one of a table without any; −1 for none.
func (s *State) sendAll() (contradiction int) {
	c := newKernel(s.g, s.m, s.v)
	for i := range s.g.e.Dims {
		if !c.toTables(i) {
			return i
		}
	}
	for t, table := range s.g.e.Tables {
		if len(table.Scope) > 0 && c.value(t).IsZero() {
			return table.Scope[0]
		}
	}
	return -1
}

// isOfFloat64 reports whether a run ended in a contradiction that may be one of float64 alone.
func (s *State) isOfFloat64(allowed []float64) bool {
	return s.Contradiction >= 0 && !s.Signed && allowed != nil
}

// bounded runs again, after a contradiction of float64 alone at some index, with messages that exclude no allowed value. Its messages
// are no fixed point, also on a tree. The error is sumproduct.ErrSpan where they contradict each other all the same.
func (r *runner) bounded(index int, allowed []float64) error {
	r.allowed, r.Contradiction = allowed, -1
	if err := r.start(r.o); err != nil {
		return err
	}
	if err := r.run(); err != nil {
		return err
	}
	r.Converged, r.Change = false, max(r.Change, leastAllowed)
	r.contradictInside()
	if r.Contradiction >= 0 {
		return fault.New(fault.Unsupported, "%w: messages to index %d exclude all its values", sumproduct.ErrSpan, index)
	}
	return nil
}

// consistent looks at a contradiction between entries ≥ 0 again, with 1 for every entry above 0 and
// every message rounded to 0 and 1: values excluded by messages then (arc consistency) have no term
// in Z at all. It returns the messages of allowed values; nil where an index is left without any.
func (s *State) consistent(ctx context.Context) (allowed []float64, err error) {
	if s.Contradiction < 0 || s.Signed {
		return nil, nil
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
	if err != nil || excluded {
		return nil, err
	}
	return support.m, nil
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
