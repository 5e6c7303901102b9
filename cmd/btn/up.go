package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/basetensor/basetensor/internal/doors/gateway"
	"github.com/basetensor/basetensor/internal/jobs/metrics"
	"github.com/basetensor/basetensor/internal/jobs/service"
	"github.com/basetensor/basetensor/internal/jobs/workers"
	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/internal/people/doctor"
	"github.com/basetensor/basetensor/internal/queue/admission"
	"github.com/basetensor/basetensor/internal/queue/connect"
	"github.com/basetensor/basetensor/internal/queue/streams"
	"github.com/basetensor/basetensor/internal/queue/telemetry"
	"github.com/basetensor/basetensor/internal/queue/tracing/export"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/pipeline"
	"github.com/prometheus/client_golang/prometheus"
)

// upCmd runs the whole service in one process.
type upCmd struct {
	Dir          string        `help:"Folder for streams that outlive the process; without it they are kept in memory." placeholder:"DIR"`
	Sync         bool          `help:"With --dir: models and answers are on disk before they are acknowledged."`
	MaxBytes     config.Size   `help:"${up_max_bytes}" placeholder:"SIZE"`
	Keep         time.Duration `help:"How long models and answers are kept at most; it bounds the longest deadline." default:"24h"`
	KeepAtLeast  time.Duration `help:"${up_keep_at_least}" default:"0s"`
	Host         string        `help:"Address that NATS listens on; Redis stays on 127.0.0.1." default:"127.0.0.1"`
	TokenFile    string        `name:"nats-token-file" help:"File with a token that NATS asks for." placeholder:"FILE"`
	Port         int           `help:"Port of NATS; 0 picks a free one." default:"4222"`
	RedisPort    int           `help:"Port of Redis; 0 picks a free one." default:"0"`
	Redis        string        `name:"redis" help:"Cache in this Redis and start none; 'off' for no cache." placeholder:"URL"`
	Concurrency  int           `help:"Contract workers." default:"0"`
	MemoryLimit  config.Size   `help:"${up_memory_limit}" placeholder:"SIZE"`
	Tenants      string        `help:"JSON file of classes of tenants and what their jobs may take." placeholder:"FILE"`
	Threads      int           `help:"Threads of one contraction; 0: all processors." default:"0"`
	HTTP         string        `name:"http" help:"Address that serves /metrics, /healthz and /readyz; off without it." placeholder:"ADDR"`
	Gateway      string        `help:"${up_gateway}" placeholder:"ADDR"`
	EndWithInput bool          `help:"End when standard input ends: a program that holds its other end takes the service with it."`
	gatewayFlags `embed:"" group:"gateway"`
}

// Run starts the stack, prints its URLs and stays until it is interrupted.
func (c *upCmd) Run(ctx context.Context, t *console.Terminal, common *config.Common) error {
	// what the flags name
	logger := telemetry.Logger(t.Err, common.LogLevel, common.LogFormat)
	metrics := metrics.New()
	tenants, err := admission.Open(c.Tenants, logger)
	if err != nil {
		return err
	}
	if c.EndWithInput {
		var end context.CancelFunc
		ctx, end = context.WithCancel(ctx)
		defer end()
		go endWithInput(t.In, end)
	}
	t.CheckRedis(ctx, c.Redis)
	token := ""
	if c.TokenFile != "" {
		if token, err = connect.ReadSecret(c.TokenFile); err != nil {
			return fault.New(fault.BadInput, "up: --nats-token-file: %w", err)
		}
	}
	if c.Gateway != noGateway {
		if err := c.checkOpen(c.Gateway); err != nil {
			return err
		}
	}

	// the servers and the workers
	provider, flush, err := export.Traces(ctx, "basetensor", logger)
	if err != nil {
		return err
	}
	defer flush()
	stack, err := console.StartStack(ctx, logger, c.serverOptions(token), service.Config{
		Redis: c.Redis, Metrics: metrics, Tracing: provider, Settings: workers.Settings{
			Concurrency: c.Concurrency, Threads: c.Threads, Tenants: tenants, MemoryLimit: admission.LimitProcess(int64(c.MemoryLimit)),
		},
	})
	if err != nil {
		return err
	}
	defer stack.Close()
	fmt.Fprintf(t.Out, "nats   %s\n", stack.NATSURL())
	if url := stack.RedisURL(); url != "" {
		fmt.Fprintf(t.Out, "redis  %s\n", url)
	}

	closeHTTP, err := c.serveHTTP(t.Out, stack, tenants, logger, metrics)
	defer closeHTTP()
	if err != nil {
		return err
	}

	fmt.Fprintf(t.Out, "ready; try: btn infer --nats %s MODEL.uai (Ctrl-C ends)\n", stack.NATSURL())
	select {
	case <-ctx.Done():
		return nil
	case err := <-stack.Failed:
		return fault.Wrap(fault.Infrastructure, err)
	}
}

// serverOptions returns the options of the NATS and the Redis server. NATS asks for the token; "" for none.
func (c *upCmd) serverOptions(token string) embedded.Options {
	return embedded.Options{
		Dir: c.Dir, Sync: c.Sync, Listen: true, Host: c.Host, Port: c.Port, Token: token, Insecure: c.Insecure,
		RedisPort: c.RedisPort, NoRedis: c.Redis != "",
		Setup: pipeline.Streams{MaxBytes: int64(c.MaxBytes), Keep: c.Keep, KeepAtLeast: c.KeepAtLeast},
	}
}

// serveHTTP serves metrics and health, and starts the gateway, as far as the flags ask for them, and prints their URLs. closeHTTP ends
// those that were started, also if there is an error.
func (c *upCmd) serveHTTP(
	out io.Writer, stack *console.Stack, tenants *admission.File, logger *slog.Logger, metrics *metrics.Metrics,
) (closeHTTP func(), err error) {
	closeHTTP = func() {}
	if c.HTTP != "" {
		server, err := telemetry.Serve(c.HTTP, metrics.Registry(), metrics.Ready, metrics.Room)
		if err != nil {
			return closeHTTP, fault.Wrap(fault.Infrastructure, err)
		}
		closeHTTP = func() { server.Close() }
		fmt.Fprintf(out, "http   %s\n", server.URL)
	}
	if c.Gateway != noGateway {
		gateway, err := c.startGateway(stack, tenants, logger, metrics.Registry())
		if err != nil {
			return closeHTTP, err
		}
		closeServer := closeHTTP
		closeHTTP = func() { gateway.Close(); closeServer() }
		fmt.Fprintf(out, "gateway %s\n", gateway.URL)
	}
	return closeHTTP, nil
}

// startGateway starts the gateway with a connection of its own to the stack, which closes it.
func (c *upCmd) startGateway(
	stack *console.Stack, tenants *admission.File, logger *slog.Logger, registry prometheus.Registerer,
) (*gateway.Server, error) {
	nc, err := stack.Connect("btn-gateway")
	if err != nil {
		return nil, err
	}
	return c.startBeside(c.Gateway, nc, tenants, logger, registry)
}

// endWithInput calls end when there is nothing more to read. It drops what it reads.
func endWithInput(in io.Reader, end func()) {
	io.Copy(io.Discard, in) // an error ends the input, too
	end()
}

// setupCmd makes the streams on a server.
type setupCmd struct {
	natsFlag
	OneConsumer bool          `help:"${setup_one_consumer}"`
	Backlog     int           `help:"${setup_backlog}" default:"0"`
	Replicas    int           `help:"Replicas of every stream, in a cluster; 0: as it is, or 1." default:"0"`
	Keep        time.Duration `help:"${setup_keep}" default:"0s"`
	KeepAtLeast time.Duration `help:"${up_keep_at_least}" default:"0s"`
	MaxBytes    config.Size   `help:"Room for all streams together; without it the server's limit, at most 16 GiB." placeholder:"SIZE"`
	Wait        time.Duration `help:"Keep trying to reach the server for this long." default:"0s"`
}

// Run creates missing streams and leaves the existing ones. It tries again until Wait has passed, unless the flags are wrong. It also
// removes the parts of large messages whose writers died before they had written them all.
func (c *setupCmd) Run(ctx context.Context, t *console.Terminal, common *config.Common) error {
	logger := telemetry.Logger(t.Err, common.LogLevel, common.LogFormat)
	end := time.Now().Add(c.Wait)
	for {
		room, err := c.setUp(ctx, logger)
		if err == nil {
			fmt.Fprint(t.Out, "streams and consumers are set up\n"+room)
			return nil
		}
		if time.Now().After(end) || ctx.Err() != nil || fault.CodeOf(err) == fault.BadInput {
			return err
		}
		logger.Warn("not yet", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// setUp makes streams and consumers, and returns sentences: the rate of jobs that the streams have room for, and what is to know about the
// server's version.
func (c *setupCmd) setUp(ctx context.Context, logger *slog.Logger) (room string, err error) {
	b, err := c.openBus("btn-setup", logger)
	if err != nil {
		return "", err
	}
	defer b.Conn.NC.Close()
	if err := c.checkOperator(ctx, b); err != nil {
		return "", err
	}
	if err := streams.Setup(ctx, b.Conn.NC, streams.Config{
		API: b.Conn.API, OneConsumer: c.OneConsumer, Backlog: c.Backlog, Replicas: c.Replicas, Keep: c.Keep,
		KeepAtLeast: c.KeepAtLeast, MaxBytes: int64(c.MaxBytes), Log: logger,
	}); err != nil {
		return "", err
	}
	sustains, err := streams.SustainedRates(ctx, b.Conn)
	return streams.SustainedText(sustains) + doctor.Version(b.Conn.NC.ConnectedServerVersion()).Advice(), err
}
