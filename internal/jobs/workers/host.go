// Package workers has the four stages as workers on NATS, one struct each, whose handlers decode a
// message, make one pure call of package stage, and encode the result. Their common part, from
// delivery to acknowledgement, is in package hop.
package workers

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/base/fair"
	"github.com/basetensor/basetensor/internal/base/memo"
	"github.com/basetensor/basetensor/internal/jobs/cache"
	"github.com/basetensor/basetensor/internal/jobs/cached"
	"github.com/basetensor/basetensor/internal/jobs/hop"
	"github.com/basetensor/basetensor/internal/jobs/metrics"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/queue/admission"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/queue/streams"
	"github.com/basetensor/basetensor/internal/queue/telemetry"
	"github.com/basetensor/basetensor/pkg/query"
	"go.opentelemetry.io/otel/trace"
)

// Settings are the options of the stages of a process. Package service has their defaults.
type Settings struct {
	Lanes       []int   // to serve; empty: all
	Concurrency int     // messages of one stage processed at a time; 0: see intake
	Threads     int     // of one contraction
	Requests    int     // for an immediate answer, that wait at a time
	Memory      int64   // bytes of tables of one message, a cap on the request's own limit; 0: the request decides
	ChunkFlops  float64 // operations that learn-worker gives one task, about; 0: some 100 ms of one core
	MemoryLimit int64   // bytes of this process; 0: any number

	Audit      *telemetry.Audit // of models, names and cancellations of tenants and clients; nil: none
	Tenants    *admission.File  // limits of their jobs; nil: none
	SweepAfter time.Duration    // the age at which a job without answer is looked after; negative: never
	hop.Options

	Arithmetic *Arithmetic // of contract-worker, in tests; nil: this processor's
	// Replan changes the settings of learn-worker's plans, in tests; nil: the job's settings.
	Replan func(query.Settings) query.Settings
}

// Served says which lanes are served, for people.
func (s Settings) Served() string {
	if len(s.Lanes) == 0 {
		return "all"
	}
	return fmt.Sprint(s.Lanes)
}

// Host has the resources that the stages of one process share.
type Host struct {
	Settings
	Bus     *bus.Bus
	Log     *slog.Logger
	Metrics *metrics.Metrics
	Cache   *cache.Cache
	Tracer  trace.Tracer    // makes spans; nil: nobody records any
	Redis   bool            // the cache has a Redis: decompositions are remembered
	Hard    context.Context // ends when the drain is over: work in progress is given up
	Soft    context.Context // ends when the workers shall: nothing new is begun

	plansOf  *cached.Memo             // nil: nothing is remembered, and every decomposition says "off"
	kept     *kept                    // everybody's
	keptBy   *memo.LRU[string, *kept] // of owners
	free     *admission.Memory        // of this process
	blobs    *storedBlobs             // networks that were found stored a moment ago
	inline   *inline                  // networks of the models that requests carried last
	networks *decoded[*btn.Network]
	learns   bool // a worker reads the networks that others of this process make
	plans    *decoded[[]btn.Assignment]
	kinds    *kinds // of contract-workers
	listens  bool   // a worker hears of them
}

// NewHost returns a copy of h with its caches made, ready to make workers.
func NewHost(h Host) *Host {
	if h.Redis {
		h.plansOf = &cached.Memo{Cache: h.Cache}
	}
	h.kept = h.newKept("")
	h.keptBy = &memo.LRU[string, *kept]{Entries: mostKept}
	h.blobs = &storedBlobs{Entries: keepStored}
	h.inline = &inline{Entries: keepInline, Bytes: inlineVariables}
	h.networks = newDecoded(decodeNetwork)
	h.Processors = fair.New()
	h.free = admission.NewMemory(h.MemoryLimit)
	h.plans = newDecoded(message.DecodeAssignments)
	h.kinds = newKinds(h.Bus, h.Log, h.Heartbeat, h.Arithmetic)
	return &h
}

// Worker returns the worker of a stage.
func (h *Host) Worker(name string) (*Worker, error) {
	log := h.Log.With("stage", name)
	w := &Worker{host: h}
	w.loop = &hop.Loop{
		Jobs: hop.Jobs{
			Stage:   name,
			Bus:     h.Bus,
			Log:     log,
			Metrics: h.Metrics,
			Tracer:  h.Tracer,
			Hard:    h.Hard,
			Soft:    h.Soft,
			Results: stage.Failed,
			OrFirst: stage.OrFirst,
			Answers: name == query.StageAggregate,
		},
		Options:     h.Options,
		FromClients: name == query.StageReparam,
	}

	switch name {
	case query.StageReparam:
		h.reparam(w)
	case query.StageLearn:
		h.learn(w)
	case query.StageContract:
		h.contract(w)
	case query.StageAggregate:
		h.aggregate(w)
	default:
		return nil, fmt.Errorf("pipeline: no stage %q", name)
	}
	w.beside = append(w.beside, w.here)

	var feeds []streams.Feed
	for _, in := range w.intakes {
		feeds = append(feeds, in.Feed)
	}
	w.loop.Mend = streams.NewMender(h.Bus, log, feeds...).Mend
	return w, nil
}

// listen has one worker of the process hear of contract-workers.
func (h *Host) listen(w *Worker) {
	if !h.listens {
		h.listens = true
		w.beside = append(w.beside, h.kinds.listen, h.kinds.review)
	}
}

// spareBytes is the size per stage of a heap allocation that is never written to. A worker of small
// models lives in a few megabytes, and the garbage collector, which runs whenever the heap has
// doubled, would run ten times a second; that makes most of the tail of the latencies. With the
// spare heap it runs after that much more garbage. A process has one allocation, however often Run
// is called.
const spareBytes = 64 << 20

// spare is the allocation of this process, kept while anybody uses it.
var spare struct {
	mu    sync.Mutex
	users int
	heap  []byte
}

// SpareHeap keeps a spare heap for a number of stages until the function it returns is called. With
// a memory limit (GOMEMLIMIT) below 32 times its size there is none.
func SpareHeap(stages int) (free func()) {
	spare.mu.Lock()
	defer spare.mu.Unlock()

	spare.users++
	size := stages * spareBytes
	if len(spare.heap) < size && debug.SetMemoryLimit(-1) >= int64(32*size) {
		spare.heap = make([]byte, size)
	}

	return func() {
		spare.mu.Lock()
		defer spare.mu.Unlock()
		if spare.users--; spare.users == 0 {
			spare.heap = nil
		}
	}
}

// storageEvery is the interval at which it is checked whether a publish or a probe has found that
// nothing is stored.
const storageEvery = 500 * time.Millisecond

// WatchStorage checks whether the server stores messages, also while no worker has any to store,
// and logs the change once in either direction. It returns when ctx ends.
func WatchStorage(ctx context.Context, c *bus.Conn, log *slog.Logger, m *metrics.Metrics) {
	stalled := false
	probed := time.Now()
	every(ctx, storageEvery, func(over bool) {
		if !over && time.Since(probed) >= bus.ProbeEvery {
			// The connection remembers the findings of Probe. That a server is away, or not set up, is reported
			// elsewhere.
			_ = c.Probe(ctx)
			_ = c.Synchronize(ctx)
			probed = time.Now()
		}

		err := c.CheckStorage()
		if ctx.Err() != nil || (err != nil) == stalled {
			return
		}

		stalled = err != nil
		m.Storage(stalled)
		if stalled {
			log.Error("nothing is stored: make room on the disk of nats-server, then restart nats-server", "error", err)
		} else {
			log.Info("the NATS server stores again")
		}
	})
}

// Forged returns a function that counts every forged message, and logs them as trouble.
func Forged(log *slog.Logger, m *metrics.Metrics) func(message.Kind, string) {
	var trouble bus.Trouble
	return func(kind message.Kind, subject string) {
		m.Forged(kind)
		trouble.Warn(log, "a message that no worker signed is ignored", "kind", kind, "subject", subject,
			"check", "btn doctor names workers with other --message-keys or --answers-key")
	}
}
