package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/jobs/hop"
	"github.com/basetensor/basetensor/internal/jobs/metrics"
	"github.com/basetensor/basetensor/internal/queue/telemetry"
	"github.com/basetensor/basetensor/pkg/query"
)

// btn usage adds up the counts of the workers, each of them its part, with the tenant of the most flops first.
func TestUsage(t *testing.T) {
	var urls []string
	for _, count := range []func(*metrics.Metrics){
		func(m *metrics.Metrics) {
			m.Answered(hop.Ended{Tenant: "acme", Bytes: 300})
			m.Answered(hop.Ended{Tenant: "globex", Bytes: 100})
			m.Answered(hop.Ended{})
		},
		func(m *metrics.Metrics) {
			m.Answered(hop.Ended{Tenant: "acme", Bytes: 700})
			m.Worked(query.StageContract, hop.Work{Tenant: "globex", Flops: 3e9, Duration: time.Second})
			m.Worked(query.StageReparam, hop.Work{Tenant: "globex", Bytes: 900, Duration: time.Second})
		},
	} {
		m := metrics.New()
		count(m)
		server, err := telemetry.Serve("127.0.0.1:0", m.Registry(), m.Ready)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(server.Close)
		urls = append(urls, server.URL)
	}
	code, stdout, stderr := command(t, "usage", urls[0], urls[1], urls[0])
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if code != 0 || len(lines) != 4 {
		t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
	}
	for i, want := range []string{"tenant jobs flops bytes", "globex 1 3e+09 1000 B", "acme 2 0 1000 B", "(none) 1 0 0 B"} {
		if have := strings.Join(strings.Fields(lines[i]), " "); have != want {
			t.Errorf("line %d: %q, want %q", i, have, want)
		}
	}
	if code, stdout, _ := command(t, "usage", "--json", strings.TrimPrefix(urls[1], "http://")); code != 0 ||
		!strings.Contains(stdout, `{"tenant":"globex","jobs":0,"flops":3000000000,"bytes":900}`) {
		t.Errorf("exit code %d: %s", code, stdout)
	}
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "up 1\n") }))
	defer other.Close()
	if code, _, stderr := command(t, "usage", other.URL); code != 3 || !strings.Contains(stderr, "--http of a worker") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
