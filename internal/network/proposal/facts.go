package proposal

// Facts of one network without its evidence: once per job, or once per worker where networks come again.

import (
	"context"
	"sync"

	"github.com/basetensor/basetensor/internal/base/digest"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/lower"
)

// mostFacts bounds the slots of one network.
const mostFacts = 64

// Facts are what the proposals for one network have in common. They may be used by several goroutines.
type Facts struct {
	// Common are those of all networks that the process plans for; its zero value is empty.
	Common *Facts

	digest [digest.Size]byte

	mu    sync.Mutex
	slots map[any]*fact
}

// fact is the content of a slot. there says that it was made.
type fact struct {
	mu    sync.Mutex
	there bool
	value any
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
	s := f.slot(slot)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.there {
		return s.value.(T), nil
	}
	value, err := make()
	if err == nil {
		s.there, s.value = true, value
	}
	return value, err
}

func (f *Facts) slot(slot any) *fact {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.slots[slot]
	if !ok {
		if f.slots == nil || len(f.slots) >= mostFacts {
			f.slots = map[any]*fact{}
		}
		s = new(fact)
		f.slots[slot] = s
	}
	return s
}

// shapeSlot is that of the network's shape.
type shapeSlot struct{}

// Shape returns the shape of the network, without evidence.
func (f *Facts) Shape(ctx context.Context, net *btn.Network) (contractionorder.Hypergraph, error) {
	return Fact(f, shapeSlot{}, func() (contractionorder.Hypergraph, error) { return lower.Shape(ctx, net) })
}
