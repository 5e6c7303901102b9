package workers

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/basetensor/basetensor/internal/bus"
	"github.com/basetensor/basetensor/internal/hop"
	"github.com/basetensor/basetensor/internal/message"
	"github.com/basetensor/basetensor/internal/metrics"
	"github.com/basetensor/basetensor/internal/streams"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go/jetstream"
)

// Aggregate sums the partials of jobs, ends those that are cancelled or late, and looks after those without answer.
type Aggregate struct {
	*sums
	tallies    *tallies
	ended      ended
	floors     floors
	keeper     *streams.Keeper // nil: nothing is swept
	sweepAfter time.Duration
}

// sweepAhead is how many jobs the sweeper has in hand: it looks at every job there is, on a machine that is busy too.
const sweepAhead = 64

// longestRest is for how long a job is not looked at, at most.
const longestRest = 30 * time.Second

// sweep looks after stored jobs: a job of a certain age without answer, of which nothing is under way, is driven again.
// Messages come in the order they were stored, so waiting for the age of one holds up none that is due.
func (w *Aggregate) sweep(ctx context.Context, d *hop.Message) (hop.Outcome, error) {
	wait := time.NewTimer(w.sweepAfter - time.Since(d.Stored))
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-w.Soft.Done():
		return hop.Later(time.Millisecond), nil
	}
	job, lane := d.Subject.Job, d.Subject.Lane
	if w.ended.has(job) {
		return hop.Done, nil
	}
	waits, err := w.modelWaits(ctx, lane, d.Raw.Sequence)
	if err != nil {
		return hop.Done, err
	}
	age := time.Since(d.Raw.Stored)
	again := hop.Later(w.sweepAfter)
	if waits || w.keeper.Crowded().Many {
		again = hop.Later(min(max(w.sweepAfter, age/4), longestRest))
	}
	if waits && age < 4*w.sweepAfter { // as most jobs of an overloaded stack do: it must not look at them one by one, or seldom
		return again, nil
	}
	if has, err := w.Bus.Has(ctx, bus.StreamAnswer, wire.AnswerSubject(job)); err != nil || has {
		return hop.Done, err
	}
	if waits && !w.keeper.Crowded().Full {
		return again, nil
	}
	if carried, err := w.carry(ctx, d); err != nil || carried {
		return hop.Done, err
	}
	if waits {
		return again, nil
	}
	busy, err := w.underWay(ctx, lane, job)
	if err != nil {
		return hop.Done, err
	}
	if !busy {
		if err := w.drive(hop.WithoutWaiting(ctx), lane, job); err != nil {
			return hop.Done, err
		}
	}
	return again, nil
}

// ended are jobs whose answer this process stored, the last some thousands: the sweeper need not ask the server for those.
type ended struct {
	mu   sync.Mutex
	jobs map[string]bool
	ring []string
	next int
}

const keepEnded = 1 << 15

func (e *ended) add(job string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.jobs[job] {
		return
	}
	if e.jobs == nil {
		e.jobs, e.ring = map[string]bool{}, make([]string, keepEnded)
	}
	delete(e.jobs, e.ring[e.next])
	e.jobs[job], e.ring[e.next] = true, job
	e.next = (e.next + 1) % keepEnded
}

func (e *ended) clear() {
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.jobs)
}

// has reports whether the job is among them, and forgets it: it is asked for once.
func (e *ended) has(job string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.jobs[job] {
		return false
	}
	delete(e.jobs, job)
	return true
}

// underWay reports whether a message of the job, whose model reparam has acknowledged, waits or is being worked on.
// It looks in the order in which a job passes the stages: each stores its output before its input is acknowledged, so
// a job cannot slip by.
func (w *Aggregate) underWay(ctx context.Context, lane int, job string) (bool, error) {
	if has, err := w.Bus.Has(ctx, bus.StreamControl, message.RedriveSubject(lane, job)); err != nil || has {
		return has, err
	}
	return w.between(ctx, lane, job)
}

// between reports whether a network or a task of the job waits or is being worked on.
func (w *sums) between(ctx context.Context, lane int, job string) (bool, error) {
	if has, err := w.Bus.Has(ctx, bus.StreamNetwork, message.NetworkSubject(lane, job)); err != nil || has {
		return has, err
	}
	tasks, err := w.Bus.Subjects(ctx, bus.StreamTask, message.ChunksFilter(message.KindTask, lane, job))
	return len(tasks) > 0, err
}

// floors are up to where reparam has acknowledged the models of a lane, as the server said last. A floor only rises: what is
// below an old one is acknowledged.
type floors struct {
	mu    sync.Mutex
	lanes [wire.Lanes]struct {
		sequence uint64
		at       time.Time
	}
}

// floorFor is how old the word on a floor may be for what is above it.
const floorFor = 200 * time.Millisecond

// modelWaits reports whether reparam has yet to acknowledge the model of this sequence, as far as the consumer's floor tells.
func (w *Aggregate) modelWaits(ctx context.Context, lane int, sequence uint64) (bool, error) {
	w.floors.mu.Lock()
	defer w.floors.mu.Unlock() // one of a lane's jobs asks, the others wait for its answer
	known := &w.floors.lanes[lane]
	if known.sequence < sequence && time.Since(known.at) > floorFor {
		floor, err := w.modelFloor(ctx, lane)
		if err != nil {
			return false, err
		}
		known.sequence, known.at = floor, time.Now()
	}
	return known.sequence < sequence, nil
}

// modelFloor asks the server up to which sequence reparam has acknowledged the models of a lane.
func (w *Aggregate) modelFloor(ctx context.Context, lane int) (uint64, error) {
	s, err := w.Bus.Stream(ctx, bus.StreamModel)
	if err != nil {
		return 0, err
	}
	c, err := s.Consumer(ctx, streams.Models.Name)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		c, err = s.Consumer(ctx, streams.Models.ConsumerName(lane))
	}
	if err != nil {
		return 0, fault.New(fault.Infrastructure, "pipeline: sweep: consumer of models: %w", err)
	}
	return c.CachedInfo().AckFloor.Stream, nil // asked for just now
}

// drive sums a job whose partials are all there, and starts any other again.
func (w *Aggregate) drive(ctx context.Context, lane int, job string) error {
	if summed, err := w.sumStored(ctx, lane, job); err != nil || summed {
		return err
	}
	w.metrics.Sweep(metrics.SweptRedrive)
	_, err := w.StartAgain(ctx, lane, job, "no answer, and nothing under way")
	return err
}

// stalled reports whether a job has no answer, no message of it is under way after reparam, and its partials do not make an answer.
func (w *sums) stalled(ctx context.Context, lane int, job string) (bool, error) {
	if has, err := w.Bus.Has(ctx, bus.StreamAnswer, wire.AnswerSubject(job)); err != nil || has {
		return false, err
	}
	if busy, err := w.between(ctx, lane, job); err != nil || busy {
		return false, err
	}
	summed, err := w.sumStored(ctx, lane, job)
	return !summed, err
}

// passes reports whether an error says nothing of the job: this worker stops, or the server does not answer. What is not
// stored any more does not come back.
func passes(err error) bool {
	return errors.Is(err, hop.ErrLater) || hop.CodeOf(err) == fault.Infrastructure && err != nil && !errors.Is(err, bus.ErrNotFound)
}

// sumStored sums a job whose partials are all there, and reports whether it did.
func (w *sums) sumStored(ctx context.Context, lane int, job string) (bool, error) {
	subjects, err := w.Bus.Subjects(ctx, bus.StreamPartial, message.ChunksFilter(message.KindPartial, lane, job))
	if err != nil {
		return false, err
	}
	stored := map[int]int{}
	for s := range subjects {
		if p, err := message.ParseSubject(s); err == nil {
			stored[p.N]++
		}
	}
	for n, have := range stored {
		if n != have {
			continue
		}
		partials, err := w.fetch(ctx, chunks{lane, job, n}, n)
		if err != nil {
			return false, err
		}
		w.Log.Info("swept: summing", "job", job, "lane", lane, "chunks", n)
		w.metrics.Sweep(metrics.SweptSum)
		if err := w.sum(ctx, partials); errors.Is(err, bus.ErrLost) && w.Rebuilds.May(job) {
			return false, w.ForgetPartials(ctx, lane, job)
		} else if passes(err) {
			return false, err
		} else if err != nil {
			return true, w.Fail(
				&hop.Message{
					Subject: message.Subject{Kind: message.KindPartial, Lane: lane, Job: job},
					Digest:  partials[0].Digest,
					Tenant:  partials[0].Tenant,
				},
				err,
			)
		}
		return true, nil
	}
	return false, nil
}
