package proposal

// Facts of one network without its evidence: once per job, or once per worker where networks come again.

import (
	"context"

	"github.com/basetensor/basetensor/internal/base/digest"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/problem"
)

// Facts remember results about one network without evidence, which its proposals share. Each result has a slot, which is its key. Several
// goroutines may use them.
type Facts struct {
	// Common are results that do not depend on the network, shared by all networks that the process plans for. Its zero value is empty.
	Common *Facts

	digest [digest.Size]byte // of the network
	forms  problem.Forms     // the results, by slot
}

// NewFacts returns the facts of a network, of which only the digest is known. common are the facts that all networks share. It takes linear
// time.
func NewFacts(net *btn.Network, common *Facts) *Facts {
	return &Facts{digest: net.Digest(), Common: common}
}

// WithoutResults returns facts of the same network without the results so far.
func (f *Facts) WithoutResults() *Facts { return &Facts{digest: f.digest, Common: f.Common} }

// Fact returns the result in a slot. The first call makes it and remembers it, unless there is an error. It depends only on the network
// without evidence and on the slot. Slots are compared by ==, so each package uses types of its own for them. make may ask for other
// slots. A call that finds another one making the result waits for it, until ctx ends at most.
func Fact[T any](ctx context.Context, f *Facts, slot any, make func() (T, error)) (T, error) {
	return problem.FormIn(ctx, &f.forms, slot, nil, make)
}

// shapeSlot is the slot of the shape of the network.
type shapeSlot struct{}

// Shape returns the shape of the network without evidence: the hypergraph of its tables and indices. net is the network of the facts.
func (f *Facts) Shape(ctx context.Context, net *btn.Network) (contractionorder.Hypergraph, error) {
	return Fact(ctx, f, shapeSlot{}, func() (contractionorder.Hypergraph, error) { return lower.Shape(ctx, net) })
}
