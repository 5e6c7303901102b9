// Package export sends the spans of a process to a receiver of OpenTelemetry. The commands link it; the
// packages that others import do not.
package export

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/basetensor/basetensor/internal/queue/redact"
	"github.com/basetensor/basetensor/internal/queue/telemetry"
	"github.com/basetensor/basetensor/pkg/fault"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// flushWithin bounds how long the end of a process waits for its last spans to be sent.
const flushWithin = 2 * time.Second

// Traces returns a provider that sends spans to the receiver in OpenTelemetry's environment variables, or nil if they
// name none. It speaks OTLP over HTTP, and sends from a goroutine of its own. Spans that cannot be sent are dropped,
// which is logged once. The returned function sends the last spans and ends the provider.
func Traces(
	ctx context.Context, service string, log *slog.Logger,
) (trace.TracerProvider, func(), error) {
	noShutdown := func() {}
	isWanted, err := wantsSpans()
	if err != nil || !isWanted {
		return nil, noShutdown, err
	}

	client, err := newClient()
	if err != nil {
		return nil, noShutdown, fault.New(fault.BadInput, "traces: %w", redact.Error(err))
	}
	exporter, err := otlptrace.New(ctx, client)
	if err != nil {
		return nil, noShutdown, fault.New(fault.BadInput, "traces: %w", redact.Error(err))
	}

	description, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(
			attribute.String("service.name", service), attribute.String("service.version", telemetry.ThisBuild().Version),
		),
		resource.WithFromEnv(), // after the attributes, because the environment wins
	)
	if err != nil {
		return nil, noShutdown, fault.New(fault.BadInput, "traces: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}

	var once sync.Once
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		once.Do(func() {
			log.Warn("traces are lost; this is not said again", "error", err)
		})
	}))
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(description))
	shutdown := func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushWithin)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			otel.Handle(err) // calls the error handler
		}
	}
	return provider, shutdown, nil
}

// wantsSpans reports whether the environment asks for spans. The error says that it asks for an exporter or a protocol
// that this program does not have.
func wantsSpans() (bool, error) {
	// firstSet returns the value and the name of the first variable that is set.
	firstSet := func(names ...string) (value, name string) {
		for _, name := range names {
			if value := os.Getenv(name); value != "" {
				return value, name
			}
		}
		return "", ""
	}

	// Are spans disabled, or is there no receiver?
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return false, nil
	}
	exporter, name := firstSet("OTEL_TRACES_EXPORTER")
	endpoint, _ := firstSet("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
	switch {
	case exporter == "none", exporter == "" && endpoint == "":
		return false, nil
	case exporter != "" && exporter != "otlp":
		return false, fault.New(fault.BadInput, "traces: %s is %q; otlp and none are known", name, exporter)
	}

	protocol, name := firstSet("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
	if protocol != "" && protocol != "http/protobuf" {
		return false, fault.New(
			fault.BadInput, "traces: %s is %q; only http/protobuf is spoken", name, protocol,
		)
	}
	return true, nil
}
