package hop

// Handlers that do not return although their context ended are given up and reported, and their messages do not go to
// other workers.

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
)

// HungError says that a handler did not return in time after its context ended. Its message is a
// dead letter, and its job has an error answer. The goroutine is lost: only itself or the end of
// the process can end it. Its code is internal.
type HungError struct {
	Stage   string
	Subject string
	Job     string
	Tenant  string
	Took    time.Duration // since processing began
	After   time.Duration // since the context ended
	Cause   error         // of the context's end
}

// Error returns the text with all fields.
func (e *HungError) Error() string {
	return fmt.Sprintf(
		"pipeline: %s: %s (job %s, tenant %q) did not return within %v "+
			"after its context ended (%v), %v after it was taken up",
		e.Stage, e.Subject, e.Job, e.Tenant, e.After, e.Cause, e.Took.Round(time.Millisecond),
	)
}

// Unwrap gives the error the code internal.
func (e *HungError) Unwrap() error { return &fault.Error{Code: fault.Internal, Err: e.Cause} }

// lostGoroutines counts the handlers that were given up and have not returned since.
var lostGoroutines atomic.Int64

// LostGoroutines returns the number of handlers of this process that were given up and have not
// returned since. Each keeps its memory, and perhaps a core.
func LostGoroutines() int64 { return lostGoroutines.Load() }

// guard watches one handler. Exactly one of two things happens: the handler returns in time, or it is given up.
type guard struct {
	mu          sync.Mutex
	hasReturned bool        // in time
	isGivenUp   bool        // it may still return
	timer       *time.Timer // gives the handler up; nil before its context ends
}

// watchHandler begins to watch a handler whose context is ctx. If the handler has not returned when Overdue has passed
// since the end of ctx, the guard gives it up and calls onLost with the cause of that end, in another goroutine.
func (l *Loop) watchHandler(ctx context.Context, onLost func(cause error)) *guard {
	g := &guard{}
	context.AfterFunc(ctx, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.hasReturned {
			return
		}
		g.timer = time.AfterFunc(l.Overdue, func() {
			if g.giveUp() {
				onLost(context.Cause(ctx))
			}
		})
	})
	return g
}

// giveUp gives the handler up unless it has returned, and reports whether it did.
func (g *guard) giveUp() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.isGivenUp = !g.hasReturned; g.isGivenUp {
		lostGoroutines.Add(1)
	}
	return g.isGivenUp
}

// noteReturn notes that the handler has returned, and reports whether that was in time.
func (g *guard) noteReturn() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.isGivenUp {
		lostGoroutines.Add(-1) // giveUp counted the handler's goroutine as lost
		return false
	}

	g.hasReturned = true
	if g.timer != nil {
		g.timer.Stop()
	}
	return true
}

// quarantine gives up a message whose handler does not return, so that no other worker gets it: it writes a dead
// letter, and an error as the job's answer. Then it reports the handler to Hung. It works on a new Message, because the
// handler may still write into the original. took is the time since processing began.
func (l *Loop) quarantine(original *Message, subject message.Subject, took time.Duration, cause error) {
	d := &Message{
		Raw:     original.Raw,
		Subject: subject,
		Attempt: original.Raw.Attempt,
		Data:    original.Raw.Data,
		Tenant:  original.Raw.Header.Get(wire.HeaderTenant),
	}
	d.KeepsJob = subject.Kind == message.KindCancel || subject.Kind == message.KindDeadline

	hung := &HungError{
		Stage:   l.Stage,
		Subject: d.Raw.Subject,
		Job:     subject.Job,
		Tenant:  d.Tenant,
		Took:    took,
		After:   l.Overdue,
		Cause:   cause,
	}

	l.Log.Error(
		"a handler does not return: its message is set aside, its goroutine is lost", "subject",
		d.Raw.Subject, "job", subject.Job, "tenant", d.Tenant, "lane", subject.Lane, "took", took,
		"cause", cause, "lost", LostGoroutines(),
	)

	const withAnswer = true
	outcome := l.giveUp(d, hung, withAnswer)
	l.Metrics.Settled(l.Stage, outcome.name, took)
	l.Metrics.Hang(l.Stage)
	if l.Hung != nil {
		l.Hung(hung)
	}
}
