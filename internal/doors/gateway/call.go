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
	gateway   *Gateway
	response  http.ResponseWriter
	request   *http.Request
	route     string // the pattern of the path
	caller    Key    // the permission of the caller
	body      []byte // the body, if the route takes one
	heldBytes int64  // the bytes of Limits.Bodies that are reserved for this request
	hasBegun  bool   // whether the response has begun
	status    int    // of the response

	failure    error  // the error that the caller was told
	changed    string // what was changed, for the audit log; "": the model or the job in the path
	askedModel string // the model that a job asks about, for the log
	toldJob    Answer // the job that the response tells of, for the log
}

// serve answers a request. If no route takes it, the answer is an error with the reason.
func (g *Gateway) serve(w http.ResponseWriter, r *http.Request) {
	if _, pattern := g.mux.Handler(r); pattern != "" {
		g.mux.ServeHTTP(w, r)
		return
	}
	c := &call{gateway: g, response: w, request: r, route: "none"}
	c.setReadDeadline(headerTime)
	setSecurityHeaders(w.Header())
	allowed := g.methodsOf(r)
	if len(allowed) == 0 {
		c.fail(notFound("there is nothing at %.200q: GET /openapi.json lists the paths", r.URL.Path))
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	c.fail(&refusal{status: http.StatusMethodNotAllowed, err: fault.New(
		fault.BadInput, "%w: %s takes %s", errNotAllowed, r.URL.Path, strings.Join(allowed, ", "))})
}

// methodsOf returns the methods that the path of a request takes.
func (g *Gateway) methodsOf(r *http.Request) (methods []string) {
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
		request := &http.Request{Method: method, URL: r.URL, Host: r.Host}
		if _, pattern := g.mux.Handler(request); pattern != "" {
			methods = append(methods, method)
		}
	}
	return methods
}

// setSecurityHeaders sets the headers of every response. Their policy lets the page load resources of the gateway only,
// and nothing inline.
func setSecurityHeaders(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "+
		"connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// guarded returns the handler of a route. It handles a request only if the caller may ask it and there is room for it,
// and it answers in every case.
func (g *Gateway) guarded(r route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		c := &call{gateway: g, response: w, request: req, route: r.Path}
		start := time.Now()
		setSecurityHeaders(w.Header())
		c.setReadDeadline(headerTime) // also for a body that no handler reads

		// after the request: answer if the handler panicked, and record
		defer func() {
			if v := recover(); v != nil {
				g.log.Error("a handler panicked", "route", r.Path, "panic", v, "stack", string(debug.Stack()))
				c.fail(panicError(v))
			}
			c.releaseBytes()
			duration := time.Since(start)
			g.metrics.countRequest(r.Method, r.Path, c.status, duration)
			c.recordCall(r, duration)
			g.log.Debug("request", "method", r.Method, "route", r.Path, "status", c.status, "took", duration)
		}()

		// before it: may the caller ask this, is there room, and is there a connection?
		if err := c.authorise(r); err != nil {
			c.fail(err)
			return
		}
		giveBack, err := c.takePlace(r)
		if err != nil {
			c.fail(err)
			return
		}
		defer giveBack()
		if err := g.line.checkConnected(g.limits.Away); err != nil && r.Stream { // whileConnected refuses the other requests
			c.fail(err)
			return
		}

		// the request, within a time unless it is a stream
		if !r.Stream {
			ctx, cancel := context.WithTimeout(req.Context(), g.limits.Patience+g.limits.Transfer)
			defer cancel()
			ctx, release := g.whileConnected(ctx)
			defer release()
			c.request = req.WithContext(ctx)
		}
		if err := r.handle(c); err != nil {
			c.fail(err)
		}
	})
}

// takePlace takes one of the places for requests under way, or for streams of events, of which there is a limited number.
// giveBack gives the place back. Before that takePlace counts the request against the rate of its key, and reads the
// body, so that a slow sender holds no place.
func (c *call) takePlace(r route) (giveBack func(), err error) {
	caller := c.callerName()
	if hasKey := c.caller.sum != (Key{}).sum; hasKey {
		if wait := c.gateway.rates.wait(caller, time.Now()); wait > 0 {
			return nil, tooMany(wait, "this key may ask %g times a second", c.gateway.limits.Rate)
		}
	}
	if r.Body {
		if c.body, err = c.readBody(); err != nil {
			return nil, err
		}
	}
	room := &c.gateway.requests
	if r.Stream {
		room = &c.gateway.streams
	}
	if err := c.takeShare(room, 1, "requests at one time"); err != nil {
		return nil, err
	}
	return func() { room.Release(caller, 1) }, nil
}

// takeShare takes n of a room, a quantity that all callers share, such as places or bytes. It returns a refusal if less
// than n is free, or if the caller would hold more than its share. what names the things in the refusal.
func (c *call) takeShare(room *shares.Room, n int64, what string) error {
	isFull, hasShare := room.Take(c.callerName(), n)
	switch {
	case isFull:
		return busy("too many %s: there may be %d", what, room.Size)
	case hasShare:
		return tooMany(0, "too many %s from here: there may be %d of all, and as many of one as are left for others", what, room.Size)
	}
	return nil
}

// setReadDeadline sets the time within which the next bytes of the body have to come.
func (c *call) setReadDeadline(within time.Duration) {
	if c.request.Body != http.NoBody {
		_ = http.NewResponseController(c.response).SetReadDeadline(time.Now().Add(within)) // a recorder has none
	}
}

// authorise identifies the caller, and refuses a request for which they lack the permission.
func (c *call) authorise(r route) error {
	// who is it?
	if c.gateway.config.Keys == nil {
		if err := c.checkHost(); err != nil {
			return err
		}
	} else if !r.Open {
		key, err := c.gateway.config.Keys.Find(c.request.Header.Get("Authorization"))
		if err != nil {
			return err
		}
		c.caller = key
	}
	if servedTenant := c.gateway.config.Connect.Tenant; servedTenant != "" {
		if c.caller.Tenant != "" && c.caller.Tenant != servedTenant {
			return refuse(http.StatusForbidden, fault.BadInput, "this gateway serves another tenant")
		}
		c.caller.Tenant = servedTenant
	}

	// may they change something?
	if !r.Changes {
		return nil
	}
	if c.caller.ReadOnly {
		return refuse(http.StatusForbidden, fault.BadInput, "the key may read only")
	}
	return c.checkOrigin()
}

// checkHost refuses a request to a host name that anybody may have pointed to this machine: a page of another site in a
// browser on this machine could read the responses (DNS rebinding).
func (c *call) checkHost() error {
	host := c.request.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(strings.ToLower(host), "[]")
	if host == "localhost" || net.ParseIP(host) != nil || slices.Contains(c.gateway.config.Hosts, host) {
		return nil
	}
	return refuse(http.StatusMisdirectedRequest, fault.BadInput,
		"without keys the gateway answers under addresses and localhost only, not under %.200q: --host-name allows a name", host)
}

// checkOrigin refuses a request that a browser sends on behalf of another site's page.
func (c *call) checkOrigin() error {
	if site := c.request.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return refuse(http.StatusForbidden, fault.BadInput, "a page of another origin may not ask this (Sec-Fetch-Site: %.40s)", site)
	}
	origin := c.request.Header.Get("Origin")
	if origin == "" {
		return nil
	}
	u, err := url.Parse(origin)
	if err != nil || !strings.EqualFold(u.Host, c.request.Host) {
		return refuse(http.StatusForbidden, fault.BadInput, "a page of another origin may not ask this (Origin: %.200s)", origin)
	}
	return nil
}

// client returns a client with the permissions of the caller.
func (c *call) client() (*client.Client, error) {
	if c.caller.Tenant == "" {
		return c.gateway.ownClient, nil
	}
	return c.gateway.tenants.clientOf(c.gateway.config.Connect.NC, c.caller.Tenant)
}

// largeResponse is the size in bytes from which a response counts among Limits.Bodies.
const largeResponse = 1 << 20

// recordCall records a request after its response: a change (a route with Act) in the audit log, and a question, with the
// job that writeJSON has noted, in the log.
func (c *call) recordCall(r route, took time.Duration) {
	if r.Act != "" {
		c.gateway.config.Audit.Note(c.identity(), r.Act, cmp.Or(c.changed, c.request.PathValue("model"), c.request.PathValue("job")), c.failure)
	}
	isQuestion := r.Path == inferPath && c.toldJob.Job != ""
	if !isQuestion {
		return
	}
	method, outcome := "none", c.toldJob.Status
	if c.toldJob.Error != nil {
		outcome = string(c.toldJob.Error.Code)
	}
	if len(c.toldJob.Results) > 0 && c.toldJob.Results[0].Method != "" {
		method = string(c.toldJob.Results[0].Method)
	}
	c.gateway.log.Info("job", "job", c.toldJob.Job, "tenant", cmp.Or(c.toldJob.Tenant, c.caller.Tenant), "model", c.askedModel,
		"outcome", outcome, "method", method, "ms", took.Milliseconds())
}

// identity names the caller, with the hash of the key in place of the key.
func (c *call) identity() string {
	name := "everybody"
	if c.caller.Tenant != "" {
		name = "tenant " + c.caller.Tenant
	}
	if c.caller.sum != (Key{}).sum {
		name += fmt.Sprintf(", key sha256:%x…", c.caller.sum[:4])
	}
	return name + ", from " + c.request.RemoteAddr
}

// writeJSON answers with a value as JSON. If the value is about a job, it notes that for recordCall.
func (c *call) writeJSON(status int, v any) error {
	switch v := v.(type) {
	case Answer:
		c.toldJob = v
	case Submitted:
		c.toldJob = Answer{Job: v.Job, Status: v.Status}
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fault.Wrap(fault.Internal, err)
	}
	if len(b) > largeResponse { // the client may take it slowly
		if err := c.reserveBytes(int64(len(b))); err != nil {
			return err
		}
	}
	c.response.Header().Set("Content-Type", "application/json; charset=utf-8")
	return c.writeBody(status, append(b, '\n'))
}

// writeBody answers with a status and a body, which the client has to take within Limits.Transfer.
func (c *call) writeBody(status int, b []byte) error {
	c.status, c.hasBegun = status, true
	sum := sha256.Sum256(b)
	c.response.Header().Set(contentDigest, contentDigestOf(sum[:]))
	// The only error is that of tests, whose recorder has no deadline.
	_ = http.NewResponseController(c.response).SetWriteDeadline(time.Now().Add(c.gateway.limits.Transfer))
	c.response.WriteHeader(status)
	_, err := c.response.Write(b)
	return err
}
