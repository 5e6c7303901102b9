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

// stages are the workers through which every job passes, with the stream and the prefix of the names of the consumers
// from which they take jobs. The consumer of lane 3 is "reparam-3" for instance, and the one for all lanes "reparam".
var stages = []struct{ worker, stream, consumer string }{
	{query.StageReparam, StreamModel, ConsumerModel},
	{query.StageLearn, StreamNetwork, ConsumerNetwork},
	{query.StageContract, StreamTask, ConsumerTask},
	{query.StageAggregate, StreamPartial, ConsumerPartial},
}

// askers says which workers ask for the messages of a stage.
type askers int

const (
	noConsumer         askers = iota // the stage has no consumers
	askedByNobody                    // no worker asks
	askedForOtherLanes               // only workers of other lanes ask
	askedForLane                     // workers of the lane ask
)

// CheckLane returns nil if workers of all four stages ask for messages of a lane, or work on some. (Tenants are spread over
// lanes, and a worker may serve only some of them.) Otherwise the error names a stage without workers, and wraps
// ErrNoWorkers or ErrNoStream. nobody is true if the stage has no workers for other lanes either. If the server does not
// tell, CheckLane returns nil. A worker that is busy with other lanes may seem not to serve this one for a moment.
func (c *Conn) CheckLane(ctx context.Context, lane int) (nobody bool, err error) {
	if c.tenant != "" {
		return c.checkLaneByWorker(ctx, lane)
	}
	for _, stage := range stages {
		s, err := c.Stream(ctx, stage.stream)
		if err != nil {
			return true, err
		}
		askers, err := findAskers(ctx, s, stage.consumer, lane)
		if err != nil {
			return false, nil // not known
		}
		switch askers {
		case noConsumer:
			return true, fault.New(fault.Infrastructure, "%w: stream %s has no consumers", ErrNoStream, stage.stream)
		case askedByNobody:
			return true, fault.New(fault.Infrastructure, "%w: no %s is running", ErrNoWorkers, stage.worker)
		case askedForOtherLanes:
			return false, fault.New(fault.Infrastructure,
				"%w: no %s takes jobs of lane %d; there are some for other lanes", ErrNoWorkers, stage.worker, lane)
		}
	}
	return false, nil
}

// findAskers returns which workers ask for the messages of a stage's consumers, or work on some. allLanesConsumer is
// the name of the consumer for all lanes, to which a lane's consumer adds a dash and the lane.
func findAskers(ctx context.Context, s jetstream.Stream, allLanesConsumer string, lane int) (askers, error) {
	// Look at the lane's own consumer first, then at those of all lanes, and last at the one for all lanes.
	laneConsumer := allLanesConsumer + "-" + strconv.Itoa(lane)
	names := []string{laneConsumer}
	for otherLane := range wire.Lanes {
		names = append(names, allLanesConsumer+"-"+strconv.Itoa(otherLane))
	}
	names = append(names, allLanesConsumer)

	strongest := noConsumer // the largest of the found values, which grow from noConsumer to askedForLane
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
		case isAsked && (name == laneConsumer || name == allLanesConsumer):
			return askedForLane, nil
		case isAsked:
			strongest = askedForOtherLanes
		default:
			strongest = max(strongest, askedByNobody)
		}
	}
	return strongest, nil
}

// workerReplyTimeout bounds the wait for a worker's reply about other workers.
const workerReplyTimeout = 2 * time.Second

// checkLaneByWorker is CheckLane for a tenant's user, who may not look at consumers. It asks a reparam-worker to look. If
// a stage has no workers for the lane, the reply says so in Unserved.
func (c *Conn) checkLaneByWorker(ctx context.Context, lane int) (nobody bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, workerReplyTimeout)
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
