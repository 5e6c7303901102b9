package streams

// The backlog of the stages, in messages, in flops and in seconds of work of one worker.
//
// It is counted from the content of the streams, so it is right even if no worker runs. A task is in its stream until
// it is acknowledged, and its header states its expected cost, which is read once. The workers state the cost of their
// messages in headers that travel up to the partials, so the last partials are read. Any number of aggregators may
// look, and all see the same.

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
	Messages float64 // that wait or are in work
	Flops    float64 // expected flops of tasks; 0 for other stages
	Seconds  float64 // work of one worker process
	Unread   float64 // those of Messages whose cost is unknown, and taken for the average
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
	Own   func() message.Work   // returns the cost of messages to this aggregator
	Tell  func(map[string]Load) // is called after every look with the load of each stage
	Fills func(map[string]Fill) // is called now and then with the fill of each stream

	work         map[string]message.Work // cost of messages by stage, as the workers stated last
	workReadAt   time.Time               // when work was read
	readUpTo     uint64                  // tasks up to this sequence were read
	tasksCreated time.Time               // when the stream of tasks was created
	taskCosts    map[string]float64      // expected flops of the tasks that were read and are still stored, by subject
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

	lookPauseFactor = 10 // after a look that took t, the pause is lookPauseFactor * t at least
)

// Watch measures the backlog again and again, until ctx ends.
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
		bus.Pause(ctx, max(backlogEvery, lookPauseFactor*time.Since(began)))
	}
	return nil
}

// Look returns the backlog of every stage.
func (k *Backlog) Look(ctx context.Context) (map[string]Load, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()

	if time.Since(k.workReadAt) > workEvery {
		if err := k.readWork(ctx); err != nil {
			return nil, err
		}
		if err := k.tellFills(ctx); err != nil {
			return nil, err
		}
		k.workReadAt = time.Now()
	}

	// The first and the last stage keep their messages, so their consumers tell how many wait.
	loads := map[string]Load{}
	for stage, feed := range map[string]Feed{query.StageReparam: Models, query.StageAggregate: Partials} {
		q, err := feedQueue(ctx, k.Bus.Conn, feed, nil)
		if err != nil {
			return nil, err
		}
		n := float64(q.Waiting + q.Working)
		loads[stage] = k.withSeconds(stage, Load{Messages: n}, n, 0) // 0: only the messages count, no flops
	}

	// The stream of networks has only those that wait or are in work.
	networks, err := k.Bus.Conn.Info(ctx, bus.StreamNetwork)
	if err != nil {
		return nil, err
	}
	n := float64(networks.State.Msgs)
	loads[query.StageLearn] = k.withSeconds(query.StageLearn, Load{Messages: n}, n, 0)

	loads[query.StageContract], err = k.taskLoad(ctx)
	return loads, err
}

// taskLoad returns the backlog of contract-workers. A task whose cost was not read counts as the average of the others: the
// sums over the tasks of known cost are multiplied by the number of all tasks over theirs.
func (k *Backlog) taskLoad(ctx context.Context) (Load, error) {
	info, err := k.Bus.Conn.Info(ctx, bus.StreamTask, jetstream.WithSubjectFilter(message.Filter(message.KindTask)))
	if err != nil {
		return Load{}, err
	}

	k.forgetTasks(info)
	if len(k.taskCosts) < len(info.State.Subjects) { // the costs of some are unknown
		if err := k.readTasks(ctx, info.State.LastSeq); err != nil {
			return Load{}, err
		}
	}

	// Small tasks take time by their number, large ones by their flops.
	var smallCount, largeFlops, knownCount, knownFlops float64
	for subject := range info.State.Subjects {
		cost, isKnown := k.taskCosts[subject]
		switch {
		case !isKnown:
			continue
		case cost > message.SmallFlops:
			largeFlops += cost
		default:
			smallCount++
		}
		knownCount++
		knownFlops += cost
	}

	total := float64(len(info.State.Subjects))
	if knownCount == 0 {
		return k.withSeconds(query.StageContract, Load{Messages: total, Unread: total}, total, 0), nil
	}
	factor := total / knownCount // tasks that were not read are like the others
	return k.withSeconds(
		query.StageContract, Load{Messages: total, Flops: factor * knownFlops, Unread: total - knownCount},
		factor*smallCount, factor*largeFlops,
	), nil
}

// forgetTasks forgets the costs of tasks that are no longer in the stream that info describes. It forgets all of them
// if the stream was made again, because such a stream counts from 1 again.
func (k *Backlog) forgetTasks(info *jetstream.StreamInfo) {
	if !info.Created.Equal(k.tasksCreated) || info.State.LastSeq < k.readUpTo {
		k.tasksCreated = info.Created
		k.readUpTo = 0
		clear(k.taskCosts)
	}
	if k.taskCosts == nil {
		k.taskCosts = map[string]float64{}
	}
	for subject := range k.taskCosts {
		if _, exists := info.State.Subjects[subject]; !exists {
			delete(k.taskCosts, subject)
		}
	}
}

// readTasks reads the costs of the tasks that were stored since the last look, up to lastSequence, in at most taskReads
// requests to the server. It skips tasks that state no cost or are forged.
func (k *Backlog) readTasks(ctx context.Context, lastSequence uint64) error {
	for range taskReads {
		if k.readUpTo >= lastSequence {
			return nil
		}
		batch, err := k.Bus.Log.Batch(ctx, bus.StreamTask, k.readUpTo+1, taskBatch, taskBytes)
		if err != nil {
			return err
		}
		if len(batch) == 0 { // no task is left up to lastSequence
			k.readUpTo = lastSequence
			return nil
		}
		for _, m := range batch {
			if cost, isStated := message.Cost(m.Header); isStated && k.Bus.Signer.IsGenuine(m.Subject, m.Header, m.Data) {
				k.taskCosts[m.Subject] = cost
			}
			k.readUpTo = m.Sequence
		}
	}
	return nil
}

// withSeconds returns l with the seconds that one worker takes for a number of messages, and for the flops of large
// tasks beside them: messages·work.Seconds + flops/work.Flops, where work.Flops is in flops per second. Costs that the
// workers of the stage have not stated are assumed (assumedWork).
func (k *Backlog) withSeconds(stage string, l Load, messages, flops float64) Load {
	work := k.work[stage]
	if stage == query.StageAggregate && k.Own != nil { // the last stage states no cost to anybody
		work = k.Own()
	}
	assumed := assumedWork[stage]
	if work.Seconds == 0 {
		work.Seconds = assumed.Seconds
	}
	if work.Flops == 0 {
		work.Flops = assumed.Flops
	}

	l.Seconds = messages * work.Seconds
	if flops > 0 && work.Flops > 0 {
		l.Seconds += flops / work.Flops
	}
	return l
}

// workSums are sums over statements of the cost of a stage's messages. The mean rate is the harmonic one, so 1/flops
// is summed: the seconds that a flop takes.
type workSums struct {
	seconds, secondsCount float64 // seconds of a message, and the number of statements with them
	perFlop, perFlopCount float64 // seconds of a flop, and the number of statements with a rate
}

// add adds what one worker states about the cost of its messages: w.Seconds is the time of a message, and w.Flops a rate
// in flops per second. A number that is 0 is unknown. The sum of 1/w.Flops gives the harmonic mean of the rates.
func (s *workSums) add(w message.Work) {
	if w.Seconds > 0 {
		s.seconds += w.Seconds
		s.secondsCount++
	}
	if w.Flops > 0 {
		s.perFlop += 1 / w.Flops
		s.perFlopCount++
	}
}

// readWork sets k.work to the mean of what the last partials state about the cost of messages. A number that none of
// them states stays as it was.
func (k *Backlog) readWork(ctx context.Context) error {
	info, err := k.Bus.Conn.Info(ctx, bus.StreamPartial)
	if err != nil || info.State.Msgs == 0 {
		return err
	}
	firstSequence := max(info.State.FirstSeq, info.State.LastSeq-min(info.State.LastSeq, workPartials-1)) // min: never below 0
	partials, err := k.Bus.Log.Batch(ctx, bus.StreamPartial, firstSequence, workPartials, workBytes)
	if err != nil {
		return err
	}

	sums := map[string]*workSums{} // by stage
	for _, m := range partials {
		if !k.Bus.Signer.IsGenuine(m.Subject, m.Header, m.Data) {
			continue
		}
		for stage, w := range message.ParseWork(m.Header.Get(message.HeaderWork)) {
			if sums[stage] == nil {
				sums[stage] = &workSums{}
			}
			sums[stage].add(w)
		}
	}

	if k.work == nil {
		k.work = map[string]message.Work{}
	}
	for stage, s := range sums {
		w := k.work[stage]
		if s.secondsCount > 0 {
			w.Seconds = s.seconds / s.secondsCount
		}
		if s.perFlopCount > 0 {
			w.Flops = s.perFlopCount / s.perFlop // the harmonic mean of the stated rates
		}
		k.work[stage] = w
	}
	return nil
}

// tellFills calls Fills with the bytes in each stream that has a limit, and that limit, by the name of the stream.
func (k *Backlog) tellFills(ctx context.Context) error {
	if k.Fills == nil {
		return nil
	}
	fills := map[string]Fill{}
	for _, name := range streamNames() {
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

// streamNames returns the names of all streams.
func streamNames() (names []string) {
	for _, s := range topology(Config{}) {
		names = append(names, s.Name)
	}
	return names
}
