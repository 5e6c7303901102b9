package workers

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/basetensor/basetensor/internal/jobs/hop"
	"github.com/basetensor/basetensor/internal/jobs/job"
	"github.com/basetensor/basetensor/internal/jobs/metrics"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/queue/streams"
	"github.com/basetensor/basetensor/pkg/wire"
)

// sweepAhead is the prefetch of the sweeper, which looks at every stored job, and must keep up on a
// busy machine too.
const sweepAhead = 64

// sweep looks after stored jobs: one of a certain age, with no answer and nothing under way, is
// started again. Messages come in the order in which they were stored, so waiting for the age of
// one delays none that is due.
func (w *Aggregate) sweep(ctx context.Context, d *hop.Message) (hop.Outcome, error) {
	wait := time.NewTimer(w.host.SweepAfter - w.Bus.Conn.Since(d.Raw.Stored))
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-w.Soft.Done():
		return hop.Later(time.Millisecond), nil
	}

	acknowledged, err := w.floors.reach(ctx, w.Bus.Conn, d.Subject.Lane, d.Raw.Sequence)
	if err != nil {
		return hop.Done, err
	}
	crowd := w.keeper.Crowded()
	look := job.Sweep{
		Age: w.Bus.Conn.Since(d.Raw.Stored), After: w.host.SweepAfter, Waits: !acknowledged, Many: crowd.Many, Full: crowd.Full,
	}
	for ask := look.Begin(); ask != job.AskNothing; {
		yes, err := w.reply(ctx, d, ask)
		if err != nil {
			return hop.Done, err
		}
		ask = look.Reply(yes)
	}
	if rest := look.Rest(); rest > 0 {
		return hop.Later(rest), nil
	}
	return hop.Done, nil
}

// reply answers a question of a sweep about the job of a stored model.
func (w *Aggregate) reply(ctx context.Context, d *hop.Message, ask job.Ask) (yes bool, err error) {
	lane, id := d.Subject.Lane, d.Subject.Job
	switch ask {
	case job.AskOver:
		a, err := w.Stored(ctx, id)
		if a != nil {
			w.Retire(ctx, a)
		}
		return a != nil, err
	case job.AskPassed: // the floor of reparam-worker stays at another model of the lane that takes long
		return w.Bus.Log.Has(ctx, bus.StreamPartial, message.ChunksFilter(message.KindPartial, lane, id))
	case job.AskCarry:
		return w.carry(ctx, d)
	case job.AskUnderWay:
		return w.underWay(ctx, lane, id)
	case job.AskSum:
		return w.sumStored(ctx, lane, id)
	default:
		if late, err := w.late(ctx, lane, id); err != nil || late {
			return false, err
		}
		w.host.Metrics.Sweep(metrics.SweptRedrive)
		_, err := w.StartAgain(ctx, lane, id, "no answer, and nothing under way")
		return false, err
	}
}

// underWay reports whether a message of the job, whose model reparam has acknowledged, waits or is
// being processed. It looks in the order in which a job passes the stages: each stores its output
// before it acknowledges its input, so a job cannot slip by. One that was acknowledged and is stored
// again counts until tidy removes it.
func (w *Aggregate) underWay(ctx context.Context, lane int, job string) (bool, error) {
	if has, err := w.Bus.Log.Has(ctx, bus.StreamControl, message.RedriveSubject(lane, job)); err != nil || has {
		return has, err
	}
	return w.between(ctx, lane, job)
}

// staleFloor is the age from which a delivered partial is taken for acknowledged though its consumer's floor is below it: see
// streams.Keeper.
const staleFloor = time.Minute

// sumStored has the partials of a job counted again if all of them are stored, and reports whether they are: one of them moves to the
// end of its stream, from where it is delivered. They may be of several cuts into chunks.
func (w *Aggregate) sumStored(ctx context.Context, lane int, id string) (bool, error) {
	subjects, err := w.partials(ctx, lane, id)
	if err != nil {
		return false, err
	}
	stored := map[int]int{} // by the number of chunks
	for s := range subjects {
		p, err := message.ParseSubject(s)
		if err != nil {
			continue
		}
		if stored[p.N]++; stored[p.N] < p.N {
			continue
		}
		youngest, err := w.Bus.Log.GetRaw(ctx, bus.StreamPartial, s[:strings.LastIndexByte(s, '.')]+".*")
		if errors.Is(err, bus.ErrNotFound) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		c, _, err := w.Bus.Conn.LaneConsumer(ctx, bus.StreamPartial, bus.ConsumerPartial, lane)
		if err != nil {
			return false, err
		}
		at, floor := youngest.Sequence, c.AckFloor.Stream
		if c.Delivered.Stream < at || floor < at && w.Bus.Conn.Since(youngest.Time) < staleFloor {
			return true, nil // it is delivered anyway
		}
		w.Log.Info("swept: summing", "job", id, "lane", lane, "chunks", p.N)
		w.host.Metrics.Sweep(metrics.SweptSum)
		_, err = w.Bus.Log.MoveToEnd(ctx, youngest)
		return true, err
	}
	return false, nil
}

// late reports whether the deadline of a job that came to a halt has passed. Its timer ends it; sweepAfter later that went off, and the
// answer was lost: then the job is ended here.
func (w *Aggregate) late(ctx context.Context, lane int, job string) (bool, error) {
	of, err := w.Submitted(ctx, wire.ModelSubject(lane, job))
	if errors.Is(err, bus.ErrNotFound) || err == nil && (of.Deadline.IsZero() || w.Bus.Conn.Since(of.Deadline) < 0) {
		return false, nil
	}
	if err != nil || w.Bus.Conn.Since(of.Deadline) < w.host.SweepAfter {
		return true, err
	}
	return true, w.expire(ctx, lane, &wire.Deadline{Job: job, Digest: of.Digest, Tenant: of.Tenant, Time: of.Deadline.UnixMilli()})
}

// floors remembers for a moment up to which sequence the models of lanes are acknowledged by
// reparam-worker, as the server said. Not longer: a recreated stream begins with 1.
type floors struct {
	mu sync.Mutex // held while the server is asked, too
	of [wire.Lanes]struct {
		sequence uint64
		at       time.Time // of the server's word
	}
}

// floorFor is the time for which the server's answer about a floor holds.
const floorFor = 200 * time.Millisecond

// reach reports whether all models of a lane are acknowledged up to a sequence, as far as the
// consumer's floor tells.
func (f *floors) reach(ctx context.Context, conn *bus.Conn, lane int, sequence uint64) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := &f.of[lane]
	if time.Since(known.at) > floorFor {
		c, _, err := conn.LaneConsumer(ctx, streams.Models.Stream, streams.Models.Name, lane)
		if err != nil {
			return false, err
		}
		known.sequence, known.at = c.AckFloor.Stream, time.Now()
	}
	return known.sequence >= sequence, nil
}
