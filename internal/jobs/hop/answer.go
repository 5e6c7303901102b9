package hop

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/basetensor/basetensor/internal/base/sentence"
	"github.com/basetensor/basetensor/internal/form"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/queue/redact"
	"github.com/basetensor/basetensor/internal/queue/tracing"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/trace"
)

// WriteTimeout bounds the writing of terminal answers and dead letters, which outlive the work's
// own context.
const WriteTimeout = 10 * time.Second

// isAnswered reports whether the job has its answer. Where that cannot be found out it says no, and
// work goes on.
func (l *Jobs) isAnswered(ctx context.Context, job string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	exists, err := l.Bus.Log.Has(ctx, bus.StreamAnswer, wire.AnswerSubject(job))
	return err == nil && exists
}

// StoredAnswer returns the job's answer; nil if it has none, or none that can be read.
func (l *Jobs) StoredAnswer(ctx context.Context, job string) (*wire.Answer, error) {
	m, err := l.Bus.Log.Get(ctx, bus.StreamAnswer, wire.AnswerSubject(job))
	if errors.Is(err, bus.ErrNotFound) || bus.Unreadable(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var a wire.Answer
	if wire.Decode(m.Data, &a) != nil || a.Job != job {
		return nil, nil
	}
	return &a, nil
}

// CheckUnanswered returns ErrAnswered if the job has its answer, and ErrForeign if that is another
// request's.
func (l *Jobs) CheckUnanswered(ctx context.Context, job, digest string) error {
	a, err := l.StoredAnswer(ctx, job)
	switch {
	case err != nil || a == nil:
		return err
	case a.Digest != digest:
		return ErrForeign
	}
	return ErrAnswered
}

// CheckNotOver returns ErrAnswered if the job has its answer, or has had it: where the model of an old job
// is gone its answer may be gone too, and the job is not done again. It returns ErrForeign if the
// answer is another request's. The job's model was stored at the time asked; zero: that is not known.
func (l *Jobs) CheckNotOver(ctx context.Context, lane int, job, digest string, asked time.Time) error {
	if err := l.CheckUnanswered(ctx, job, digest); err != nil || asked.IsZero() {
		return err
	}

	s, err := l.Bus.Conn.Stream(ctx, bus.StreamModel)
	if err != nil {
		return err
	}

	if l.Bus.Conn.Since(asked) < bus.TimesOf(s.CachedInfo().Config.Metadata).Grace {
		return nil
	}

	requests, err := l.Bus.Log.Subjects(ctx, bus.StreamModel, wire.ModelSubject(lane, job))
	if err == nil && len(requests) == 0 {
		return ErrAnswered
	}
	return err
}

// withFirst returns an answer with its first one in the place of what failed, if somebody stored that in time.
func (l *Jobs) withFirst(ctx context.Context, a *wire.Answer) *wire.Answer {
	failed := a.Status == wire.StatusError || a.Status == wire.StatusDeadline ||
		slices.ContainsFunc(a.Results, func(r query.Result) bool { return r.Status != query.StatusOK })
	if !failed || a.Status == wire.StatusCancelled || l.MergeFirst == nil {
		return a
	}
	m, err := l.Bus.Log.Get(ctx, bus.StreamPartial, message.FirstSubject(a.Job))
	if err != nil {
		if !errors.Is(err, bus.ErrNotFound) {
			l.Log.Warn("cannot read a first answer", "job", a.Job, "error", err)
		}
		return a
	}
	var first wire.Answer
	if err := wire.Decode(m.Data, &first); err != nil || first.Job != a.Job || first.Digest != a.Digest {
		return a
	}
	results := a.Results
	if len(results) == 0 && a.Error != nil {
		results = l.ErrorResults(a.Job, len(first.Results), fault.New(a.Error.Code, "%s", a.Error.Message), a.Error.Stage)
	}
	results = l.MergeFirst(results, first.Results)
	if !slices.ContainsFunc(results, func(r query.Result) bool { return r.Status == query.StatusOK }) {
		return a
	}
	merged := *a
	merged.Status, merged.Error, merged.Results = wire.StatusOK, nil, results
	return &merged
}

// Answer stores a terminal answer, with the job's first one in the place of what failed, unless one is stored already. It returns
// ErrForeign if that is another request's. The job's model was stored at the time asked; zero: that is not known. Only the loop that
// Answers may call it.
func (l *Jobs) Answer(ctx context.Context, a *wire.Answer, asked time.Time) error {
	return l.storeAnswer(ctx, l.withFirst(ctx, a), asked)
}

// storeAnswer is Answer without a look at the first one.
func (l *Jobs) storeAnswer(ctx context.Context, a *wire.Answer, asked time.Time) (err error) {
	if l.Tracer != nil && trace.SpanContextFromContext(ctx).IsValid() {
		var span trace.Span
		ctx, span = l.Tracer.Start(ctx, spanAnswer, trace.WithAttributes(
			tracing.Job.String(a.Job), tracing.Stage.String(l.Stage),
			tracing.Method.String(methodOf(a.Results)), tracing.Outcome.String(outcomeOf(a)),
		))
		defer func() { tracing.End(span, err) }()
	}

	b, err := wire.Encode(a)
	if err != nil {
		return err
	}
	m := &nats.Msg{
		Subject: wire.AnswerSubject(a.Job),
		Header:  message.Headers(a, a.Job, a.Digest, a.Tenant),
		Data:    b,
	}
	m.Header[message.HeaderStatus] = []string{a.Status}
	aboutOf(ctx).Into(m.Header)
	tracing.Into(m.Header, trace.SpanContextFromContext(ctx))

	if a.Status == wire.StatusOK {
		err = l.Bus.Quotas.Take(ctx, bus.StreamAnswer, m.Subject, m.Header, len(b))
	}
	var earlier *wire.Answer
	if err == nil {
		earlier, err = l.storeFirst(ctx, m)
	}
	if errors.Is(err, bus.ErrQuota) && a.Status == wire.StatusOK { // the error needs little room, and ends the job
		info := l.ErrorInfo(err)
		return l.storeAnswer(ctx, &wire.Answer{Job: a.Job, Tenant: a.Tenant, Digest: a.Digest, Status: wire.StatusError, Error: &info}, asked)
	}
	if err == nil && earlier == nil {
		l.recordEnd(ctx, a, asked, len(b))
		l.RemoveRequest(ctx, a)
	}
	if err != nil || earlier == nil {
		return err
	}

	switch {
	case earlier.Digest != a.Digest:
		return ErrForeign
	case earlier.Status == wire.StatusOK && a.Status == wire.StatusOK && !sameResults(
		earlier.Results, a.Results,
	):
		l.Metrics.Conflict(l.Stage)
		l.Log.Error(
			"the same request had two different answers, the first stays", "job", a.Job, "digest",
			a.Digest,
		)
	}
	return nil
}

// RemoveRequest removes the stored request of a tenant's job that has an answer. One that failed by trouble stays: operators may replay it.
func (l *Jobs) RemoveRequest(ctx context.Context, a *wire.Answer) {
	if a.Error != nil && (a.Error.Code == fault.Infrastructure || a.Error.Code == fault.Internal) {
		return
	}
	if err := l.Bus.Quotas.Retire(ctx, a.Job); err != nil {
		l.Log.Debug("an answered request is not removed", "job", a.Job, "error", err)
	}
}

// storeFirst stores an answer and returns nil, or returns the answer that its subject has already. A stored answer that
// cannot be read is deleted first.
func (l *Jobs) storeFirst(ctx context.Context, m *nats.Msg) (*wire.Answer, error) {
	for discarded := false; ; discarded = true {
		earlier, err := l.Bus.Log.PutOnce(ctx, bus.StreamAnswer, m)
		if err != nil || earlier == nil {
			return nil, err
		}
		var a wire.Answer
		if err = wire.Decode(earlier.Data, &a); err == nil {
			return &a, nil
		}
		if discarded || !l.Bus.Log.Discard(ctx, bus.StreamAnswer, earlier) {
			return nil, fault.New(fault.Internal, "pipeline: the message stored on %s: %w", m.Subject, err)
		}
	}
}

// sameResults compares the computed results, without durations and cache hits.
func sameResults(a, b []query.Result) bool {
	comparable := func(results []query.Result) *wire.Answer {
		answer := &wire.Answer{Digest: wire.Digest(nil), Status: wire.StatusOK, Results: slices.Clone(results)}
		for i := range answer.Results {
			answer.Job = answer.Results[i].Job
			answer.Results[i].TimingsMS = nil
			answer.Results[i].Cache = ""
		}
		return answer
	}
	return SameBytes(comparable(a), comparable(b))
}

// statusOf returns the status of a job that fails with a code.
func statusOf(code fault.Code) string {
	switch code {
	case fault.Cancelled:
		return wire.StatusCancelled
	case fault.Deadline:
		return wire.StatusDeadline
	}
	return wire.StatusError
}

// EndWithError ends the job of a message with an error. It does nothing if the job has another request's
// answer.
func (l *Loop) EndWithError(d *Message, err error) error {
	ctx, cancel := context.WithTimeout(d.inContext(context.Background()), WriteTimeout)
	defer cancel()

	info := l.ErrorInfo(err)
	digest := d.Digest
	if digest == "" {
		var readErr error
		if digest, readErr = l.digestOf(ctx, d); readErr != nil {
			return readErr
		}
	}

	a := &wire.Answer{
		Job:    d.Subject.Job,
		Tenant: d.Tenant,
		Digest: digest,
		Status: statusOf(info.Code),
		Error:  &info,
	}
	if d.Queries > 0 {
		a.Results = l.ErrorResults(a.Job, d.Queries, err, l.Stage)
	}

	return l.EndJob(ctx, d.Subject.Lane, a, "", d.JobStored)
}

// EndJob ends a job with an error, which is its answer unless it has one: here, or by a message to the stage that Answers. A client that
// waits under an id that is none gets it under that id. It does nothing if the job has another request's answer. The job's model was
// stored at the time asked; zero: that is not known.
func (l *Jobs) EndJob(
	ctx context.Context, lane int, a *wire.Answer, under string, asked time.Time,
) error {
	b, err := wire.Encode(a)
	if err != nil {
		return err
	}
	if !l.WritesAnswers { // a job has one message to the stage that does at a time, the first
		m := &message.End{Job: a.Job, Tenant: a.Tenant, Answer: b, Under: under, Time: time.Now().UnixMilli()}
		if !asked.IsZero() {
			m.Stored = asked.UnixMilli()
		}
		if b, err = wire.Encode(m); err != nil {
			return err
		}
		msg := &nats.Msg{
			Subject: message.EndSubject(lane, m.Job),
			Header:  message.Headers(m, m.Job, "", m.Tenant),
			Data:    b,
		}
		tracing.Into(msg.Header, trace.SpanContextFromContext(ctx))
		aboutOf(ctx).Into(msg.Header)
		_, err = l.Bus.Log.PutOnce(ctx, bus.StreamControl, msg)
		return err
	}

	if under != "" {
		_, err := l.Bus.Log.PutOnce(ctx, bus.StreamAnswer, &nats.Msg{
			Subject: wire.AnswerSubject(under),
			Header:  message.Headers(a, a.Job, a.Digest, a.Tenant),
			Data:    b,
		})
		return err
	}

	if err := l.Answer(ctx, a, asked); !errors.Is(err, ErrForeign) {
		return err
	}
	return nil
}

// ErrorInfo returns an error in the form for clients, without credentials.
func (l *Jobs) ErrorInfo(err error) query.ErrorInfo {
	return query.ErrorInfo{Code: CodeOf(err), Message: redact.Text(sentence.Text(err.Error())), Stage: l.Stage}
}

// digestOf returns the digest of the request of a message that does not carry it: the stored
// model's if there is one, else the message's own. It returns an error if the model may be there
// and could not be fetched: with another digest the answer would be another request's.
func (l *Loop) digestOf(ctx context.Context, d *Message) (string, error) {
	s, err := l.Submission(ctx, wire.ModelSubject(d.Subject.Lane, d.Subject.Job))
	if errors.Is(err, bus.ErrNotFound) {
		return wire.Digest(d.Data), nil
	}
	return s.Digest, err
}

// Submission has the facts of a stored request.
type Submission struct {
	Digest   string
	Tenant   string
	StoredAt time.Time // when its model was stored
	IsLost   bool      // its payload cannot be read any more

	Deadline time.Time // zero: it has none
}

// Submission returns the Submission of the request on a model's subject, which may have wildcards. The error wraps
// bus.ErrNotFound if there is none. A malformed request has its bytes' digest. A lost or damaged one has the digest in its header,
// or else the digest of its message.
func (l *Jobs) Submission(ctx context.Context, subject string) (Submission, error) {
	stored, err := l.Bus.Log.GetRaw(ctx, bus.StreamModel, subject)
	if err != nil {
		return Submission{}, err
	}
	s := Submission{StoredAt: bus.StoredAt(stored.Header, stored.Time)}

	data, err := stored.Data, bus.Intact(stored.Subject, stored.Header, stored.Data)
	if err == nil {
		data, err = l.Bus.Blobs.Payload(ctx, message.OwnerOf(stored.Subject), stored.Header, stored.Data)
	}
	if bus.Unreadable(err) {
		s.IsLost = true
		if s.Digest = stored.Header.Get(wire.HeaderDigest); !form.IsDigest(s.Digest) {
			s.Digest = wire.Digest(stored.Data)
		}
		return s, nil
	}
	if err != nil {
		return Submission{}, err
	}

	var m wire.Request
	if wire.Decode(data, &m) == nil {
		s.Tenant = message.TenantOf(m.Job, m.Tenant)
		s.Digest, err = m.Digest()
		if m.DeadlineMS > 0 {
			s.Deadline = s.StoredAt.Add(time.Duration(m.DeadlineMS) * time.Millisecond)
		}
	}
	if s.Digest == "" || err != nil {
		s.Digest = wire.Digest(data)
	}
	return s, nil
}

// giveUp gives a message up: it writes a dead letter, then the job's answer if that is wanted, and
// then ends the deliveries.
func (l *Loop) giveUp(d *Message, err error, answer bool) Outcome {
	ctx, cancel := context.WithTimeout(context.Background(), WriteTimeout)
	defer cancel()

	writeErr := l.deadLetter(ctx, d, err)
	if writeErr == nil && answer && !d.KeepsJob {
		writeErr = l.EndWithError(d, err)
	}

	if writeErr != nil {
		l.Log.Error("cannot write a dead letter", "job", d.Subject.Job, "error", writeErr)
		d.Raw.Again(Backoff(fault.Infrastructure, d.Attempt))
		return Retry
	}

	d.Raw.Never(string(CodeOf(err)))
	return Dead
}

// deadLetter stores a record of a message that was given up, and the error.
func (l *Loop) deadLetter(ctx context.Context, d *Message, err error) error {
	info := l.ErrorInfo(err)
	if errors.Is(err, ErrForeign) {
		info.Code = fault.BadInput
	}

	letter := &message.DeadLetter{
		Stage:      l.Stage,
		Job:        d.Subject.Job,
		Tenant:     d.Tenant,
		Subject:    d.Raw.Subject,
		Error:      info,
		Deliveries: d.Attempt,
		Payload:    wire.Digest(d.Data),
		Time:       time.Now().UnixMilli(),
	}

	b, err := wire.Encode(letter)
	if err != nil {
		return err
	}

	subject := message.DLQSubject(letter.Stage, letter.Job)
	if err := l.Bus.Quotas.Take(ctx, bus.StreamDead, subject, nil, len(b)); errors.Is(err, bus.ErrQuota) {
		l.Log.Warn("a dead letter is not kept", "job", letter.Job, "error", err, "why", info.Message)
		return nil
	}
	return l.Bus.Log.Put(ctx, &nats.Msg{
		Subject: subject,
		Header:  message.Headers(letter, letter.Job, d.Digest, letter.Tenant),
		Data:    b,
	})
}
