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

// Tracer returns the tracer of a provider, or nil for a nil provider.
func Tracer(p trace.TracerProvider) trace.Tracer {
	if p == nil {
		return nil
	}
	return p.Tracer(Scope)
}

// Root begins a span of p that has no parent in this process. The function that it returns ends the span, with an error
// or nil.
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

// Get returns the first value of a header, or "".
func (h headers) Get(name string) string {
	if values := h[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// Set sets a header to one value.
func (h headers) Set(name, value string) { h[name] = []string{value} }

// Keys returns the names of the headers that name a span.
func (h headers) Keys() []string { return []string{wire.HeaderTraceParent, wire.HeaderTraceState} }

// WithHeaderSpan returns ctx with the span that a message's headers name, if they name one.
func WithHeaderSpan(ctx context.Context, h map[string][]string) context.Context {
	return propagation.TraceContext{}.Extract(ctx, headers(h))
}

// HeaderSpan returns the span that a message's headers name. It is invalid if they name none.
func HeaderSpan(h map[string][]string) trace.SpanContext {
	return trace.SpanContextFromContext(WithHeaderSpan(context.Background(), h))
}

// Copy copies the headers that name a span from one message to another, without reading them.
func Copy(target, source map[string][]string) {
	for _, name := range []string{wire.HeaderTraceParent, wire.HeaderTraceState} {
		if values := source[name]; len(values) > 0 {
			target[name] = values
		}
	}
}

// SetHeaderSpan writes a span into a message's headers, where it replaces the one that is there. If the span is invalid, the
// headers stay.
func SetHeaderSpan(h map[string][]string, span trace.SpanContext) {
	if span.IsValid() {
		delete(h, wire.HeaderTraceState)
		ctx := trace.ContextWithSpanContext(context.Background(), span)
		propagation.TraceContext{}.Inject(ctx, headers(h))
	}
}

// Child begins a span under the one in ctx, with the same recorder. If there is no recorder, it returns ctx and a span
// that does nothing, at the cost of a look into ctx.
func Child(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, noSpan
	}
	return parent.TracerProvider().Tracer(Scope).Start(ctx, name, options...)
}

// noSpan is a span that does nothing.
var noSpan = trace.SpanFromContext(context.Background())

// End ends a span. If err is not nil, the span gets the error's code.
func End(span trace.Span, err error) {
	if err != nil && span.IsRecording() {
		Fail(span, string(fault.CodeOf(err)))
	}
	span.End()
}

// Fail marks a span as failed with an error code. The text of an error may quote a request, so it is left out.
func Fail(span trace.Span, code string) {
	span.SetAttributes(Code.String(code))
	span.SetStatus(codes.Error, code)
}

// ID returns the id of a span's trace if the trace is recorded, and "" otherwise. Metrics show it as an exemplar.
func ID(span trace.SpanContext) string {
	if !span.IsSampled() {
		return ""
	}
	return span.TraceID().String()
}

// RecordWait records a span from since to until, under the span of ctx, in which something waited. Clocks of two machines
// differ: if since is after until, the span has no duration.
func RecordWait(
	ctx context.Context, tracer trace.Tracer, name string, since, until time.Time, attributes ...attribute.KeyValue,
) {
	if since.After(until) {
		since = until
	}
	_, span := tracer.Start(ctx, name, trace.WithTimestamp(since), trace.WithAttributes(attributes...))
	span.End(trace.WithTimestamp(until))
}
