// Package pipeline runs the stages on NATS: Setup makes the streams and consumers once, Run works
// in as many processes as there are.
//
// The promises, for any process that dies at any time: every stored job gets exactly one answer; the
// answer has the same bits for any number of workers; no message's contents bring a worker down.
package pipeline

import (
	"context"
	"log/slog"
	"time"

	"github.com/basetensor/basetensor/internal/jobs/hop"
	"github.com/basetensor/basetensor/internal/jobs/service"
	"github.com/basetensor/basetensor/internal/jobs/workers"
	"github.com/basetensor/basetensor/internal/queue/admission"
	"github.com/basetensor/basetensor/internal/queue/seal"
	"github.com/basetensor/basetensor/internal/queue/streams"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
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

// Streams are the settings of the streams and consumers, which Setup makes. The zero value works.
type Streams struct {
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
	// AckWait is the silence after which a message goes to another worker. It is longer than half a second:
	// so often workers say that they still work. 0: 2 seconds.
	AckWait time.Duration

	API    string       // prefix of the subjects of JetStream's API, default $JS.API: another domain or account has its own
	Logger *slog.Logger // is told of each obstacle that Setup waits for; nil: nobody is
}

// Setup creates the streams and consumers that are missing and brings the others up to date. It may
// be called at any time, by any number of processes. Streams that exist keep their size unless
// Streams.MaxBytes is given. Without it the room is halved from 16 GiB (4 GiB in memory) until the
// server reserves it. Settings below 0, and an AckWait of half a second or less, are bad input.
func Setup(ctx context.Context, nc *nats.Conn, s Streams) error {
	if beat := service.Defaults().Heartbeat; s.AckWait > 0 && s.AckWait <= beat {
		return fault.New(fault.BadInput,
			"pipeline: an acknowledgement wait of %v is too short: workers say every %v that they work", s.AckWait, beat)
	}
	return streams.Setup(ctx, nc, s.config())
}

// config returns the settings of package streams.
func (s Streams) config() streams.Config {
	return streams.Config{
		InMemory:    s.InMemory,
		OneConsumer: s.OneConsumer,
		MaxBytes:    s.MaxBytes,
		Backlog:     s.Backlog,
		Keep:        s.Keep,
		KeepAtLeast: s.KeepAtLeast,
		Replicas:    s.Replicas,
		AckWait:     s.AckWait,
		API:         s.API,
		Log:         s.Logger,
	}
}

// Config are the settings of the workers of one process, which Run starts. The zero value works: NATS on this machine, no cache, all
// lanes.
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
	// threads of one contraction, default 1: more contract workers are better than wider ones
	Threads int
	// bytes of tables of one message, a cap on the request's own limit; 0: the request decides
	Memory int64
	// MemoryLimit bounds the memory of the process, in bytes; 0: no limit. Messages wait until the memory
	// that their plans predict is free. The collector keeps to debug.SetMemoryLimit, which Run leaves alone.
	MemoryLimit int64
	// Tenants is a JSON file of classes of tenants and what their jobs may take and store, which is read
	// again when it changes. Empty: no limits.
	Tenants string

	Logger *slog.Logger // nil: no logs
	// Tracing records OpenTelemetry spans of every job, below the trace that its model names; nil:
	// nothing is recorded, and that trace is passed on.
	Tracing trace.TracerProvider

	// MaxDeliveries is how often a message is tried before its job fails, default 5.
	MaxDeliveries int
	// Ceiling is the longest that one message may be worked on, default 15 minutes. Then its job
	// fails as over budget.
	Ceiling time.Duration
	// Drain bounds Run's wait at its end for messages in work, default 30 seconds. Unfinished ones go to another worker.
	Drain time.Duration
}

// Run runs the named stages, or all four if none is named, until ctx ends, then finishes the messages in work and returns
// nil. It returns an error if it cannot start, or if the connection to NATS is closed for good.
// Setup must have been called once before, by anybody.
func Run(ctx context.Context, c Config, stages ...Stage) error {
	s, err := c.service()
	if err != nil {
		return err
	}
	names := make([]string, len(stages))
	for i, stage := range stages {
		names[i] = string(stage)
	}
	return service.Run(ctx, s, names...)
}

// service returns the settings of package service.
func (c Config) service() (service.Config, error) {
	var tenants *admission.File
	if c.Tenants != "" {
		var err error
		if tenants, err = admission.Open(c.Tenants, c.Logger); err != nil {
			return service.Config{}, err
		}
	}
	return service.Config{
		NC:           c.NC,
		URL:          c.URL,
		API:          c.API,
		Redis:        c.Redis,
		RedisClient:  c.RedisClient,
		RedisTimeout: c.RedisTimeout,
		Flags:        seal.Flags{MessageKeys: c.MessageKeys, AnswersKey: c.AnswersKey},
		AnswersSeed:  c.AnswersSeed,
		Logger:       c.Logger,
		Tracing:      c.Tracing,
		Drain:        c.Drain,
		Settings: workers.Settings{
			Lanes:       c.Lanes,
			Concurrency: c.Concurrency,
			Threads:     c.Threads,
			Memory:      c.Memory,
			MemoryLimit: c.MemoryLimit,
			Tenants:     tenants,
			Options:     hop.Options{MaxDeliveries: c.MaxDeliveries, Ceiling: c.Ceiling},
		},
	}, nil
}
