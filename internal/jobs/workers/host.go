// Package workers has the four stages as workers on NATS. Each stage is a struct, and a handler of it decodes a
// message, makes one pure call of package stage, and encodes the result.
//
//	reparameterise.go, models.go      model → network
//	request.go, store_for_tenants.go  requests for an immediate answer, and messages of users without the right to store them
//	learn.go, publish_tasks.go        network → plan → tasks
//	contract.go                       task → partial
//	kinds.go, kinds_trusted.go        which processors compute the tasks of a job
//	collect.go, aggregate.go          partials → answer
//	end_jobs.go                       deadlines, cancels and errors end jobs
//	sweep.go, cleanup.go              jobs that came to a halt, and room in the streams
//	host.go, worker.go                what all stages share, and the run of a stage
//	limits.go, memory.go, stored.go   limits of tenants, memory between jobs, what is stored of a job
//
// What handlers have in common, from delivery to acknowledgement, is in package hop.
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
	Lanes       []int   // lanes to serve; empty: all
	Concurrency int     // number of messages that one stage processes at a time; 0: the default of each intake
	Threads     int     // number of threads of one contraction
	Requests    int     // number of requests for an immediate answer that wait at a time
	Memory      int64   // bytes of tables of one message, a cap on the request's limit; 0: the request decides
	ChunkFlops  float64 // operations that learn-worker gives one task, about; 0: some 100 ms of one core
	MemoryLimit int64   // bytes of this process; 0: any number

	Audit      *telemetry.Audit // records models, names and cancellations of tenants and clients; nil: nothing is recorded
	Tenants    *admission.File  // limits of tenants' jobs; nil: there are none
	SweepAfter time.Duration    // the age at which the sweeper looks at a job without answer; negative: never
	hop.Options

	Arithmetic *Arithmetic // of contract-worker, in tests; nil: this processor's
	// Replan changes the settings of learn-worker's plans, in tests; nil: the job's settings.
	Replan func(query.Settings) query.Settings
}

// Served returns the served lanes as text for people.
func (s Settings) Served() string {
	if len(s.Lanes) == 0 {
		return "all"
	}
	return fmt.Sprint(s.Lanes)
}

// Host has the resources that the stages of one process share.
type Host struct {
	Settings
	Bus      *bus.Bus
	Log      *slog.Logger
	Metrics  *metrics.Metrics
	Cache    *cache.Cache
	Tracer   trace.Tracer    // makes spans; nil: nobody records spans
	Redis    bool            // the cache has a Redis, which remembers decompositions
	WorkCtx  context.Context // when it ends, work in progress is given up: some time after StartCtx
	StartCtx context.Context // when it ends, the workers stop and begin nothing new

	planMemo       *cached.Memo                    // nil: no plan is remembered, and answers report the cache as "off"
	everybody      *ownerMemory                    // for jobs of tenants without a cache of their own
	owners         *memo.LRU[string, *ownerMemory] // for jobs of the others, by owner
	memory         *admission.Memory               // the bytes of this process that are free for tables
	storedBlobs    *storedBlobs                    // networks that were found stored a moment ago
	inlineNetworks *inlineNetworks                 // networks of the models that requests carried last
	networks       *decodedBlobs[*btn.Network]     // the networks that were used last
	hasLearner     bool                            // learn-worker runs in this process too, so reparam-worker adds its networks to networks
	plans          *decodedBlobs[[]btn.Assignment] // the plans that were used last
	kinds          *kinds                          // numeric kinds of contract-workers
	hasListener    bool                            // a worker of this process runs kinds.listen and kinds.review
}

// NewHost returns a copy of h with empty caches, ready to make workers.
func NewHost(h Host) *Host {
	if h.Redis {
		h.planMemo = &cached.Memo{Cache: h.Cache}
	}
	h.everybody = h.newMemory("")
	h.owners = &memo.LRU[string, *ownerMemory]{Entries: maxOwners}
	h.storedBlobs = &storedBlobs{Entries: storedEntries}
	h.inlineNetworks = &inlineNetworks{Entries: inlineEntries, Bytes: inlineVariables}
	h.networks = newDecodedBlobs(decodeNetwork)
	h.Processors = fair.New()
	h.memory = admission.NewMemory(h.MemoryLimit)
	h.plans = newDecodedBlobs(message.DecodeAssignments)
	h.kinds = newKinds(h.Bus, h.Log, h.Heartbeat, h.Arithmetic)
	return &h
}

// Worker returns a worker of the stage with a name.
func (h *Host) Worker(name string) (*Worker, error) {
	log := h.Log.With("stage", name)
	worker := &Worker{host: h}
	worker.loop = &hop.Loop{
		Jobs: hop.Jobs{
			Stage:         name,
			Bus:           h.Bus,
			Log:           log,
			Metrics:       h.Metrics,
			Tracer:        h.Tracer,
			WorkCtx:       h.WorkCtx,
			StartCtx:      h.StartCtx,
			ErrorResults:  stage.FailedResults,
			MergeFirst:    stage.ReplaceFailures,
			WritesAnswers: name == query.StageAggregate,
		},
		Options:     h.Options,
		FromClients: name == query.StageReparam,
	}

	switch name {
	case query.StageReparam:
		h.setUpReparam(worker)
	case query.StageLearn:
		h.setUpLearn(worker)
	case query.StageContract:
		h.setUpContract(worker)
	case query.StageAggregate:
		h.setUpAggregate(worker)
	default:
		return nil, fmt.Errorf("pipeline: no stage %q", name)
	}
	worker.background = append(worker.background, worker.announceWorker)

	var feeds []streams.Feed
	for _, intake := range worker.intakes {
		feeds = append(feeds, intake.Feed)
	}
	worker.loop.Mend = streams.NewMender(h.Bus, log, feeds...).Mend
	return worker, nil
}

// addListener makes worker receive the announcements of contract-workers, unless another worker of the process does.
func (h *Host) addListener(worker *Worker) {
	if !h.hasListener {
		h.hasListener = true
		worker.background = append(worker.background, h.kinds.listenForAnnouncements, h.kinds.watchReturns)
	}
}

// spareBytes is the size per stage of a spare heap, an allocation that is never written to. A worker of small models
// lives in a few megabytes. The garbage collector runs whenever the heap has doubled, which would be ten times a second
// and make most of the tail of the latencies. With the spare heap it runs after that much more garbage. A process has
// one spare heap, however often Run is called.
const spareBytes = 64 << 20

// spare is the spare heap of this process, which is kept while it has users.
var spare struct {
	mu    sync.Mutex
	users int // calls of SpareHeap that have not been freed
	heap  []byte
}

// SpareHeap keeps a spare heap for a number of stages until free is called: memory that nobody uses, by which the
// garbage collector of a small process runs less often. It keeps none if the memory limit (GOMEMLIMIT) is below 32
// times the size.
func SpareHeap(stages int) (free func()) {
	spare.mu.Lock()
	defer spare.mu.Unlock()

	spare.users++
	size := stages * spareBytes
	if len(spare.heap) < size && debug.SetMemoryLimit(-1) >= int64(32*size) { // −1 reads the limit and leaves it
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

// storageEvery is the interval at which WatchStorage looks whether a publish or a probe has found that nothing is
// stored.
const storageEvery = 500 * time.Millisecond

// WatchStorage checks whether the server stores messages, also while no worker has any to store. It logs the change
// once in either direction. It returns when ctx ends.
func WatchStorage(ctx context.Context, c *bus.Conn, log *slog.Logger, m *metrics.Metrics) {
	isStalled := false
	lastProbe := time.Now()
	runEvery(ctx, storageEvery, func(isLast bool) {
		if !isLast && time.Since(lastProbe) >= bus.ProbeEvery {
			// The connection remembers the findings of Probe. A server that is away, or not set up, is reported elsewhere.
			_ = c.Probe(ctx)
			_ = c.Synchronize(ctx)
			lastProbe = time.Now()
		}

		err := c.CheckStorage()
		if ctx.Err() != nil || (err != nil) == isStalled {
			return
		}

		isStalled = err != nil
		m.Storage(isStalled)
		if isStalled {
			log.Error("nothing is stored: make room on the disk of nats-server, then restart nats-server", "error", err)
		} else {
			log.Info("the NATS server stores again")
		}
	})
}

// Forged returns a function that counts a forged message and logs it, at most once a minute.
func Forged(log *slog.Logger, m *metrics.Metrics) func(message.Kind, string) {
	var trouble bus.Trouble
	return func(kind message.Kind, subject string) {
		m.Forged(kind)
		trouble.Warn(log, "a message that no worker signed is ignored", "kind", kind, "subject", subject,
			"check", "btn doctor names workers with other --message-keys or --answers-key")
	}
}
