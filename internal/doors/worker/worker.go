// Package worker is the main function of the four worker commands: settings, connection, one stage, exit code.
package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/basetensor/basetensor/internal/base/fair"
	"github.com/basetensor/basetensor/internal/doors/access"
	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/basetensor/basetensor/internal/jobs/cache"
	"github.com/basetensor/basetensor/internal/jobs/cached"
	"github.com/basetensor/basetensor/internal/jobs/hop"
	"github.com/basetensor/basetensor/internal/jobs/metrics"
	"github.com/basetensor/basetensor/internal/jobs/service"
	"github.com/basetensor/basetensor/internal/jobs/workers"
	"github.com/basetensor/basetensor/internal/queue/admission"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/redact"
	"github.com/basetensor/basetensor/internal/queue/telemetry"
	"github.com/basetensor/basetensor/internal/queue/tracing/export"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// flags are the settings of a worker. All four take all of them, so that they can share a settings file, an environment and a script; a
// flag that changes nothing in a stage is not shown by its help.
type flags struct {
	config.Common
	config.Servers
	RedisTimeout time.Duration `help:"The longest that one call to Redis may take; later it counts as not there." default:"${redis_timeout}"`
	Lanes        []int         `help:"Lanes to serve, 0 to 15; all without it. Not after 'btn setup --one-consumer'." placeholder:"N,…"`
	Concurrency  int           `help:"Messages worked on at a time; 0: ${concurrency}." default:"0"`
	Threads      int           `help:"Threads of one contraction." default:"${threads}"`
	Memory       config.Size   `help:"${memory_help}" placeholder:"SIZE"`
	ChunkFlops   float64       `help:"About how many operations a task has; 0: 1e8, some 100 ms. The same for all learn-workers." default:"0"`
	MemoryLimit  config.Size   `help:"${memory_limit_help}" placeholder:"SIZE"`
	Tenants      string        `help:"${tenants_help}" placeholder:"FILE"`
	Audit        string        `help:"${audit_help}" placeholder:"FILE"`
	AnswersSeed  string        `help:"File with the seed that signs answers (SA…), one of --answers-key." placeholder:"FILE"`
	Drain        time.Duration `help:"After SIGTERM, how long to wait for the work at hand." default:"${drain}"`
	Ceiling      time.Duration `help:"The longest that one message may be worked on; then its job fails as over budget." default:"${ceiling}"`
	Overdue      time.Duration `help:"${overdue_help}" default:"${overdue}"`
	HTTP         string        `name:"http" help:"${http_help}" placeholder:"ADDR"`
}

// helpTexts are the help of flags whose tags would be long.
var helpTexts = kong.Vars{
	"memory_limit_help": "What this process may take, everything included: messages wait until there is room for what they take. " +
		"Without it GOMEMLIMIT, or the limit of the cgroup.",
	"audit_help":   "File to which a line is appended for all that tenants and clients register and cancel; else the log has it.",
	"tenants_help": "JSON file of classes of tenants and what their jobs may take; without it one class has the defaults.",
	"memory_help":  "Most memory for the tables of one message, whatever the request allows; without it the request decides.",
	"overdue_help": "How long a message may be worked on after its ceiling, deadline, cancellation or the end of the drain. " +
		"Then it becomes a dead letter, its job an error, " +
		"and the worker ends with an exit code other than 0, to be started again.",
	"http_help": "Address that serves /metrics, /healthz and /readyz, e.g. 127.0.0.1:8080; off without it.",
}

// stagesOf has, by flag, the stages in which it changes something. A flag that is not there changes something in all.
var stagesOf = map[string][]string{
	"chunk-flops":  {query.StageLearn},
	"tenants":      {query.StageReparam, query.StageLearn, query.StageAggregate}, // whose latencies are by class
	"threads":      {query.StageContract},
	"memory":       {query.StageContract},
	"answers-seed": {query.StageAggregate},
	"audit":        {query.StageReparam},
}

// concerns reports whether a flag changes something in a stage.
func concerns(flag, stage string) bool {
	if flag == "redis" || strings.HasPrefix(flag, "redis-") {
		return cached.UsesCache(stage)
	}
	stages, isOfSome := stagesOf[flag]
	return !isOfSome || slices.Contains(stages, stage)
}

// hideOthers returns an option that hides the flags which change nothing in a stage.
func hideOthers(stage string) kong.Option {
	return kong.PostBuild(func(k *kong.Kong) error {
		for _, flag := range k.Model.Flags {
			flag.Hidden = flag.Hidden || !concerns(flag.Name, stage)
		}
		return nil
	})
}

// concurrencyHelp returns the description of --concurrency 0.
func concurrencyHelp(stage string) kong.Vars {
	if stage == query.StageContract {
		return kong.Vars{"concurrency": "a few small ones, any other alone"}
	}
	return kong.Vars{"concurrency": "4, or a processor each where there are more"}
}

// defaultTexts returns the defaults of flags that are those of the service.
func defaultTexts() kong.Vars {
	d := service.Defaults()
	return kong.Vars{
		"redis_timeout": d.RedisTimeout.String(), "threads": strconv.Itoa(d.Threads), "drain": d.Drain.String(), "ceiling": d.Ceiling.String(),
		"overdue": d.Overdue.String(),
	}
}

// configure changes a worker's settings before it starts; tests replace it to make a stage hang.
var configure = func(c service.Config) service.Config { return c }

// Main runs one stage until SIGINT or SIGTERM and returns the exit code.
func Main(stage string, description string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return run(ctx, stage, description, os.Args[1:], os.Stdout, os.Stderr)
}

// run runs one stage until ctx ends, or something ends the worker, and returns the exit code.
func run(ctx context.Context, stage string, description string, args []string, stdout, stderr io.Writer) int {
	// settings
	var f flags
	exited := false // the parser has answered a flag like --help
	parse := func(f *flags, out, log io.Writer) (settings, error) {
		parsed, err := config.Parse(f, args, out, log, func(int) { exited = true },
			kong.Name(stage), kong.Description(description), concurrencyHelp(stage), defaultTexts(), helpTexts, hideOthers(stage))
		if err != nil || exited {
			return nil, err
		}
		return settingsOf(parsed), nil
	}
	start, err := parse(&f, stdout, stderr)
	if exited {
		return config.ExitOK
	}
	if err != nil {
		fmt.Fprintf(stderr, "%s: %s (--help shows the settings)\n", stage, config.Message(err))
		return config.ExitCode(err)
	}

	// logs and metrics
	logger, adjust := telemetry.Adjustable(stderr, f.LogLevel, f.LogFormat)
	logger = logger.With("worker", stage)
	metrics := metrics.New(stage)
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	role, _ := access.FindRole(stage)
	url, user := bus.Server(f.NATS, f.AsNATS.Context), f.AsNATS.Identity(f.NATS)
	refusals := &refusals{role: role, user: user, end: end}
	go watchSettings(ctx, start, func() (settings, error) { return parse(new(flags), io.Discard, io.Discard) }, adjust, logger)
	logger.Info("starting", "server", redact.URL(url), "user", user, "version", telemetry.ThisBuild().String(),
		"lanes", workers.Settings{Lanes: f.Lanes}.Served())
	if f.HTTP != "" {
		ready := func() error { return cmp.Or(refusals.err(), metrics.Ready()) }
		server, err := telemetry.Serve(f.HTTP, metrics.Registry(), ready, metrics.Room, metrics.Outdated)
		if err != nil {
			logger.Error("cannot serve metrics and health", "error", err)
			return config.ExitInfrastructure
		}
		defer server.Close()
		logger.Info("serving metrics and health", "url", server.URL)
	}

	// what the stage works with
	if f.Redis == "off" || !cached.UsesCache(stage) {
		f.Redis = ""
	}
	if f.Signing.MessageKeys == "" {
		logger.Warn("messages are not signed (--message-keys): whoever may write to NATS can forge answers")
	}
	provider, flush, err := export.Traces(ctx, "basetensor-"+stage, logger)
	if err != nil {
		logger.Error("cannot start", "error", err)
		return config.ExitCode(err)
	}
	defer flush()
	fair.Widen()
	tenants, err := admission.Open(f.Tenants, logger)
	if err != nil {
		logger.Error("cannot start", "error", err)
		return config.ExitCode(err)
	}
	audit, err := telemetry.OpenAudit(f.Audit, logger)
	if err != nil {
		logger.Error("cannot start", "error", err)
		return config.ExitCode(err)
	}

	// connections
	nc, api, store, err := f.dial(stage, logger)
	if err != nil {
		logger.Error("cannot start", "error", err)
		return config.ExitCode(err)
	}
	defer nc.Close()
	refusals.inbox = cmp.Or(nc.Opts.InboxPrefix, strings.TrimSuffix(nats.InboxPrefix, ".")) + "."
	refusals.api = cmp.Or(strings.TrimSuffix(api, "."), strings.TrimSuffix(usualAPI, ".")) + "."
	refusals.watch(nc)

	// the stage
	err = service.Run(ctx, configure(service.Config{
		NC:           nc,
		API:          api,
		Redis:        f.Redis,
		RedisClient:  store,
		RedisTimeout: f.RedisTimeout,
		Flags:        f.Signing,
		AnswersSeed:  f.AnswersSeed,
		Logger:       logger,
		Metrics:      metrics,
		Tracing:      provider,
		Drain:        f.Drain,
		Settings: workers.Settings{
			Lanes:       f.Lanes,
			Concurrency: f.Concurrency,
			Threads:     f.Threads,
			Memory:      int64(f.Memory),
			ChunkFlops:  f.ChunkFlops,
			Audit:       audit,
			Tenants:     tenants,
			MemoryLimit: admission.LimitProcess(int64(f.MemoryLimit)),
			Options:     hop.Options{Ceiling: f.Ceiling, Overdue: f.Overdue, Hung: func(e *hop.HungError) { end(e) }},
		},
	}), stage)

	if errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount) {
		err = refusals.noStreamsError()
	}
	return endCode(ctx, err, logger)
}

// endCode logs why a worker has ended and returns its exit code. err is the error of the stage. The cause of ctx says whether the worker
// ended itself, because of a computation that hangs or as the server refuses it something.
func endCode(ctx context.Context, err error, logger *slog.Logger) int {
	var hung *hop.HungError
	var refused *refusedError
	switch {
	case errors.As(context.Cause(ctx), &hung): // only the end of the process ends its computation
		logger.Error("stopped, to be started again", "error", hung)
		return config.ExitCode(hung)
	case errors.As(context.Cause(ctx), &refused):
		logger.Error("stopped", "error", refused)
		return config.ExitCode(refused)
	case err != nil && ctx.Err() == nil:
		logger.Error("stopped", "error", err)
		return config.ExitCode(err)
	}
	logger.Info("drained")
	return config.ExitOK
}

// dial connects to NATS, and makes a client of Redis, nil if it is off. api is the prefix of JetStream's subjects.
func (f *flags) dial(stage string, logger *slog.Logger) (nc *nats.Conn, api string, store cache.Redis, err error) {
	options, err := f.AsNATS.Options()
	if err != nil {
		return nil, "", nil, err
	}
	if f.Redis != "" {
		if store, err = f.AsRedis.Client(f.Redis, f.RedisTimeout); err != nil {
			return nil, "", nil, err
		}
	}
	nc, api, err = bus.Connect(bus.Server(f.NATS, f.AsNATS.Context), "basetensor-"+stage, logger, options...)
	if err != nil {
		return nil, "", nil, err
	}
	return nc, api, store, nil
}
