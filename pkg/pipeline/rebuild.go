package pipeline

// What is between the stages can be lost and is made again from the model: networks and job plans that are not stored any more, or damaged.

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/basetensor/basetensor/internal/bus"
	"github.com/basetensor/basetensor/internal/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// mostRebuilds is how often one process has the same job begun anew for what it lost: a store that keeps nothing must not be fed for ever.
const mostRebuilds = 3

// rebuilds counts per job, for the last jobs.
type rebuilds struct {
	mu    sync.Mutex
	times map[string]int
}

func (r *rebuilds) may(job string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.times[job] < mostRebuilds
}

func (r *rebuilds) count(job string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.times == nil || len(r.times) >= keepSure {
		r.times = map[string]int{}
	}
	r.times[job]++
}

// rebuildable reports whether a message failed for what its job's model makes again.
func (w *worker) rebuildable(d *delivery, err error) bool {
	if !errors.Is(err, bus.ErrLost) {
		return false
	}
	switch d.subject.Kind {
	case message.KindNetwork, message.KindTask, message.KindPartial:
		return w.rebuilds.may(d.subject.Job)
	}
	return false
}

// rebuild takes a message out of the way and starts its job again. A worker that dies in between leaves it to the sweeper.
func (w *worker) rebuild(d *delivery, lost error) string {
	ctx, cancel := context.WithTimeout(w.hard, writeTimeout)
	defer cancel()
	if d.subject.Kind == message.KindPartial {
		if err := w.forgetPartials(ctx, d.subject.Lane, d.subject.Job); err != nil {
			w.log.Warn("cannot start again yet", "job", d.subject.Job, "error", err)
			d.msg.Again(backoff(fault.Infrastructure, d.attempt))
			return outcomeRetry
		}
	}
	d.msg.Done() // the job's next run puts a message of its own here
	w.bus.NC.FlushTimeout(writeTimeout)
	fresh, err := w.startAgain(ctx, d.subject.Lane, d.subject.Job, fmt.Sprintf("%.200s", lost))
	if err != nil {
		w.log.Warn("cannot start again: the sweeper will", "job", d.subject.Job, "error", err)
	}
	if fresh {
		w.rebuilds.count(d.subject.Job)
	}
	return outcomeLater
}

// forgetPartials removes what was computed of a job by a plan that is lost: the next one may have another name.
func (w *worker) forgetPartials(ctx context.Context, lane int, job string) error {
	s, err := w.bus.Stream(ctx, bus.StreamPartial)
	if err != nil {
		return err
	}
	if err := s.Purge(ctx, jetstream.WithPurgeSubject(message.ChunksFilter(message.KindPartial, lane, job))); err != nil {
		return fault.New(fault.Infrastructure, "pipeline: partials of job %s: %w", job, err)
	}
	return nil
}

// startAgain has reparam-worker begin a stored job anew. It is not fresh if that was asked for already.
func (w *worker) startAgain(ctx context.Context, lane int, job, reason string) (fresh bool, err error) {
	r := &message.Redrive{Job: job, Reason: reason, Time: now().UnixMilli()}
	b, err := wire.Encode(r)
	if err != nil {
		return false, err
	}
	earlier, err := w.bus.Once(ctx, bus.StreamControl, &nats.Msg{Subject: message.RedriveSubject(lane, job), Header: wire.Headers(r, job, "", ""), Data: b})
	if err != nil || earlier != nil {
		return false, err
	}
	w.log.Warn("starting again", "job", job, "lane", lane, "reason", reason)
	return true, nil
}
