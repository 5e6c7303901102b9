package client

// Waiting is not silent: that a job is unknown, or that nobody works on it, is said.

import (
	"context"
	"errors"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/queue/tracing"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"go.opentelemetry.io/otel/trace"
)

var (
	// ErrUnknownJob: neither the job nor an answer of it is stored: it never was, it has expired,
	// or it was lost with its stream.
	ErrUnknownJob = errors.New(
		"client: the job is unknown: it is not stored, nor is an answer of it",
	)
	// ErrNoWorkers: no worker asks for the messages of the job's lane. The job is stored, and
	// answered as soon as there are workers.
	ErrNoWorkers = bus.ErrNoWorkers
	// ErrUnverified: answers came that do not verify by the keys given to the client. The wait went
	// on for a true one, and has ended for another reason, which the error wraps too.
	ErrUnverified = bus.ErrUnverified
	// ErrNotSetUp: the server has no streams for jobs: `btn setup` has not been run.
	ErrNotSetUp = bus.ErrNoStream
)

// Looks in a row that must agree: that nobody serves a lane while others are served, for a busy worker asks lane after lane; and that
// nobody serves any, for a worker of a busy machine may be late once.
const (
	laneLooks  = 3
	stageLooks = 2
)

// waitWatcher finds out why a job has no answer yet.
type waitWatcher struct {
	client        *Client
	job           string
	tell          func(error) // hears why nobody serves the job; may be nil
	looksUnserved int         // the number of looks in a row that found the lane not served for the same reason
	reason        string      // why it was not served at the last look
	told          string      // the reason that was told last
}

// look is called about every other second without an answer. It ends the wait with an error if the job is unknown or
// there is no stream for it, and tells if nobody serves the job.
func (q *waitWatcher) look(ctx context.Context) error {
	// is the job stored?
	m, err := q.client.bus.Log.GetRaw(ctx, bus.StreamModel, message.AnyLaneFilter(q.job))
	switch {
	case errors.Is(err, bus.ErrNoStream):
		return err
	case errors.Is(err, ErrNotFound):
		// in this order: a model goes after its answer has come
		answered, err := q.client.bus.Log.Has(ctx, bus.StreamAnswer, wire.AnswerSubject(q.job))
		if err == nil && !answered {
			return fault.New(fault.BadInput, "%w: %s", ErrUnknownJob, q.job)
		}
		return nil
	case err != nil:
		return nil // the server is away: it may come back
	}

	// does anybody serve it?
	if q.tell == nil {
		return nil
	}
	subject, err := message.ParseSubject(m.Subject) // with the lane of the job
	if err != nil {
		return nil
	}

	q.noteLane(q.client.bus.Conn.CheckLane(ctx, subject.Lane))
	return nil
}

// noteLane takes the result of one look at the workers (bus.Conn.CheckLane). Tenants are spread over lanes, parts of a stage's queue with
// messages of their own; the job is in one of them. err is nil if workers ask for the messages of that lane, else it is the reason why not.
// isStageUnserved is true if nobody asks for those of any lane of a stage. noteLane tells a reason that has stayed the same for laneLooks
// looks, or for stageLooks (fewer) if isStageUnserved.
func (q *waitWatcher) noteLane(isStageUnserved bool, err error) {
	if err == nil {
		q.looksUnserved = 0
		return
	}
	if q.reason != err.Error() {
		q.reason = err.Error()
		q.looksUnserved = 0
	}
	q.looksUnserved++
	hasLasted := isStageUnserved && q.looksUnserved >= stageLooks || q.looksUnserved >= laneLooks
	if hasLasted && q.told != err.Error() {
		q.told = err.Error()
		q.tell(err)
	}
}

// Served returns nil if workers of all four stages ask for the messages of a tenant's lane, or work
// on some, else which do not. The error wraps ErrNoWorkers or ErrNotSetUp. A worker that is busy
// with other lanes may seem not to serve this one for a moment.
func (c *Client) Served(ctx context.Context, tenant string) error {
	_, err := c.bus.Conn.CheckLane(ctx, wire.Lane(tenant))
	return err
}

// WaitTelling is Wait, and calls tell when some seconds have passed without an answer and nobody serves
// the job, again when the reason is another. The errors that tell gets wrap ErrNoWorkers or
// ErrNotSetUp; the wait goes on, since workers may come.
func (c *Client) WaitTelling(
	ctx context.Context, job string, tell func(error),
) (answer *wire.Answer, err error) {
	if err := c.checkJob(job); err != nil {
		return nil, err
	}
	ctx, span := tracing.Child(ctx, "wait answer", trace.WithAttributes(tracing.Job.String(job)))
	defer func() { tracing.End(span, err) }()

	q := &waitWatcher{client: c, job: job, tell: tell}
	stored, err := c.bus.Log.WaitAnswer(ctx, job, q.look)
	if err != nil {
		return nil, err
	}
	return decodeAnswer(stored.Data)
}
