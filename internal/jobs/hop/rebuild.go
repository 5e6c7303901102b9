package hop

// Rebuilding of what was lost between the stages: if a network or a job's plan is not stored any more, or damaged, the
// job starts again from its model.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// maxRebuilds bounds how often one process starts the same job again. Otherwise a store that loses everything would
// have it repeated without end.
const maxRebuilds = 3

// maxRebuildJobs is the number of jobs that are counted, more than there are between the stages while all lose
// something.
const maxRebuildJobs = 1 << 16

// Rebuilds counts how often each of the last jobs was started again.
type Rebuilds struct {
	mu    sync.Mutex
	times map[string]int
}

// MayRestart reports whether a job may be started again.
func (r *Rebuilds) MayRestart(job string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.times[job] < maxRebuilds
}

// Add notes that a job is started again. If too many jobs are counted, it forgets all others.
func (r *Rebuilds) Add(job string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.times == nil || len(r.times) >= maxRebuildJobs && r.times[job] == 0 {
		r.times = map[string]int{}
	}
	r.times[job]++
}

// isRebuildable reports whether a message failed because something that it needs was lost, such as a blob, and its job may
// be started again: from the job's model everything is made again that comes after the model.
func (l *Loop) isRebuildable(d *Message, err error) bool {
	if !errors.Is(err, bus.ErrLost) {
		return false
	}
	switch d.Subject.Kind {
	case message.KindNetwork, message.KindTask, message.KindPartial:
		return l.Rebuilds.MayRestart(d.Subject.Job)
	}
	return false
}

// rebuild acknowledges a message and starts its job again, because something that the message needs was lost. lost is
// the error that says what. If this worker dies in between, the sweeper starts the job. If the message is a partial, the
// job's partials are deleted first, so that all of its tasks are contracted again.
func (l *Loop) rebuild(d *Message, lost error) Outcome {
	ctx, cancel := context.WithTimeout(l.WorkCtx, WriteTimeout)
	defer cancel()

	if d.Subject.Kind == message.KindPartial {
		if err := l.ForgetPartials(ctx, d.Subject.Lane, d.Subject.Job); err != nil {
			l.Bus.Conn.Trouble.Warn(l.Log, "cannot start again yet", "job", d.Subject.Job, "error", err)
			d.Raw.Redeliver(Backoff(fault.Infrastructure, d.Attempt))
			return Retry
		}
	}

	// Acknowledge first, because the next run of the job stores a message on the same subject.
	d.Raw.Acknowledge()
	l.Bus.Conn.NC.FlushTimeout(WriteTimeout)

	isNew, err := l.StartAgain(ctx, d.Subject.Lane, d.Subject.Job, fmt.Sprintf("%.200s", lost))
	if err != nil {
		l.Bus.Conn.Trouble.Warn(l.Log, "cannot start again: the sweeper will", "job", d.Subject.Job, "error", err)
	}
	if isNew {
		l.Rebuilds.Add(d.Subject.Job)
	}
	return Later(0) // for the metrics and the log: the work is done later, in the next run of the job
}

// ForgetPartials removes the partials of a job whose plan is lost, because the next plan may have another digest.
func (l *Jobs) ForgetPartials(ctx context.Context, lane int, job string) error {
	return l.Bus.Log.Purge(ctx, bus.StreamPartial, message.ChunksFilter(message.KindPartial, lane, job), 0)
}

// StartAgain asks reparam-worker to start a stored job again. isNew is false if somebody has asked for that already.
func (l *Jobs) StartAgain(
	ctx context.Context, lane int, job, reason string,
) (isNew bool, err error) {
	r := &message.Redrive{Job: job, Reason: reason, Time: time.Now().UnixMilli()}
	b, err := wire.Encode(r)
	if err != nil {
		return false, err
	}

	earlier, err := l.Bus.Log.PutOnce(
		ctx,
		bus.StreamControl,
		&nats.Msg{
			Subject: message.RedriveSubject(lane, job),
			Header:  message.Headers(r, job, "", ""),
			Data:    b,
		},
	)

	if err != nil || earlier != nil {
		return false, err
	}

	l.Log.Warn("starting again", "job", job, "lane", lane, "reason", reason)
	return true, nil
}
