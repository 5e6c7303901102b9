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

// Facts are results about one network without evidence, which its proposals share. Several goroutines may use them.
type Facts struct {
	// Common are results that do not depend on the network, shared by all networks that the process plans for. Its zero value is empty.
	Common *Facts

	digest [digest.Size]byte
	forms  problem.Forms
}

// NewFacts returns the facts of a network with its digest and empty slots. It takes linear time.
func NewFacts(net *btn.Network, common *Facts) *Facts {
	return &Facts{digest: net.Digest(), Common: common}
}

// Fresh returns the facts of the same network with empty slots.
func (f *Facts) Fresh() *Facts { return &Facts{digest: f.digest, Common: f.Common} }

// Fact returns the value of a slot, which the first call makes. The value depends only on the network without evidence and on the slot.
// Slots are compared by ==; if each package has types of its own for its slots, they differ from those of all other packages. An error is
// not remembered. make may ask for other slots. A caller that finds another one at work waits for it, until ctx ends at most.
func Fact[T any](ctx context.Context, f *Facts, slot any, make func() (T, error)) (T, error) {
	return problem.FormIn(ctx, &f.forms, slot, nil, make)
}

// shapeSlot is the slot of the network's shape.
type shapeSlot struct{}

// Shape returns the shape of the network, without evidence.
func (f *Facts) Shape(ctx context.Context, net *btn.Network) (contractionorder.Hypergraph, error) {
	return Fact(ctx, f, shapeSlot{}, func() (contractionorder.Hypergraph, error) { return lower.Shape(ctx, net) })
}
