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

// sweepAhead is the prefetch of the sweeper, which looks at every stored job, and must keep up on a busy machine too.
const sweepAhead = 64

// sweepModel looks at a stored model when it is SweepAfter old. If its job has no answer and nothing of it is under
// way, it starts the job again (package job decides). Messages come in the order in which they were stored, so waiting
// for one delays no other that is due.
func (w *Aggregate) sweepModel(ctx context.Context, d *hop.Message) (hop.Outcome, error) {
	due := time.NewTimer(w.host.SweepAfter - w.Bus.Conn.Since(d.Raw.Stored))
	defer due.Stop()
	select {
	case <-due.C:
	case <-w.StartCtx.Done(): // the process ends: another aggregator gets the message
		return hop.Later(time.Millisecond), nil
	}

	isAcknowledged, err := w.ackFloors.isAcknowledged(ctx, w.Bus.Conn, d.Subject.Lane, d.Raw.Sequence)
	if err != nil {
		return hop.Done, err
	}
	crowd := w.keeper.Crowded()
	look := job.Sweep{
		Age: w.Bus.Conn.Since(d.Raw.Stored), After: w.host.SweepAfter, Waits: !isAcknowledged, Many: crowd.Many, Full: crowd.Full,
	}
	// The look asks one question after the other, each depending on the replies before. Its last one may be an order.
	for ask := look.Begin(); ask != job.AskNothing; {
		yes, err := w.answerQuestion(ctx, d, ask)
		if err != nil {
			return hop.Done, err
		}
		ask = look.Reply(yes)
	}
	if pause := look.Rest(); pause > 0 {
		return hop.Later(pause), nil
	}
	return hop.Done, nil
}

// answerQuestion answers a question of a sweep about the job of a stored model, or does what the question asks for.
func (w *Aggregate) answerQuestion(ctx context.Context, d *hop.Message, ask job.Ask) (yes bool, err error) {
	lane, id := d.Subject.Lane, d.Subject.Job
	switch ask {
	case job.AskOver: // has the job its answer?
		a, err := w.StoredAnswer(ctx, id)
		if a != nil {
			w.RemoveRequest(ctx, a)
		}
		return a != nil, err
	case job.AskPassed: // has the job passed reparam-worker, although its model seems to wait there? It has if it has a partial
		return w.Bus.Log.Has(ctx, bus.StreamPartial, message.ChunksFilter(message.KindPartial, lane, id))
	case job.AskCarry: // make room before the model, if the streams are full
		return w.moveToEnd(ctx, d)
	case job.AskUnderWay: // does a message of the job wait, or is one being processed?
		return w.isUnderWay(ctx, lane, id)
	case job.AskSum: // are all partials stored? Then have them counted again
		return w.recount(ctx, lane, id)
	default: // start the job again
		if isLate, err := w.endIfLate(ctx, lane, id); err != nil || isLate {
			return false, err
		}
		w.host.Metrics.Sweep(metrics.SweptRedrive)
		_, err := w.StartAgain(ctx, lane, id, "no answer, and nothing under way")
		return false, err
	}
}

// isUnderWay reports whether a message of a job, whose model was acknowledged, waits or is being processed. It looks at
// the streams in the order in which a job passes the stages. Each stage stores its output before it acknowledges its
// input, so no job slips by between two looks. A message that was acknowledged counts, too, if it is still stored
// because the server lost its removal; tidyQueues removes such messages.
func (w *Aggregate) isUnderWay(ctx context.Context, lane int, job string) (bool, error) {
	if isStored, err := w.Bus.Log.Has(ctx, bus.StreamControl, message.RedriveSubject(lane, job)); err != nil || isStored {
		return isStored, err
	}
	return w.hasNetworkOrTask(ctx, lane, job)
}

// staleFloor is the age from which a delivered partial counts as acknowledged although its consumer's floor is below
// it: see streams.Keeper.
const staleFloor = time.Minute

// recount reports whether all partials of a job (the values of its tasks) are stored. If they are, it has them counted
// again: it moves the youngest one to the end of its stream, so that it is delivered again, unless it will be delivered
// anyway.
func (w *Aggregate) recount(ctx context.Context, lane int, id string) (isComplete bool, err error) {
	subjects, err := w.partialSubjects(ctx, lane, id)
	if err != nil {
		return false, err
	}
	filter, n, ok := completeCut(subjects)
	if !ok {
		return false, nil
	}

	// The youngest partial has the last sequence of all that match the filter.
	youngest, err := w.Bus.Log.GetRaw(ctx, bus.StreamPartial, filter)
	if errors.Is(err, bus.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	consumer, _, err := w.Bus.Conn.LaneConsumer(ctx, bus.StreamPartial, bus.ConsumerPartial, lane)
	if err != nil {
		return false, err
	}
	willBeDelivered := consumer.Delivered.Stream < youngest.Sequence
	// A partial older than staleFloor counts as acknowledged although the floor is below it.
	isInWork := consumer.AckFloor.Stream < youngest.Sequence && w.Bus.Conn.Since(youngest.Time) < staleFloor
	if willBeDelivered || isInWork {
		return true, nil
	}

	w.Log.Info("swept: summing", "job", id, "lane", lane, "chunks", n)
	w.host.Metrics.Sweep(metrics.SweptSum)
	_, err = w.Bus.Log.MoveToEnd(ctx, youngest)
	return true, err
}

// completeCut looks for a number n of chunks into which a job was cut and of which every partial is among the subjects. It
// returns n and the filter of these partials; ok is false if there is no such n. The job may have been cut several times:
// of partial.3.a.2.0, partial.3.a.2.1 and partial.3.a.4.0 the cut into two chunks is complete.
func completeCut(subjects map[string]uint64) (filter string, n int, ok bool) {
	partialCount := map[int]int{} // the number of stored partials of each cut, by its number of chunks
	for text := range subjects {
		s, err := message.ParseSubject(text)
		if err != nil { // it is no partial
			continue
		}
		if partialCount[s.N]++; partialCount[s.N] >= s.N {
			return text[:strings.LastIndexByte(text, '.')] + ".*", s.N, true // partial.<lane>.<job>.<n>.*
		}
	}
	return "", 0, false
}

// endIfLate reports whether the deadline of a job that came to a halt has passed. Normally the job's timer ends the
// job. If the deadline passed more than SweepAfter ago, the answer after the timer was lost, and endIfLate ends the
// job. With an error isLate means nothing.
func (w *Aggregate) endIfLate(ctx context.Context, lane int, job string) (isLate bool, err error) {
	request, err := w.Submission(ctx, wire.ModelSubject(lane, job))
	if errors.Is(err, bus.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if request.Deadline.IsZero() || w.Bus.Conn.Since(request.Deadline) < 0 {
		return false, nil
	}
	if w.Bus.Conn.Since(request.Deadline) < w.host.SweepAfter {
		return true, nil // the timer will end it
	}
	return true, w.expire(ctx, lane, &wire.Deadline{
		Job: job, Digest: request.Digest, Tenant: request.Tenant, Time: request.Deadline.UnixMilli(),
	})
}

// ackFloors remembers for floorFreshFor the sequence up to which reparam-worker has acknowledged the models of each
// lane. It does not remember it for longer, because a stream that was deleted and made again begins with sequence 1.
type ackFloors struct {
	mu    sync.Mutex // held while the server is asked, too
	lanes [wire.Lanes]struct {
		sequence uint64
		at       time.Time // of the server's reply
	}
}

// floorFreshFor is the time for which the server's reply about a floor holds.
const floorFreshFor = 200 * time.Millisecond

// isAcknowledged reports whether reparam-worker has acknowledged all models of a lane up to a sequence. It compares the
// sequence with the acknowledgement floor of the lane's consumer: all messages up to the floor are acknowledged.
func (f *ackFloors) isAcknowledged(ctx context.Context, conn *bus.Conn, lane int, sequence uint64) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	floor := &f.lanes[lane]
	if time.Since(floor.at) > floorFreshFor {
		consumer, _, err := conn.LaneConsumer(ctx, streams.Models.Stream, streams.Models.Name, lane)
		if err != nil {
			return false, err
		}
		floor.sequence, floor.at = consumer.AckFloor.Stream, time.Now()
	}
	return floor.sequence >= sequence, nil
}
