package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/admission"
	"github.com/prometheus/client_golang/prometheus"
)

// TestTooMany: more requests or streams than there may be at one time are refused, with the time to
// wait before the next attempt.
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
	for s.gateway.requests.Used() == 0 {
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
	for s.gateway.requests.Used() > 0 { // a client that went away holds no place
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

// slow sends the beginning of a request whose body does not come.
func (s *service) slow(key string) net.Conn {
	s.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { conn.Close() })
	head := "POST /v1/infer HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer " + key +
		"\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
	if _, err := conn.Write([]byte(head)); err != nil {
		s.Fatal(err)
	}
	return conn
}

// waits waits until something is true of the gateway.
func (s *service) waits(is func() bool) {
	s.Helper()
	for end := time.Now().Add(2 * time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			s.Fatal("it does not become true")
		}
	}
}

// TestSlowBodies: a body that does not come ends the request and frees its bytes.
func TestSlowBodies(t *testing.T) {
	s := start(t, false, func(c *Config) { c.Limits.Transfer = 50 * time.Millisecond })
	answer := make([]byte, 12)
	if _, err := s.slow("").Read(answer); err != nil || string(answer) != "HTTP/1.1 408" {
		t.Errorf("%q, %v", answer, err)
	}
	s.waits(func() bool { return s.gateway.bodies.Used() == 0 })
}

// TestSlowBodiesThatNobodyReads: the refusal comes though the body does not.
func TestSlowBodiesThatNobodyReads(t *testing.T) {
	s := start(t, false, keys(t, "a "+keyA+"\n"))
	answer := make([]byte, 12)
	if _, err := s.slow(keyB).Read(answer); err != nil || string(answer) != "HTTP/1.1 401" {
		t.Errorf("%q, %v", answer, err)
	}
}

// TestBodiesHaveARate: a sender of a byte now and then is refused long before the time for a body is over.
func TestBodiesHaveARate(t *testing.T) {
	s := start(t, false, func(c *Config) { c.Limits.Transfer = time.Hour })
	conn := s.slow("")
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		for every := time.NewTicker(100 * time.Millisecond); ; {
			select {
			case <-every.C:
				conn.Write([]byte(" "))
			case <-ended:
				return
			}
		}
	}()
	answer := make([]byte, 12)
	if _, err := conn.Read(answer); err != nil || string(answer) != "HTTP/1.1 408" {
		t.Errorf("%q, %v", answer, err)
	}
}

// keyA and keyB are keys of two tenants.
const keyA, keyB = "aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb"

// TestSlowBodiesOfOneKey: bodies that do not come hold no place, and the waiting requests of one key hold half of all
// places at most.
func TestSlowBodiesOfOneKey(t *testing.T) {
	s := start(t, false, func(c *Config) {
		keys(t, "a "+keyA+"\nb "+keyB+"\n")(c)
		c.Limits = Limits{Requests: 8, Streams: 4}
	})
	const many = 20
	for range many {
		s.slow(keyA)
	}
	s.waits(func() bool { return s.gateway.bodies.Used() >= many*step })
	for _, key := range []string{keyB, keyA} {
		s.key = key
		want[Submitted](s, 202, "POST", "/v1/infer", `{"job": "j", "async": true, "model": `+rain+`}`)
	}

	for range many {
		go func() {
			r, err := http.NewRequestWithContext(s.Context(), "POST", s.url+"/v1/infer", strings.NewReader(`{"model": `+rain+`}`))
			if err != nil {
				return
			}
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Authorization", "Bearer "+keyA)
			if response, err := http.DefaultClient.Do(r); err == nil {
				response.Body.Close()
			}
		}()
	}
	s.waits(func() bool { return s.gateway.requests.Used() == 4 })
	s.key = keyA
	r := s.ask("GET", "/healthz", "")
	if r.StatusCode != 200 { // needs no key, so takes no place of this one's
		t.Error(r.Status)
	}
	s.refused(429, "as many of one as are left for others", "POST", "/v1/infer", `{"async": true, "model": `+rain+`}`)
	s.key = keyB
	want[Submitted](s, 202, "POST", "/v1/infer", `{"job": "k", "async": true, "model": `+rain+`}`)
	for range 2 {
		s.ask("GET", "/v1/jobs/k/events", "")
	}
	s.refused(429, "too many requests", "GET", "/v1/jobs/k/events", "")
}

// TestRateOfAKey: twice the rate may come at once, then a request is refused with the time to retry; another key is
// served.
func TestRateOfAKey(t *testing.T) {
	s := start(t, false, func(c *Config) {
		keys(t, "a "+keyA+"\nb "+keyB+"\n")(c)
		c.Limits.Rate = 0.01
	})
	s.key = keyA
	want[Status](s, 200, "GET", "/v1/status", "")
	r := s.ask("GET", "/v1/status", "")
	if after, err := strconv.Atoi(r.Header.Get("Retry-After")); r.StatusCode != 429 || err != nil || after < 30 || after > 100 {
		t.Errorf("%s, Retry-After %d, %v", r.Status, after, err)
	}
	s.key = keyB
	want[Status](s, 200, "GET", "/v1/status", "")
}

// TestRates: twice the rate at once, and exactly the rate on the average.
func TestRates(t *testing.T) {
	r := rateLimiter{perSecond: 50}
	now := time.Unix(1e9, 0)
	came := 0
	for range 10_000 { // ten seconds, a millisecond each
		if r.wait("a", now) == 0 {
			came++
		}
		now = now.Add(time.Millisecond)
	}
	if came < 600 || came > 602 {
		t.Errorf("%d came in ten seconds", came)
	}
	for i := range 2 * mostSpent {
		r.wait(strconv.Itoa(i), now)
		now = now.Add(time.Second)
	}
	if len(r.spentUntil) > mostSpent+1 {
		t.Errorf("%d keys are remembered", len(r.spentUntil))
	}
}

// TestManyQueriesInFewBytes: a query takes far more memory than its text, {}, and counts as such.
func TestManyQueriesInFewBytes(t *testing.T) {
	s := start(t, false, func(c *Config) { c.Limits.Body = 1 << 20 })
	queries := func(n int) string {
		return `{"async": true, "model": ` + rain + `, "queries": [{}` + strings.Repeat(",{}", n-1) + `]}`
	}
	want[Submitted](s, 202, "POST", "/v1/infer", queries(1000))
	s.refused(503, "bytes of bodies", "POST", "/v1/infer", queries(300_000))
	if held := s.gateway.bodies.Used(); held != 0 {
		t.Errorf("%d bytes are held", held)
	}
}

// TestModelsLargerThanTheirBodies: a compressed file is bounded as a body is, and the tables of a short CP form as responses are.
func TestModelsLargerThanTheirBodies(t *testing.T) {
	s := start(t, false, func(c *Config) { c.Limits.Body = 1 << 16 })
	s.refused(400, "bytes", "POST", "/v1/models", zipped(t, rain+strings.Repeat(" ", 1<<20)), "Content-Type", "application/gzip")
	var variables, factors, scope, vectors []string
	for v := range 18 {
		variables = append(variables, `{"domain": 2}`)
		scope = append(scope, strconv.Itoa(v))
		vectors = append(vectors, `[[0.1, 0.2]]`)
	}
	for range 16 { // 2^18 numbers each
		factors = append(factors, `{"scope": [`+strings.Join(scope, ", ")+`], "cp": {"weights": [1], "vectors": [`+
			strings.Join(vectors, ", ")+`]}}`)
	}
	m := want[Model](s, 201, "POST", "/v1/models", `{"basetensor_model": 1, "variables": [`+strings.Join(variables, ", ")+
		`], "factors": [`+strings.Join(factors, ", ")+`]}`)
	s.refused(429, "bytes of bodies", "GET", "/v1/models/"+m.Digest+"?format=uai", "")
	want[Graph](s, 200, "GET", "/v1/models/"+m.Digest+"?format=graph", "")
}

// TestLargeEvents count among bodies, as large responses do, until they are taken.
func TestLargeEvents(t *testing.T) {
	s := start(t, false, func(c *Config) { c.Limits.Bodies = 8 << 20 })
	c := &call{gateway: s.gateway, response: httptest.NewRecorder(), request: httptest.NewRequest("GET", "/v1/jobs/j/events", nil)}
	events, err := c.startStream()
	if err != nil {
		t.Fatal(err)
	}
	if err := events.send("answer", strings.Repeat("x", 2<<20)); err != nil || s.gateway.bodies.Used() != 0 {
		t.Errorf("%v, %d bytes are held", err, s.gateway.bodies.Used())
	}
	if err := events.send("answer", strings.Repeat("x", 9<<20)); err == nil || s.gateway.bodies.Used() != 0 {
		t.Errorf("%v, %d bytes are held", err, s.gateway.bodies.Used())
	}
}

// TestPatienceBeyondTransfer: the time for the body of a request does not end the wait for its answer.
func TestPatienceBeyondTransfer(t *testing.T) {
	s := start(t, false, func(c *Config) { c.Limits.Transfer, c.Limits.Patience = 2*time.Second, 10*time.Minute })
	go func() {
		s.waits(func() bool { return s.gateway.requests.Used() == 1 })
		time.Sleep(3 * time.Second)
		s.work()
	}()
	want[Answer](s, 200, "POST", "/v1/infer", `{"model": `+rain+`}`)
}

// TestQuotas: a tenant registers models up to its class's quota, then errors name the quota; other tenants are served.
// Requests have a quota, too.
func TestQuotas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tenants.json")
	text := `{"classes": {"small": {"model_bytes": 4e6, "request_bytes": 3e6}}, "tenants": {"a": "small"}}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	tenants, err := admission.Open(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, false, func(c *Config) {
		keys(t, "a "+keyA+"\nb "+keyB+"\n* cccccccccccccccc\n")(c)
		c.Tenants = tenants
	})
	model := func(k int) string {
		const n = 900 << 10 / 8
		return fmt.Sprintf("MARKOV 1 %d 1 1 0 %d %d%s", n, n, 3+k, strings.Repeat(" 1", n-1))
	}
	for k := range 24 {
		for _, key := range []string{keyB, "cccccccccccccccc"} {
			s.key = key
			want[Model](s, 201, "POST", "/v1/models", model(k))
		}
		s.key = keyA
		if k < 4 {
			want[Model](s, 201, "POST", "/v1/models", model(k))
			continue
		}
		s.refused(413, `exceed 4000000: model_bytes of class "small" is 4000000`, "POST", "/v1/models", model(k))
	}
	for k := range 5 {
		body := fmt.Sprintf(`{"async": true, "text": %q}`, model(k))
		if s.key = keyA; k < 3 {
			want[Submitted](s, 202, "POST", "/v1/infer", body)
		} else {
			s.refused(413, `requests of tenant "a" take`, "POST", "/v1/infer", body)
		}
		s.key = keyB
		want[Submitted](s, 202, "POST", "/v1/infer", body)
	}
}

// TestKeysAreReadAgain: a changed file replaces the keys; a file that cannot be read leaves them.
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
		k.file.Reload()
		got, err := k.Find("Bearer " + key)
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
	for _, file := range []string{"README.md", "docs/reference/http.md"} {
		text, err := os.ReadFile(filepath.Join("../../..", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range command.FindAllStringSubmatch(string(text), -1) {
			run := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(m[1], "http://127.0.0.1:8080", s.url)+" --fail-with-body -s")
			run.Dir = "../../.."
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
