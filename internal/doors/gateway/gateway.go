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

// withDefaults returns the limits with defaults in place of zeros.
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
	config    Config
	limits    Limits // with defaults
	log       *slog.Logger
	bus       *bus.Bus                              // to read the streams by
	line      natsLine                              // whether the connection to NATS is lost
	ownClient *client.Client                        // with the permissions of the gateway
	tenants   *tenantClients                        // clients with the permissions of single tenants
	labels    memo.LRU[string, *factorgraph.Labels] // the names of registered models, by tenant and digest
	index     *index                                // the list of jobs
	glances   memo.LRU[string, *Glance]             // by job and its messages
	kinds     memo.LRU[string, Kind]                // of registered models, by owner and digest
	board     progressBoard                         // the progress of jobs
	watcher   watcher                               // the backlog
	roll      workerRoll                            // the workers that are there
	metrics   *metrics
	mux       *http.ServeMux
	requests  shares.Room   // the requests under way
	streams   shares.Room   // the streams of events under way
	bodies    shares.Room   // the bytes of bodies and large responses in memory
	rates     rateLimiter   // the requests of each key
	ended     chan struct{} // closed when the gateway ends
}

// New returns a Gateway over a connection, which the caller closes after Close.
func New(config Config) (*Gateway, error) {
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	queue, err := config.Connect.openBus(config.Log)
	if err != nil {
		return nil, err
	}

	tenants := tenantClients{options: config.clientOptions(queue)}
	ownClient, err := client.New(config.Connect.NC, tenants.options)
	if err != nil {
		return nil, err
	}
	limits := config.Limits.withDefaults()
	g := &Gateway{
		config: config, limits: limits, log: config.Log, bus: queue, index: newIndex(queue), ownClient: ownClient, tenants: &tenants,
		requests: shares.Room{Size: int64(limits.Requests)}, streams: shares.Room{Size: int64(limits.Streams)},
		bodies: shares.Room{Size: limits.Bodies}, rates: rateLimiter{perSecond: limits.Rate},
		mux: http.NewServeMux(), ended: make(chan struct{}),
		labels:  memo.LRU[string, *factorgraph.Labels]{Entries: mostKnown, Bytes: knownBytes},
		glances: memo.LRU[string, *Glance]{Entries: mostGlances}, kinds: memo.LRU[string, Kind]{Entries: mostGlances},
	}

	// what it listens to: the state of the connection, the progress of jobs (board), and the workers that are there (roll)
	g.line.watch(config.Connect.NC)
	g.metrics = newMetrics(config.Metrics, g)
	g.board.nc, g.board.subject = config.Connect.NC, message.Filter(message.KindProgress)
	if tenant := config.Connect.Tenant; tenant != "" {
		g.board.subject = wire.ProgressSubject(tenant + ".*")
	}
	if config.Connect.Tenant == "" { // a tenant may not look at the queues either
		if err := g.roll.listen(config.Connect.NC); err != nil {
			return nil, err
		}
	}
	for _, route := range g.routes() {
		g.mux.Handle(route.Method+" "+route.Path, g.guarded(route))
	}
	return g, nil
}

// clientOptions returns the options of the gateway's own client and of those of tenants.
func (c *Config) clientOptions(queue *bus.Bus) client.Options {
	o := client.Options{
		Tenant: c.Connect.Tenant, MessageKeys: c.Connect.Keys.MessageKeys, AnswersKey: c.Connect.Keys.AnswersKey, API: c.Connect.API,
	}
	if c.Tenants != nil && c.Connect.Tenant == "" { // a tenant's user cannot list streams: for it a worker refuses a job over the quota
		o.Admit = bus.NewQuotas(queue.Log, c.Tenants.Quota).Reserve
	}
	return o
}

// openBus returns a Bus with the permissions of the connection, which only reads.
func (c Connection) openBus(log *slog.Logger) (*bus.Bus, error) {
	trust, err := c.Keys.Open("", log)
	if err != nil {
		return nil, err
	}
	return bus.New(c.NC, bus.Options{API: c.API, Tenant: c.Tenant, Guard: bus.Guard{Trust: trust}})
}

// Close ends the streams of events, so that a server can end.
func (g *Gateway) Close() {
	close(g.ended)
	g.board.stop()
	g.roll.stop()
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

// routes returns all operations. schemas/openapi.json has the same.
func (g *Gateway) routes() []route {
	return []route{
		{Method: "POST", Path: inferPath, Changes: true, Body: true, handle: g.postInfer},
		{Method: "POST", Path: "/v1/cases", Changes: true, Body: true, handle: g.postCases},
		{Method: "GET", Path: "/v1/jobs", handle: g.listJobs},
		{Method: "GET", Path: "/v1/jobs/{job}", handle: g.getJob},
		{Method: "DELETE", Path: "/v1/jobs/{job}", Changes: true, Act: telemetry.ActCancel, handle: g.cancelJob},
		{Method: "GET", Path: "/v1/jobs/{job}/events", Stream: true, handle: g.streamEvents},
		{Method: "GET", Path: "/v1/jobs/{job}/model", handle: g.getJobModel},
		{Method: "GET", Path: "/v1/models", handle: g.listModels},
		{Method: "POST", Path: "/v1/models", Changes: true, Body: true, Act: telemetry.ActPut, handle: g.postModel},
		{Method: "GET", Path: "/v1/models/{model}", handle: g.getModel},
		{Method: "PUT", Path: "/v1/models/{model}", Changes: true, Body: true, Act: telemetry.ActName, handle: g.putModel},
		{Method: "DELETE", Path: "/v1/models/{model}", Changes: true, Act: telemetry.ActRemove, handle: g.deleteModel},
		{Method: "POST", Path: "/v1/convert", Changes: true, Body: true, handle: g.convertModel},
		{Method: "GET", Path: "/v1/status", handle: g.getStatus},
		{Method: "GET", Path: "/v1/dead-letters", handle: g.listDeadLetters},
		{Method: "POST", Path: "/v1/dead-letters/{job}/replay", Changes: true, Act: telemetry.ActReplay, handle: g.replayJob},
		{Method: "GET", Path: "/openapi.json", Open: true, handle: g.getOpenAPI},
		{Method: "GET", Path: "/model.schema.json", Open: true, handle: g.getSchema},
		{Method: "GET", Path: "/result.schema.json", Open: true, handle: g.getSchema},
		{Method: "GET", Path: "/messages/common.schema.json", Open: true, handle: g.getSchema},
		{Method: "GET", Path: "/healthz", Open: true, handle: g.getHealth},
		{Method: "GET", Path: "/{$}", Open: true, handle: g.getPage},
		{Method: "GET", Path: "/page/{file}", Open: true, handle: g.getPage},
	}
}

// Handler returns the handler of all requests.
func (g *Gateway) Handler() http.Handler { return http.HandlerFunc(g.serve) }

// getHealth answers with an error if the gateway cannot reach the streams.
func (g *Gateway) getHealth(c *call) error {
	ctx, cancel := context.WithTimeout(c.request.Context(), 5*time.Second)
	defer cancel()
	if s := g.bus.Conn.NC.Status(); s != nats.CONNECTED {
		return infrastructure("the connection to NATS is %v", s)
	}
	for _, name := range []string{bus.StreamModel, bus.StreamAnswer} {
		if _, err := g.bus.Conn.JS.Stream(ctx, name); err != nil {
			return infrastructure("stream %s: %w", name, err)
		}
	}
	return c.writeJSON(http.StatusOK, Health{Status: "ok"})
}

// Health is the state of the gateway.
type Health struct {
	Status string `json:"status"`
}

// errNotAllowed: a method that a path does not have.
var errNotAllowed = errors.New("the path does not take this method")
