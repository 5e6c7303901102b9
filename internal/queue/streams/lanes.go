package streams

// Requests for messages and deliveries, by stage and lane.

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go/jetstream"
)

// Queue is the state of the consumers of a stage or of a lane.
type Queue struct {
	Waiting int // messages that were not handed out
	Working int // messages that were, and are not acknowledged
	Asking  int // requests of workers that wait for a message
}

// Queues returns a queue per stage, and one per lane, of all stages together; where one consumer
// serves all lanes the lanes' queues are zero.
func Queues(ctx context.Context, conn *bus.Conn) (stages map[string]Queue, lanes []Queue, err error) {
	stages, lanes = map[string]Queue{}, make([]Queue, wire.Lanes)
	for stage, feed := range map[string]Feed{
		query.StageReparam: Models, query.StageLearn: Networks, query.StageContract: Tasks, query.StageAggregate: Partials,
	} {
		if stages[stage], err = queue(ctx, conn, feed, lanes); err != nil {
			return nil, nil, err
		}
	}
	return stages, lanes, nil
}

// queue returns the queue of a feed, and adds those of its lanes to lanes.
func queue(ctx context.Context, conn *bus.Conn, feed Feed, lanes []Queue) (sum Queue, err error) {
	s, err := conn.Stream(ctx, feed.Stream)
	if err != nil {
		return sum, err
	}
	list := s.ListConsumers(ctx)
	for c := range list.Info() {
		lane, laned := strings.CutPrefix(c.Name, feed.Name+"-")
		if !laned && c.Name != feed.Name {
			continue
		}
		one := Queue{int(c.NumPending), c.NumAckPending, c.NumWaiting}
		sum.add(one)
		if at, err := strconv.Atoi(lane); laned && err == nil && at >= 0 && at < len(lanes) {
			lanes[at].add(one)
		}
	}
	if err := list.Err(); err != nil && !errors.Is(err, jetstream.ErrEndOfData) {
		return sum, fault.New(fault.Infrastructure, "pipeline: consumers of %s: %w", feed.Stream, err)
	}
	return sum, nil
}

func (q *Queue) add(other Queue) {
	q.Waiting += other.Waiting
	q.Working += other.Working
	q.Asking += other.Asking
}
