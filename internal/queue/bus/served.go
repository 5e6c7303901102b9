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

// demand says who asks for the messages of a stage.
type demand int

const (
	noConsumer demand = iota // there are no consumers
	ofNobody
	ofOthers // workers of other lanes
	ofLane   // workers of the lane
)

// CheckLane returns nil if workers of all four stages ask for the messages of a lane, or work on some, else an error that names a stage
// without. Then nobody says that not even another lane of the stage is served. The error wraps ErrNoWorkers or ErrNoStream. A worker that
// is busy with other lanes may seem not to serve this one for a moment.
func (c *Conn) CheckLane(ctx context.Context, lane int) (nobody bool, err error) {
	if c.tenant != "" {
		return c.askLane(ctx, lane)
	}
	for _, stage := range stages {
		s, err := c.Stream(ctx, stage.stream)
		if err != nil {
			return true, err
		}
		demand, err := demandOf(ctx, s, stage.consumer, lane)
		if err != nil {
			return false, nil // not known
		}
		switch demand {
		case noConsumer:
			return true, fault.New(fault.Infrastructure, "%w: stream %s has no consumers", ErrNoStream, stage.stream)
		case ofNobody:
			return true, fault.New(fault.Infrastructure, "%w: no %s is running", ErrNoWorkers, stage.worker)
		case ofOthers:
			return false, fault.New(fault.Infrastructure,
				"%w: no %s takes jobs of lane %d; there are some for other lanes", ErrNoWorkers, stage.worker, lane)
		}
	}
	return false, nil
}

// demandOf returns who asks for the messages of a stage's consumers, or works on some.
func demandOf(ctx context.Context, s jetstream.Stream, stage string, lane int) (demand, error) {
	own := stage + "-" + strconv.Itoa(lane)
	names := []string{own}
	for other := range wire.Lanes {
		names = append(names, stage+"-"+strconv.Itoa(other))
	}
	names = append(names, stage) // the one for all lanes

	strongest := noConsumer
	for _, name := range names {
		consumer, err := s.Consumer(ctx, name)
		if errors.Is(err, jetstream.ErrConsumerNotFound) {
			continue
		}
		if err != nil {
			return noConsumer, err
		}
		info := consumer.CachedInfo()
		switch isAsked := info.NumWaiting > 0 || info.NumAckPending > 0; {
		case isAsked && (name == own || name == stage):
			return ofLane, nil
		case isAsked:
			strongest = ofOthers
		default:
			strongest = max(strongest, ofNobody)
		}
	}
	return strongest, nil
}

// askFor is for how long a worker's word about workers is waited for.
const askFor = 2 * time.Second

// askLane is CheckLane by the workers' word. Only reparam-workers answer.
func (c *Conn) askLane(ctx context.Context, lane int) (nobody bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	var room message.Room
	reply, err := c.NC.RequestWithContext(ctx, message.RoomSubject(lane), []byte(message.AskServed))
	if err == nil {
		err = wire.Decode(reply.Data, &room)
	}
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
