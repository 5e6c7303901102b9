package hop

import (
	"context"
	"time"

	"github.com/basetensor/basetensor/internal/queue/tracing"
	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// Beginnings of the names of a job's spans. For every stage there is one for the wait before it and one for the work,
// below the work of the stage before. The work of the sum has links to the work on all partials. The last span is the
// answer.
const (
	spanWait   = "wait "
	spanWork   = "work "
	spanAnswer = "answer"
)

// withTrace returns ctx with the request's description and the trace of a message. If the intake measures costs, it
// begins a span for the work.
func (l *Loop) withTrace(ctx context.Context, d *Message, intake *Intake) context.Context {
	ctx = withAbout(ctx, d)
	if l.Tracer == nil {
		return ctx
	}
	ctx = tracing.WithHeaderSpan(ctx, d.Raw.Header)
	if intake.MeasuresCost {
		return l.startWorkSpan(ctx, d)
	}
	return ctx
}

// startWorkSpan begins the span of the work on a message, which it keeps in d, and records a span for the message's
// wait. It returns ctx with the span of the work.
func (l *Loop) startWorkSpan(ctx context.Context, d *Message) context.Context {
	attributes := l.spanAttributes(d)
	workCtx, span := l.Tracer.Start(
		ctx, spanWork+l.Stage, trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(attributes...),
	)
	d.span = span

	// The span of the wait has the same parent as that of the work. If the message brought no parent, the work is the
	// parent of its wait, so that both are in one trace.
	waitParent := ctx
	if !trace.SpanContextFromContext(ctx).IsValid() {
		waitParent = workCtx
	}
	tracing.RecordWait(waitParent, l.Tracer, spanWait+l.Stage, d.Raw.Stored, time.Now(), attributes...)
	return workCtx
}

// spanAttributes returns the attributes of spans for a message.
func (l *Loop) spanAttributes(d *Message) []attribute.KeyValue {
	attributes := []attribute.KeyValue{
		tracing.Job.String(d.Subject.Job),
		tracing.Lane.Int(d.Subject.Lane),
		tracing.Stage.String(l.Stage),
		tracing.Attempt.Int(d.Attempt),
	}
	if d.Subject.N > 0 {
		attributes = append(attributes, tracing.Chunk.Int(d.Subject.K), tracing.Chunks.Int(d.Subject.N))
	}
	return attributes
}

// Resume returns ctx with the trace of a job's stored model, and begins a span for the work on d, the message that
// starts the job again.
func (l *Loop) Resume(ctx context.Context, d *Message, model nats.Header) context.Context {
	d.traceHeader = model
	if l.Tracer == nil {
		return ctx
	}
	return l.startWorkSpan(tracing.WithHeaderSpan(ctx, model), d)
}

// SetAttributes adds attributes to the span of the work on a message.
func (d *Message) SetAttributes(attributes ...attribute.KeyValue) {
	if d.span != nil {
		d.span.SetAttributes(attributes...)
	}
}

// endSpan ends the span of the work on a message with its outcome.
func (d *Message) endSpan(outcome Outcome, err error) {
	if d.span == nil {
		return
	}
	d.span.SetAttributes(tracing.Outcome.String(outcome.name))
	if err != nil && !outcome.isNormal() {
		tracing.Fail(d.span, string(CodeOf(err)))
	}
	d.span.End()
}

// traceID returns the id of the message's trace, or "" if nobody records it.
func (d *Message) traceID() string {
	if d.span == nil {
		return ""
	}
	return tracing.ID(d.span.SpanContext())
}

// inContext returns ctx with the message's description and the span of the work on it.
func (d *Message) inContext(ctx context.Context) context.Context {
	ctx = withAbout(ctx, d)
	if d.span == nil {
		return ctx
	}
	return trace.ContextWithSpan(ctx, d.span)
}

// copyTrace writes the trace of a message into the headers of one that follows from it.
func (d *Message) copyTrace(h nats.Header) {
	source := d.traceHeader
	if source == nil {
		source = d.Raw.Header
	}
	tracing.Copy(h, source)
	if d.span != nil {
		tracing.SetHeaderSpan(h, d.span.SpanContext())
	}
}
