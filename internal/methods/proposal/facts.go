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

// Facts are what the proposals for one network have in common. They may be used by several goroutines.
type Facts struct {
	// Common are those of all networks that the process plans for; its zero value is empty.
	Common *Facts

	digest [digest.Size]byte
	forms  problem.Forms
}

// NewFacts returns those of a network: its digest, and nothing else yet. Linear time.
func NewFacts(net *btn.Network, common *Facts) *Facts {
	return &Facts{digest: net.Digest(), Common: common}
}

// Fresh returns the facts of the same network with empty slots.
func (f *Facts) Fresh() *Facts { return &Facts{digest: f.digest, Common: f.Common} }

// Fact returns the content of a slot, made at the first call: it depends on the network without evidence and on the slot
// alone. Slots are compared by ==; a package's own type for its slots keeps them apart from all others. An error is not
// remembered. make may ask for other slots.
func Fact[T any](f *Facts, slot any, make func() (T, error)) (T, error) {
	return problem.FormIn(context.Background(), &f.forms, slot, nil, make)
}

// shapeSlot is that of the network's shape.
type shapeSlot struct{}

// Shape returns the shape of the network, without evidence.
func (f *Facts) Shape(ctx context.Context, net *btn.Network) (contractionorder.Hypergraph, error) {
	return Fact(f, shapeSlot{}, func() (contractionorder.Hypergraph, error) { return lower.Shape(ctx, net) })
}
