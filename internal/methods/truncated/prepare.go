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

// Prepared is a network, simplified.
type Prepared struct {
	net       *btn.Network
	given     *sumproduct.Expression
	simple    *preprocess.Result
	marginals bool
	signed    bool        // terms of both signs may cancel, in the simplification or after it
	absolute  absolute    // of Expression
	weights   [][]float64 // per index of the simplified expression: the weights of a mask on its values; nil for 1
}

// Prepare writes a network as an expression and simplifies it. With marginals it sums out only what leaves all marginals recoverable.
// Errors and cost: as lower.Build and preprocess.Run.
func Prepare(ctx context.Context, net *btn.Network, marginals bool) (*Prepared, error) {
	given, err := lower.Build(ctx, net)
	if err != nil {
		return nil, err
	}
	simple, err := preprocess.Run(ctx, given, preprocess.Options{Marginals: marginals})
	if err != nil {
		return nil, err
	}
	p := &Prepared{net: net, given: given, simple: simple, marginals: marginals}
	p.absolute = absoluteBytes(simple.Expression)
	p.signed = p.absolute > 0 || given.Signed()
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

// Decided reports whether simplification has left nothing to sum.
func (p *Prepared) Decided() bool {
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

// Index returns the index of the expression that determines a variable. It is −1 if none does.
func (p *Prepared) Index(variable int) int {
	if i := p.given.Variables[variable]; p.given.Dims[i] > 1 && p.simple.Origin[i].From != nil {
		return p.simple.Origin[i].Index
	}
	return -1
}

// Deciding returns, by variable, the index that determines it. If marginals can be recovered, it is otherwise the index that determines
// its probabilities. It is −1 if there is neither.
func (p *Prepared) Deciding() []int {
	out := p.Indices()
	for v, i := range p.given.Variables {
		if o := p.simple.Origin[i]; p.marginals && p.given.Dims[i] > 1 && o.Given != nil {
			out[v] = o.Index
		}
	}
	return out
}

// Indices returns Index of every variable.
func (p *Prepared) Indices() []int {
	out := make([]int, len(p.given.Variables))
	for v := range out {
		out[v] = p.Index(v)
	}
	return out
}
