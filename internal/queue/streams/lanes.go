package streams

// The number of messages that wait or are in work, by stage and lane.

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
	Waiting int // messages that were not delivered yet
	Working int // messages that were delivered and are not acknowledged
	Asking  int // messages that workers have requested and wait for
}

// Queues returns the queue of each stage, and the queue of each lane, summed over the stages. (Tenants are spread over
// wire.Lanes lanes, so that one tenant's messages delay only those in its lane.) If one consumer serves all lanes, the
// lanes' queues are zero.
func Queues(ctx context.Context, conn *bus.Conn) (stages map[string]Queue, lanes []Queue, err error) {
	stages, lanes = map[string]Queue{}, make([]Queue, wire.Lanes)
	for stage, feed := range map[string]Feed{
		query.StageReparam: Models, query.StageLearn: Networks, query.StageContract: Tasks, query.StageAggregate: Partials,
	} {
		if stages[stage], err = feedQueue(ctx, conn, feed, lanes); err != nil {
			return nil, nil, err
		}
	}
	return stages, lanes, nil
}

// feedQueue returns the queue of a feed, summed over its consumers, and adds the queue of lane i to lanes[i], unless lanes
// is nil. A lane's consumer has the feed's name, a dash and the number of the lane.
func feedQueue(ctx context.Context, conn *bus.Conn, feed Feed, lanes []Queue) (sum Queue, err error) {
	s, err := conn.Stream(ctx, feed.Stream)
	if err != nil {
		return sum, err
	}
	list := s.ListConsumers(ctx)
	for c := range list.Info() {
		lane, hasLane := strings.CutPrefix(c.Name, feed.Name+"-")
		if !hasLane && c.Name != feed.Name {
			continue
		}
		consumerQueue := Queue{int(c.NumPending), c.NumAckPending, c.NumWaiting}
		sum.add(consumerQueue)
		if number, err := strconv.Atoi(lane); hasLane && err == nil && number >= 0 && number < len(lanes) {
			lanes[number].add(consumerQueue)
		}
	}
	if err := list.Err(); err != nil && !errors.Is(err, jetstream.ErrEndOfData) {
		return sum, fault.New(fault.Infrastructure, "pipeline: consumers of %s: %w", feed.Stream, err)
	}
	return sum, nil
}

// add adds the numbers of another queue to q.
func (q *Queue) add(other Queue) {
	q.Waiting += other.Waiting
	q.Working += other.Working
	q.Asking += other.Asking
}
