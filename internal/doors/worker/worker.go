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
	"go.opentelemetry.io/otel/trace"
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
	line := commandLine{stage, description, args}
	var f flags
	start, isAnswered, err := line.parse(&f, stdout, stderr)
	if isAnswered { // a flag like --help, by the parser
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
	role, _ := access.FindRole(stage) // every stage has one
	url, user := bus.Server(f.NATS, f.AsNATS.Context), f.AsNATS.Identity(f.NATS)
	refusals := &refusals{role: role, user: user, end: end}
	go watchSettings(ctx, start, line.parseAgain, adjust, logger)
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

	// the stage
	var r resources
	defer r.close()
	if err := r.open(ctx, stage, &f, logger); err != nil {
		logger.Error("cannot start", "error", err)
		return config.ExitCode(err)
	}
	refusals.watch(r.nc, r.api)
	serviceConfig := r.serviceConfig(&f, logger)
	serviceConfig.Metrics = metrics
	serviceConfig.Settings.Options.Hung = func(e *hop.HungError) { end(e) } // endCode finds e as the cause of ctx
	err = service.Run(ctx, configure(serviceConfig), stage)                 // configure changes nothing but in tests
	if errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount) {
		err = refusals.noStreamsError()
	}
	return endCode(ctx, err, logger)
}

// commandLine is what a worker was started with.
type commandLine struct {
	stage, description string
	args               []string
}

// parse sets f from the arguments, the environment and the settings file, and returns the values of all flags. isAnswered reports that the
// parser has answered a flag like --help on out: then there are no settings, and nothing to run.
func (l commandLine) parse(f *flags, out, log io.Writer) (set settings, isAnswered bool, err error) {
	parsed, err := config.Parse(f, l.args, out, log, func(int) { isAnswered = true },
		kong.Name(l.stage), kong.Description(l.description), concurrencyHelp(l.stage), defaultTexts(), helpTexts, hideOthers(l.stage))
	if err != nil || isAnswered {
		return nil, isAnswered, err
	}
	return settingsOf(parsed), false, nil
}

// parseAgain returns the settings as they are now, and prints nothing. The arguments have no flag like --help: with one, run would have
// ended.
func (l commandLine) parseAgain() (settings, error) {
	set, _, err := l.parse(new(flags), io.Discard, io.Discard)
	return set, err
}

// resources is what a stage works with. A field is nil if open did not come to it.
type resources struct {
	tracing trace.TracerProvider
	flush   func() // writes the last traces
	tenants *admission.File
	audit   *telemetry.Audit
	nc      *nats.Conn
	api     string      // prefix of JetStream's subjects
	redis   string      // address of Redis; "" without one
	store   cache.Redis // nil without Redis
}

// open opens the files that flags name and connects to the servers. close is needed also after an error.
func (r *resources) open(ctx context.Context, stage string, f *flags, logger *slog.Logger) (err error) {
	if r.redis = f.Redis; r.redis == "off" || !cached.UsesCache(stage) {
		r.redis = ""
	}
	if f.Signing.MessageKeys == "" {
		logger.Warn("messages are not signed (--message-keys): whoever may write to NATS can forge answers")
	}
	if r.tracing, r.flush, err = export.Traces(ctx, "basetensor-"+stage, logger); err != nil {
		return err
	}
	fair.Widen()
	if r.tenants, err = admission.Open(f.Tenants, logger); err != nil {
		return err
	}
	if r.audit, err = telemetry.OpenAudit(f.Audit, logger); err != nil {
		return err
	}
	return r.dial(stage, f, logger)
}

// dial connects to NATS, and makes a client of Redis if there is one.
func (r *resources) dial(stage string, f *flags, logger *slog.Logger) error {
	options, err := f.AsNATS.Options()
	if err != nil {
		return err
	}
	if r.redis != "" {
		if r.store, err = f.AsRedis.Client(r.redis, f.RedisTimeout); err != nil {
			return err
		}
	}
	r.nc, r.api, err = bus.Connect(bus.Server(f.NATS, f.AsNATS.Context), "basetensor-"+stage, logger, options...)
	return err
}

// close closes the connection and writes the last traces, as far as there are any.
func (r *resources) close() {
	if r.nc != nil {
		r.nc.Close()
	}
	if r.flush != nil {
		r.flush()
	}
}

// serviceConfig returns how the stage runs with its resources and flags, without the metrics and what is called when a computation hangs.
func (r *resources) serviceConfig(f *flags, logger *slog.Logger) service.Config {
	return service.Config{
		NC:           r.nc,
		API:          r.api,
		Redis:        r.redis,
		RedisClient:  r.store,
		RedisTimeout: f.RedisTimeout,
		Flags:        f.Signing,
		AnswersSeed:  f.AnswersSeed,
		Logger:       logger,
		Tracing:      r.tracing,
		Drain:        f.Drain,
		Settings: workers.Settings{
			Lanes:       f.Lanes,
			Concurrency: f.Concurrency,
			Threads:     f.Threads,
			Memory:      int64(f.Memory),
			ChunkFlops:  f.ChunkFlops,
			Audit:       r.audit,
			Tenants:     r.tenants,
			MemoryLimit: admission.LimitProcess(int64(f.MemoryLimit)),
			Options:     hop.Options{Ceiling: f.Ceiling, Overdue: f.Overdue},
		},
	}
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
