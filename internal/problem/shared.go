package problem

import (
	"slices"
	"sync"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/engine/einsum"
	"github.com/basetensor/basetensor/internal/families/truncated"
	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// Shared keeps the last problem for the next task: all tasks of a query are of the same. It keeps
// the programs of networks that were contracted last, and the last network simplified without
// evidence, too: a network must not change while it is known here. Values have the same bits with
// it and without. The zero value is empty, nil keeps nothing; it may be used by several goroutines.
type Shared struct {
	mu       sync.Mutex
	last     *Problem
	base     *btn.Network        // that masks was made of
	masks    *truncated.Prepared // base simplified without evidence
	programs einsum.Programs
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
		o.Memory = btn.DefaultMemory
	}
	if s != nil {
		s.mu.Lock()
		l := s.last
		if l != nil && l.Base == base && l.Options == o && sameList(l.Messages, messages) &&
			sameEvidence(l.Evidence, evidence) {
			s.mu.Unlock()
			return l, nil
		}
		s.last = nil // before another one is made: two large ones may not fit
		s.mu.Unlock()
	}

	if net == nil {
		var err error
		if net, err = base.Condition(evidence); err != nil {
			return nil, err
		}
		if o.Summed {
			net = net.Summed()
		}
	}

	p := &Problem{
		grounding: make(chan struct{}, 1),
		Net:       net,
		Base:      base,
		Evidence:  evidence,
		Messages:  messages,
		Options:   o,
		shared:    s,
	}

	if s != nil {
		s.mu.Lock()
		s.last = p
		s.mu.Unlock()
	}
	return p, nil
}

// Programs returns the programs of small networks, nil for a problem of its own.
func (p *Problem) Programs() *einsum.Programs {
	if p.shared == nil {
		return nil
	}
	return &p.shared.programs
}

// Drop forgets everything but the programs, which are small.
func (s *Shared) Drop() {
	if s == nil {
		return
	}
	s.mu.Lock()
	s.last = nil
	s.base = nil
	s.masks = nil
	s.mu.Unlock()
}

// unmasked returns the last network simplified without evidence, if it is base.
func (s *Shared) unmasked(base *btn.Network) *truncated.Prepared {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.base != base {
		s.base = nil
		s.masks = nil
	}
	return s.masks
}

// keepUnmasked remembers what base has become.
func (s *Shared) keepUnmasked(base *btn.Network, p *truncated.Prepared) {
	if s == nil {
		return
	}
	s.mu.Lock()
	s.base = base
	s.masks = p
	s.mu.Unlock()
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
