// Package truncated contracts a network with truncated legs: the network is simplified, a schedule is planned for the rest, and slices
// and evidence enter as masks, so that one plan serves them all.
//
// There are two schedules. A tree (package trees) merges dense tensors in any sequence, and truncates a wire in the gauge of its
// surroundings. A sweep (package sweeps) is a tree that is a path, and has two advantages of one: the state stays a chain in canonical
// form, against which the tables of an index are a sparse operator that is never multiplied out, and a second pass truncates for itself.
// So large domains and dense models are in reach, and there are marginals and draws at every bond; a tree has marginals only where it
// truncates nothing. Package legs is their common part.
package truncated

// From a network to the expression that is contracted.

import (
	"context"
	"errors"

	"github.com/basetensor/basetensor/internal/methods/exact"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/preprocess"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

var (
	// ErrOtherNetwork is the error of a plan that was made for another network.
	ErrOtherNetwork = errors.New("truncated: the plan was made for another network")
	// ErrNoMask is the error if a variable's value cannot be fixed in the simplified network, since no index determines it.
	ErrNoMask = errors.New("truncated: the variable is not in the simplified network")
)

// Prepared is a simplified network.
type Prepared struct {
	net       *btn.Network
	original  *sumproduct.Expression // the network as an expression, before simplification
	simple    *preprocess.Result     // the simplified expression, and how indices of the original follow from it
	marginals bool                   // all marginals can be recovered
	signed    bool                   // terms of both signs may cancel, in the simplification or after it
	absolute  absolute               // bytes of the simplified tables if an entry is below 0
	weights   [][]float64            // by index of the simplified expression: the weights of a mask on its values; nil if all are 1
}

// Prepare writes a network as an expression and simplifies it. If marginals is true, it sums out only indices whose marginals can be
// recovered. Errors and cost: as lower.Build and preprocess.Run.
func Prepare(ctx context.Context, net *btn.Network, marginals bool) (*Prepared, error) {
	original, err := lower.Build(ctx, net)
	if err != nil {
		return nil, err
	}
	simple, err := preprocess.Run(ctx, original, preprocess.Options{Marginals: marginals})
	if err != nil {
		return nil, err
	}
	p := &Prepared{net: net, original: original, simple: simple, marginals: marginals}
	p.absolute = absoluteBytes(simple.Expression)
	p.signed = p.absolute > 0 || original.Signed() // the simplification may have summed all entries below 0 away
	return p, nil
}

// Expression returns the simplified expression, which is contracted.
func (p *Prepared) Expression() *sumproduct.Expression { return p.simple.Expression }

// Marginals reports whether all marginals can be recovered.
func (p *Prepared) Marginals() bool { return p.marginals }

// Hypergraph returns the shape of Expression.
func (p *Prepared) Hypergraph() contractionorder.Hypergraph { return p.simple.Expression.Hypergraph() }

// Shape returns the digest of Hypergraph, on which a plan depends. Masks change it; a plan is for the shape without them.
func (p *Prepared) Shape() string { return exact.Digest(p.Hypergraph()) }

// IsDecided reports whether simplification has left nothing to sum.
func (p *Prepared) IsDecided() bool {
	for _, d := range p.simple.Expression.Dims {
		if d > 1 {
			return false
		}
	}
	return true
}

// Domains returns the domain sizes of the network's variables.
func (p *Prepared) Domains() []int {
	d := make([]int, len(p.net.Variables))
	for v := range d {
		d[v] = p.net.Variables[v].Domain
	}
	return d
}

// DecidingIndex returns the index of the simplified expression whose value determines that of a variable. It is −1 if none does: the
// variable was summed out, or has one value.
func (p *Prepared) DecidingIndex(variable int) int {
	if i := p.original.Variables[variable]; p.original.Dims[i] > 1 && p.simple.Origin[i].ValueOf != nil {
		return p.simple.Origin[i].Index
	}
	return -1
}

// Deciding returns for every variable the index of the simplified expression that determines its value. If none does and marginals can be
// recovered, it is the index whose value determines the probabilities of the variable's values. It is −1 if there is neither.
func (p *Prepared) Deciding() []int {
	indices := p.DecidingIndices()
	for v, i := range p.original.Variables {
		if origin := p.simple.Origin[i]; p.marginals && p.original.Dims[i] > 1 && origin.Conditional != nil {
			indices[v] = origin.Index
		}
	}
	return indices
}

// DecidingIndices returns for every variable the index of the simplified expression that determines it, or −1 (DecidingIndex).
func (p *Prepared) DecidingIndices() []int {
	indices := make([]int, len(p.original.Variables))
	for v := range indices {
		indices[v] = p.DecidingIndex(v)
	}
	return indices
}
