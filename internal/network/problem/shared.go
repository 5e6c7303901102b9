package problem

import (
	"slices"
	"sync"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

// Shared keeps the last problem for the next task, because all tasks of a query are of the same problem. It also keeps
// forms of the last network without evidence (FormOfBase), and relevant parts of networks (Relevant). A network
// must not change while it is known here. Values have the same bits with a Shared and without.
// The zero value is empty, and a nil *Shared keeps nothing. Several goroutines may use it.
type Shared struct {
	mu    sync.Mutex
	last  *Problem
	bases Forms // of the last base, without evidence
	parts parts
}

// Problem returns the problem of the network base under evidence, with the messages of belief propagation on it. If the last problem was
// asked for with the same arguments, it returns that one again: networks and messages are compared by identity, evidence and options by
// value. Errors: those of btn.Network.Condition.
func (s *Shared) Problem(
	base *btn.Network, evidence factorgraph.Evidence, messages []float64, o Options,
) (*Problem, error) {
	return s.problem(base, nil, evidence, messages, o)
}

// ConditionedProblem returns the problem of base under evidence, without messages, like Problem. The caller has conditioned base on the
// evidence already.
func (s *Shared) ConditionedProblem(
	base, conditioned *btn.Network, evidence factorgraph.Evidence, o Options,
) *Problem {
	p, _ := s.problem(base, conditioned, evidence, nil, o) // only conditioning fails
	return p
}

// problem returns the last problem if it was made for the same request. Otherwise it makes one and remembers it, unless s is nil. net is
// base under the evidence; if it is nil, base is conditioned here, and the error is that of conditioning.
func (s *Shared) problem(
	base, net *btn.Network, evidence factorgraph.Evidence, messages []float64, o Options,
) (*Problem, error) {
	if o.Memory == 0 {
		o.Memory = query.DefaultMemory
	}

	request := problemRequest{base, evidence} // as given: UnderEvidence below may replace base and evidence
	if last := s.takeLast(request, messages, o); last != nil {
		return last, nil
	}
	if net == nil {
		// If likelihoods times weights leave the range of float64, base gets the likelihoods as tensors, and evidence keeps the rest.
		var err error
		if base, evidence, net, err = base.UnderEvidence(evidence); err != nil {
			return nil, err
		}
		if o.Summed { // only Z is asked for
			net = net.WithoutVanishingTerms()
		}
	}

	p := &Problem{
		Net:      net,
		Base:     base,
		Evidence: evidence,
		Messages: messages,
		Options:  o,
		shared:   s,
		request:  request,
	}

	if s != nil {
		s.mu.Lock()
		s.last = p
		s.mu.Unlock()
	}
	return p, nil
}

// takeLast returns the last problem if it was made for the same request, messages and options. Otherwise it returns nil, and forgets the
// last problem: the caller will make another one, and two large ones may not fit the memory.
func (s *Shared) takeLast(request problemRequest, messages []float64, o Options) *Problem {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := s.last; last != nil && last.request.base == request.base && last.Options == o && isSameList(last.Messages, messages) &&
		isEqualEvidence(last.request.evidence, request.evidence) {
		return last
	}
	s.last = nil
	return nil
}

// Drop forgets the last problem, all forms and all parts that are kept in s. It does nothing if s is nil.
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

// isSameList reports whether a and b are the same piece of memory, or both empty.
func isSameList(a, b []float64) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// isEqualEvidence reports whether a and b have the same observations and the same likelihoods in the same sequence.
func isEqualEvidence(a, b factorgraph.Evidence) bool {
	return slices.Equal(a.Hard, b.Hard) &&
		slices.EqualFunc(a.Soft, b.Soft, func(x, y factorgraph.Likelihood) bool {
			return x.Var == y.Var && slices.Equal(x.Weights, y.Weights)
		})
}
