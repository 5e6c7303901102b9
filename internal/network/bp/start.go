package bp

// Starts of a run: uniform or random messages, or given distributions; and states that are made of messages without a run.

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
)

// setStart sets the messages to indices: to o.Given, or random ones by o.Seed, or uniform ones if Seed is 0.
func (s *State) setStart(o Options) error {
	if o.Given != nil {
		return s.startFrom(o.Given)
	}
	rng := rand.New(rand.NewPCG(o.Seed, 0x6270))
	for k := range s.g.tableOf {
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

// minGiven is the smallest weight of a value in a start from given distributions. If a value is impossible, the tables exclude it again.
const minGiven = 0x1p-30

// startFrom sets the messages to every index to its distribution, with minGiven for smaller weights. It returns an error (fault.Internal)
// if the distributions do not fit the expression.
func (s *State) startFrom(distributions [][]float64) error {
	if len(distributions) != len(s.g.e.Dims) {
		return fault.New(fault.Internal, "bp: a start of %d indices, the expression has %d", len(distributions), len(s.g.e.Dims))
	}
	for k := range s.g.tableOf {
		p, m := distributions[s.g.indexOf(int32(k))], s.g.message(s.m, int32(k))
		if len(p) != len(m) {
			return fault.New(fault.Internal, "bp: a start of %d values for an index of %d", len(p), len(m))
		}
		for a := range m {
			m[a] = max(p[a], minGiven)
		}
		normalise(m)
	}
	return nil
}

// setMessages sets the messages to indices from a list as of Messages, and normalises them. It returns an error (fault.BadInput) if they do
// not fit the expression.
func (s *State) setMessages(messages []float64) error {
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

// Restore returns the state of e with the given messages (State.Messages), without a run. Change is their distance from a fixed point of e,
// and Converged reports whether it is at most 1e-12. Errors as for Run; fault.BadInput if the messages do not fit e.
func Restore(e *sumproduct.Expression, messages []float64) (*State, error) {
	g, err := newGraph(e)
	if err != nil {
		return nil, err
	}
	s := newState(g)
	if err := s.setMessages(messages); err != nil {
		return nil, err
	}

	r := &runner{
		State:   s,
		kernel:  newKernel(g, s.m, s.v),
		ctx:     context.Background(),
		options: Options{Tolerance: tolerance},
	}
	for i := range g.e.Dims {
		r.sendFrom(i)
	}
	if r.Contradiction < 0 {
		if err := r.measureChange(); err != nil {
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
