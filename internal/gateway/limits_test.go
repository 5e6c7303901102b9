package gateway

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// TestTooMany: more requests or streams than there may be at one time are refused, and told when to come again.
func TestTooMany(t *testing.T) {
	registry := prometheus.NewRegistry()
	s := start(t, false, func(c *Config) {
		c.Limits = Limits{Requests: 1, Streams: 1, Patience: time.Minute}
		c.Metrics = registry
	})
	want[Submitted](s, 202, "POST", "/v1/infer", `{"job": "j", "async": true, "model": `+rain+`}`)
	if r := s.ask("GET", "/v1/jobs/j/events", ""); r.StatusCode != 200 {
		t.Fatal(r.Status)
	}
	s.refused(503, "too many", "GET", "/v1/jobs/j/events", "")

	ctx, stop := context.WithCancel(t.Context())
	waits := make(chan error, 1)
	go func() {
		r, err := http.NewRequestWithContext(ctx, "POST", s.url+"/v1/infer", strings.NewReader(`{"model": `+rain+`}`))
		if err == nil {
			r.Header.Set("Content-Type", "application/json")
			_, err = http.DefaultClient.Do(r)
		}
		waits <- err
	}()
	for len(s.gateway.requests) == 0 {
		time.Sleep(time.Millisecond)
	}
	r := s.ask("GET", "/v1/jobs", "")
	if r.StatusCode != 503 || r.Header.Get("Retry-After") != "1" {
		t.Errorf("%s, Retry-After %q", r.Status, r.Header.Get("Retry-After"))
	}
	stop()
	if err := <-waits; err == nil {
		t.Error("the request had an answer")
	}
	for len(s.gateway.requests) > 0 { // who goes away holds nothing
		time.Sleep(time.Millisecond)
	}
	want[Health](s, 200, "GET", "/healthz", "")
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counted := 0
	for _, f := range families {
		if f.GetName() == "basetensor_http_request_seconds" {
			counted = len(f.GetMetric())
		}
	}
	if counted < 4 {
		t.Errorf("%d kinds of requests were counted", counted)
	}
}

// TestSlowBodies: a body that does not come ends the request, and what it held is free.
func TestSlowBodies(t *testing.T) {
	s := start(t, false, func(c *Config) { c.Limits.Transfer = 50 * time.Millisecond })
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	head := "POST /v1/infer HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
	if _, err := conn.Write([]byte(head)); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 12)
	if _, err := conn.Read(answer); err != nil || string(answer) != "HTTP/1.1 408" {
		t.Errorf("%q, %v", answer, err)
	}
	for !s.gateway.bodies.TryAcquire(s.gateway.limits.Bodies) {
		time.Sleep(time.Millisecond)
	}
}

// TestKeysAreReadAgain: those of a file that changed; a file that cannot be read leaves them.
func TestKeysAreReadAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a 0123456789abcdef\n")
	k, err := OpenKeys(file, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	is := func(key, tenant string) {
		t.Helper()
		k.looked = time.Time{}
		got, err := k.Of("Bearer " + key)
		if (err == nil) != (tenant != "") || got.Tenant != tenant {
			t.Errorf("%+v, %v, want tenant %q", got, err, tenant)
		}
	}
	is("0123456789abcdef", "a")
	write("b fedcba9876543210 # another\n")
	is("0123456789abcdef", "")
	is("fedcba9876543210", "b")
	write("b\n")
	is("fedcba9876543210", "b")
}

// TestDocumentedRequests: every curl command of the documents has an answer.
func TestDocumentedRequests(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("there is no curl here")
	}
	s := start(t, true, nil)
	command := regexp.MustCompile(`(?m)^    (curl .*)$`)
	ran := 0
	for _, file := range []string{"README.md", "docs/operating.md"} {
		text, err := os.ReadFile(filepath.Join("../..", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range command.FindAllStringSubmatch(string(text), -1) {
			run := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(m[1], "http://127.0.0.1:8080", s.url)+" --fail-with-body -s")
			run.Dir = "../.."
			if out, err := run.CombinedOutput(); err != nil || !strings.Contains(string(out), `"status":"ok"`) {
				t.Errorf("%s: %s: %v: %s", file, m[1], err, out)
			}
			ran++
		}
	}
	if ran < 2 {
		t.Errorf("%d commands were found", ran)
	}
}
