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

// OTLP is an HTTP server that receives OpenTelemetry spans and keeps them.
type OTLP struct {
	URL string

	mu         sync.Mutex
	spans      []*otlp.ResourceSpans
	unreadable []string // path and content type of requests that were refused
}

// NewOTLP starts a receiver of spans, which ends with the test.
func NewOTLP(t testing.TB) *OTLP {
	o := &OTLP{}
	server := httptest.NewServer(o)
	t.Cleanup(server.Close)
	o.URL = server.URL
	return o
}

// ServeHTTP keeps the spans of one request of an exporter, and refuses a request of another path, type or encoding.
func (o *OTLP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var request otlp.TracesData // the same bytes as a request of the service, whose package links gRPC
	if err == nil {
		err = proto.Unmarshal(body, &request)
	}

	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		o.unreadable = append(o.unreadable, r.URL.Path+" "+r.Header.Get("Content-Type"))
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	o.spans = append(o.spans, request.ResourceSpans...)
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// Received returns the spans that were received so far, with their resources, and the requests that were refused as "PATH TYPE".
func (o *OTLP) Received() (spans []*otlp.ResourceSpans, unreadable []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]*otlp.ResourceSpans(nil), o.spans...), append([]string(nil), o.unreadable...)
}
