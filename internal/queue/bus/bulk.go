package bus

// A connection for large bytes: on the one for messages these would wait behind megabytes, on their way to the server and from it.

import (
	"sync"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/nats-io/nats.go"
)

// bulk is the connection for large bytes.
type bulk struct {
	mu      sync.Mutex
	shelves *shelves // nil until there are some
}

// apart returns b over the connection for large bytes, which has the settings of that for messages and ends with it. A tenant's user, whose
// connections are counted, has only one.
func (b *shelves) apart() (*shelves, error) {
	if b.owner != "" {
		return b, nil
	}
	b.bulk.mu.Lock()
	defer b.bulk.mu.Unlock()
	if b.bulk.shelves != nil {
		return b.bulk.shelves, nil
	}

	closed := b.NC.StatusChanged(nats.CLOSED)
	if b.NC.IsClosed() { // the channel may never tell
		return nil, fault.New(fault.Infrastructure, "bus: large bytes: %w", nats.ErrConnectionClosed)
	}
	options := b.NC.Opts
	options.Name += " (large)"
	nc, err := options.Connect()
	var large *Bus
	if err == nil {
		large, err = New(nc, b.API)
	}
	if err != nil {
		b.NC.RemoveStatusListener(closed)
		if nc != nil {
			nc.Close()
		}
		return nil, fault.New(fault.Infrastructure, "bus: large bytes: %w", err)
	}
	large.guard = b.guard
	go func() {
		<-closed
		nc.Close()
	}()
	b.bulk.shelves = &large.shelves
	return b.bulk.shelves, nil
}
