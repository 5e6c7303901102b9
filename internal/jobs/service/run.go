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

	b, trust, closeConn, err := c.openBus(stages)
	defer closeConn()
	if err != nil {
		return err
	}
	store, err := c.openCache(b, trust, stages)
	if err != nil {
		return err
	}
	defer store.Close()
	c.Metrics.WatchCache(store)
	c.Metrics.Classes(func(tenant string) string { return c.Tenants.Tenants().Class(tenant) })
	// The probe reports an error at once that would otherwise be logged when the first job comes.
	defer runBeside(ctx, func(context.Context) { _ = store.Probe(ctx) })()

	watchCtx, endWatch := context.WithCancel(ctx)
	defer runBeside(
		watchCtx, func(ctx context.Context) { workers.WatchStorage(ctx, b.Conn, c.Logger, c.Metrics) },
	)()
	defer endWatch()
	defer workers.SpareHeap(len(stages))()

	// workCtx ends Drain after ctx: work in progress is given up.
	workCtx, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	keepWork := context.AfterFunc(ctx, func() { time.AfterFunc(c.Drain, giveUp) })
	defer keepWork()
	return c.runStages(ctx, workCtx, b, store, stages)
}

// openBus connects to NATS, unless c has a connection, and returns the bus of the stages with the keys by which they
// sign and verify messages. closeConn closes a connection that openBus has made, and is never nil. If openBus connects,
// it sets the API of c by the URL of the server.
func (c *Config) openBus(stages []string) (b *bus.Bus, trust seal.Trust, closeConn func(), err error) {
	closeConn = func() {}
	if c.NC == nil {
		nc, api, err := bus.Connect(c.URL, "basetensor-"+stages[0], c.Logger)
		if err != nil {
			return nil, trust, closeConn, err
		}
		c.NC, closeConn = nc, nc.Close
		c.API = cmp.Or(c.API, api)
	}
	if trust, err = c.trust(stages); err != nil {
		return nil, trust, closeConn, err
	}
	options := bus.Options{API: c.API, Guard: bus.Guard{ // forged messages are deleted, forged answers only by an aggregator
		Trust: trust, Remove: true, RemoveAnswers: slices.Contains(stages, query.StageAggregate),
		Forged: workers.Forged(c.Logger, c.Metrics),
	}}
	if c.Tenants != nil {
		options.Quota = c.Tenants.Quota
	}
	b, err = bus.New(c.NC, options)
	return b, trust, closeConn, err
}

// openCache opens the cache, which is in this process only if there is no Redis. If none of the stages uses the cache,
// it sets the URL of Redis to "".
func (c *Config) openCache(b *bus.Bus, trust seal.Trust, stages []string) (*cache.Cache, error) {
	if !slices.ContainsFunc(stages, cached.UsesCache) {
		c.Redis = ""
	}
	options := cache.Options{
		Timeout:  c.RedisTimeout,
		Overflow: cached.Overflow{Blobs: b.Blobs},
		Secrets:  trust.Keys.Secrets,
		Logger:   c.Logger,
	}
	store := cache.NewOn(c.RedisClient, c.Redis, options) // sets the log of the client library, before Open makes a client
	if c.RedisClient != nil {
		return store, nil
	}
	return cache.Open(c.Redis, options)
}

// runStages runs the stages until ctx ends or one of them fails. Then they begin nothing new. The messages in work are
// finished, or given up when workCtx ends. If the stages end because ctx has ended, the error is nil.
func (c *Config) runStages(ctx, workCtx context.Context, b *bus.Bus, store *cache.Cache, stages []string) error {
	g, startCtx := errgroup.WithContext(ctx)
	host := workers.NewHost(workers.Host{
		Settings: c.Settings,
		Bus:      b,
		Log:      c.Logger,
		Metrics:  c.Metrics,
		Tracer:   tracing.Tracer(c.Tracing),
		Cache:    store,
		Redis:    c.Redis != "" || c.RedisClient != nil,
		WorkCtx:  workCtx,
		StartCtx: startCtx,
	})

	// All workers are made before the first one runs, because each tells the host what it needs.
	running := make([]*workers.Worker, len(stages))
	ready := make([]func() error, len(stages))
	for i, stage := range stages {
		var err error
		if running[i], err = host.Worker(stage); err != nil {
			return err
		}
		ready[i] = running[i].Ready
	}
	for _, w := range running {
		g.Go(w.Run)
	}
	c.Metrics.Watch(ready)
	c.Metrics.Server(c.NC.ConnectedServerVersion)
	if err := g.Wait(); ctx.Err() == nil {
		return err
	}
	return nil
}

// trust returns the keys by which the stages verify and sign messages. An aggregator signs answers by seeds, and needs
// them if the public keys are set by which others check its signatures.
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
