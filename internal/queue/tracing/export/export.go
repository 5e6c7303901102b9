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

// flushWithin is for how long the end of a process waits for its last spans to be sent.
const flushWithin = 2 * time.Second

// Traces returns a provider that sends spans as OpenTelemetry's environment says: nil where it
// names no endpoint. It speaks OTLP over HTTP, and sends from a goroutine of its own: spans that
// cannot be sent are dropped, which is logged once. The function ends it.
func Traces(
	ctx context.Context, service string, log *slog.Logger,
) (trace.TracerProvider, func(), error) {
	nothing := func() {}
	on, err := traced()
	if err != nil || !on {
		return nil, nothing, err
	}

	client, err := newClient()
	if err != nil {
		return nil, nothing, fault.New(fault.BadInput, "traces: %w", redact.Error(err))
	}
	exporter, err := otlptrace.New(ctx, client)
	if err != nil {
		return nil, nothing, fault.New(fault.BadInput, "traces: %w", redact.Error(err))
	}

	// The environment's description of the service wins.
	build := telemetry.ThisBuild()
	about, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(
			attribute.String("service.name", service), attribute.String("service.version", build.Version),
		),
		resource.WithFromEnv(),
	)
	if err != nil {
		return nil, nothing, fault.New(fault.BadInput, "traces: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}

	var once sync.Once
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		once.Do(func() {
			log.Warn("traces are lost; this is not said again", "error", err)
		})
	}))
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(about))
	return provider, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushWithin)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			otel.Handle(err)
		}
	}, nil
}

// traced reports whether the environment wants spans, and returns an error if it wants them by an
// exporter that does not exist.
func traced() (bool, error) {
	// first returns the value of the first variable that has one.
	first := func(names ...string) (value, name string) {
		for _, name := range names {
			if value := os.Getenv(name); value != "" {
				return value, name
			}
		}
		return "", ""
	}

	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return false, nil
	}
	exporter, name := first("OTEL_TRACES_EXPORTER")
	endpoint, _ := first("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
	switch exporter {
	case "none":
		return false, nil
	case "":
		if endpoint == "" {
			return false, nil
		}
	case "otlp":
	default:
		return false, fault.New(fault.BadInput, "traces: %s is %q; otlp and none are known", name, exporter)
	}

	protocol, name := first("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
	if protocol != "" && protocol != "http/protobuf" {
		return false, fault.New(
			fault.BadInput, "traces: %s is %q; only http/protobuf is spoken", name, protocol,
		)
	}
	return true, nil
}
