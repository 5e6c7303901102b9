package telemetry

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/basetensor/basetensor/internal/queue/redact"
)

// Server serves a process's metrics and health.
type Server struct {
	URL  string
	http *http.Server
	done chan struct{}
}

// Serve listens on addr and serves three pages: /metrics with the metrics of registry, /healthz, which always says ok,
// and /readyz. If ready returns an error, /readyz has the status 503 and the error. Otherwise it has the texts of
// notes. Port 0 picks a free port; the URL of the result has it.
func Serve(addr string, registry prometheus.Gatherer, ready func() error, notes ...func() string) (*Server, error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := ready(); err != nil {
			http.Error(w, redact.Text(err.Error()), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
		for _, note := range notes {
			if text := note(); text != "" {
				fmt.Fprintln(w, text)
			}
		}
	})
	s := &Server{
		URL:  "http://" + listener.Addr().String(),
		http: &http.Server{Handler: mux, ReadHeaderTimeout: 30 * time.Second},
		done: make(chan struct{}),
	}
	go func() {
		defer close(s.done)
		s.http.Serve(listener) // returns when Close is called
	}()
	return s, nil
}

// Close stops serving; requests under way get a second to finish.
func (s *Server) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		s.http.Close()
	}
	<-s.done
}
