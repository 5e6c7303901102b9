package pipeline

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/basetensor/basetensor/internal/jobs/cache"
	"github.com/basetensor/basetensor/internal/jobs/cached"
	"github.com/basetensor/basetensor/internal/jobs/workers"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/seal"
	"github.com/basetensor/basetensor/internal/queue/tracing"
	"github.com/basetensor/basetensor/pkg/fault"
	"golang.org/x/sync/errgroup"
)

// Run runs one or several stages until ctx ends, then finishes the messages in work and returns
// nil. It returns an error if it cannot start, or if the connection to NATS is closed for good.
// Setup must have been called once before, by anybody.
func Run(ctx context.Context, c Config, stages ...Stage) error {
	c = c.withDefaults()
	if err := c.check(); err != nil {
		return err
	}
	if len(stages) == 0 {
		return errors.New("pipeline: no stage to run")
	}
	nc := c.NC
	if nc == nil {
		var err error
		if nc, _, err = bus.Connect(c.URL, "basetensor-"+string(stages[0]), c.Logger); err != nil {
			return err
		}
		defer nc.Close()
	}

	b, err := bus.New(nc, c.API)
	if err != nil {
		return err
	}
	trust, err := c.trust(stages)
	if err != nil {
		return err
	}
	b.Guard(bus.Guard{
		Trust: trust, Remove: true, RemoveAnswers: slices.Contains(stages, StageAggregate),
		Forged: workers.Forged(&b.Trouble, c.Logger, c.Metrics),
	})

	// in this process only without a Redis
	remember := cache.Options{
		Timeout:  c.RedisTimeout,
		Overflow: cached.Overflow{Bus: b},
		Secrets:  trust.Keys.Secrets,
		Logger:   c.Logger,
	}
	store := cache.On(c.RedisClient, c.Redis, remember)
	if c.RedisClient == nil {
		if store, err = cache.Open(c.Redis, remember); err != nil {
			return err
		}
	}
	defer store.Close()
	c.Metrics.WatchCache(store)
	c.Metrics.Classes(func(tenant string) string { return c.Tenants.Tenants().Class(tenant) })
	// reports at once an error that would else be logged when the first job comes
	defer runBeside(ctx, func(context.Context) { _ = store.Probe(ctx) })()

	watching, unwatch := context.WithCancel(ctx)
	defer runBeside(
		watching, func(ctx context.Context) { workers.WatchStorage(ctx, b, c.Logger, c.Metrics) },
	)()
	defer unwatch()
	defer workers.SpareHeap(len(stages))()

	hard, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	grace := context.AfterFunc(ctx, func() { time.AfterFunc(c.Drain, giveUp) })
	defer grace()
	g, soft := errgroup.WithContext(ctx)

	host := workers.NewHost(workers.Host{
		Settings: c.workers(),
		Bus:      b,
		Log:      c.Logger,
		Metrics:  c.Metrics,
		Tracer:   tracing.Tracer(c.Tracing),
		Cache:    store,
		Redis:    c.Redis != "" || c.RedisClient != nil,
		Hard:     hard,
		Soft:     soft,
	})

	all := make([]*workers.Worker, len(stages))
	ready := make([]func() error, len(stages))
	for i, stage := range stages {
		if all[i], err = host.Worker(string(stage)); err != nil {
			return err
		}
		ready[i] = all[i].Ready
	}
	for _, w := range all {
		g.Go(w.Run)
	}
	c.Metrics.Watch(ready)
	c.Metrics.Server(nc.ConnectedServerVersion)

	err = g.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// trust returns the keys by which stages verify and sign messages.
func (c Config) trust(stages []Stage) (seal.Trust, error) {
	seed := ""
	if slices.Contains(stages, StageAggregate) {
		seed = c.AnswersSeed
		if c.AnswersKey != "" && seed == "" {
			return seal.Trust{}, fault.New(fault.BadInput,
				"pipeline: an aggregator with --answers-key needs --answers-seed: nobody would believe its answers")
		}
	}
	flags := seal.Flags{MessageKeys: c.MessageKeys, AnswersKey: c.AnswersKey}
	return flags.Open(seed, c.Logger)
}

// runBeside runs f in a goroutine. The function that it returns waits for its end.
func runBeside(ctx context.Context, f func(context.Context)) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(ctx)
	}()
	return func() { <-done }
}
