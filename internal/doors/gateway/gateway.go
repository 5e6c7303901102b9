// Package gateway answers HTTP: JSON in and out by the published schemas, for clients without NATS.
//
// It holds no state that matters: it answers from the streams, and submits jobs through package
// client as any other client does. schemas/openapi.json describes it.
package gateway

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/basetensor/basetensor/internal/base/memo"
	"github.com/basetensor/basetensor/internal/base/shares"
	"github.com/basetensor/basetensor/internal/queue/admission"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/queue/seal"
	"github.com/basetensor/basetensor/internal/queue/telemetry"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
)

// Limits bound the resources of requests. The zero value of a field means its default.
type Limits struct {
	Body int64 // bytes of a body, after decompression as well; default 64 MiB
	// Bodies bounds the bytes of all bodies, and of large responses, that are in memory at one time; default four times Body, and
	// 64 MiB at least.
	Bodies   int64
	Requests int           // requests at one time, with their bodies read, without streams of events; default 256
	Streams  int           // streams of events at one time; default 256
	Rate     float64       // requests of one key a second, twice as many at once; default any number
	Patience time.Duration // how long an answer is waited for; default 1 minute
	Transfer time.Duration // for a body to come, and for a response to be taken; default 1 minute
	Away     time.Duration // how long a request waits while there is no connection to NATS; default 10 s
	Slowest  int64         // least bytes a second of a body, after its first ten seconds; default 16 KiB
}

// slowStart is the time that a body has before its rate counts.
const slowStart = 10 * time.Second

func (l Limits) withDefaults() Limits {
	l.Body = cmp.Or(l.Body, 64<<20)
	if l.Bodies == 0 {
		l.Bodies = max(4*l.Body, 64<<20)
	}
	l.Requests = cmp.Or(l.Requests, 256)
	l.Streams = cmp.Or(l.Streams, 256)
	l.Patience = cmp.Or(l.Patience, time.Minute)
	l.Transfer = cmp.Or(l.Transfer, time.Minute)
	l.Away = cmp.Or(l.Away, 10*time.Second)
	l.Slowest = cmp.Or(l.Slowest, 16<<10)
	return l
}

// Config says how a Gateway is.
type Config struct {
	Connect Connection
	Keys    *Keys           // of the callers; nil: everybody may ask
	Tenants *admission.File // with tenants' quotas of the streams; nil: no quotas
	Hosts   []string        // host names of the gateway that need no keys, beside addresses and localhost
	Limits  Limits
	TLS     *tls.Config // of Serve; nil: HTTP without TLS
	Log     *slog.Logger
	Audit   *telemetry.Audit      // of changes; nil: none
	Metrics prometheus.Registerer // gets the gateway's metrics, unless it is nil
}

// Connection is a connection to NATS and how it is used.
type Connection struct {
	NC     *nats.Conn
	API    string     // prefix of the subjects of JetStream's API, "" for $JS.API
	Tenant string     // whose user the connection is, if it is a tenant's
	Keys   seal.Flags // with keys answers have to be signed
}

// Gateway answers requests. Its methods may be called from any goroutine.
type Gateway struct {
	config   Config
	limits   Limits
	log      *slog.Logger
	bus      *bus.Bus
	line     line
	own      *client.Client
	tenants  *tenants
	known    memo.LRU[string, *factorgraph.Labels] // of registered models
	index    *index
	glances  memo.LRU[string, *Glance]
	kinds    memo.LRU[string, Kind] // of registered models
	board    board
	watcher  watcher
	roll     roll
	metrics  *metrics
	mux      *http.ServeMux
	requests shares.Room
	streams  shares.Room
	bodies   shares.Room // bytes
	rates    rates
	ended    chan struct{} // closed when the gateway ends
}

// New returns a Gateway over a connection, which the caller closes after Close.
func New(c Config) (*Gateway, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	b, err := c.Connect.bus(c.Log)
	if err != nil {
		return nil, err
	}
	t := tenants{options: client.Options{
		Tenant: c.Connect.Tenant, MessageKeys: c.Connect.Keys.MessageKeys, AnswersKey: c.Connect.Keys.AnswersKey, API: c.Connect.API,
	}}
	if c.Tenants != nil && c.Connect.Tenant == "" { // a tenant's user cannot list streams: a worker refuses it
		t.options.Admit = bus.NewQuotas(b.Log, c.Tenants.Quota).Take
	}
	own, err := client.New(c.Connect.NC, t.options)
	if err != nil {
		return nil, err
	}
	l := c.Limits.withDefaults()
	g := &Gateway{
		config: c, limits: l, log: c.Log, bus: b, index: newIndex(b), own: own, tenants: &t, mux: http.NewServeMux(),
		requests: shares.Room{Most: int64(l.Requests)}, streams: shares.Room{Most: int64(l.Streams)}, bodies: shares.Room{Most: l.Bodies},
		rates: rates{second: l.Rate}, ended: make(chan struct{}),
		known:   memo.LRU[string, *factorgraph.Labels]{Entries: mostKnown, Bytes: knownBytes},
		glances: memo.LRU[string, *Glance]{Entries: mostGlances}, kinds: memo.LRU[string, Kind]{Entries: mostGlances},
	}
	g.line.watch(c.Connect.NC)
	g.metrics = newMetrics(c.Metrics, g)
	g.board.nc, g.board.subject = c.Connect.NC, message.Filter(message.KindProgress)
	if own := c.Connect.Tenant; own != "" {
		g.board.subject = wire.ProgressSubject(own + ".*")
	}
	if c.Connect.Tenant == "" { // a tenant may not look at the queues either
		if err := g.roll.listen(c.Connect.NC); err != nil {
			return nil, err
		}
	}
	for _, r := range g.routes() {
		g.mux.Handle(r.Method+" "+r.Path, g.guarded(r))
	}
	return g, nil
}

// bus returns a Bus with the permissions of the connection, to read by.
func (c Connection) bus(log *slog.Logger) (*bus.Bus, error) {
	trust, err := c.Keys.Open("", log)
	if err != nil {
		return nil, err
	}
	return bus.New(c.NC, bus.Options{API: c.API, Tenant: c.Tenant, Guard: bus.Guard{Trust: trust}})
}

// Close ends the streams of events, so that a server can end.
func (g *Gateway) Close() {
	close(g.ended)
	g.board.rest()
	g.roll.rest()
}

// route is one operation.
type route struct {
	Method, Path string
	Changes      bool   // it changes something, or makes workers work
	Body         bool   // it takes one, read before the request takes its place
	Open         bool   // without a key as well
	Stream       bool   // it has no end of its own
	Act          string // its action in the audit log; "": none
	handle       func(*call) error
}

// inferPath is the path of questions.
const inferPath = "/v1/infer"

// routes are all operations. schemas/openapi.json has the same.
func (g *Gateway) routes() []route {
	return []route{
		{Method: "POST", Path: inferPath, Changes: true, Body: true, handle: g.infer},
		{Method: "POST", Path: "/v1/cases", Changes: true, Body: true, handle: g.cases},
		{Method: "GET", Path: "/v1/jobs", handle: g.jobs},
		{Method: "GET", Path: "/v1/jobs/{job}", handle: g.job},
		{Method: "DELETE", Path: "/v1/jobs/{job}", Changes: true, Act: telemetry.ActCancel, handle: g.cancel},
		{Method: "GET", Path: "/v1/jobs/{job}/events", Stream: true, handle: g.events},
		{Method: "GET", Path: "/v1/jobs/{job}/model", handle: g.jobModel},
		{Method: "GET", Path: "/v1/models", handle: g.modelList},
		{Method: "POST", Path: "/v1/models", Changes: true, Body: true, Act: telemetry.ActPut, handle: g.modelPost},
		{Method: "GET", Path: "/v1/models/{model}", handle: g.modelGet},
		{Method: "PUT", Path: "/v1/models/{model}", Changes: true, Body: true, Act: telemetry.ActName, handle: g.modelPut},
		{Method: "DELETE", Path: "/v1/models/{model}", Changes: true, Act: telemetry.ActRemove, handle: g.modelDelete},
		{Method: "POST", Path: "/v1/convert", Changes: true, Body: true, handle: g.convert},
		{Method: "GET", Path: "/v1/status", handle: g.status},
		{Method: "GET", Path: "/v1/dead-letters", handle: g.deadLetters},
		{Method: "POST", Path: "/v1/dead-letters/{job}/replay", Changes: true, Act: telemetry.ActReplay, handle: g.replay},
		{Method: "GET", Path: "/openapi.json", Open: true, handle: g.openAPI},
		{Method: "GET", Path: "/model.schema.json", Open: true, handle: g.schemaFile},
		{Method: "GET", Path: "/result.schema.json", Open: true, handle: g.schemaFile},
		{Method: "GET", Path: "/messages/common.schema.json", Open: true, handle: g.schemaFile},
		{Method: "GET", Path: "/healthz", Open: true, handle: g.healthz},
		{Method: "GET", Path: "/{$}", Open: true, handle: g.page},
		{Method: "GET", Path: "/page/{file}", Open: true, handle: g.page},
	}
}

// Handler returns the handler of all requests.
func (g *Gateway) Handler() http.Handler { return http.HandlerFunc(g.serve) }

// healthz says whether the gateway can reach the streams.
func (g *Gateway) healthz(c *call) error {
	ctx, cancel := context.WithTimeout(c.r.Context(), 5*time.Second)
	defer cancel()
	if s := g.bus.Conn.NC.Status(); s != nats.CONNECTED {
		return infrastructure("the connection to NATS is %v", s)
	}
	for _, name := range []string{bus.StreamModel, bus.StreamAnswer} {
		if _, err := g.bus.Conn.JS.Stream(ctx, name); err != nil {
			return infrastructure("stream %s: %w", name, err)
		}
	}
	return c.json(http.StatusOK, Health{Status: "ok"})
}

// Health is the state of the gateway.
type Health struct {
	Status string `json:"status"`
}

// errNotAllowed: a method that a path does not have.
var errNotAllowed = errors.New("the path does not take this method")
