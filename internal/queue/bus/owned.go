package bus

// A connection as a tenant's user: the server lets it publish and read messages with the tenant's
// name in their subject, and gives it no information about streams and consumers.

import (
	"context"
	"errors"
	"time"

	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// Owner returns the tenant whose user the connection is, or "".
func (b *link) Owner() string { return b.owner }

// Replicas may be late: the number of further requests for a message that is not found in a
// cluster, after pauses of staleFor.
const (
	staleLooks = 3
	staleFor   = 100 * time.Millisecond
)

// askFor is for how long a worker's word about workers is waited for.
const askFor = 2 * time.Second

// askServed is Served by the workers' word. Only reparam-workers answer.
func (b *Bus) askServed(ctx context.Context, lane int) (nobody bool, err error) {
	room, err := b.ask(ctx, lane, message.AskServed)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return true, fault.New(fault.Infrastructure, "%w: no %s is running", ErrNoWorkers, query.StageReparam)
	case err != nil:
		return false, nil // not known
	case room.Unserved != "":
		return true, fault.New(fault.Infrastructure, "%w: %s", ErrNoWorkers, room.Unserved)
	}
	return false, nil
}

// ask asks the workers about a lane.
func (b *Bus) ask(ctx context.Context, lane int, what string) (room message.Room, err error) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	reply, err := b.NC.RequestWithContext(ctx, message.RoomSubject(lane), []byte(what))
	if err == nil {
		err = wire.Decode(reply.Data, &room)
	}
	return room, err
}
