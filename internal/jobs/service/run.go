package service

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/jobs/cache"
	"github.com/basetensor/basetensor/internal/jobs/cached"
	"github.com/basetensor/basetensor/internal/jobs/workers"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/seal"
	"github.com/basetensor/basetensor/internal/queue/tracing"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"golang.org/x/sync/errgroup"
)

// Run runs the named stages, or all four if none is named, until ctx ends. Then it finishes the messages in work and
// returns nil. It returns an error if it cannot start, or if the connection to NATS is closed for good. The streams
// must have been set up before, by anybody.
func Run(ctx context.Context, c Config, stages ...string) error {
	c = c.withDefaults()
	if err := c.check(); err != nil {
		return err
	}
	if len(stages) == 0 {
		stages = stage.Names()
	}

	// Connect to NATS.
	nc := c.NC
	if nc == nil {
		var api string
		var err error
		if nc, api, err = bus.Connect(c.URL, "basetensor-"+stages[0], c.Logger); err != nil {
			return err
		}
		defer nc.Close()
		c.API = cmp.Or(c.API, api)
	}

	trust, err := c.trust(stages)
	if err != nil {
		return err
	}
	options := bus.Options{API: c.API, Guard: bus.Guard{
		Trust: trust, Remove: true, RemoveAnswers: slices.Contains(stages, query.StageAggregate),
		Forged: workers.Forged(c.Logger, c.Metrics),
	}}
	if c.Tenants != nil {
		options.Quota = c.Tenants.Quota
	}
	b, err := bus.New(nc, options)
	if err != nil {
		return err
	}

	// Open the cache, which is in this process only if there is no Redis.
	if !slices.ContainsFunc(stages, cached.UsesCache) {
		c.Redis = ""
	}
	cacheOptions := cache.Options{
		Timeout:  c.RedisTimeout,
		Overflow: cached.Overflow{Blobs: b.Blobs},
		Secrets:  trust.Keys.Secrets,
		Logger:   c.Logger,
	}
	store := cache.NewOn(c.RedisClient, c.Redis, cacheOptions)
	if c.RedisClient == nil {
		if store, err = cache.Open(c.Redis, cacheOptions); err != nil {
			return err
		}
	}
	defer store.Close()
	c.Metrics.WatchCache(store)
	c.Metrics.Classes(func(tenant string) string { return c.Tenants.Tenants().Class(tenant) })
	// The probe reports an error at once that would otherwise be logged when the first job comes.
	defer runBeside(ctx, func(context.Context) { _ = store.Probe(ctx) })()

	watching, unwatch := context.WithCancel(ctx)
	defer runBeside(
		watching, func(ctx context.Context) { workers.WatchStorage(ctx, b.Conn, c.Logger, c.Metrics) },
	)()
	defer unwatch()
	defer workers.SpareHeap(len(stages))()

	// soft ends with ctx, or when a stage fails: nothing new is begun. hard ends Drain later: work in progress is given up.
	hard, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	grace := context.AfterFunc(ctx, func() { time.AfterFunc(c.Drain, giveUp) })
	defer grace()
	g, soft := errgroup.WithContext(ctx)

	host := workers.NewHost(workers.Host{
		Settings: c.Settings,
		Bus:      b,
		Log:      c.Logger,
		Metrics:  c.Metrics,
		Tracer:   tracing.Tracer(c.Tracing),
		Cache:    store,
		Redis:    c.Redis != "" || c.RedisClient != nil,
		WorkCtx:  hard,
		StartCtx: soft,
	})

	// Run the stages.
	running := make([]*workers.Worker, len(stages))
	ready := make([]func() error, len(stages))
	for i, stage := range stages {
		if running[i], err = host.Worker(stage); err != nil {
			return err
		}
		ready[i] = running[i].Ready
	}
	for _, w := range running {
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

// trust returns the keys by which the stages verify and sign messages. An aggregator needs seeds if others check its
// signatures.
func (c Config) trust(stages []string) (seal.Trust, error) {
	seed := ""
	if slices.Contains(stages, query.StageAggregate) {
		seed = c.AnswersSeed
		if c.AnswersKey != "" && seed == "" {
			return seal.Trust{}, fault.New(fault.BadInput,
				"pipeline: an aggregator with --answers-key needs --answers-seed: nobody would believe its answers")
		}
	}
	return c.Flags.Open(seed, c.Logger)
}

// runBeside runs f in a goroutine, and returns a function that waits until f has returned.
func runBeside(ctx context.Context, f func(context.Context)) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(ctx)
	}()
	return func() { <-done }
}
