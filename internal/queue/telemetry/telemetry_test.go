package telemetry

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestLoggerLevelAndFormat(t *testing.T) {
	var b bytes.Buffer
	log := Logger(&b, "warn", "json")
	log.Info("quiet")
	log.Warn("loud", "job", "j1")
	if got := b.String(); strings.Contains(got, "quiet") || !strings.Contains(got, `"msg":"loud","job":"j1"`) {
		t.Fatalf("got %s", got)
	}
}

func TestServeMetricsHealthAndReadiness(t *testing.T) {
	registry := prometheus.NewRegistry()
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "btn_test_total", Help: "A test."})
	registry.MustRegister(counter)
	counter.Inc()
	var ready atomic.Bool
	s, err := Serve("127.0.0.1:0", registry, func() error {
		if ready.Load() {
			return nil
		}
		return errors.New("no connection to NATS")
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	get := func(path string) (int, string) {
		resp, err := http.Get(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	if code, body := get("/metrics"); code != 200 || !strings.Contains(body, "btn_test_total 1") {
		t.Errorf("metrics: %d %s", code, body)
	}
	if code, _ := get("/healthz"); code != 200 {
		t.Errorf("healthz: %d", code)
	}
	if code, body := get("/readyz"); code != 503 || !strings.Contains(body, "no connection") {
		t.Errorf("readyz before: %d %s", code, body)
	}
	ready.Store(true)
	if code, _ := get("/readyz"); code != 200 {
		t.Errorf("readyz after: %d", code)
	}
	if _, err := Serve(strings.TrimPrefix(s.URL, "http://"), registry, func() error { return nil }); err == nil {
		t.Error("a taken port was accepted")
	}
}
