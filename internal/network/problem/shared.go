package problem

import (
	"slices"
	"sync"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

// Shared keeps the last problem for the next task: all tasks of a query are of the same. It keeps
// forms of the last network without evidence, too (FormOfBase): a network
// must not change while it is known here. Values have the same bits with
// it and without. The zero value is empty, nil keeps nothing; it may be used by several goroutines.
type Shared struct {
	mu    sync.Mutex
	last  *Problem
	bases Forms // of the last base, without evidence
	parts parts
}

// Problem returns the problem of a query to base: its evidence, and the messages of its assignment.
// Networks, messages and evidence are compared by identity and value. Errors: those of Condition.
func (s *Shared) Problem(
	base *btn.Network, evidence factorgraph.Evidence, messages []float64, o Options,
) (*Problem, error) {
	return s.problem(base, nil, evidence, messages, o)
}

// Of is Problem without messages, where the network under the evidence is there already.
func (s *Shared) Of(
	base, conditioned *btn.Network, evidence factorgraph.Evidence, o Options,
) *Problem {
	p, _ := s.problem(base, conditioned, evidence, nil, o) // only conditioning fails
	return p
}

// problem returns the last problem where it is the one asked for; else a new one,
// which it remembers. It conditions base where there is no network under the evidence yet.
func (s *Shared) problem(
	base, net *btn.Network, evidence factorgraph.Evidence, messages []float64, o Options,
) (*Problem, error) {
	if o.Memory == 0 {
		o.Memory = query.DefaultMemory
	}
	if s != nil {
		s.mu.Lock()
		l := s.last
		if l != nil && l.asked.base == base && l.Options == o && sameList(l.Messages, messages) &&
			sameEvidence(l.asked.evidence, evidence) {
			s.mu.Unlock()
			return l, nil
		}
		s.last = nil // before another one is made: two large ones may not fit
		s.mu.Unlock()
	}

	asked := source{base, evidence}
	if net == nil {
		var err error
		if base, evidence, net, err = base.Given(evidence); err != nil {
			return nil, err
		}
		if o.Summed {
			net = net.Summed()
		}
	}

	p := &Problem{
		Net:      net,
		Base:     base,
		Evidence: evidence,
		Messages: messages,
		Options:  o,
		shared:   s,
		asked:    asked,
	}

	if s != nil {
		s.mu.Lock()
		s.last = p
		s.mu.Unlock()
	}
	return p, nil
}

// Drop forgets everything.
func (s *Shared) Drop() {
	if s == nil {
		return
	}
	s.mu.Lock()
	s.last = nil
	s.mu.Unlock()
	s.bases.drop()
	s.parts.drop()
}

// sameList reports whether a and b are the same piece of memory.
func sameList(a, b []float64) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// sameEvidence compares observations and likelihoods, in their sequence, by value.
func sameEvidence(a, b factorgraph.Evidence) bool {
	return slices.Equal(a.Hard, b.Hard) &&
		slices.EqualFunc(a.Soft, b.Soft, func(x, y factorgraph.Likelihood) bool {
			return x.Var == y.Var && slices.Equal(x.Weights, y.Weights)
		})
}
