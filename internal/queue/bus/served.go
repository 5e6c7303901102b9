package bus

// Presence of workers: the stages that ask for the messages of a lane.

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ErrNoWorkers: no worker asks for the messages of the job's lane.
var ErrNoWorkers = errors.New("client: nobody serves the job's lane")

// stages are the workers through which every job passes, with the stream and the consumers from
// which they take it.
var stages = []struct{ worker, stream, consumer string }{
	{query.StageReparam, StreamModel, ConsumerModel},
	{query.StageLearn, StreamNetwork, ConsumerNetwork},
	{query.StageContract, StreamTask, ConsumerTask},
	{query.StageAggregate, StreamPartial, ConsumerPartial},
}

// Served returns nil if workers of all four stages ask for the messages of a lane, or work on some, else which do not; nobody if not even
// another lane of the stage is served. The error wraps ErrNoWorkers or ErrNoStream. A worker that is busy with other lanes may seem not
// to serve this one for a moment.
func (c *Conn) Served(ctx context.Context, lane int) (nobody bool, err error) {
	if c.tenant != "" {
		return c.askServed(ctx, lane)
	}
	for _, stage := range stages {
		s, err := c.Stream(ctx, stage.stream)
		if err != nil {
			return true, err
		}

		mine, others, none, err := asked(ctx, s, stage.consumer, lane)
		switch {
		case err != nil:
			return false, nil // not known
		case mine:
		case none:
			return true, fault.New(
				fault.Infrastructure, "%w: stream %s has no consumers", ErrNoStream, stage.stream,
			)
		case others:
			return false, fault.New(
				fault.Infrastructure,
				"%w: no %s takes jobs of lane %d; there are some for other lanes", ErrNoWorkers,
				stage.worker, lane,
			)
		default:
			return true, fault.New(
				fault.Infrastructure, "%w: no %s is running", ErrNoWorkers, stage.worker,
			)
		}
	}
	return false, nil
}

// asked reports whether workers ask for messages of a lane, or of another, at a stage's consumers, or
// work on some; none if there are no consumers.
func asked(
	ctx context.Context, s jetstream.Stream, stage string, lane int,
) (mine, others, none bool, err error) {
	own := stage + "-" + strconv.Itoa(lane)
	names := []string{own}
	for other := range wire.Lanes {
		names = append(names, stage+"-"+strconv.Itoa(other))
	}
	names = append(names, stage) // the one for all lanes

	none = true
	for _, name := range names {
		consumer, err := s.Consumer(ctx, name)
		if errors.Is(err, jetstream.ErrConsumerNotFound) {
			continue
		}
		if err != nil {
			return false, false, false, err
		}

		none = false
		info := consumer.CachedInfo()
		switch {
		case info.NumWaiting == 0 && info.NumAckPending == 0:
		case name == own || name == stage:
			return true, others, false, nil
		default:
			others = true
		}
	}
	return false, others, none, nil
}

// askFor is for how long a worker's word about workers is waited for.
const askFor = 2 * time.Second

// askServed is Served by the workers' word. Only reparam-workers answer.
func (c *Conn) askServed(ctx context.Context, lane int) (nobody bool, err error) {
	room, err := c.ask(ctx, lane, message.AskServed)
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
func (c *Conn) ask(ctx context.Context, lane int, what string) (room message.Room, err error) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	reply, err := c.NC.RequestWithContext(ctx, message.RoomSubject(lane), []byte(what))
	if err == nil {
		err = wire.Decode(reply.Data, &room)
	}
	return room, err
}
