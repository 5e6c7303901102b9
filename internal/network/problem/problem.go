// Package problem holds a network under a query's evidence, and its derived forms (expressions, simplified networks, messages): each is
// made once for all parts of a task.
package problem

import (
	"slices"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

// Problem is a network under evidence. Its fields do not change. Several goroutines may use it. Which forms are made already does not
// change the bits of any value.
type Problem struct {
	Net      *btn.Network // conditioned on Evidence
	Base     *btn.Network // Net before evidence; nil for a network that is not asked again with other evidence
	Evidence factorgraph.Evidence
	// Messages are those of belief propagation on Net. If they are nil, regions run belief propagation themselves.
	Messages []float64
	Options

	shared  *Shared // that made the problem, or nil
	forms   Forms
	request problemRequest // what Shared was asked for when it made the problem
}

// problemRequest is a network and its evidence, as a caller of Shared gave them. Base and Evidence of the problem may differ from them
// (btn.Network.Given).
type problemRequest struct {
	base     *btn.Network
	evidence factorgraph.Evidence
}

// Options bound the memory and the threads of the contractions of a problem. The zero value works.
type Options struct {
	Memory int64 // bytes for tables and count polynomials; 0 means query.DefaultMemory
	// Threads is the number of goroutines that work on one part, 0 means all processors. Values have the same bits for any number.
	Threads int
	// Summed puts btn.Network.Summed in the place of the network. It is for a query of Z alone.
	Summed bool
}

// New returns the problem of a network that is conditioned already. It shares no forms with other problems.
func New(net *btn.Network, o Options) *Problem {
	if o.Memory == 0 {
		o.Memory = query.DefaultMemory
	}
	return &Problem{Net: net, Options: o}
}

// EvidenceOfSlice returns the evidence together with observations of the values that a slice fixes. The number s.At of the slice has
// these values as the digits of a mixed radix, the last variable fastest. The error wraps factorgraph.ErrContradictory if the evidence
// excludes the slice.
func (p *Problem) EvidenceOfSlice(s btn.Slice, evidence factorgraph.Evidence) (factorgraph.Evidence, error) {
	if len(s.Variables) == 0 {
		return evidence, nil
	}

	hard := slices.Clone(evidence.Hard)
	digits := s.At
	for k := len(s.Variables) - 1; k >= 0; k-- {
		v := s.Variables[k]
		d := int64(p.Net.Variables[v].Domain)
		hard = append(hard, factorgraph.Observation{Var: v, Value: int(digits % d)})
		digits /= d
	}
	return factorgraph.NewEvidence(hard, evidence.Soft)
}
