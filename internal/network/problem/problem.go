// Package problem holds a network under a query's evidence, and its derived forms (expressions, simplified networks, messages): each is
// made once for all parts of a task.
package problem

import (
	"slices"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

// Problem is a network under evidence. Its fields do not change. It may be used by several
// goroutines; values have the same bits whatever is made already.
type Problem struct {
	Net      *btn.Network // conditioned on Evidence
	Base     *btn.Network // before; nil for a network that is not asked again with other evidence
	Evidence factorgraph.Evidence
	// Messages are those of belief propagation on Net; nil: it is run where regions need it.
	Messages []float64
	Options

	shared *Shared
	forms  Forms
	asked  source // for which it was made
}

// source is a network and its evidence, as they were given.
type source struct {
	base     *btn.Network
	evidence factorgraph.Evidence
}

// Options bound the contractions of a problem. The zero value works.
type Options struct {
	Memory int64 // bytes for tables and count polynomials; 0 means query.DefaultMemory
	// Threads is the number of goroutines that work on one part, 0 means all processors;
	// values have the same bits for any number.
	Threads int
	// Summed replaces the network by its Summed, for a query of Z alone.
	Summed bool
}

// New returns the problem of a conditioned network by itself.
func New(net *btn.Network, o Options) *Problem {
	if o.Memory == 0 {
		o.Memory = query.DefaultMemory
	}
	return &Problem{Net: net, Options: o}
}

// Given adds a slice, the values of some variables, to evidence.
// The error wraps factorgraph.ErrContradictory where the evidence excludes the slice.
func (p *Problem) Given(s btn.Slice, evidence factorgraph.Evidence) (factorgraph.Evidence, error) {
	if len(s.Variables) == 0 {
		return evidence, nil
	}

	hard := slices.Clone(evidence.Hard)
	rest := s.At
	for k := len(s.Variables) - 1; k >= 0; k-- {
		v := s.Variables[k]
		d := int64(p.Net.Variables[v].Domain)
		hard = append(hard, factorgraph.Observation{Var: v, Value: int(rest % d)})
		rest /= d
	}
	return factorgraph.NewEvidence(hard, evidence.Soft)
}
