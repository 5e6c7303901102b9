// Package workers has the four stages as workers on NATS, one struct each, whose handlers decode a
// message, make one pure call of package stage, and encode the result. Their common part, from
// delivery to acknowledgement, is in package hop.
package workers

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

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
	"github.com/basetensor/basetensor/internal/queue/pull"
	"github.com/basetensor/basetensor/internal/queue/streams"
	"github.com/basetensor/basetensor/internal/queue/telemetry"
	"github.com/basetensor/basetensor/pkg/query"
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

// reparam gives w the intakes of reparam-worker: models, and those that are to be started again.
func (h *Host) reparam(w *Worker) {
	next := bus.NewRoom(h.Bus.Conn, bus.StreamNetwork, bus.ConsumerNetwork, 4)
	r := &Reparam{trail: trail{w.loop}, host: h, next: next}

	w.intakes = []*intake{
		{
			Feed:   streams.Models,
			Intake: hop.Intake{Handler: r.model, Metered: true},
			pull:   pull.Intake{Prefetch: 2, Slots: 4, Room: next},
		},
		{
			Feed:   streams.Redrives,
			Intake: hop.Intake{Handler: r.redriven},
			pull:   pull.Intake{Prefetch: 1, Slots: 1},
		},
	}

	w.beside = append(w.beside, r.serve)
}

// learn gives w the intake of learn-worker: networks.
func (h *Host) learn(w *Worker) {
	next := bus.NewRoom(h.Bus.Conn, bus.StreamTask, bus.ConsumerTask, 4)
	l := &Learn{Loop: w.loop, host: h, next: next}
	if h.Redis {
		l.rates.Shared = h.Cache
	}
	h.learns = true
	h.listen(w)

	w.intakes = []*intake{
		{
			Feed:   streams.Networks,
			Intake: hop.Intake{Handler: l.network, Metered: true},
			pull:   pull.Intake{Prefetch: 2, Slots: 4, Room: next},
		},
	}
}

// contract gives w the intake of contract-worker: tasks.
func (h *Host) contract(w *Worker) {
	c := &Contract{Loop: w.loop, host: h, checked: memo.LRU[[2]string, bool]{Entries: keepDecoded}}
	h.listen(w)
	h.kinds.contracts = true
	w.beside = append(w.beside, h.kinds.say)

	// Untold: the aggregator reports the progress of contractions.
	w.intakes = []*intake{
		{
			Feed:   streams.Tasks,
			Intake: hop.Intake{Handler: c.task, Untold: true, Tries: c.tries, Metered: true},
			pull:   pull.Intake{Prefetch: 1, Slots: 8, Heavy: heavy, Later: c.later},
		},
	}
}

// aggregate gives w the intakes of aggregator: partials, deadlines, cancels, ends, and with SweepAfter
// the stored models.
func (h *Host) aggregate(w *Worker) {
	a := &Aggregate{sums: &sums{trail: trail{w.loop}, host: h}}
	a.tallies = newTallies(a.sums)
	w.stop = a.tallies.stop

	w.intakes = []*intake{
		{
			Feed:   streams.Partials,
			Intake: hop.Intake{Handler: a.tallies.partial, Metered: true},
			pull:   pull.Intake{Prefetch: short, Slots: 4},
		},
		{
			Feed:   streams.Deadlines,
			Intake: hop.Intake{Handler: a.expired},
			pull:   pull.Intake{Prefetch: short, Slots: 1},
		},
		{
			Feed:   streams.Cancels,
			Intake: hop.Intake{Handler: a.cancelled},
			pull:   pull.Intake{Prefetch: short, Slots: 1},
		},
		{
			Feed:   streams.Ends,
			Intake: hop.Intake{Handler: a.ends},
			pull:   pull.Intake{Prefetch: short, Slots: 1},
		},
	}

	if h.SweepAfter <= 0 {
		return
	}
	a.keeper = &streams.Keeper{
		Bus:        h.Bus,
		Log:        w.loop.Log,
		SweepAfter: h.SweepAfter,
		Tell:       h.Metrics.Rooms,
	}
	w.beside = append(w.beside, a.keeper.Watch, a.tidy, a.stores)
	if h.Metrics != nil {
		backlog := &streams.Backlog{
			Bus:   h.Bus,
			Log:   w.loop.Log,
			Own:   w.loop.Meter.Work,
			Tell:  h.Metrics.Backlog,
			Fills: h.Metrics.Fills,
		}
		w.beside = append(w.beside, backlog.Watch)
	}
	w.intakes = append(w.intakes, &intake{
		Feed:   streams.Sweeps,
		Intake: hop.Intake{Handler: a.sweep, Headers: streams.Sweeps.Headers, Patient: true},
		pull:   pull.Intake{Prefetch: sweepAhead, Slots: 1},
	})
}
