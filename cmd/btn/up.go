package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"time"

	"github.com/basetensor/basetensor/pkg/cache"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/config"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/pipeline"
	"github.com/basetensor/basetensor/pkg/telemetry"
)

// noCache as the value of --redis turns the cache off.
const noCache = "off"

// stack is the embedded servers, the four workers on them, and a client.
type stack struct {
	*embedded.Stack
	client *client.Client
	close  func()                // ends all of it, and waits
	leave  func(d time.Duration) // close for a process that is about to end: what ends too slowly is left behind
	failed chan error            // what ended the workers
}

// probePatience is how long a Redis has to answer before it is called away.
const probePatience = time.Second

// checkRedis says if the Redis at url does not answer. It fails nothing: decompositions are learned anew.
func checkRedis(ctx context.Context, out io.Writer, url string) {
	if url == "" || url == noCache {
		return
	}
	c, err := cache.Open(url, cache.Options{Timeout: probePatience, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return // the workers tell, with an error
	}
	defer c.Close()
	if err := c.Probe(ctx); err != nil && ctx.Err() == nil {
		fmt.Fprintf(out, "btn: %v: answers are the same, and nothing is remembered\n", err)
	}
}

// startStack starts everything. On an error nothing is left running.
func startStack(ctx context.Context, logger *slog.Logger, o embedded.Options, c pipeline.Config) (*stack, error) {
	o.Logger, c.Logger = logger, logger
	if c.Redis == noCache {
		c.Redis = ""
	}
	if c.Threads == 0 {
		c.Threads = runtime.GOMAXPROCS(0)
	}
	widen()
	servers, err := embedded.StartWith(ctx, o, pipeline.Config{MaxBytes: c.MaxBytes, Keep: c.Keep, KeepAtLeast: c.KeepAtLeast})
	if err != nil {
		return nil, fault.Wrap(fault.Infrastructure, err)
	}
	nc, err := servers.Connect("btn")
	if err != nil {
		servers.Close()
		return nil, err
	}
	own, err := client.New(nc)
	if err != nil {
		servers.Close()
		return nil, err
	}
	s := &stack{Stack: servers, client: own, failed: make(chan error, 1)}
	go func() { s.failed <- servers.Run(context.WithoutCancel(ctx), c) }() // Close ends the workers
	closed := func(err error) {
		if err != nil {
			logger.Warn("the embedded stack did not close cleanly", "error", err)
		}
	}
	s.close = func() { closed(servers.Close()) }
	s.leave = func(d time.Duration) { closed(servers.CloseWithin(d)) }
	return s, nil
}

// leastProcs is from how many processors on the garbage collector has one of its own.
const leastProcs = 4

// widen gives a process with two or three processors as many as the collector needs to leave the others alone: what runs in
// turns then the operating system decides. The whole stack in one process is where that matters: on two cores the slowest hundredth of
// small jobs takes half the time (docs/benchmarks/service.md). GOMAXPROCS in the environment wins.
func widen() {
	if n := runtime.GOMAXPROCS(0); os.Getenv("GOMAXPROCS") == "" && n > 1 && n < leastProcs {
		runtime.GOMAXPROCS(leastProcs)
	}
}

type upCmd struct {
	Dir         string        `help:"Folder for streams that outlive the process; without it they are kept in memory." placeholder:"DIR"`
	Sync        bool          `help:"With --dir: models and answers are on disk before they are acknowledged."`
	MaxBytes    config.Size   `help:"Room for all streams together; without it what there is, at most 16 GiB in files and 4 GiB in memory." placeholder:"SIZE"`
	Keep        time.Duration `help:"How long models and answers are kept at most; it bounds the longest deadline." default:"24h"`
	KeepAtLeast time.Duration `help:"How long answers are kept at least: the oldest go earlier than --keep when room is needed, and new jobs are refused rather than a younger one is lost; 0: as it is, or 1m." default:"0s"`
	Host        string        `help:"Address to listen on." default:"127.0.0.1"`
	Port        int           `help:"Port of NATS; 0 picks a free one." default:"4222"`
	RedisPort   int           `help:"Port of Redis; 0 picks a free one." default:"0"`
	Redis       string        `name:"redis" help:"Cache in this Redis and start none; 'off' for no cache." placeholder:"URL"`
	Concurrency int           `help:"Contract workers." default:"0"`
	Threads     int           `help:"Threads of one contraction; 0: all processors." default:"0"`
	HTTP        string        `name:"http" help:"Address that serves /metrics, /healthz and /readyz; off without it." placeholder:"ADDR"`
}

// Run starts the stack, prints its URLs and stays until it is interrupted.
func (c *upCmd) Run(ctx context.Context, t *terminal, common *config.Common) error {
	logger := telemetry.Logger(t.Err, common.LogLevel, common.LogFormat)
	metrics := pipeline.NewMetrics()
	checkRedis(ctx, t.Err, c.Redis)
	s, err := startStack(ctx, logger,
		embedded.Options{Dir: c.Dir, Sync: c.Sync, Listen: true, Host: c.Host, Port: c.Port, RedisPort: c.RedisPort, NoRedis: c.Redis != ""},
		pipeline.Config{Redis: c.Redis, MaxBytes: int64(c.MaxBytes), Keep: c.Keep, KeepAtLeast: c.KeepAtLeast,
			Concurrency: c.Concurrency, Threads: c.Threads, Metrics: metrics})
	if err != nil {
		return err
	}
	defer s.close()
	fmt.Fprintf(t.Out, "nats   %s\n", s.NATSURL())
	if url := s.RedisURL(); url != "" {
		fmt.Fprintf(t.Out, "redis  %s\n", url)
	}
	if c.HTTP != "" {
		server, err := telemetry.Serve(c.HTTP, metrics.Registry(), metrics.Ready, metrics.Room)
		if err != nil {
			return fault.Wrap(fault.Infrastructure, err)
		}
		defer server.Close()
		fmt.Fprintf(t.Out, "http   %s\n", server.URL)
	}
	fmt.Fprintf(t.Out, "ready; try: btn infer --nats %s MODEL.uai (Ctrl-C ends)\n", s.NATSURL())
	select {
	case <-ctx.Done():
		return nil
	case err := <-s.failed:
		return fault.Wrap(fault.Infrastructure, err)
	}
}

type setupCmd struct {
	natsFlag
	OneConsumer bool          `help:"One consumer for all lanes in place of one per lane: tenants are served first come, first served; stop running workers first."`
	Backlog     int           `help:"Jobs of one lane that may wait before the first stage, more are refused; 0: as it is, or 4096." default:"0"`
	Replicas    int           `help:"Replicas of every stream." default:"1"`
	Keep        time.Duration `help:"How long models and answers are kept at most; it bounds the longest deadline." default:"24h"`
	KeepAtLeast time.Duration `help:"How long answers are kept at least: the oldest go earlier than --keep when room is needed, and new jobs are refused rather than a younger one is lost; 0: as it is, or 1m." default:"0s"`
	MaxBytes    config.Size   `help:"Room for all streams together; without it what the server allows, at most 16 GiB." placeholder:"SIZE"`
	Wait        time.Duration `help:"Keep trying to reach the server for this long." default:"0s"`
}

// Run creates what is missing and leaves what is there.
func (c *setupCmd) Run(ctx context.Context, t *terminal, common *config.Common) error {
	logger := telemetry.Logger(t.Err, common.LogLevel, common.LogFormat)
	until := time.Now().Add(c.Wait)
	for {
		room, err := c.try(ctx, logger)
		if err == nil {
			fmt.Fprint(t.Out, "streams and consumers are set up\n"+room)
			return nil
		}
		if time.Now().After(until) || ctx.Err() != nil {
			return err
		}
		logger.Warn("not yet", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// try sets up, and says what rate the room sustains.
func (c *setupCmd) try(ctx context.Context, logger *slog.Logger) (room string, err error) {
	nc, err := pipeline.Connect(c.NATS, "btn-setup", logger)
	if err != nil {
		return "", err
	}
	defer nc.Close()
	err = pipeline.Setup(ctx, nc, pipeline.Config{
		OneConsumer: c.OneConsumer, Backlog: c.Backlog, Replicas: c.Replicas, Keep: c.Keep, KeepAtLeast: c.KeepAtLeast, MaxBytes: int64(c.MaxBytes),
	})
	if err != nil {
		return "", err
	}
	sustains, err := pipeline.Sustains(ctx, nc)
	return pipeline.SustainedText(sustains), err
}
