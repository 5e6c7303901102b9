package hop

import (
	"context"
	"time"

	"github.com/basetensor/basetensor/internal/queue/tracing"
	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// The spans of a job: its wait before every stage and the work there, below the work of the stage
// before; its sum, with links to the work on all partials; its answer.
const (
	spanWait   = "wait "
	spanWork   = "work "
	spanAnswer = "answer"
)

// follow returns ctx with the description and the trace that a message belongs to, and begins a span of proper work.
func (l *Loop) follow(ctx context.Context, d *Message, in *Intake) context.Context {
	ctx = withAbout(ctx, d)
	if l.Tracer == nil {
		return ctx
	}
	ctx = tracing.From(ctx, d.Raw.Header)
	if in.Metered {
		return l.work(ctx, d)
	}
	return ctx
}

// work begins the span of the work on a message.
func (l *Loop) work(ctx context.Context, d *Message) context.Context {
	about := l.about(d)
	inside, span := l.Tracer.Start(
		ctx, spanWork+l.Stage, trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(about...),
	)
	d.span = span

	// The wait stands beside the work, where there is anything above both.
	if !trace.SpanContextFromContext(ctx).IsValid() {
		ctx = inside
	}
	tracing.Waited(ctx, l.Tracer, spanWait+l.Stage, d.Raw.Stored, time.Now(), about...)
	return inside
}

// about returns the attributes of a message.
func (l *Loop) about(d *Message) []attribute.KeyValue {
	all := []attribute.KeyValue{
		tracing.Job.String(d.Subject.Job),
		tracing.Lane.Int(d.Subject.Lane),
		tracing.Stage.String(l.Stage),
		tracing.Attempt.Int(d.Attempt),
	}
	if d.Subject.N > 0 {
		all = append(all, tracing.Chunk.Int(d.Subject.K), tracing.Chunks.Int(d.Subject.N))
	}
	return all
}

// Resume has the work on a job that is started again belong to the trace of its stored model.
func (l *Loop) Resume(ctx context.Context, d *Message, model nats.Header) context.Context {
	d.trace = model
	if l.Tracer == nil {
		return ctx
	}
	return l.work(tracing.From(ctx, model), d)
}

// Describe adds attributes to the span of the work on a message.
func (d *Message) Describe(attributes ...attribute.KeyValue) {
	if d.span != nil {
		d.span.SetAttributes(attributes...)
	}
}

// left ends the span of the work on a message.
func (d *Message) left(outcome Outcome, err error) {
	if d.span == nil {
		return
	}
	d.span.SetAttributes(tracing.Outcome.String(outcome.name))
	if outcome == Done || outcome == Held || outcome.name == later {
		err = nil
	}
	if err != nil {
		tracing.Fail(d.span, string(CodeOf(err)))
	}
	d.span.End()
}

// traceID returns the id of the message's trace, if that is recorded.
func (d *Message) traceID() string {
	if d.span == nil {
		return ""
	}
	return tracing.ID(d.span.SpanContext())
}

// within returns ctx with the description and the span of the work on a message.
func (d *Message) within(ctx context.Context) context.Context {
	ctx = withAbout(ctx, d)
	if d.span == nil {
		return ctx
	}
	return trace.ContextWithSpan(ctx, d.span)
}

// carry writes the trace of a message into the headers of one that follows from it.
func (d *Message) carry(h nats.Header) {
	of := d.trace
	if of == nil {
		of = d.Raw.Header
	}
	tracing.Copy(h, of)
	if d.span != nil {
		tracing.Into(h, d.span.SpanContext())
	}
}
