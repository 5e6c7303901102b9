package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/basetensor/basetensor/internal/jobs/service"
	"github.com/basetensor/basetensor/internal/jobs/workers"
	"github.com/basetensor/basetensor/internal/models/bayesnet"
	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/internal/queue/connect"
	"github.com/basetensor/basetensor/internal/queue/seal"
	"github.com/basetensor/basetensor/internal/queue/telemetry"
	"github.com/basetensor/basetensor/internal/queue/tracing"
	"github.com/basetensor/basetensor/internal/queue/tracing/export"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/pipeline"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"go.opentelemetry.io/otel/trace"
)

// inferCmd asks about evidence and variables.
type inferCmd struct {
	answering
	questionFlags
	Format string `help:"text for people, uai for a PR solution file, with --mar for a MAR one." enum:"text,uai" default:"text"`
}

// Validate refuses two forms of output at once; kong calls it.
func (c *inferCmd) Validate() error {
	for _, excluded := range []struct {
		flag    string
		isGiven bool
		why     string
	}{
		{"--json", c.JSON, "there is one output"},
		{"--event", c.Event != "", "a solution file has no place for P(event)"},
		{"--joint", len(c.Joint) > 0, "a solution file has no place for a joint marginal"},
		{"--target", len(c.Target) > 0, "a solution file has all variables"},
		{"--gradients", c.Gradients, "a solution file has no place for derivatives"},
		{"--queries", c.Queries != "", "a solution file has one answer"},
	} {
		if excluded.isGiven && c.Format == "uai" {
			return fmt.Errorf("%s and --format uai exclude each other: %s", excluded.flag, excluded.why)
		}
	}
	return c.validate(&c.requestFlags)
}

// Run answers the queries and prints one result for each.
func (c *inferCmd) Run(ctx context.Context, t *console.Terminal, common *config.Common) error {
	ask := c.question()
	ask.uai = c.Format == "uai"
	return c.run(ctx, t, common, ask)
}

// placeFlags say where an answer is computed: in this process or by the workers of a server.
type placeFlags struct {
	NATS    string `name:"nats" help:"${infer_nats}" placeholder:"URL" group:"place"`
	Redis   string `name:"redis" help:"${infer_redis}" placeholder:"URL" group:"place"`
	Threads int    `help:"Without --nats: threads of one contraction; 0: all processors." default:"0" group:"place"`

	AsNATS  connect.NATS `embed:"" group:"connection"`
	Signing seal.Flags   `embed:"" group:"connection"`
}

// answering is a command that asks, waits and prints the answer.
type answering struct {
	requestFlags
	JSON    bool `name:"json" help:"One JSON object per query, one line each (schemas/result.schema.json)." group:"output"`
	Verbose bool `help:"${infer_verbose}" group:"output"`
	Bits    bool `help:"Logarithms to the base 2, in bits, and not natural ones." group:"output"`
	placeFlags

	needs        string             // what there is none of if the evidence is impossible, as in the printer
	csv          bool               // whether samples are written as a CSV file
	top          int                // observations that are ranked; 0: as many as usual
	names        query.Names        // of the model
	isBayes      bool               // whether Z is P(evidence)
	formula      *factorgraph.Model // the model if it is a formula; else nil
	showsUnasked bool               // whether posteriors that nobody asked for are shown if they are cheap: no query is about variables
	asksPrior    bool               // whether the last query has no evidence, and is asked for comparison
}

// run answers the questions and prints one result per query.
func (c *answering) run(ctx context.Context, t *console.Terminal, common *config.Common, ask *question) error {
	// the answer
	p := &printer{out: t.Out, model: c.Model, json: c.JSON, uai: ask.uai}
	job := c.AsNATS.Job(console.NewJob(time.Now()))
	inTime, end := c.untilDeadline(ctx, t.Began)
	defer end()
	results, queries, err := c.answer(inTime, t, common, job, ask)
	if err != nil {
		switch {
		case ctx.Err() != nil:
			err = ctx.Err()
		case inTime.Err() != nil && errors.Is(err, context.DeadlineExceeded):
			err = c.lateError()
		}
		if !c.JSON || errors.Is(err, context.Canceled) {
			return err
		}
		queryCount := max(1, len(c.Evid))
		if ask.event != "" {
			queryCount *= 2 // the event is asked by a second query for each evidence
		}
		results = stage.FailedResults(job, queryCount, err, "btn") // --json prints an object in any case
	}

	// print it; prepare and the question have set these fields of c meanwhile
	p.queries, p.labels, p.actions, p.showsUnasked = queries, c.labels, ask.actions, c.showsUnasked
	if c.asksPrior { // the last query has no evidence: its result is not printed, but others are compared with it
		p.prior, results = &results[len(results)-1], results[:len(results)-1]
	}
	p.names, p.isBayes, p.formula, p.verbose, p.model = c.names, c.isBayes, c.formula, c.Verbose, c.Model
	p.bits, p.needs, p.csv, p.top = c.Bits, c.needs, c.csv, c.top
	return p.printAll(results, t.Err)
}

// untilDeadline returns ctx with an end: the deadline of the request and its grace later, counted from when the command
// began.
func (c *answering) untilDeadline(ctx context.Context, began time.Time) (context.Context, context.CancelFunc) {
	if c.Deadline == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, began.Add(c.Deadline+c.grace()))
}

// grace returns how long after the job's deadline the command waits, since the answer comes at the deadline and a busy
// machine may be slow to bring it.
func (c *answering) grace() time.Duration {
	if c.server().address() != "" {
		return time.Second
	}
	return 30 * time.Second
}

// lateError returns the error that no answer came in time.
func (c *answering) lateError() error {
	return fault.New(fault.Deadline, "no answer %s after the deadline: do workers run, and have they a processor?", c.grace())
}

// prepare reads the model and the queries, and returns the job. ask is what is asked beside the evidence. It also sets c.names, c.isBayes
// and c.formula, what run tells the printer about the model.
func (c *answering) prepare(ctx context.Context, t *console.Terminal, job string, ask *question) (wire.Request, error) {
	m, queries, err := c.load(ctx, t, c.server(), ask)
	if err != nil {
		return wire.Request{}, err
	}
	c.names, c.isBayes, c.formula = query.Names{Variables: m.Names, States: m.States}, bayesnet.IsNormalised(m), formulaOf(m)
	return c.newMessage(job, m, c.addMarginals(ctx, m, queries, ask))
}

// answer loads the model, submits the job and waits for its results.
func (c *answering) answer(
	ctx context.Context, t *console.Terminal, common *config.Common, job string, ask *question,
) (results []query.Result, queries []query.Query, err error) {
	// the request
	message, err := console.RunPromptly(ctx, func() (wire.Request, error) { return c.prepare(ctx, t, job, ask) })
	if err != nil {
		return nil, nil, err
	}
	queries = message.Queries
	if file := queries[0].EvidenceFile; len(c.Evid) == 0 && ask.queries == "" && file != "" && !c.JSON {
		fmt.Fprintf(t.Err, "btn: using the evidence in %s (--evid none turns that off)\n", file)
	}

	// the workers
	logger := telemetry.Logger(t.Err, common.LogLevel, common.LogFormat)
	provider, flush, err := export.Traces(ctx, "btn", logger)
	if err != nil {
		return nil, nil, err
	}
	defer flush()
	ctx, end := tracing.Root(ctx, provider, "infer")
	defer func() { end(err) }()
	defaultRoom := pipeline.Streams{}
	ctx, remote, closeRemote, err := c.connect(ctx, t, logger, provider, c.Memory, defaultRoom)
	if err != nil {
		return nil, nil, err
	}
	defer closeRemote()

	// its progress, heard before the job is submitted
	start := time.Now()
	var say io.Writer // nil: --json shows no progress
	if !c.JSON {
		say = t.Err
	}
	stop, bar, err := watchJob(remote, job, say, nil) // the bar may be nil: then it draws and clears nothing
	if err != nil {
		return nil, nil, err
	}
	defer bar.Clear()
	defer stop()
	timeLeft, err := c.remaining(t.Began)
	if err != nil {
		return nil, nil, err
	}

	// submit it and wait
	message.DeadlineMS = milliseconds(timeLeft)
	answer, err := c.submit(ctx, remote, message, timeLeft, func(err error) { bar.Clear(); t.WarnWaiting(err) })
	if err != nil {
		return nil, nil, err
	}
	return resultsOf(answer, job, len(queries), time.Since(start)), queries, nil
}

// submit submits a job and waits for its answer: for timeLeft and the grace, or until ctx ends if timeLeft is 0. warn hears that nobody
// serves the job. If the command is interrupted, submit cancels the job.
func (c *answering) submit(
	ctx context.Context, remote *client.Client, message wire.Request, timeLeft time.Duration, warn func(error),
) (*wire.Answer, error) {
	waitCtx := ctx
	if timeLeft > 0 {
		timed, cancel := context.WithTimeout(ctx, timeLeft+c.grace())
		defer cancel()
		waitCtx = timed
	}
	answer, err := console.RunPromptly(waitCtx, func() (*wire.Answer, error) {
		if _, err := remote.Submit(waitCtx, message); err != nil {
			return nil, err
		}
		return remote.WaitTelling(waitCtx, message.Job, c.telling(warn))
	})
	if err == nil {
		return answer, nil
	}

	// why there is no answer
	isLate := ctx.Err() == nil && waitCtx.Err() != nil
	if isLate {
		err = c.lateError()
	}
	if cause := context.Cause(ctx); cause != ctx.Err() {
		err = cause // connect ended ctx, as the workers of this process ended
	}
	wasInterrupted := errors.Is(ctx.Err(), context.Canceled)
	if c.server().address() != "" && wasInterrupted { // nobody waits any more: tell the workers
		cancelCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), console.Patience)
		defer cancel()
		err = errors.Join(err, remote.Cancel(cancelCtx, message.Job, "interrupted"))
	}
	return nil, err
}

// resultsOf returns the results of an answer, or as many with its error if it has none. Each gets the total time as a timing.
func resultsOf(answer *wire.Answer, job string, queryCount int, total time.Duration) []query.Result {
	results := answer.Results
	if e := answer.Error; answer.Status != wire.StatusOK && len(results) == 0 {
		results = stage.FailedResults(job, queryCount, fault.New(e.Code, "%s", e.Message), e.Stage)
	}
	totalMS := float64(total.Microseconds()) / 1000
	for i := range results {
		if results[i].TimingsMS == nil {
			results[i].TimingsMS = map[string]float64{}
		}
		results[i].TimingsMS["total"] = totalMS
	}
	return results
}

// server returns the server of the workers, whose address is "" if they are in this process.
func (c *placeFlags) server() natsFlag {
	return natsFlag{serverFlags{c.NATS, c.AsNATS}, c.Signing}
}

// telling returns the function that hears that nobody serves a job. It is say, or nil if the workers are in this
// process: they serve the job however busy the machine is.
func (c *placeFlags) telling(say func(error)) func(error) {
	if c.server().address() == "" {
		return nil
	}
	return say
}

// connect connects to running workers, or starts the embedded stack (NATS, Redis and the workers in this process) within memory, with room
// for streams. The returned context ends when the workers of the stack do, with the reason as its cause. The returned function ends the
// connection or the stack.
func (c *placeFlags) connect(
	ctx context.Context, t *console.Terminal, logger *slog.Logger, provider trace.TracerProvider,
	memory config.Size, room pipeline.Streams,
) (context.Context, *client.Client, func(), error) {
	// running workers
	if c.server().address() != "" {
		remote, err := c.server().dial()
		if err != nil {
			return ctx, nil, nil, err
		}
		return ctx, remote, remote.Close, nil
	}

	// the embedded stack
	t.CheckRedis(ctx, c.Redis)
	stack, err := c.startStack(ctx, logger, provider, room)
	if err != nil {
		return ctx, nil, nil, err
	}
	ctx, end := context.WithCancelCause(ctx)
	go func() {
		select {
		case err := <-stack.Failed:
			end(err)
		case <-ctx.Done():
		}
	}()
	limitMemory(memory) // after the start: at its start the server of the stack takes its room for streams from the limit
	return ctx, stack.Client, func() { end(nil); stack.CloseWithin(console.Patience) }, nil
}

// sweepRoom is for the streams of a process that sweeps: its answers are soon forgotten.
var sweepRoom = pipeline.Streams{MaxBytes: 512 << 20, KeepAtLeast: 5 * time.Second}

// connectToSweep is connect for a command that sends many jobs, a sweep. They are traced until the returned function is called.
func (c *placeFlags) connectToSweep(
	ctx context.Context, t *console.Terminal, common *config.Common, memory config.Size,
) (context.Context, *client.Client, func(), error) {
	logger := telemetry.Logger(t.Err, common.LogLevel, common.LogFormat)
	provider, flush, err := export.Traces(ctx, "btn", logger)
	if err != nil {
		return ctx, nil, nil, err
	}
	ctx, remote, leave, err := c.connect(ctx, t, logger, provider, memory, sweepRoom)
	if err != nil {
		flush()
		return ctx, nil, nil, err
	}
	return ctx, remote, func() { leave(); flush() }, nil
}

// ownAckWait is the silence after which a message goes to another worker. Here there is no other, and a
// machine with much else to do may leave a heartbeat waiting for seconds.
const ownAckWait = time.Minute

// startStack starts the embedded stack, with room for streams. A lane is a queue of its own for the jobs of some tenants. Since this stack
// has one tenant, its consumers are nine, each over all lanes: to make 84, by lane, takes longer than to answer a small model.
func (c *placeFlags) startStack(
	ctx context.Context, logger *slog.Logger, provider trace.TracerProvider, room pipeline.Streams,
) (*console.Stack, error) {
	room.OneConsumer, room.AckWait = true, ownAckWait
	return console.StartStack(ctx, logger, embedded.Options{NoRedis: c.Redis != "", Setup: room}, service.Config{
		Redis: c.Redis, Tracing: provider, Drain: console.DrainTime, Settings: workers.Settings{Threads: c.Threads},
	})
}

// watchJob writes the messages of a job's stages to out, and shows its progress: as a bar if out is a terminal, else by a call of news
// unless that is nil. If out is nil, it shows nothing. bar is nil if there is none; its methods do nothing then.
func watchJob(c *client.Client, job string, out io.Writer, news func(wire.Progress)) (stop func(), bar *console.Bar, err error) {
	if out == nil {
		return func() {}, nil, nil
	}
	bar = console.NewBar(out)
	stop, err = c.Watch(job, func(p wire.Progress) {
		if p.Text != "" {
			bar.Clear()
			fmt.Fprintf(out, "btn: %s\n", strings.ReplaceAll(inPlainWords(p.Text), "\n", "\nbtn: "))
		}
		if bar == nil && news != nil {
			news(p)
		}
		drawProgress(bar, p)
	})
	return stop, bar, err
}

// drawProgress draws the stage of a job, and how many of its tasks are done.
func drawProgress(bar *console.Bar, p wire.Progress) {
	count := "…"
	if p.Total > 0 {
		count = fmt.Sprintf("%d/%d", p.Done, p.Total)
	}
	bar.Draw(p.Stage+" ", float64(p.Done), float64(p.Total), count)
}
