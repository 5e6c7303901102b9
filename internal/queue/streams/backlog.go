package streams

// The backlog of the stages, in messages, in flops and in seconds of work of one worker.
//
// It is counted from the content of the streams, so it is right while no worker runs at all. A task
// is in its stream until it is acknowledged, and its header states its expected cost: each is read
// once, unless it is gone by then. The workers state the cost of their messages themselves, in
// headers that end in the partials; the last partials are read. Any number of aggregators may look,
// and all see the same.

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/nats-io/nats.go/jetstream"
)

// Load is the backlog of a stage, with the messages in work there.
type Load struct {
	Messages float64
	Flops    float64 // expected; of tasks, 0 for other stages
	Seconds  float64 // of one worker process
	Unread   float64 // of Messages: tasks that are taken for average ones
}

// Priced is the stage whose messages state their expected cost.
const Priced = query.StageContract

// Fill is how full a stream is, in bytes.
type Fill struct{ Used, Limit float64 }

// Backlog measures the backlog: always in an aggregator, which publishes it, and in a gateway when
// somebody asks.
type Backlog struct {
	Bus   *bus.Bus
	Log   *slog.Logger
	Own   func() message.Work     // cost of messages to this aggregator
	Tell  func(map[string]Load)   // is called after every look
	Fills func(map[string]Fill)   // is called now and then
	work  map[string]message.Work // as the workers said last
	seen  time.Time               // when work was read
	read  uint64                  // tasks up to this sequence were read
	made  time.Time               // when the stream of tasks was created
	costs map[string]float64      // of the tasks that were read and not found gone, by subject
}

// Bounds of a look.
const (
	backlogEvery = time.Second
	workEvery    = 10 * time.Second // for the cost of messages, and the fill of the streams

	workPartials = 256 // the last partials that are read for the cost of messages
	workBytes    = 1 << 20

	// Tasks read in one request, their bytes, and the requests of one look. Tasks left unread count as
	// average until the next look.
	taskBatch = 256
	taskBytes = 1 << 20
	taskReads = 16

	// A look takes at most 1/backlogRest of the time.
	backlogRest = 10
)

// Watch looks until ctx ends.
func (k *Backlog) Watch(ctx context.Context) error {
	for ctx.Err() == nil {
		began := time.Now()
		loads, err := k.Look(ctx)
		switch {
		case err == nil:
			k.Tell(loads)
		case ctx.Err() == nil:
			k.Bus.Conn.Trouble.Warn(k.Log, "cannot measure the backlog", "error", err)
		}
		bus.Pause(ctx, max(backlogEvery, backlogRest*time.Since(began)))
	}
	return nil
}

// Look counts the backlog of every stage.
func (k *Backlog) Look(ctx context.Context) (map[string]Load, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()

	if time.Since(k.seen) > workEvery {
		if err := k.readWork(ctx); err != nil {
			return nil, err
		}
		if err := k.fill(ctx); err != nil {
			return nil, err
		}
		k.seen = time.Now()
	}

	loads := map[string]Load{}
	for stage, feed := range map[string]Feed{query.StageReparam: Models, query.StageAggregate: Partials} {
		q, err := queue(ctx, k.Bus.Conn, feed, nil)
		if err != nil {
			return nil, err
		}
		n := float64(q.Waiting + q.Working)
		loads[stage] = k.inSeconds(stage, Load{Messages: n}, n, 0)
	}

	networks, err := k.Bus.Conn.Info(ctx, bus.StreamNetwork)
	if err != nil {
		return nil, err
	}
	n := float64(networks.State.Msgs)
	loads[query.StageLearn] = k.inSeconds(query.StageLearn, Load{Messages: n}, n, 0)

	loads[query.StageContract], err = k.tasks(ctx)
	return loads, err
}

// tasks returns the backlog of contract-worker.
func (k *Backlog) tasks(ctx context.Context) (Load, error) {
	info, err := k.Bus.Conn.Info(ctx, bus.StreamTask, jetstream.WithSubjectFilter(message.Filter(message.KindTask)))
	if err != nil {
		return Load{}, err
	}

	// A recreated stream counts from 1 again.
	if !info.Created.Equal(k.made) || info.State.LastSeq < k.read {
		k.made = info.Created
		k.read = 0
		clear(k.costs)
	}
	if k.costs == nil {
		k.costs = map[string]float64{}
	}
	for subject := range k.costs {
		if _, there := info.State.Subjects[subject]; !there {
			delete(k.costs, subject)
		}
	}
	if len(k.costs) < len(info.State.Subjects) {
		if err := k.readTasks(ctx, info.State.LastSeq); err != nil {
			return Load{}, err
		}
	}

	var small, large, known, flops float64
	for subject := range info.State.Subjects {
		cost, is := k.costs[subject]
		switch {
		case !is:
			continue
		case cost > message.SmallFlops:
			large += cost
		default:
			small++
		}
		known++
		flops += cost
	}

	all := float64(len(info.State.Subjects))
	if known == 0 {
		return k.inSeconds(query.StageContract, Load{Messages: all, Unread: all}, all, 0), nil
	}
	more := all / known // those that were not read are like the others
	return k.inSeconds(
		query.StageContract, Load{Messages: all, Flops: more * flops, Unread: all - known},
		more*small, more*large,
	), nil
}

// readTasks reads the costs of the tasks that were stored since the last look.
func (k *Backlog) readTasks(ctx context.Context, last uint64) error {
	for range taskReads {
		if k.read >= last {
			return nil
		}
		batch, err := k.Bus.Log.Batch(ctx, bus.StreamTask, k.read+1, taskBatch, taskBytes)
		if err != nil {
			return err
		}
		if len(batch) == 0 {
			k.read = last
			return nil
		}
		for _, m := range batch {
			if cost, says := message.Cost(m.Header); says && k.Bus.Signer.Genuine(m.Subject, m.Header, m.Data) {
				k.costs[m.Subject] = cost
			}
			k.read = m.Sequence
		}
	}
	return nil
}

// inSeconds returns l with the seconds that so many messages, and the flops of large tasks, take a
// worker.
func (k *Backlog) inSeconds(stage string, l Load, messages, flops float64) Load {
	work := k.work[stage]
	if stage == query.StageAggregate && k.Own != nil {
		work = k.Own()
	}
	unless := usual[stage]
	if work.Seconds == 0 {
		work.Seconds = unless.Seconds
	}
	if work.Flops == 0 {
		work.Flops = unless.Flops
	}

	l.Seconds = messages * work.Seconds
	if flops > 0 && work.Flops > 0 {
		l.Seconds += flops / work.Flops
	}
	return l
}

// readWork reads the cost of messages from the last partials: the mean of the workers' statements.
func (k *Backlog) readWork(ctx context.Context) error {
	info, err := k.Bus.Conn.Info(ctx, bus.StreamPartial)
	if err != nil || info.State.Msgs == 0 {
		return err
	}
	from := max(info.State.FirstSeq, info.State.LastSeq-min(info.State.LastSeq, workPartials-1))
	last, err := k.Bus.Log.Batch(ctx, bus.StreamPartial, from, workPartials, workBytes)
	if err != nil {
		return err
	}

	// Flops per second have the harmonic mean: the mean is taken of seconds per flop.
	var sums = map[string]struct{ seconds, saidSeconds, perFlop, saidFlops float64 }{}
	for _, m := range last {
		if !k.Bus.Signer.Genuine(m.Subject, m.Header, m.Data) {
			continue
		}
		for stage, w := range message.ParseWork(m.Header.Get(message.HeaderWork)) {
			s := sums[stage]
			if w.Seconds > 0 {
				s.seconds += w.Seconds
				s.saidSeconds++
			}
			if w.Flops > 0 {
				s.perFlop += 1 / w.Flops
				s.saidFlops++
			}
			sums[stage] = s
		}
	}

	if k.work == nil {
		k.work = map[string]message.Work{}
	}
	for stage, s := range sums {
		w := k.work[stage]
		if s.saidSeconds > 0 {
			w.Seconds = s.seconds / s.saidSeconds
		}
		if s.saidFlops > 0 {
			w.Flops = s.saidFlops / s.perFlop
		}
		k.work[stage] = w
	}
	return nil
}

// fill tells how full the streams are.
func (k *Backlog) fill(ctx context.Context) error {
	if k.Fills == nil {
		return nil
	}
	fills := map[string]Fill{}
	for _, name := range bounded() {
		info, err := k.Bus.Conn.Info(ctx, name)
		if errors.Is(err, bus.ErrNoStream) {
			continue
		}
		if err != nil {
			return err
		}
		if info.Config.MaxBytes > 0 {
			fills[name] = Fill{float64(info.State.Bytes), float64(info.Config.MaxBytes)}
		}
	}
	k.Fills(fills)
	return nil
}

// bounded lists all streams.
func bounded() (names []string) {
	for _, s := range topology(Config{}) {
		names = append(names, s.Name)
	}
	return names
}
