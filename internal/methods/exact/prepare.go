// Package exact is the family of exact answers by contraction trees, for networks on which one elimination order takes too much work: it
// simplifies the network under its evidence, searches a tree and slices, and contracts the slices. It joins packages preprocess,
// contractionorder and pairwise.
package exact

import (
	"context"
	"errors"

	"github.com/basetensor/basetensor/internal/base/digest"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/preprocess"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// ErrOtherNetwork says that a contraction was planned for another network, or for other evidence.
var ErrOtherNetwork = errors.New("exact: the contraction was planned for another network")

// Prepared is a conditioned network, simplified.
type Prepared struct {
	net       *btn.Network           // under the evidence
	given     *sumproduct.Expression // net as an expression, with the index of cells if there is one
	simple    *preprocess.Result     // given after simplification
	marginals bool                   // the marginal of every variable can be recovered
	cells     *cells                 // of the joint marginal; nil: none can be recovered
}

// Prepare writes a network, conditioned on its query's evidence, as an expression and simplifies it. If marginals is true, the marginals of
// all variables can be recovered. The same network gives the same bits. Errors and cost: as of lower.Build and preprocess.Run.
func Prepare(ctx context.Context, net *btn.Network, marginals bool) (*Prepared, error) {
	return PrepareJoint(ctx, net, marginals, nil, 0)
}

// Hypergraph returns the shape of the tables to contract.
func (p *Prepared) Hypergraph() contractionorder.Hypergraph {
	return p.simple.Expression.Hypergraph()
}

// Report returns the simplification's report.
func (p *Prepared) Report() preprocess.Report { return p.simple.Report }

// Shape returns the digest of Hypergraph: a tree depends on nothing else.
func (p *Prepared) Shape() string { return Digest(p.Hypergraph()) }

// Digest returns SHA-256, in hexadecimal digits, of a hypergraph.
func Digest(h contractionorder.Hypergraph) string {
	b := digest.New()
	h.Digest(b)
	return b.Hex()
}
