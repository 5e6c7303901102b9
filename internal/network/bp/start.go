package bp

// Starts of a run: uniform or random messages, or given distributions; and states made of messages alone.

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
)

// start fills m.
func (s *State) start(o Options) error {
	if o.Given != nil {
		return s.given(o.Given)
	}
	rng := rand.New(rand.NewPCG(o.Seed, 0x6270))
	for k := range s.g.table {
		m := s.g.message(s.m, int32(k))
		for a := range m {
			m[a] = 1
			if o.Seed != 0 {
				m[a] = 0x1p-20 + rng.ExpFloat64()
			}
		}
		normalise(m)
	}
	return nil
}

// readmitted replaces the zeros of a distribution that a run starts from: where they are right, the tables bring them back.
const readmitted = 0x1p-30

// given starts from a distribution of every index, and lets the values in that it excludes.
func (s *State) given(of [][]float64) error {
	if len(of) != len(s.g.e.Dims) {
		return fault.New(fault.Internal, "bp: a start of %d indices, the expression has %d", len(of), len(s.g.e.Dims))
	}
	for k := range s.g.table {
		p, m := of[s.g.index(int32(k))], s.g.message(s.m, int32(k))
		if len(p) != len(m) {
			return fault.New(fault.Internal, "bp: a start of %d values for an index of %d", len(p), len(m))
		}
		for a := range m {
			m[a] = max(p[a], readmitted)
		}
		normalise(m)
	}
	return nil
}

// set takes messages over, normalised. It returns fault.BadInput where they do not fit the
// expression.
func (s *State) set(messages []float64) error {
	if len(messages) != len(s.m) {
		return fault.New(fault.BadInput, "bp: %d numbers in messages, the expression needs %d",
			len(messages), len(s.m))
	}
	for _, k := range s.g.incidences {
		m := s.g.message(s.m, k)
		messages = messages[copy(m, messages):]
		if total := normalise(m); !(total > tiny && total < huge) {
			return fault.New(fault.BadInput, "bp: the message of incidence %d sums to %v", k, total)
		}
	}
	return nil
}

// Restore returns the state that messages (State.Messages) describe, without passing any: Change is
// their distance from a fixed point of e, Converged says whether it is at most 1e-12. Errors as for
// Run.
func Restore(e *sumproduct.Expression, messages []float64) (*State, error) {
	g, err := newGraph(e)
	if err != nil {
		return nil, err
	}
	s := newState(g)
	if err := s.set(messages); err != nil {
		return nil, err
	}

	r := &runner{
		State: s,
		c:     newKernel(g, s.m, s.v),
		ctx:   context.Background(),
		o:     Options{Tolerance: tolerance},
	}
	for i := range g.e.Dims {
		r.send(i)
	}
	if r.Contradiction < 0 {
		if err := r.check(); err != nil {
			return nil, fmt.Errorf("bp: %w", err)
		}
	}

	s.Updates = 0
	return s, nil
}

// Entries returns the length of State.Messages on an expression.
func Entries(e *sumproduct.Expression) (entries int) {
	for n := range e.Tables {
		for _, i := range e.Tables[n].Scope {
			entries += e.Dims[i]
		}
	}
	return entries
}
