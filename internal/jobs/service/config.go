// Package service runs the stages in a process: for the commands, and for importers of pkg/pipeline, which see less of
// its settings.
package service

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/basetensor/basetensor/internal/jobs/cache"
	"github.com/basetensor/basetensor/internal/jobs/hop"
	"github.com/basetensor/basetensor/internal/jobs/metrics"
	"github.com/basetensor/basetensor/internal/jobs/workers"
	"github.com/basetensor/basetensor/internal/queue/connect"
	"github.com/basetensor/basetensor/internal/queue/seal"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/trace"
)

// Config is what the workers of a process need. A zero duration or number stands for its value in Defaults.
type Config struct {
	workers.Settings

	NC  *nats.Conn // nil: Run connects to URL, and closes the connection at its end
	URL string
	API string // prefix of the subjects of JetStream's API; "": the one of URL's server, else $JS.API

	Redis        string      // URL of the cache; "": none
	RedisClient  cache.Redis // its connection, which Run closes; nil: one to Redis
	RedisTimeout time.Duration

	seal.Flags
	AnswersSeed string // file of the seeds that sign answers

	Logger  *slog.Logger     // nil: no logs
	Metrics *metrics.Metrics // nil: not counted
	Tracing trace.TracerProvider
	Drain   time.Duration // the longest wait at the end for messages in work
}

// Defaults returns the settings of workers that are given none.
func Defaults() Config {
	return Config{
		URL:          nats.DefaultURL,
		RedisTimeout: connect.RedisTimeout,
		Drain:        30 * time.Second,
		Settings: workers.Settings{
			Threads:    1,
			Requests:   1024,
			SweepAfter: 5 * time.Second,
			Options: hop.Options{
				MaxDeliveries: 5, Ceiling: 15 * time.Minute, Overdue: 10 * time.Second, Heartbeat: 500 * time.Millisecond,
			},
		},
	}
}

// withDefaults returns c with Defaults in the place of zeros.
func (c Config) withDefaults() Config {
	d := Defaults()
	c.URL = cmp.Or(c.URL, d.URL)
	c.RedisTimeout = cmp.Or(c.RedisTimeout, d.RedisTimeout)
	c.Drain = cmp.Or(c.Drain, d.Drain)
	c.Threads = cmp.Or(c.Threads, d.Threads)
	c.Requests = cmp.Or(c.Requests, d.Requests)
	c.SweepAfter = cmp.Or(c.SweepAfter, d.SweepAfter)
	c.MaxDeliveries = cmp.Or(c.MaxDeliveries, d.MaxDeliveries)
	c.Ceiling = cmp.Or(c.Ceiling, d.Ceiling)
	c.Overdue = cmp.Or(c.Overdue, d.Overdue)
	c.Heartbeat = cmp.Or(c.Heartbeat, d.Heartbeat)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// check returns an error for lanes that do not exist, and for settings below 0.
func (c Config) check() error {
	for _, lane := range c.Lanes {
		if lane < 0 || lane >= wire.Lanes {
			return fault.New(fault.BadInput, "pipeline: lane %d: lanes are 0 to %d", lane, wire.Lanes-1)
		}
	}
	for what, value := range map[string]float64{
		"ceiling":              float64(c.Ceiling),
		"overdue":              float64(c.Overdue),
		"drain":                float64(c.Drain),
		"heartbeat":            float64(c.Heartbeat),
		"timeout of Redis":     float64(c.RedisTimeout),
		"concurrency":          float64(c.Concurrency),
		"threads":              float64(c.Threads),
		"memory":               float64(c.Memory),
		"limit of memory":      float64(c.MemoryLimit),
		"requests":             float64(c.Requests),
		"deliveries":           float64(c.MaxDeliveries),
		"operations of a task": c.ChunkFlops,
	} {
		if !(value >= 0) { // or NaN
			return fault.New(fault.BadInput, "pipeline: %s is negative", what)
		}
	}
	return nil
}
