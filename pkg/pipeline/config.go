// Package pipeline runs the stages on NATS: Setup makes the streams and consumers once, Run works
// in as many processes as there are.
//
// The promises, for any process that dies at any time: every stored job gets exactly one answer; the
// answer has the same bits for any number of workers; no message's contents bring a worker down.
package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/basetensor/basetensor/internal/jobs/hop"
	"github.com/basetensor/basetensor/internal/jobs/metrics"
	"github.com/basetensor/basetensor/internal/jobs/workers"
	"github.com/basetensor/basetensor/internal/queue/admission"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/queue/streams"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/trace"
)

// Stage is one of the four workers, by its name in errors, logs, timings, progress and dead
// letters.
type Stage string

// The stages, in the order a job passes them.
const (
	StageReparam  Stage = query.StageReparam  // model → network
	StageLearn    Stage = query.StageLearn    // network → decompositions, tasks
	StageContract Stage = query.StageContract // task → values of its components
	// values → the answer; also cancels, deadlines and the sweeper
	StageAggregate Stage = query.StageAggregate
)

// Stages returns all four.
func Stages() []Stage { return []Stage{StageReparam, StageLearn, StageContract, StageAggregate} }

// Config configures Setup and Run. The zero value works: NATS on this machine, no cache, all lanes.
type Config struct {
	// connection to use; nil: Run connects to URL and closes the connection at its end
	NC    *nats.Conn
	URL   string // of NATS, default nats://127.0.0.1:4222
	API   string // prefix of the subjects of JetStream's API, default $JS.API: another domain or account has its own
	Redis string // URL of the cache; empty: none, every job learns its decompositions
	// RedisClient is the cache's connection, for a Redis that needs more settings than a URL holds. Run
	// closes it. Logs call it Redis. Do sends a command, within RedisTimeout, and returns the
	// answer: a string, an int64, or nil where there is nothing. An error that Redis answers, as
	// opposed to a failure to reach it, has a method RedisError(). With github.com/redis/go-redis, Do
	// is the Result of the client's Do, with redis.Nil taken for nil.
	RedisClient interface {
		Do(ctx context.Context, command ...any) (any, error)
		Close() error
	}
	// RedisTimeout is the longest that one call to Redis may take, connecting included; 0: 100 ms.
	RedisTimeout time.Duration

	// MessageKeys is a file of keys that sign the workers' messages to each other, and the answers; it is
	// read again when it changes. Empty: nothing is signed, and everything is believed.
	MessageKeys string
	// AnswersKey has the public keys of aggregators, with commas, or names a file of them: answers that
	// none of them signed are not believed. Empty: MessageKeys verifies answers, too.
	AnswersKey string
	// AnswersSeed is a file with the seed by which this aggregator signs its answers; it is read again
	// when it changes. An aggregator with AnswersKey needs it.
	AnswersSeed string

	Lanes []int // lanes to serve, not with OneConsumer; empty: all of them
	// messages of one stage processed at a time; 0: 4, for contract 8 with one large among them, or as many as there are
	// processors if those are more
	Concurrency int
	// OverflowAt has contract take the tasks of a lane only while so many wait, or nobody else takes them; 0: always
	OverflowAt int
	// threads of one contraction, default 1: more contract workers are better than wider ones
	Threads int
	// requests for an immediate answer that wait at a time in this process, default 1024
	Requests int
	// bytes of tables of one message, a cap on the request's own limit; 0: the request decides
	Memory int64

	// ChunkFlops is the approximate number of operations that learn-worker gives one task; 0: some 100 ms
	// of one core. All learn-workers must have the same: a job that two of them cut differently is
	// contracted twice.
	ChunkFlops float64

	// MemoryLimit bounds the memory of the process, in bytes; 0: no limit. Messages wait until the memory
	// that their plans predict is free. The collector keeps to debug.SetMemoryLimit, which Run leaves alone.
	MemoryLimit int64

	// Tenants holds the limits of jobs, for the commands of this module; nil: no limits.
	Tenants *admission.File

	Logger  *slog.Logger     // nil: no logs
	Metrics *metrics.Metrics // for the commands of this module; nil: not counted

	// Tracing records OpenTelemetry spans of every job, below the trace that its model names; nil:
	// nothing is recorded, and that trace is passed on.
	Tracing trace.TracerProvider

	// MaxDeliveries is how often a message is tried before its job fails, default 5.
	MaxDeliveries int
	// Ceiling is the longest that one message may be worked on, default 15 minutes. Then its job
	// fails as over budget.
	Ceiling time.Duration
	// Overdue is how long a handler may go on after its context ended (ceiling, cancel, deadline,
	// drain), default 10 seconds. Then it is given up: its message becomes a dead letter, its job
	// an error, its slot is free, its goroutine is lost.
	Overdue time.Duration
	// Hung, if set, is called for handlers that were given up. A worker process ends itself then; a library must not.
	Hung func(error)
	// Drain bounds Run's wait at its end for messages in work, default 30 seconds. Unfinished ones go to another worker.
	Drain time.Duration
	// Heartbeat is how often a worker says that it still works, and looks whether its job is over;
	// default half a second.
	Heartbeat time.Duration
	// SweepAfter is the age at which a job without answer is looked after, default 5 seconds;
	// negative: never.
	SweepAfter time.Duration

	// Only Setup reads the following fields.

	// InMemory keeps streams in the server's memory instead of files.
	InMemory bool
	// OneConsumer makes one consumer over all lanes of a kind instead of one per lane: tenants are
	// served in the order in which their jobs came, and no worker can serve some lanes only.
	OneConsumer bool
	// MaxBytes is the room for all streams together. 0: the server's limit, at most 16 GiB in files and 4
	// GiB in memory; streams that exist keep theirs.
	MaxBytes int64
	// Backlog bounds the jobs of one lane that wait before the first stage; further ones are refused at the
	// publisher. Before the next two stages a quarter as many messages of a lane may wait; then the stage
	// before lets the lane rest. 0: as set up before, or 4096.
	Backlog int
	// Keep is the longest time that models and answers are kept. It bounds the longest deadline. 0: as set
	// up before, or 24 hours.
	Keep time.Duration
	// KeepAtLeast is the shortest time that answers are kept: the oldest go earlier than Keep when room is
	// needed, and new jobs are refused rather than an answer of less than this age is lost. 0: as set up
	// before, or a minute.
	KeepAtLeast time.Duration
	// Replicas of every stream. 0: as set up before, or 1. More need a cluster of as many servers.
	Replicas int
	// AckWait is the silence after which a message goes to another worker, default 2 seconds. Heartbeat
	// must be well below.
	AckWait time.Duration

	// hook is called before a stage works on a message; tests make it panic, block or count.
	hook func(Stage, message.Subject)
	// arithmetic stands for another processor's, in tests
	arithmetic *workers.Arithmetic
	// replan changes the settings of learn-worker's plans, in tests
	replan func(query.Settings) query.Settings
}

func (c Config) withDefaults() Config {
	c.URL = cmp.Or(c.URL, nats.DefaultURL)
	c.Threads = cmp.Or(c.Threads, 1)
	c.Requests = cmp.Or(c.Requests, 1024)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.MaxDeliveries = cmp.Or(c.MaxDeliveries, 5)
	for _, d := range []struct {
		value *time.Duration
		def   time.Duration
	}{
		{
			&c.Ceiling, 15 * time.Minute}, {&c.Drain, 30 * time.Second}, {&c.Overdue,
			10 * time.Second}, {&c.Heartbeat, 500 * time.Millisecond},
		{&c.SweepAfter, 5 * time.Second}, {&c.AckWait, 2 * time.Second},
	} {
		if *d.value == 0 {
			*d.value = d.def
		}
	}
	return c
}

// streams returns the settings of c that Setup reads.
func (c Config) streams() streams.Config {
	return streams.Config{
		InMemory:    c.InMemory,
		OneConsumer: c.OneConsumer,
		MaxBytes:    c.MaxBytes,
		API:         c.API,
		Backlog:     c.Backlog,
		Keep:        c.Keep,
		KeepAtLeast: c.KeepAtLeast,
		Replicas:    c.Replicas,
		AckWait:     c.AckWait,
		Log:         c.Logger,
	}
}

// Setup creates the streams and consumers that are missing and brings the others up to date. It may
// be called at any time, by any number of processes. Streams that exist keep their size unless
// Config.MaxBytes is given. Without it the room is halved from 16 GiB (4 GiB in memory) until the
// server reserves it.
func Setup(ctx context.Context, nc *nats.Conn, c Config) error {
	c = c.withDefaults()
	if err := c.check(); err != nil {
		return err
	}
	return streams.Setup(ctx, nc, c.streams())
}

// workers returns the settings of c that Run reads for the stages.
func (c Config) workers() workers.Settings {
	s := workers.Settings{
		Lanes:       c.Lanes,
		Concurrency: c.Concurrency,
		OverflowAt:  c.OverflowAt,
		Threads:     c.Threads,
		Requests:    c.Requests,
		Memory:      c.Memory,
		ChunkFlops:  c.ChunkFlops,
		Tenants:     c.Tenants,
		MemoryLimit: c.MemoryLimit,
		SweepAfter:  c.SweepAfter,
		Arithmetic:  c.arithmetic,
		Replan:      c.replan,
		Hop: hop.Options{
			MaxDeliveries: c.MaxDeliveries,
			Ceiling:       c.Ceiling,
			Overdue:       c.Overdue,
			Heartbeat:     c.Heartbeat,
		},
	}
	if c.Hung != nil {
		s.Hop.Hung = func(e *hop.HungError) { c.Hung(e) }
	}
	if c.hook != nil {
		s.Hop.Hook = func(stage string, subject message.Subject) { c.hook(Stage(stage), subject) }
	}
	return s
}

func (c Config) check() error {
	for _, lane := range c.Lanes {
		if lane < 0 || lane >= wire.Lanes {
			return fmt.Errorf("pipeline: lane %d: lanes are 0 to %d", lane, wire.Lanes-1)
		}
	}
	for what, value := range map[string]float64{
		"ceiling":              float64(c.Ceiling),
		"overdue":              float64(c.Overdue),
		"drain":                float64(c.Drain),
		"heartbeat":            float64(c.Heartbeat),
		"acknowledgement wait": float64(c.AckWait),
		"time to keep":         float64(c.Keep),
		"least time to keep":   float64(c.KeepAtLeast),
		"replicas":             float64(c.Replicas),
		"concurrency":          float64(c.Concurrency),
		"overflow":             float64(c.OverflowAt),
		"threads":              float64(c.Threads),
		"memory":               float64(c.Memory),
		"limit of memory":      float64(c.MemoryLimit),
		"room":                 float64(c.MaxBytes),
		"deliveries":           float64(c.MaxDeliveries),
		"requests":             float64(c.Requests),
		"backlog":              float64(c.Backlog),
		"operations of a task": c.ChunkFlops,
	} {
		if !(value >= 0) {
			return fault.New(fault.BadInput, "pipeline: %s is negative", what)
		}
	}
	return nil
}

// WithHook returns c with a function that is called before a stage works on a message, for tests.
func (c Config) WithHook(hook func(Stage, message.Subject)) Config {
	c.hook = hook
	return c
}
