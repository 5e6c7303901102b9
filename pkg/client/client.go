// Package client submits models to the pipeline and waits for their answers.
//
// It knows the messages and the streams, and none of the mathematics.
package client

import (
	"cmp"
	"context"

	"github.com/basetensor/basetensor/internal/form"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/queue/redact"
	"github.com/basetensor/basetensor/internal/queue/seal"
	"github.com/basetensor/basetensor/internal/queue/submit"
	"github.com/basetensor/basetensor/internal/queue/tracing"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"
	"go.opentelemetry.io/otel/trace"
)

var (
	// ErrJobTaken: the job's id belongs to a request with another content.
	ErrJobTaken = submit.ErrJobTaken
	// ErrNotFound: there is no such answer, job or dead letter.
	ErrNotFound = bus.ErrNotFound
	// ErrFull: the server has no room for the job. It may have later.
	ErrFull = bus.ErrFull
	// ErrQuota: the tenant may store no more. Its message names the quota, and the bytes that are used.
	ErrQuota = bus.ErrQuota
	// ErrStorage: the server answers, and stores nothing: its disk is full, or was. It takes room
	// and a restart of nats-server.
	ErrStorage = bus.ErrStorage
	// ErrBusy: too many jobs of the tenant's lane wait already. It wraps ErrFull.
	ErrBusy = bus.ErrBusy
)

// Client is a connection to the pipeline. Its methods may be called from any goroutine.
type Client struct {
	nc    *nats.Conn
	bus   *bus.Bus          // the streams
	jobs  *submit.Submitter // stores requests
	owned bool              // whether the client made nc, and closes it
}

// Options say who a client is, and which answers it believes. The zero value is anybody, who believes every answer.
type Options struct {
	// Tenant is the tenant whose user the connection is: it may submit jobs of that owner only, and read about them. The client
	// then asks for nothing that is for workers and operators alone.
	Tenant string
	// MessageKeys is a file of keys, read again when it changes: the client signs its messages to workers with the first, and
	// believes only answers that one of them signed. A holder of the file can sign any message between workers: for answers alone
	// AnswersKey is enough.
	MessageKeys string
	// AnswersKey lists the public keys of aggregators with commas, or names a file of them, one per line, read again when it
	// changes: the client believes only answers that one of them signed.
	AnswersKey string
	// API is the prefix of the subjects of JetStream's API, default $JS.API: a domain D has $JS.D.API, an import of
	// another account its own.
	API string
	// Admit, if it is set, is asked before so many bytes are stored on a subject of a stream. Its error refuses them: a server that serves
	// several tenants over one connection bounds by it what each of them stores.
	Admit func(ctx context.Context, stream, subject string, header nats.Header, bytes int) error
}

// Connect connects to NATS at url, or at the URLs of several servers of a cluster with commas between them. The options of NATS have the
// credentials and certificates for servers that ask for them.
func Connect(url string, o Options, options ...nats.Option) (*Client, error) {
	defaults := []nats.Option{nats.Name("basetensor-client"), nats.MaxReconnects(-1)} // −1: it reconnects for ever
	nc, api, err := bus.Dial(url, append(defaults, options...)...)
	if fault.CodeOf(err) == fault.BadInput {
		return nil, err
	}
	if err != nil {
		return nil, fault.New(
			fault.Infrastructure, "client: connect to NATS at %s: %w", redact.URL(url),
			redact.Error(err, url),
		)
	}
	o.API = cmp.Or(o.API, api)
	c, err := New(nc, o)
	if err != nil {
		nc.Close()
		return nil, err
	}
	c.owned = true
	return c, nil
}

// New returns a Client over a connection, which the caller closes.
func New(nc *nats.Conn, o Options) (*Client, error) {
	if o.Tenant != "" && !form.IsOwner(o.Tenant) {
		return nil, fault.New(fault.BadInput, "client: tenant %.80q is not [A-Za-z0-9_-]{1,64}", o.Tenant)
	}
	trust, err := seal.Flags{MessageKeys: o.MessageKeys, AnswersKey: o.AnswersKey}.Open("", nil) // no seeds, as it is no aggregator; no log
	if err != nil {
		return nil, err
	}
	b, err := bus.New(nc, bus.Options{API: o.API, Tenant: o.Tenant, Guard: bus.Guard{Trust: trust}, Admit: o.Admit})
	if err != nil {
		return nil, err
	}
	return &Client{nc: nc, bus: b, jobs: submit.New(b)}, nil
}

// newJob returns an id that no job has yet, with the tenant of Options in front.
func (c *Client) newJob() string {
	if owner := c.bus.Conn.Tenant(); owner != "" {
		return owner + "." + nuid.Next()
	}
	return nuid.Next()
}

// checkOwner returns an error if a job is not one of the tenant of Options: the server would tell its user nothing.
func (c *Client) checkOwner(job string) error {
	if owner := c.bus.Conn.Tenant(); owner != "" && message.Owner(job) != owner {
		return fault.New(fault.BadInput, "client: job %.130q is not owned by %s, whose user this is", job, owner)
	}
	return nil
}

// Close closes the connection if Connect made it.
func (c *Client) Close() {
	if c.owned {
		c.nc.Close()
	}
}

// Submit stores a model for the pipeline and returns the digest of the request. Submitting the same
// request again, under the same id, is no new job. The error wraps ErrJobTaken if the id belongs to
// another request, in whatever lane (tenants are spread over lanes, each a queue of its own), ErrBusy if too many
// jobs of the tenant's lane wait, and ErrFull if the server has no room for the job or, soon, for answers.
func (c *Client) Submit(ctx context.Context, m wire.Request) (digest string, err error) {
	ctx, span := tracing.Child(
		ctx, "submit", trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(tracing.Job.String(m.Job)),
	)
	defer func() { tracing.End(span, err) }()
	if err := c.checkOwner(m.Job); err != nil {
		return "", err
	}
	return c.jobs.Submit(ctx, m, func(h nats.Header) { addTrace(ctx, h) })
}

// traceKey is the key of WithTrace's headers in a context.
type traceKey struct{}

// WithTrace returns ctx with a W3C trace context, the headers traceparent and tracestate, which
// Submit and Infer give to the job, unless ctx has an OpenTelemetry span: then they give it that.
func WithTrace(ctx context.Context, headers map[string][]string) context.Context {
	return context.WithValue(ctx, traceKey{}, headers)
}

// addTrace writes the trace of ctx into a message's headers.
func addTrace(ctx context.Context, h nats.Header) {
	headers, _ := ctx.Value(traceKey{}).(map[string][]string)
	tracing.Copy(h, headers)
	tracing.SetHeaderSpan(h, trace.SpanContextFromContext(ctx))
}

// Answer returns the job's answer. The error wraps ErrNotFound while there is none.
func (c *Client) Answer(ctx context.Context, job string) (*wire.Answer, error) {
	if err := c.checkJob(job); err != nil {
		return nil, err
	}
	m, err := c.bus.Log.Get(ctx, bus.StreamAnswer, wire.AnswerSubject(job))
	if err != nil {
		return nil, err
	}
	return decodeAnswer(m.Data)
}

// Request returns the request of a job. It is stored until the job's answer, and after that as long as there is room. The error wraps
// ErrNotFound if it is not. Users of tenants may not read it: the error has the code unsupported.
func (c *Client) Request(ctx context.Context, job string) (*wire.Request, error) {
	if err := c.checkJob(job); err != nil {
		return nil, err
	}
	if owner := c.bus.Conn.Tenant(); owner != "" {
		return nil, fault.New(fault.Unsupported, "client: the user of tenant %s may not read requests", owner)
	}
	m, err := c.bus.Log.Get(ctx, bus.StreamModel, message.AnyLaneFilter(job))
	if err != nil {
		return nil, err
	}
	var r wire.Request
	if err := wire.Decode(m.Data, &r); err != nil {
		return nil, fault.New(fault.Internal, "client: stored request: %w", err)
	}
	return &r, nil
}

// decodeAnswer decodes a stored answer.
func decodeAnswer(b []byte) (*wire.Answer, error) {
	var a wire.Answer
	if err := wire.Decode(b, &a); err != nil {
		return nil, fault.New(fault.Internal, "client: stored answer: %w", err)
	}
	return &a, nil
}

// Wait returns the job's answer as soon as there is one. A deadline of ctx ends the wait, not the
// job. The error wraps ErrUnknownJob if the job is not stored (any more), and ErrNotSetUp if there
// is no stream for it.
//
// It listens to the republished answer and never to the answer's own subject, where refused ones
// pass too.
func (c *Client) Wait(ctx context.Context, job string) (*wire.Answer, error) {
	return c.WaitTelling(ctx, job, nil)
}

// checkJob returns an error if a text is no job's id, or if the job is not one of the tenant of Options.
func (c *Client) checkJob(job string) error {
	if !wire.ValidJob(job) {
		return fault.New(
			fault.BadInput, "client: job %.130q is not [A-Za-z0-9_-]{1,64}, nor an owner, a dot and such an id", job,
		)
	}
	return c.checkOwner(job)
}
