package gateway

// One request, and the rules for all requests.

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/basetensor/basetensor/internal/base/shares"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/fault"
)

// call is one request.
type call struct {
	g      *Gateway
	w      http.ResponseWriter
	r      *http.Request
	route  string // pattern of the path
	who    Key
	text   []byte // the body, of a route that takes one
	held   int64  // bytes of Limits.Bodies
	wrote  bool
	status int

	failed error  // the error that the caller was told
	what   string // the thing changed, in the audit log; "": the one in the path
	model  string // that a job asks about, for the log
	job    Answer // that the response says, for the log
}

// serve answers a request: one without a route gets an error with a reason.
func (g *Gateway) serve(w http.ResponseWriter, r *http.Request) {
	if _, pattern := g.mux.Handler(r); pattern != "" {
		g.mux.ServeHTTP(w, r)
		return
	}
	c := &call{g: g, w: w, r: r, route: "none"}
	c.hurry(headerTime)
	secure(w.Header())
	allowed := g.methods(r)
	if len(allowed) == 0 {
		c.fail(notFound("there is nothing at %.200q: GET /openapi.json lists the paths", r.URL.Path))
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	c.fail(&refusal{status: http.StatusMethodNotAllowed, err: fault.New(
		fault.BadInput, "%w: %s takes %s", errNotAllowed, r.URL.Path, strings.Join(allowed, ", "))})
}

// methods are those that the path of a request takes.
func (g *Gateway) methods(r *http.Request) (all []string) {
	for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
		other := &http.Request{Method: m, URL: r.URL, Host: r.Host}
		if _, pattern := g.mux.Handler(other); pattern != "" {
			all = append(all, m)
		}
	}
	return all
}

// secure sets the headers of every response. The policy lets the page load resources of the gateway
// only, and nothing inline.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "+
		"connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// guarded returns the handler of a route: within the limits, after authorisation, and with an
// answer in every case.
func (g *Gateway) guarded(r route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		c := &call{g: g, w: w, r: req, route: r.Path}
		began := time.Now()
		secure(w.Header())
		c.hurry(headerTime) // also for a body that no handler reads
		defer func() {
			if v := recover(); v != nil {
				g.log.Error("a handler panicked", "route", r.Path, "panic", v, "stack", string(debug.Stack()))
				c.fail(panicked(v))
			}
			c.release()
			took := time.Since(began)
			g.metrics.count(r.Method, r.Path, c.status, took)
			c.record(r, took)
			g.log.Debug("request", "method", r.Method, "route", r.Path, "status", c.status, "took", took)
		}()
		if err := c.admit(r); err != nil {
			c.fail(err)
			return
		}
		free, err := c.place(r)
		if err != nil {
			c.fail(err)
			return
		}
		defer free()
		if err := g.line.away(g.limits.Away); err != nil && r.Stream {
			c.fail(err)
			return
		}
		if !r.Stream {
			ctx, cancel := context.WithTimeout(req.Context(), g.limits.Patience+g.limits.Transfer)
			defer cancel()
			ctx, release := g.whileConnected(ctx)
			defer release()
			c.r = req.WithContext(ctx)
		}
		if err := r.handle(c); err != nil {
			c.fail(err)
		}
	})
}

// place takes a place among the requests under way, or among the streams, and returns the function that gives it back.
// It reads the body first, so that a slow sender holds no place.
func (c *call) place(r route) (free func(), err error) {
	who := c.asker()
	if c.who.sum != (Key{}).sum {
		if wait := c.g.rates.wait(who, time.Now()); wait > 0 {
			return nil, tooMany(wait, "this key may ask %g times a second", c.g.limits.Rate)
		}
	}
	if r.Body {
		if c.text, err = c.body(); err != nil {
			return nil, err
		}
	}
	room := &c.g.requests
	if r.Stream {
		room = &c.g.streams
	}
	if err := c.share(room, 1, "requests at one time"); err != nil {
		return nil, err
	}
	return func() { room.Give(who, 1) }, nil
}

// share takes n of a room, or returns a refusal.
func (c *call) share(room *shares.Room, n int64, what string) error {
	full, share := room.Take(c.asker(), n)
	switch {
	case full:
		return busy("too many %s: there may be %d", what, room.Most)
	case share:
		return tooMany(0, "too many %s from here: there may be %d of all, and as many of one as are left for others", what, room.Most)
	}
	return nil
}

// hurry sets the time limit for the next bytes of the body.
func (c *call) hurry(within time.Duration) {
	if c.r.Body != http.NoBody {
		_ = http.NewResponseController(c.w).SetReadDeadline(time.Now().Add(within)) // a recorder has none
	}
}

// admit identifies the caller, and refuses requests without permission.
func (c *call) admit(r route) error {
	if c.g.config.Keys == nil {
		if err := c.local(); err != nil {
			return err
		}
	} else if !r.Open {
		key, err := c.g.config.Keys.Of(c.r.Header.Get("Authorization"))
		if err != nil {
			return err
		}
		c.who = key
	}
	if own := c.g.config.Connect.Tenant; own != "" {
		if c.who.Tenant != "" && c.who.Tenant != own {
			return refuse(http.StatusForbidden, fault.BadInput, "this gateway serves another tenant")
		}
		c.who.Tenant = own
	}
	if !r.Changes {
		return nil
	}
	if c.who.ReadOnly {
		return refuse(http.StatusForbidden, fault.BadInput, "the key may read only")
	}
	return c.sameOrigin()
}

// local refuses requests under names that anybody may have pointed here: a page of another site
// that a browser on this machine shows could read the responses (DNS rebinding).
func (c *call) local() error {
	host := c.r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(strings.ToLower(host), "[]")
	if host == "localhost" || net.ParseIP(host) != nil || slices.Contains(c.g.config.Hosts, host) {
		return nil
	}
	return refuse(http.StatusMisdirectedRequest, fault.BadInput,
		"without keys the gateway answers under addresses and localhost only, not under %.200q: --host-name allows a name", host)
}

// sameOrigin refuses requests that a browser sends on behalf of another site's page.
func (c *call) sameOrigin() error {
	if site := c.r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return refuse(http.StatusForbidden, fault.BadInput, "a page of another origin may not ask this (Sec-Fetch-Site: %.40s)", site)
	}
	origin := c.r.Header.Get("Origin")
	if origin == "" {
		return nil
	}
	u, err := url.Parse(origin)
	if err != nil || !strings.EqualFold(u.Host, c.r.Host) {
		return refuse(http.StatusForbidden, fault.BadInput, "a page of another origin may not ask this (Origin: %.200s)", origin)
	}
	return nil
}

// client returns the caller's client.
func (c *call) client() (*client.Client, error) {
	if c.who.Tenant == "" {
		return c.g.own, nil
	}
	return c.g.tenants.of(c.g.config.Connect.NC, c.who.Tenant)
}

// largeResponse is the size in bytes from which a response counts among Limits.Bodies.
const largeResponse = 1 << 20

// record writes the change of a request into the audit log, and a line about a job that was asked into the log.
func (c *call) record(r route, took time.Duration) {
	if r.Act != "" {
		c.g.config.Audit.Note(c.identity(), r.Act, cmp.Or(c.what, c.r.PathValue("model"), c.r.PathValue("job")), c.failed)
	}
	if r.Path != inferPath || c.job.Job == "" {
		return
	}
	method, outcome := "none", c.job.Status
	if c.job.Error != nil {
		outcome = string(c.job.Error.Code)
	}
	if len(c.job.Results) > 0 && c.job.Results[0].Method != "" {
		method = string(c.job.Results[0].Method)
	}
	c.g.log.Info("job", "job", c.job.Job, "tenant", cmp.Or(c.job.Tenant, c.who.Tenant), "model", c.model, "outcome", outcome, "method", method,
		"ms", took.Milliseconds())
}

// identity names the caller, without the key.
func (c *call) identity() string {
	who := "everybody"
	if c.who.Tenant != "" {
		who = "tenant " + c.who.Tenant
	}
	if c.who.sum != (Key{}).sum {
		who += fmt.Sprintf(", key sha256:%x…", c.who.sum[:4])
	}
	return who + ", from " + c.r.RemoteAddr
}

// json answers with a value.
func (c *call) json(status int, v any) error {
	switch v := v.(type) {
	case Answer:
		c.job = v
	case Submitted:
		c.job = Answer{Job: v.Job, Status: v.Status}
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fault.Wrap(fault.Internal, err)
	}
	if len(b) > largeResponse { // the client may take it slowly
		if err := c.hold(int64(len(b))); err != nil {
			return err
		}
	}
	c.w.Header().Set("Content-Type", "application/json; charset=utf-8")
	return c.write(status, append(b, '\n'))
}

// write answers with a body, which the client has to take in time.
func (c *call) write(status int, b []byte) error {
	c.status, c.wrote = status, true
	sum := sha256.Sum256(b)
	c.w.Header().Set(contentDigest, contentDigestOf(sum[:]))
	_ = http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(c.g.limits.Transfer)) // a recorder has none
	c.w.WriteHeader(status)
	_, err := c.w.Write(b)
	return err
}
