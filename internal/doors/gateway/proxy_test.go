package gateway

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
)

// signedIn stands in the test for the part of a proxy that knows people: their tenant's key, by their session.
var signedIn = map[string]string{"session-of-ann": "acme-key-0123456789", "session-of-bob": "globex-key-0123456789"}

// proxy is a proxy in front of a gateway, as docs/how-to/oidc.md has it: it lets nobody in without a session, and
// replaces the caller's key by
// their tenant's.
func proxy(t *testing.T, gateway string) string {
	t.Helper()
	target, err := url.Parse(gateway)
	if err != nil {
		t.Fatal(err)
	}
	forward := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		session, err := r.In.Cookie("session")
		if err != nil {
			t.Errorf("it forwards without a session: %v", err)
			return
		}
		r.SetURL(target)
		r.Out.Host = r.In.Host // the gateway compares it with the origin of the page
		r.Out.Header.Set("Authorization", "Bearer "+signedIn[session.Value])
		r.Out.Header.Del("Cookie")
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if session, err := r.Cookie("session"); err != nil || signedIn[session.Value] == "" {
			http.Error(w, "sign in", http.StatusUnauthorized)
			return
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// Behind a proxy that knows people, each sees their tenant's jobs alone, with any key of their own; pages of the proxy's address may
// change things, others may not; events come as they happen.
func TestBehindAProxy(t *testing.T) {
	s := start(t, true, keys(t, "acme acme-key-0123456789\nglobex globex-key-0123456789\n* everybody-key-0123456789\n"))
	s.url = proxy(t, s.url)
	ann, bob := []string{"Cookie", "session=session-of-ann"}, []string{"Cookie", "session=session-of-bob"}
	with := func(who []string, more ...string) []string { return append(more, who...) }

	a := want[Answer](s, http.StatusOK, "POST", "/v1/infer", `{"job": "one", "model": `+rain+`}`, with(ann, "Origin", s.url)...)
	if a.Job != "acme.one" || a.Tenant != "acme" {
		t.Errorf("ann asks as %q: job %s", a.Tenant, a.Job)
	}
	everybody := with(bob, "Authorization", "Bearer everybody-key-0123456789")
	if r := s.ask("GET", "/v1/jobs/acme.one", "", everybody...); r.StatusCode != http.StatusNotFound {
		t.Errorf("bob sees ann's job with a key that he sends himself: %s", r.Status)
	}
	if jobs := want[Jobs](s, http.StatusOK, "GET", "/v1/jobs", "", bob...); len(jobs.Jobs) != 0 {
		t.Errorf("bob lists %+v", jobs.Jobs)
	}
	if r := s.ask("GET", "/v1/jobs", ""); r.StatusCode != http.StatusUnauthorized {
		t.Errorf("nobody lists jobs: %s", r.Status)
	}
	foreign := with(ann, "Origin", "https://elsewhere.example")
	if r := s.ask("DELETE", "/v1/jobs/acme.one", "", foreign...); r.StatusCode != http.StatusForbidden {
		t.Errorf("a page of another site cancels: %s", r.Status)
	}
	events := s.ask("GET", "/v1/jobs/acme.one/events", "", ann...)
	text := make([]byte, 64)
	if n, _ := events.Body.Read(text); !strings.HasPrefix(string(text[:n]), "event: answer") {
		t.Errorf("no event comes through: %q", text[:n])
	}
}
