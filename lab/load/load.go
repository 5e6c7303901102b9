// Package load puts a pipeline under load and reports its behaviour: jobs of random evidence on a mix of models, arriving
// by a Poisson process or with a fixed number under way, and the outcome of every one of them.
//
// The jobs depend on the configuration and its seed alone: the same jobs in the same sequence at the same intended times,
// at any speed of the answers. Latency counts from the intended
// arrival, so that a generator that falls behind makes the figures worse and not better.
package load

import (
	"cmp"
	"context"
	"math"
	"time"

	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// Target is the pipeline under load; *client.Client is one.
type Target interface {
	// PutModel registers a model and returns its digest.
	PutModel(ctx context.Context, g *wire.Graph) (digest string, err error)
	// Submit stores a job.
	Submit(ctx context.Context, m wire.Request) (digest string, err error)
	// Results calls f, from one goroutine at a time, with every answer from now on whose job is
	// wanted.
	Results(ctx context.Context, wanted func(job string) bool, f func(job string, a *wire.Answer, err error)) (stop func(), err error)
	// Answer looks an answer up.
	Answer(ctx context.Context, job string) (*wire.Answer, error)
}

// Config sets the jobs, their rate, and the duration.
type Config struct {
	Models   []Model // the mix, at least one
	Variants int     // distinct models that each of the mix stands for, default 1: itself
	// Registered names models by digest: each is registered before it is first asked for. Without it
	// every job carries its model.
	Registered bool
	Zipf       float64 // variant k of a model is asked in proportion to 1/(k+1)^Zipf; 0: all alike

	Batch     int  // queries of a job, default 1
	Marginals bool // every query asks for the marginals of all variables as well
	Observed  int  // observations of a query are 0 to so many, evenly; default 5, negative: none

	Tenants  []Tenant // of the jobs; none: without a tenant
	Settings query.Settings
	Deadline time.Duration // of every job, 0: none
	// ChunkFlops is the value of the loaded learn-workers; for Outcome.Measured, which counts tasks.
	ChunkFlops float64

	Rate        float64 // jobs per second, open loop
	Outstanding int     // jobs under way, closed loop; exactly one of Rate and Outstanding is given

	Duration time.Duration // measured, default 10 seconds
	WarmUp   time.Duration // before, not measured
	Drain    time.Duration // waited for answers after the last arrival, default 30 seconds
	Seed     uint64
	Prefix   string // of the jobs' ids, which another run on the same server must not have; default "load"
	// jobs whose answers are kept for Verify, at least so many if there are, spread over the run;
	// negative: all
	Verify int
}

// Tenant is the owner of a share of the jobs.
type Tenant struct {
	Name   string
	Weight float64 // share of the jobs
}

// maxJobs bounds a run: the record of a job takes about 300 bytes.
const maxJobs = 5_000_000

func (c Config) withDefaults() Config {
	c.Variants = cmp.Or(c.Variants, 1)
	c.Batch = cmp.Or(c.Batch, 1)
	c.Observed = cmp.Or(c.Observed, 5)
	c.Duration = cmp.Or(c.Duration, 10*time.Second)
	c.Drain = cmp.Or(c.Drain, 30*time.Second)
	c.Prefix = cmp.Or(c.Prefix, "load")
	if len(c.Tenants) == 0 {
		c.Tenants = []Tenant{{Weight: 1}}
	}
	return c
}

// check refuses configurations that cannot be run. Errors are bad input.
func (c Config) check() error {
	bad := func(format string, args ...any) error { return fault.New(fault.BadInput, "load: "+format, args...) }
	switch {
	case len(c.Models) == 0:
		return bad("no model")
	case c.Variants < 1 || c.Variants > 1_000_000:
		return bad("%d variants, 1 to 1000000 are possible", c.Variants)
	case !(c.Zipf >= 0) || math.IsInf(c.Zipf, 1):
		return bad("zipf exponent %v", c.Zipf)
	case c.Batch < 1 || c.Batch > 100_000:
		return bad("%d queries per job, 1 to 100000 are possible", c.Batch)
	case (c.Rate > 0) == (c.Outstanding > 0) || c.Rate < 0 || c.Outstanding < 0 || math.IsInf(c.Rate, 1) ||
		math.IsNaN(c.Rate):
		return bad("rate %v and %d jobs outstanding: exactly one of them must be above 0", c.Rate, c.Outstanding)
	case c.Duration <= 0 || c.WarmUp < 0 || c.Drain < 0 || c.Deadline < 0:
		return bad("duration %s, warm-up %s, drain %s, deadline %s", c.Duration, c.WarmUp, c.Drain, c.Deadline)
	case c.Rate*(c.Duration+c.WarmUp).Seconds() > maxJobs || c.Outstanding > maxJobs:
		return bad("more than %d jobs", maxJobs)
	case !wire.ValidJob(c.Prefix) || message.Owner(c.Prefix) != "" || len(c.Prefix) > 48:
		return bad("prefix %.80q is not [A-Za-z0-9_-]{1,48}", c.Prefix)
	}

	for _, m := range c.Models {
		if m.Graph == nil || !(m.Weight > 0) || math.IsInf(m.Weight, 1) {
			return bad("model %s has weight %v", m.Name, m.Weight)
		}
		if err := m.Graph.Validate(); err != nil {
			return fault.New(fault.BadInput, "load: model %s: %w", m.Name, err)
		}
	}

	for _, t := range c.Tenants {
		if !(t.Weight > 0) || math.IsInf(t.Weight, 1) {
			return bad("tenant %s has weight %v", t.Name, t.Weight)
		}
	}
	return nil
}
