package pipeline

import (
	"context"
	"errors"
	"time"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/bus"
	"github.com/basetensor/basetensor/internal/message"
	"github.com/basetensor/basetensor/internal/redact"
	"github.com/basetensor/basetensor/internal/stage"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// writeTimeout bounds the writing of terminal answers and dead letters, which outlive the work's own context.
const writeTimeout = 10 * time.Second

// answered reports whether the job has its answer. Where it cannot be known the answer is no: work goes on.
func (w *worker) answered(ctx context.Context, job string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	has, err := w.bus.Has(ctx, bus.StreamAnswer, wire.AnswerSubject(job))
	return err == nil && has
}

// unanswered returns errAnswered if the job has its answer, and errForeign if that is another request's.
func (w *worker) unanswered(ctx context.Context, job, digest string) error {
	m, err := w.bus.Get(ctx, bus.StreamAnswer, wire.AnswerSubject(job))
	if errors.Is(err, bus.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	var a wire.Answer
	if err := wire.Decode(m.Data, &a); err != nil {
		return fault.New(fault.Internal, "pipeline: stored answer of job %s: %w", job, err)
	}
	if a.Digest != digest {
		return errForeign
	}
	return errAnswered
}

// over returns errAnswered if the job has its answer, or had it: where the model of an old job is gone, its answer may be gone too, and
// the job is not done again. It returns errForeign if the answer is another request's. The job was stored then, in Unix milliseconds.
func (w *worker) over(ctx context.Context, lane int, job, digest string, stored int64) error {
	if err := w.unanswered(ctx, job, digest); err != nil {
		return err
	}
	if stored <= 0 {
		return nil // not known
	}
	s, err := w.bus.Stream(ctx, bus.StreamModel)
	if err != nil {
		return err
	}
	if now().Sub(time.UnixMilli(stored)) < bus.TimesOf(s.CachedInfo().Config.Metadata).Grace {
		return nil
	}
	there, err := w.bus.Subjects(ctx, bus.StreamModel, wire.ModelSubject(lane, job))
	if err == nil && len(there) == 0 {
		return errAnswered
	}
	return err
}

// answer stores a terminal answer; the first one stays. It returns errForeign if that is another request's.
func (w *worker) answer(ctx context.Context, a *wire.Answer) error {
	b, err := wire.Encode(a)
	if err != nil {
		return err
	}
	m := &nats.Msg{Subject: wire.AnswerSubject(a.Job), Header: wire.Headers(a, a.Job, a.Digest, a.Tenant), Data: b}
	earlier, err := w.bus.Once(ctx, bus.StreamAnswer, m)
	if err == nil && earlier == nil && w.stage == StageAggregate && w.SweepAfter > 0 {
		w.ended.add(a.Job)
	}
	if err != nil || earlier == nil {
		return err
	}
	var first wire.Answer
	if err := wire.Decode(earlier.Data, &first); err != nil {
		return fault.New(fault.Internal, "pipeline: stored answer of job %s: %w", a.Job, err)
	}
	switch {
	case first.Digest != a.Digest:
		return errForeign
	case first.Status == wire.StatusOK && a.Status == wire.StatusOK && !sameResults(first.Results, a.Results):
		w.Metrics.conflict(w.stage)
		w.log.Error("the same request had two different answers, the first stays", "job", a.Job, "digest", a.Digest)
	}
	return nil
}

// sameResults compares what was computed: not how long it took, nor whether it was remembered.
func sameResults(a, b []btn.Result) bool {
	if len(a) != len(b) {
		return false
	}
	bare := func(r []btn.Result) []btn.Result {
		out := make([]btn.Result, len(r))
		for i := range r {
			out[i] = r[i]
			out[i].TimingsMS, out[i].Cache = nil, ""
		}
		return out
	}
	x, errX := wire.Encode(&wire.Answer{Job: a[0].Job, Digest: wire.Digest(nil), Status: wire.StatusOK, Results: bare(a)})
	y, errY := wire.Encode(&wire.Answer{Job: b[0].Job, Digest: wire.Digest(nil), Status: wire.StatusOK, Results: bare(b)})
	return errX == nil && errY == nil && string(x) == string(y)
}

// statusOf returns the state in which a job ends that fails under a code.
func statusOf(code fault.Code) string {
	switch code {
	case fault.Cancelled:
		return wire.StatusCancelled
	case fault.Deadline:
		return wire.StatusDeadline
	}
	return wire.StatusError
}

// fail ends the job of a delivery with an error.
func (w *worker) fail(d *delivery, err error) error {
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	info := w.info(err)
	digest := d.digest
	if digest == "" {
		digest = w.digestOf(ctx, d)
	}
	a := &wire.Answer{Job: d.subject.Job, Tenant: d.tenant, Digest: digest, Status: statusOf(info.Code), Error: &info}
	if d.queries > 0 {
		a.Results = stage.Failed(a.Job, d.queries, err, string(w.stage))
	}
	err = w.answer(ctx, a)
	if errors.Is(err, errForeign) {
		return nil // the job has an answer, and it is not ours to change
	}
	return err
}

func (w *worker) info(err error) btn.ErrorInfo {
	return btn.ErrorInfo{Code: codeOf(err), Message: redact.Text(err.Error()), Stage: string(w.stage)}
}

// digestOf returns the digest of the request behind a message that does not say it: the stored model's if it can be read,
// else that of the bytes.
func (w *worker) digestOf(ctx context.Context, d *delivery) string {
	if m, err := w.bus.Get(ctx, bus.StreamModel, wire.ModelSubject(d.subject.Lane, d.subject.Job)); err == nil {
		var model wire.Model
		if wire.Decode(m.Data, &model) == nil {
			if digest, err := model.Digest(); err == nil {
				return digest
			}
		}
		return wire.Digest(m.Data)
	}
	return wire.Digest(d.data)
}

// bury gives a message up: a dead letter, the job's answer if it is the job's fault, and no further delivery, in this order.
func (w *worker) bury(d *delivery, err error, answer bool) string {
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	failed := w.deadLetter(ctx, d, err)
	if failed == nil && answer && !d.silent {
		failed = w.fail(d, err)
	}
	if failed != nil {
		w.log.Error("cannot write a dead letter", "job", d.subject.Job, "error", failed)
		d.msg.Again(backoff(fault.Infrastructure, d.attempt))
		return outcomeRetry
	}
	d.msg.Never(string(codeOf(err)))
	return outcomeDead
}

func (w *worker) deadLetter(ctx context.Context, d *delivery, err error) error {
	info := w.info(err)
	if errors.Is(err, errForeign) {
		info.Code = fault.BadInput
	}
	l := &message.DeadLetter{
		Stage: string(w.stage), Job: d.subject.Job, Tenant: d.tenant, Subject: d.msg.Subject, Error: info,
		Deliveries: d.attempt, Payload: wire.Digest(d.data), Time: now().UnixMilli(),
	}
	b, err := wire.Encode(l)
	if err != nil {
		return err
	}
	return w.bus.Put(ctx, &nats.Msg{
		Subject: message.DLQSubject(l.Stage, l.Job), Header: wire.Headers(l, l.Job, d.digest, l.Tenant), Data: b,
	})
}
