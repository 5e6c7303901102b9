package export

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/telemetry"
	"github.com/basetensor/basetensor/internal/queue/tracing"
	"github.com/basetensor/basetensor/pkg/fault"
)

// lines counts the logged lines.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Without a word in the environment nothing is recorded; an exporter that it asks for and that does
// not exist is reported.
func TestTracingByEnvironment(t *testing.T) {
	for _, one := range []struct {
		about string
		env   map[string]string
		on    bool
		wrong string // in the error
	}{
		{about: "nothing"},
		{about: "a name only", env: map[string]string{"OTEL_SERVICE_NAME": "x"}},
		{about: "an endpoint", env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, on: true},
		{about: "an endpoint of traces", env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1/x"}, on: true},
		{about: "the default endpoint", env: map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, on: true},
		{about: "none", env: map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}},
		{about: "disabled", env: map[string]string{"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}},
		{about: "another exporter", env: map[string]string{"OTEL_TRACES_EXPORTER": "zipkin"}, wrong: "OTEL_TRACES_EXPORTER"},
		{
			about: "another protocol", wrong: "OTEL_EXPORTER_OTLP_PROTOCOL",
			env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
		},
		{
			about: "attributes that are none", wrong: "OTEL_RESOURCE_ATTRIBUTES",
			env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_RESOURCE_ATTRIBUTES": "a"},
		},
	} {
		t.Run(one.about, func(t *testing.T) {
			for name, value := range one.env {
				t.Setenv(name, value)
			}
			provider, end, err := Traces(t.Context(), "test", slog.New(slog.DiscardHandler))
			defer end()
			if one.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), one.wrong) || fault.CodeOf(err) != fault.BadInput {
					t.Errorf("error %v, want one about %s", err, one.wrong)
				}
				return
			}
			if err != nil || (provider != nil) != one.on {
				t.Errorf("provider %v, error %v", provider, err)
			}
		})
	}
}

// A receiver that refuses everything is said once, without the password that its URL has.
func TestTracingSaysOnce(t *testing.T) {
	var asked atomic.Int32
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusBadRequest)
	}))
	defer receiver.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", strings.Replace(receiver.URL, "//", "//user:hidden@", 1))
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
	var log lines
	provider, end, err := Traces(t.Context(), "test", telemetry.Logger(&log, "info", "text"))
	if err != nil {
		t.Fatal(err)
	}
	for asked.Load() < 3 {
		_, done := tracing.Root(context.Background(), provider, "span")
		done(nil)
		time.Sleep(time.Millisecond)
	}
	end()
	if said := log.String(); strings.Count(said, "\n") != 1 || !strings.Contains(said, "traces are lost") || strings.Contains(said, "hidden") {
		t.Errorf("said %q", said)
	}
}

// A receiver that never answers holds up nobody: spans beyond the buffer are dropped, and the end
// waits for a moment only.
func TestTracingWaitsForNobody(t *testing.T) {
	released := make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-released }))
	defer receiver.Close()
	defer close(released)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.URL)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "16")
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "8")
	provider, end, err := Traces(t.Context(), "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for range 10_000 { // would never come to an end if any waited for the receiver
		_, done := tracing.Root(context.Background(), provider, "span")
		done(nil)
	}
	began := time.Now()
	end()
	if took := time.Since(began); took > 10*flushWithin {
		t.Errorf("the end took %v", took)
	}
}

// BenchmarkTracingOff is the cost of spans where nobody records any: a look into the context.
func BenchmarkTracingOff(b *testing.B) {
	type key struct{}
	ctx := context.WithValue(context.WithValue(context.Background(), key{}, 1), key{}, 2)
	b.ReportAllocs()
	for b.Loop() {
		_, span := tracing.Child(ctx, "cache")
		if span.IsRecording() {
			b.Fatal("recorded")
		}
		span.End()
	}
}
