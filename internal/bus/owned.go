package bus

// A connection as a tenant's user: the server lets it publish and read what has the tenant's name in its subject, and tells it nothing
// about streams and consumers.

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/basetensor/basetensor/internal/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// As says that the connection is a tenant's user, before anything else is done with the Bus. It then asks for nothing that only workers
// and operators may know.
func (b *Bus) As(tenant string) { b.owner = tenant }

// Owner returns the tenant of As, or "".
func (b *Bus) Owner() string { return b.owner }

// Replicas may be late: what is not found in a cluster is asked for again so often, after pauses of staleFor.
const (
	staleLooks = 3
	staleFor   = 100 * time.Millisecond
)

// getOwned is getOnce by a request whose subject says what is asked for, so that a server may allow it by subject. The subject must
// have no wildcards.
func (b *Bus) getOwned(ctx context.Context, stream, subject string) (*jetstream.RawStreamMsg, error) {
	looks := 1
	if b.inCluster() {
		looks = staleLooks
	}
	for {
		reply, err := b.NC.RequestWithContext(ctx, "$JS.API.DIRECT.GET."+stream+"."+subject, nil)
		if err != nil {
			return nil, fault.New(fault.Infrastructure, "bus: get %s: %w", subject, err)
		}

		switch status := reply.Header.Get("Status"); status {
		case "":
			return storedOf(reply)
		case "404":
			if looks--; looks > 0 {
				pause(ctx, staleFor)
				continue
			}
			return nil, fmt.Errorf("%w: %s", ErrNotFound, subject)
		default:
			return nil, fault.New(
				fault.Infrastructure, "bus: get %s: %s %s", subject, status, reply.Header.Get("Description"),
			)
		}
	}
}

// storedOf returns the stored message that is the reply to a direct get.
func storedOf(reply *nats.Msg) (*jetstream.RawStreamMsg, error) {
	sequence, err := strconv.ParseUint(reply.Header.Get(jetstream.SequenceHeader), 10, 64)
	if err != nil {
		return nil, fault.New(fault.Infrastructure, "bus: a stored message: %w", err)
	}
	stored, err := time.Parse(time.RFC3339Nano, reply.Header.Get(jetstream.TimeStampHeaer))
	if err != nil {
		return nil, fault.New(fault.Infrastructure, "bus: a stored message: %w", err)
	}
	return &jetstream.RawStreamMsg{
		Subject:  reply.Header.Get(jetstream.SubjectHeader),
		Sequence: sequence,
		Header:   reply.Header,
		Data:     reply.Data,
		Time:     stored,
	}, nil
}

// askFor is for how long a worker's word about room and workers is waited for.
const askFor = 2 * time.Second

// askRoom asks the workers how many messages may be published in a lane. Where nobody answers a few are let through.
func (b *Bus) askRoom(ctx context.Context, lane int) (left int, full string) {
	room, err := b.ask(ctx, lane, "")
	if err != nil {
		return roomAtOdd, ""
	}
	return room.Left, room.Full
}

// askServed is Served by the workers' word. Who answers is a reparam-worker.
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
