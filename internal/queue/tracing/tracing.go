// Package tracing has the service's use of OpenTelemetry: how a trace travels in the headers of
// messages, and how a step of work becomes a span of it. It links the interface only; a caller that
// wants spans hands in a provider that records them.
//
// Spans carry ids, counts, codes and names of this program. No span contains a tenant's data or
// name.
package tracing

import (
	"context"
	"time"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Scope is the name of the instrumentation.
const Scope = "github.com/basetensor/basetensor"

// Attributes of spans.
const (
	Job     = attribute.Key("basetensor.job")
	Lane    = attribute.Key("basetensor.lane")
	Stage   = attribute.Key("basetensor.stage")
	Method  = attribute.Key("basetensor.method")
	Outcome = attribute.Key("basetensor.outcome")
	Attempt = attribute.Key("basetensor.attempt")
	Chunk   = attribute.Key("basetensor.chunk")
	Chunks  = attribute.Key("basetensor.chunks")
	Flops   = attribute.Key("basetensor.flops")
	Kind    = attribute.Key("basetensor.cache.kind")
	Where   = attribute.Key("basetensor.cache.where") // process or redis
	Hit     = attribute.Key("basetensor.cache.hit")
	Code    = attribute.Key("error.type")
)

// Tracer returns the tracer of a provider; nil for none.
func Tracer(p trace.TracerProvider) trace.Tracer {
	if p == nil {
		return nil
	}
	return p.Tracer(Scope)
}

// Root begins a span that is below none of this process. The function it returns ends it.
func Root(ctx context.Context, p trace.TracerProvider, name string) (context.Context, func(error)) {
	tracer := Tracer(p)
	if tracer == nil {
		return ctx, func(error) {}
	}
	ctx, span := tracer.Start(ctx, name)
	return ctx, func(err error) { End(span, err) }
}

// headers are the headers of a message. Their names are written as they are.
type headers map[string][]string

func (h headers) Get(name string) string {
	if v := h[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

func (h headers) Set(name, value string) { h[name] = []string{value} }

func (h headers) Keys() []string { return []string{wire.HeaderTraceParent, wire.HeaderTraceState} }

// From returns ctx with the trace of a message's headers, if they name one.
func From(ctx context.Context, h map[string][]string) context.Context {
	return propagation.TraceContext{}.Extract(ctx, headers(h))
}

// Of returns the span that a message's headers name; invalid if they name none.
func Of(h map[string][]string) trace.SpanContext {
	return trace.SpanContextFromContext(From(context.Background(), h))
}

// Copy copies the trace of a message's headers into others, where it is not read.
func Copy(to, from map[string][]string) {
	for _, name := range []string{wire.HeaderTraceParent, wire.HeaderTraceState} {
		if v := from[name]; len(v) > 0 {
			to[name] = v
		}
	}
}

// Into writes a span into a message's headers, in the place of the one there. An invalid one
// changes nothing.
func Into(h map[string][]string, of trace.SpanContext) {
	if of.IsValid() {
		delete(h, wire.HeaderTraceState)
		ctx := trace.ContextWithSpanContext(context.Background(), of)
		propagation.TraceContext{}.Inject(ctx, headers(h))
	}
}

// Child begins a span under the one of ctx, with the same recorder; without a recorder there is
// none, and costs a look into ctx.
func Child(ctx context.Context, name string, with ...trace.SpanStartOption) (context.Context, trace.Span) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, parentless
	}
	return parent.TracerProvider().Tracer(Scope).Start(ctx, name, with...)
}

// parentless is the span of nobody.
var parentless = trace.SpanFromContext(context.Background())

// End ends a span, with the code of an error unless that is nil.
func End(span trace.Span, err error) {
	if err != nil && span.IsRecording() {
		Fail(span, string(fault.CodeOf(err)))
	}
	span.End()
}

// Fail marks a span as failed. The text of an error may quote a request, so it is left out.
func Fail(span trace.Span, code string) {
	span.SetAttributes(Code.String(code))
	span.SetStatus(codes.Error, code)
}

// ID returns the id of the trace if it is recorded, for exemplars; else "".
func ID(of trace.SpanContext) string {
	if !of.IsSampled() {
		return ""
	}
	return of.TraceID().String()
}

// Waited records that something waited under the span of ctx. Clocks of two machines differ: a wait
// that would have begun after its end has no duration.
func Waited(
	ctx context.Context, tracer trace.Tracer, name string, since, until time.Time, attributes ...attribute.KeyValue,
) {
	if since.After(until) {
		since = until
	}
	_, span := tracer.Start(ctx, name, trace.WithTimestamp(since), trace.WithAttributes(attributes...))
	span.End(trace.WithTimestamp(until))
}
