package testserver

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// OTLP is a receiver of OpenTelemetry's spans over HTTP, which keeps the spans it is sent.
type OTLP struct {
	URL string

	mu    sync.Mutex
	spans []*otlp.ResourceSpans
	wrong []string
}

// NewOTLP starts a receiver for the time of a test.
func NewOTLP(t testing.TB) *OTLP {
	o := &OTLP{}
	server := httptest.NewServer(o)
	t.Cleanup(server.Close)
	o.URL = server.URL
	return o
}

// ServeHTTP takes one request of an exporter.
func (o *OTLP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var request otlp.TracesData // the same bytes as a request of the service, whose package links gRPC
	if err == nil {
		err = proto.Unmarshal(body, &request)
	}

	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		o.wrong = append(o.wrong, r.URL.Path+" "+r.Header.Get("Content-Type"))
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	o.spans = append(o.spans, request.ResourceSpans...)
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// Received returns the spans that came, with their resources, and the unreadable requests.
func (o *OTLP) Received() (spans []*otlp.ResourceSpans, wrong []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]*otlp.ResourceSpans(nil), o.spans...), append([]string(nil), o.wrong...)
}
