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

// WriteTimeout bounds the writing of terminal answers and dead letters, which may go on after the work's own context
// has ended.
const WriteTimeout = 10 * time.Second

// isAnswered reports whether the job has its answer. It reports false if that cannot be found out, so that work goes
// on.
func (l *Jobs) isAnswered(ctx context.Context, job string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	exists, err := l.Bus.Log.Has(ctx, bus.StreamAnswer, wire.AnswerSubject(job))
	return err == nil && exists
}

// StoredAnswer returns the job's answer. It is nil if there is none, or none that can be read.
func (l *Jobs) StoredAnswer(ctx context.Context, job string) (*wire.Answer, error) {
	m, err := l.Bus.Log.Get(ctx, bus.StreamAnswer, wire.AnswerSubject(job))
	if errors.Is(err, bus.ErrNotFound) || bus.IsUnreadable(err) {
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

// CheckUnanswered returns nil if the job has no answer, ErrAnswered if it has one, and ErrForeign if that is the answer
// of another request.
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

// CheckNotOver returns nil if the job is still to be done. It returns ErrAnswered if the job has its answer, or had it
// before: if an old job's model was removed, its answer may have been removed too, and the job is not done again. It
// returns ErrForeign if the answer is another request's. modelStored is when the job's model was stored; if it is zero,
// only the answer is looked for.
func (l *Jobs) CheckNotOver(ctx context.Context, lane int, job, digest string, modelStored time.Time) error {
	if err := l.CheckUnanswered(ctx, job, digest); err != nil || modelStored.IsZero() {
		return err
	}

	// Models are not removed before they are as old as the grace, so a younger job has its model.
	s, err := l.Bus.Conn.Stream(ctx, bus.StreamModel)
	if err != nil {
		return err
	}
	if l.Bus.Conn.Since(modelStored) < bus.TimesOf(s.CachedInfo().Config.Metadata).Grace {
		return nil
	}

	requests, err := l.Bus.Log.Subjects(ctx, bus.StreamModel, wire.ModelSubject(lane, job))
	if err == nil && len(requests) == 0 {
		return ErrAnswered
	}
	return err
}

// withFirst returns an answer with results of the job's first answer in the place of those that failed. A first answer
// is a quick estimate that learn-worker stores for a job with a deadline. If nothing failed, the job was cancelled, or
// no first answer was stored in time, withFirst returns the answer as it is.
func (l *Jobs) withFirst(ctx context.Context, answer *wire.Answer) *wire.Answer {
	isOK := func(r query.Result) bool { return r.Status == query.StatusOK }
	isFailure := func(r query.Result) bool { return !isOK(r) }
	hasFailed := answer.Status == wire.StatusError || answer.Status == wire.StatusDeadline || slices.ContainsFunc(answer.Results, isFailure)
	if !hasFailed || answer.Status == wire.StatusCancelled || l.MergeFirst == nil {
		return answer
	}
	first := l.readFirst(ctx, answer)
	if first == nil {
		return answer
	}

	// Merge the results. An error of the whole job stands for each query.
	results := answer.Results
	if len(results) == 0 && answer.Error != nil {
		err := fault.New(answer.Error.Code, "%s", answer.Error.Message)
		results = l.ErrorResults(answer.Job, len(first.Results), err, answer.Error.Stage)
	}
	results = l.MergeFirst(results, first.Results)
	if !slices.ContainsFunc(results, isOK) {
		return answer
	}
	merged := *answer
	merged.Status, merged.Error, merged.Results = wire.StatusOK, nil, results
	return &merged
}

// readFirst returns the stored first answer of the request that answer is for. It returns nil if there is none, or none
// that can be read.
func (l *Jobs) readFirst(ctx context.Context, answer *wire.Answer) *wire.Answer {
	m, err := l.Bus.Log.Get(ctx, bus.StreamPartial, message.FirstSubject(answer.Job))
	if err != nil {
		if !errors.Is(err, bus.ErrNotFound) {
			l.Log.Warn("cannot read a first answer", "job", answer.Job, "error", err)
		}
		return nil
	}
	var first wire.Answer
	if err := wire.Decode(m.Data, &first); err != nil || first.Job != answer.Job || first.Digest != answer.Digest {
		return nil
	}
	return &first
}

// Answer stores a terminal answer, unless one is stored already. Results of the job's first answer take the place of
// those that failed. It returns ErrForeign if the stored answer is another request's. modelStored is when the job's
// model was stored, zero if that is unknown. Only a stage that WritesAnswers may call it.
func (l *Jobs) Answer(ctx context.Context, answer *wire.Answer, modelStored time.Time) error {
	return l.storeAnswer(ctx, l.withFirst(ctx, answer), modelStored)
}

// storeAnswer stores an answer as it is, while Answer first puts results of the job's first answer into it. If the owner's
// quota has no room for the answer, an error is stored in its place, which ends the job too and needs little room.
func (l *Jobs) storeAnswer(ctx context.Context, answer *wire.Answer, modelStored time.Time) (err error) {
	ctx, endSpan := l.startAnswerSpan(ctx, answer)
	defer func() { endSpan(err) }()

	m, err := answerMessage(ctx, answer)
	if err != nil {
		return err
	}
	bytes := len(m.Data)
	isOK := answer.Status == wire.StatusOK
	if isOK { // an error is stored in any case
		err = l.Bus.Quotas.Reserve(ctx, bus.StreamAnswer, m.Subject, m.Header, bytes)
	}
	var earlier *wire.Answer
	if err == nil {
		earlier, err = l.storeFirst(ctx, m)
	}
	switch {
	case errors.Is(err, bus.ErrQuota) && isOK:
		info := l.ErrorInfo(err)
		refusal := &wire.Answer{Job: answer.Job, Tenant: answer.Tenant, Digest: answer.Digest, Status: wire.StatusError, Error: &info}
		return l.storeAnswer(ctx, refusal, modelStored)
	case err != nil:
		return err
	case earlier != nil:
		return l.compareAnswers(earlier, answer)
	}
	l.recordEnd(ctx, answer, modelStored, bytes)
	l.RemoveRequest(ctx, answer)
	return nil
}

// startAnswerSpan begins the span of the storage of an answer, if ctx has a trace. It returns ctx with the span, and
// the function that ends the span.
func (l *Jobs) startAnswerSpan(ctx context.Context, answer *wire.Answer) (_ context.Context, end func(error)) {
	if l.Tracer == nil || !trace.SpanContextFromContext(ctx).IsValid() {
		return ctx, func(error) {}
	}
	ctx, span := l.Tracer.Start(ctx, spanAnswer, trace.WithAttributes(
		tracing.Job.String(answer.Job), tracing.Stage.String(l.Stage),
		tracing.Method.String(methodOf(answer.Results)), tracing.Outcome.String(outcomeOf(answer)),
	))
	return ctx, func(err error) { tracing.End(span, err) }
}

// answerMessage returns an answer as a NATS message, with the trace and the request's description of ctx in its
// headers.
func answerMessage(ctx context.Context, answer *wire.Answer) (*nats.Msg, error) {
	b, err := wire.Encode(answer)
	if err != nil {
		return nil, err
	}
	m := &nats.Msg{
		Subject: wire.AnswerSubject(answer.Job),
		Header:  message.Headers(answer, answer.Job, answer.Digest, answer.Tenant),
		Data:    b,
	}
	m.Header[message.HeaderStatus] = []string{answer.Status}
	aboutOf(ctx).Into(m.Header)
	tracing.SetHeaderSpan(m.Header, trace.SpanContextFromContext(ctx))
	return m, nil
}

// compareAnswers compares an answer with the one that was stored earlier, which stays. It returns ErrForeign if that
// one is another request's, and reports two different results of the same request as a conflict.
func (l *Jobs) compareAnswers(earlier, answer *wire.Answer) error {
	if earlier.Digest != answer.Digest {
		return ErrForeign
	}
	areComputed := earlier.Status == wire.StatusOK && answer.Status == wire.StatusOK
	if areComputed && !sameResults(earlier.Results, answer.Results) {
		l.Metrics.Conflict(l.Stage)
		l.Log.Error(
			"the same request had two different answers, the first stays", "job", answer.Job, "digest",
			answer.Digest,
		)
	}
	return nil
}

// RemoveRequest removes the stored request of a tenant's job that has an answer, if the tenant holds many. If the job
// failed by trouble, its request stays, because operators may replay it.
func (l *Jobs) RemoveRequest(ctx context.Context, answer *wire.Answer) {
	if answer.Error != nil && (answer.Error.Code == fault.Infrastructure || answer.Error.Code == fault.Internal) {
		return
	}
	if err := l.Bus.Quotas.RemoveAnswered(ctx, answer.Job); err != nil {
		l.Log.Debug("an answered request is not removed", "job", answer.Job, "error", err)
	}
}

// storeFirst stores an answer if its subject has none, and returns nil. Otherwise it returns the answer that the subject
// has. If that answer cannot be decoded, it is discarded, and the storage is tried once more.
func (l *Jobs) storeFirst(ctx context.Context, m *nats.Msg) (*wire.Answer, error) {
	for isSecondTry := false; ; isSecondTry = true {
		earlier, err := l.Bus.Log.PutOnce(ctx, bus.StreamAnswer, m)
		if err != nil || earlier == nil {
			return nil, err
		}
		var a wire.Answer
		if err = wire.Decode(earlier.Data, &a); err == nil {
			return &a, nil
		}
		if isSecondTry || !l.Bus.Log.Discard(ctx, bus.StreamAnswer, earlier) {
			return nil, fault.New(fault.Internal, "pipeline: the message stored on %s: %w", m.Subject, err)
		}
	}
}

// sameResults reports whether two lists of computed results are equal, apart from durations and cache hits.
func sameResults(a, b []query.Result) bool {
	// comparable returns an answer with the results, without the fields that may differ. Only a whole answer can be
	// encoded and compared, so it gets a digest, a status and a job that are valid.
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

// EndWithError ends the job of a message with an error. It does nothing if the job has another request's answer. Its
// context is a new one, because the work's own context may have ended.
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

	const noInvalidID = ""
	return l.EndJob(ctx, d.Subject.Lane, a, noInvalidID, d.JobStored)
}

// EndJob ends a job with an error as its answer, unless it has one. A stage that WritesAnswers stores the answer
// itself; another sends it a message. If under is not "", it is the invalid id under which a client waits, and the
// answer is stored under it. EndJob does nothing if the job has another request's answer. modelStored is when the job's
// model was stored, zero if that is unknown.
func (l *Jobs) EndJob(
	ctx context.Context, lane int, a *wire.Answer, under string, modelStored time.Time,
) error {
	b, err := wire.Encode(a)
	if err != nil {
		return err
	}

	if !l.WritesAnswers {
		m := &message.End{Job: a.Job, Tenant: a.Tenant, Answer: b, Under: under, Time: time.Now().UnixMilli()}
		if !modelStored.IsZero() {
			m.Stored = modelStored.UnixMilli()
		}
		return l.sendEnd(ctx, lane, m)
	}

	if under != "" {
		_, err := l.Bus.Log.PutOnce(ctx, bus.StreamAnswer, &nats.Msg{
			Subject: wire.AnswerSubject(under),
			Header:  message.Headers(a, a.Job, a.Digest, a.Tenant),
			Data:    b,
		})
		return err
	}

	if err := l.Answer(ctx, a, modelStored); !errors.Is(err, ErrForeign) {
		return err
	}
	return nil
}

// sendEnd asks the stage that writes answers to end a job. If it was asked before, that message stays.
func (l *Jobs) sendEnd(ctx context.Context, lane int, m *message.End) error {
	b, err := wire.Encode(m)
	if err != nil {
		return err
	}
	msg := &nats.Msg{
		Subject: message.EndSubject(lane, m.Job),
		Header:  message.Headers(m, m.Job, "", m.Tenant),
		Data:    b,
	}
	tracing.SetHeaderSpan(msg.Header, trace.SpanContextFromContext(ctx))
	aboutOf(ctx).Into(msg.Header)
	_, err = l.Bus.Log.PutOnce(ctx, bus.StreamControl, msg)
	return err
}

// ErrorInfo returns an error in the form for clients, without credentials.
func (l *Jobs) ErrorInfo(err error) query.ErrorInfo {
	return query.ErrorInfo{Code: CodeOf(err), Message: redact.Text(sentence.Text(err.Error())), Stage: l.Stage}
}

// digestOf returns the digest of the request of a message that does not carry it: that of the stored request if there
// is one, and otherwise that of the message's data. It returns an error if the request may be stored but could not be
// fetched, because with another digest the answer would be another request's.
func (l *Loop) digestOf(ctx context.Context, d *Message) (string, error) {
	s, err := l.Submission(ctx, wire.ModelSubject(d.Subject.Lane, d.Subject.Job))
	if errors.Is(err, bus.ErrNotFound) {
		return wire.Digest(d.Data), nil
	}
	return s.Digest, err
}

// Submission describes a stored request.
type Submission struct {
	Digest   string
	Tenant   string
	StoredAt time.Time // when its model was stored
	IsLost   bool      // its payload cannot be read any more

	Deadline time.Time // zero: it has none
}

// Submission describes the stored request on a subject, which may have wildcards. The error wraps bus.ErrNotFound if
// there is none. The digest of a malformed request is that of its bytes. The digest of a lost or damaged one is the one
// in its header, or else that of its message's bytes.
func (l *Jobs) Submission(ctx context.Context, subject string) (Submission, error) {
	stored, err := l.Bus.Log.GetRaw(ctx, bus.StreamModel, subject)
	if err != nil {
		return Submission{}, err
	}
	s := Submission{StoredAt: bus.StoredAt(stored.Header, stored.Time)}

	// Read the payload.
	data, err := stored.Data, bus.CheckSum(stored.Subject, stored.Header, stored.Data)
	if err == nil {
		data, err = l.Bus.Blobs.Payload(ctx, message.OwnerOf(stored.Subject), stored.Header, stored.Data)
	}
	if bus.IsUnreadable(err) {
		s.IsLost = true
		if s.Digest = stored.Header.Get(wire.HeaderDigest); !form.IsDigest(s.Digest) {
			s.Digest = wire.Digest(stored.Data)
		}
		return s, nil
	}
	if err != nil {
		return Submission{}, err
	}

	// Decode it.
	var m wire.Request
	if wire.Decode(data, &m) == nil {
		s.Tenant = message.TenantOf(m.Job, m.Tenant)
		s.Digest, err = m.Digest()
		if m.DeadlineMS > 0 {
			s.Deadline = s.StoredAt.Add(time.Duration(m.DeadlineMS) * time.Millisecond)
		}
	}
	if s.Digest == "" || err != nil { // the request is malformed
		s.Digest = wire.Digest(data)
	}
	return s, nil
}

// giveUp gives a message up: it stores a dead letter, which is a record of the message and the error. Then, if withAnswer
// is set and the error may end the job, it stores the error as the job's answer. At last it ends the deliveries.
func (l *Loop) giveUp(d *Message, err error, withAnswer bool) Outcome {
	ctx, cancel := context.WithTimeout(context.Background(), WriteTimeout)
	defer cancel()

	writeErr := l.deadLetter(ctx, d, err)
	if writeErr == nil && withAnswer && !d.KeepsJob {
		writeErr = l.EndWithError(d, err)
	}
	if writeErr != nil {
		l.Log.Error("cannot write a dead letter", "job", d.Subject.Job, "error", writeErr)
		d.Raw.Redeliver(Backoff(fault.Infrastructure, d.Attempt))
		return Retry
	}

	d.Raw.Terminate(string(CodeOf(err)))
	return Dead
}

// deadLetter stores a record of a message that was given up, and the error. Above the tenant's quota the record is only
// logged.
func (l *Loop) deadLetter(ctx context.Context, d *Message, err error) error {
	info := l.ErrorInfo(err)
	if errors.Is(err, ErrForeign) { // it has no code of its own; the sender has used an id that is taken
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
	if err := l.Bus.Quotas.Reserve(ctx, bus.StreamDead, subject, nil, len(b)); errors.Is(err, bus.ErrQuota) {
		l.Log.Warn("a dead letter is not kept", "job", letter.Job, "error", err, "why", info.Message)
		return nil
	}
	return l.Bus.Log.Put(ctx, &nats.Msg{
		Subject: subject,
		Header:  message.Headers(letter, letter.Job, d.Digest, letter.Tenant),
		Data:    b,
	})
}
