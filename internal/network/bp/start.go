package bp

// Starts of a run: uniform or random messages, or given distributions; and states that are made of messages without a run.

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
)

// setStart sets the messages to indices from which a run starts. If o.StartBeliefs has distributions of the indices, the messages to an
// index are its distribution. Otherwise they are random by o.Seed, or uniform if o.Seed is 0.
func (s *State) setStart(o Options) error {
	if o.StartBeliefs != nil {
		return s.startFrom(o.StartBeliefs)
	}
	rng := rand.New(rand.NewPCG(o.Seed, 0x6270)) // "bp" in ASCII
	for k := range s.graph.tableOf {
		message := s.graph.messageOf(s.toIndex, int32(k))
		for a := range message {
			message[a] = 1
			if o.Seed != 0 {
				message[a] = 0x1p-20 + rng.ExpFloat64() // not near 0
			}
		}
		normalise(message)
	}
	return nil
}

// minGiven is the smallest weight of a value in a start from given distributions. If a value is impossible, the tables exclude it anyway.
const minGiven = 0x1p-30

// startFrom sets every message to an index to the given distribution of the index. Weights below minGiven are raised to it, so that no
// value is excluded at the start. It returns an error (fault.Internal) if the distributions do not fit the expression.
func (s *State) startFrom(distributions [][]float64) error {
	if len(distributions) != len(s.graph.expression.Dims) {
		return fault.New(fault.Internal, "bp: a start of %d indices, the expression has %d",
			len(distributions), len(s.graph.expression.Dims))
	}
	for k := range s.graph.tableOf {
		distribution := distributions[s.graph.indexOf(int32(k))]
		message := s.graph.messageOf(s.toIndex, int32(k))
		if len(distribution) != len(message) {
			return fault.New(fault.Internal, "bp: a start of %d values for an index of %d", len(distribution), len(message))
		}
		for a := range message {
			message[a] = max(distribution[a], minGiven)
		}
		normalise(message)
	}
	return nil
}

// setMessages sets the messages to indices to the given ones, which are one after the other as in State.Messages, and normalises them. It
// returns an error (fault.BadInput) if they do not fit the expression.
func (s *State) setMessages(messages []float64) error {
	if len(messages) != len(s.toIndex) {
		return fault.New(fault.BadInput, "bp: %d numbers in messages, the expression needs %d",
			len(messages), len(s.toIndex))
	}
	for _, k := range s.graph.incidences {
		message := s.graph.messageOf(s.toIndex, k)
		count := copy(message, messages)
		messages = messages[count:]
		if total := normalise(message); !(total > tiny && total < huge) {
			return fault.New(fault.BadInput, "bp: the message of incidence %d sums to %v", k, total)
		}
	}
	return nil
}

// Restore returns the state of e with the given messages (State.Messages), without a run. State.Change is their distance from a fixed
// point of e, and State.Converged reports whether it is at most tolerance, 1e-12. Errors as for Run; fault.BadInput if the messages do not
// fit e.
func Restore(e *sumproduct.Expression, messages []float64) (*State, error) {
	g, err := newGraph(e)
	if err != nil {
		return nil, err
	}
	s := newState(g)
	if err := s.setMessages(messages); err != nil {
		return nil, err
	}

	// Compute the messages to tables, and how far all messages are from a fixed point.
	r := &runner{
		State:   s,
		kernel:  newKernel(g, s.toIndex, s.toTable),
		ctx:     context.Background(),
		options: Options{Tolerance: tolerance},
	}
	for i := range g.expression.Dims {
		r.sendFrom(i)
	}
	if r.Contradiction < 0 {
		if err := r.measureChange(); err != nil {
			return nil, fmt.Errorf("bp: %w", err)
		}
	}

	s.Updates = 0 // without those that measureChange counts
	return s, nil
}

// MessageEntries returns the length of State.Messages for an expression: the number of values of all indices of all tables.
func MessageEntries(e *sumproduct.Expression) (entries int) {
	for n := range e.Tables {
		for _, i := range e.Tables[n].Scope {
			entries += e.Dims[i]
		}
	}
	return entries
}
