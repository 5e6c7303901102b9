package gateway

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/streams"
	"github.com/basetensor/basetensor/internal/testing/testserver"
)

// TestRequestsWithoutNATS: every request that needs NATS, also one whose answer is waited for, gets 503 and the reason while NATS is away,
// and is answered when it is back.
func TestRequestsWithoutNATS(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a real nats-server")
	}
	server := testserver.NATS(t, testserver.NATSOptions{Config: "../../../deploy/nats-server.conf"})
	nc, _, err := bus.Connect(server.URL, "gateway", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	if err := streams.Setup(t.Context(), nc, streams.Config{}); err != nil {
		t.Fatal(err)
	}
	s := &service{T: t}
	s.gateway, err = New(Config{Connect: Connection{NC: nc}, Limits: Limits{Away: 200 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	web, err := Serve("127.0.0.1:0", s.gateway)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(web.Close)
	s.url = web.URL

	question := `{"model": ` + rain + `, "queries": [{}]}`
	waiting := make(chan *http.Response, 1)
	go func() { waiting <- s.ask("POST", "/v1/infer", question) }() // there are no workers
	for stored := 0; stored == 0; time.Sleep(10 * time.Millisecond) {
		stored = len(want[Jobs](s, http.StatusOK, "GET", "/v1/jobs", "").Jobs)
	}
	server.Stop()

	says := func(failure Failure, reason string) {
		t.Helper()
		if !strings.Contains(failure.Error.Message, reason) {
			t.Errorf("%q, want %q", failure.Error.Message, reason)
		}
	}
	r := <-waiting
	if r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Location") == "" {
		t.Errorf("while it waits: %s, %v", r.Status, r.Header)
	}
	for _, request := range [][3]string{
		{"POST", "/v1/infer", question}, {"GET", "/v1/jobs"}, {"GET", "/v1/jobs/x"}, {"DELETE", "/v1/jobs/x"}, {"GET", "/v1/jobs/x/model"},
		{"GET", "/v1/jobs/x/events"}, {"GET", "/v1/models"}, {"PUT", "/v1/models/rain", rain}, {"DELETE", "/v1/models/rain"},
		{"GET", "/v1/status"}, {"GET", "/v1/dead-letters"}, {"POST", "/v1/dead-letters/x/replay"}, {"GET", "/healthz"},
	} {
		says(want[Failure](s, http.StatusServiceUnavailable, request[0], request[1], request[2]), "the connection to NATS is RECONNECTING")
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	for ok := false; !ok; time.Sleep(10 * time.Millisecond) {
		ok = s.ask("GET", "/v1/jobs", "").StatusCode == http.StatusOK
	}
}
