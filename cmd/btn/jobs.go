package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/basetensor/basetensor/internal/models/bayesnet"
	"github.com/basetensor/basetensor/internal/models/named"
	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/connect"
	"github.com/basetensor/basetensor/internal/queue/seal"
	"github.com/basetensor/basetensor/internal/queue/telemetry"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go/jetstream"
)

// serverFlags are the server of commands that look at it.
type serverFlags struct {
	NATS   string       `name:"nats" help:"${nats_help}" default:"nats://127.0.0.1:4222" placeholder:"URL"`
	AsNATS connect.NATS `embed:"" group:"connection"`
}

// natsFlag is the server of commands that speak to running workers.
type natsFlag struct {
	serverFlags
	Signing seal.Flags `embed:"" group:"connection"`
}

// address returns the address of the server, "" if there is none.
func (f serverFlags) address() string { return bus.Server(f.NATS, f.AsNATS.Context) }

// dial returns a client of the server.
func (f natsFlag) dial() (*client.Client, error) { return console.Dial(f.NATS, f.AsNATS, f.Signing) }

// withClient calls do with a client of the server, and closes it.
func (f natsFlag) withClient(do func(*client.Client) error) error {
	remote, err := f.dial()
	if err != nil {
		return err
	}
	defer remote.Close()
	return do(remote)
}

// withBus calls do with a connection to the server that has no client around it, and closes it.
func (f serverFlags) withBus(name string, logger *slog.Logger, do func(*bus.Bus) error) error {
	b, err := f.openBus(name, logger)
	if err != nil {
		return err
	}
	defer b.Conn.NC.Close()
	return do(b)
}

// withOperator is withBus for the commands of operators. It returns errOperators for a user who sees no streams, as a
// tenant's.
func (f serverFlags) withOperator(ctx context.Context, name string, logger *slog.Logger, do func(*bus.Bus) error) error {
	return f.withBus(name, logger, func(b *bus.Bus) error {
		if err := f.checkOperator(ctx, b); err != nil {
			return err
		}
		return do(b)
	})
}

// checkOperator returns errOperators for a tenant's user, by the settings or by what the server says about its streams.
func (f serverFlags) checkOperator(ctx context.Context, b *bus.Bus) error {
	if f.AsNATS.Tenant != "" {
		return errOperators
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	if _, err := b.Conn.JS.Stream(ctx, bus.StreamModel); errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount) {
		return errOperators
	}
	return nil // what else is amiss, the command finds out
}

// errOperators refuses a tenant what only an operator may do.
var errOperators = fault.New(fault.BadInput, "this takes the operator's user, whose settings btn keys writes "+
	"(--config DIR/operator.json): the user that is given sees no streams, as a tenant's")

// openBus connects to the server without a client around the connection. It logs to the logger unless that is nil. The
// caller closes Conn.NC.
func (f serverFlags) openBus(name string, logger *slog.Logger) (*bus.Bus, error) {
	options, err := f.AsNATS.Options()
	if err != nil {
		return nil, err
	}
	nc, api, err := bus.Connect(f.address(), name, logger, options...)
	if err != nil {
		return nil, err
	}
	b, err := bus.New(nc, bus.Options{API: api, Tenant: f.AsNATS.Tenant})
	if err != nil {
		nc.Close()
	}
	return b, err
}

// submitCmd submits a job and does not wait.
type submitCmd struct {
	requestFlags
	questionFlags
	natsFlag
	Job    string `help:"${submit_job}" placeholder:"ID"`
	Tenant string `help:"Tenant of the job: tenants are spread over lanes." placeholder:"NAME"`
}

// Validate refuses questions that exclude each other; kong calls it.
func (c *submitCmd) Validate() error { return c.validate(&c.requestFlags) }

// Run submits the job and prints its id.
func (c *submitCmd) Run(ctx context.Context, t *console.Terminal) error {
	m, queries, err := c.load(ctx, t, c.natsFlag, c.question())
	if err != nil {
		return err
	}
	if c.Job == "" {
		c.Job = console.NewJob(time.Now())
	}
	c.Job = c.AsNATS.Job(c.Job)
	message, err := c.newMessage(c.Job, m, queries)
	if err != nil {
		return err
	}

	message.Tenant, message.DeadlineMS = c.Tenant, milliseconds(c.deadline())
	return c.withClient(func(remote *client.Client) error {
		if _, err := remote.Submit(ctx, message); err != nil {
			return err
		}
		fmt.Fprintln(t.Out, c.Job)
		return nil
	})
}

// watchCmd waits for the answer to a job.
type watchCmd struct {
	Job string `arg:"" help:"Id of the job."`
	natsFlag
	Timeout time.Duration `help:"Stop watching after this long; the job goes on. 0: never." placeholder:"D"`
	JSON    bool          `name:"json" help:"One JSON object per query."`
	Verbose bool          `help:"${infer_verbose}"`
	Bits    bool          `help:"Logarithms to the base 2, in bits, and not natural ones."`
}

// Run waits for the answer and prints it as infer does.
func (c *watchCmd) Run(ctx context.Context, t *console.Terminal) error {
	return c.withClient(func(remote *client.Client) error {
		p := &printer{out: t.Out, job: c.Job, json: c.JSON, verbose: c.Verbose, bits: c.Bits}
		if !c.JSON {
			p.readRequest(ctx, remote)
		}

		// its progress
		stop, bar, err := watchJob(remote, c.Job, t.Err, c.stagePrinter(t.Err))
		if err != nil {
			return err
		}
		defer stop()
		if _, err := remote.Answer(ctx, c.Job); bar == nil && errors.Is(err, client.ErrNotFound) { // a bar says as much
			fmt.Fprintf(t.Err, "btn: %s: no answer yet\n", c.Job)
		}

		// its answer
		waitCtx, cancel := ctx, context.CancelFunc(func() {})
		if c.Timeout > 0 {
			waitCtx, cancel = context.WithTimeout(ctx, c.Timeout)
		}
		defer cancel()
		answer, err := remote.WaitTelling(waitCtx, c.Job, func(err error) { bar.Clear(); t.WarnWaiting(err) })
		bar.Clear()
		if err != nil {
			if waitCtx.Err() != nil && ctx.Err() == nil {
				return fault.New(fault.Deadline, "no answer within %s; the job goes on", c.Timeout)
			}
			return err
		}

		if len(answer.Results) == 0 {
			fmt.Fprintf(t.Err, "btn: %s: %s (%s)\n", answer.Error.Code, answer.Error.Message, answer.Error.Stage)
			return console.Exit(config.ExitCodeOf(answer.Error.Code))
		}
		return p.printAll(answer.Results, t.Err)
	})
}

// stagePrinter returns a function that prints a line whenever the job is in another stage.
func (c *watchCmd) stagePrinter(out io.Writer) func(wire.Progress) {
	last := ""
	return func(p wire.Progress) {
		if p.Stage == last {
			return
		}
		last = p.Stage
		tasks := ""
		if p.Total > 0 {
			tasks = fmt.Sprintf(", %d of %d done", p.Done, p.Total)
		}
		fmt.Fprintf(out, "btn: %s: %s%s\n", c.Job, p.Stage, tasks)
	}
}

// readRequest takes queries and names from the job's request, if it is stored and can be read.
func (p *printer) readRequest(ctx context.Context, remote *client.Client) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := remote.Request(ctx, p.job)
	if err != nil {
		return
	}

	// the model
	var m *factorgraph.Model
	if request.ModelDigest != "" {
		m, err = fetchModel(ctx, remote, request.ModelDigest)
	} else {
		m, err = readModel(request.Model, request.Text)
	}
	if err == nil {
		p.labels, err = m.Labels()
	}
	if err != nil {
		return
	}
	p.names, p.queries = query.Names{Variables: m.Names, States: m.States}, request.Queries
	p.isBayes, p.formula = bayesnet.IsNormalised(m), formulaOf(m)

	// evidence that is a text
	for i := range p.queries {
		q := &p.queries[i]
		if e, err := named.Evidence(p.labels, q.Evid); q.Evid != "" && err == nil {
			q.Evidence = e
		}
	}
}

// cancelCmd cancels a job.
type cancelCmd struct {
	Job string `arg:"" help:"Id of the job."`
	natsFlag
	auditFlag
	Reason string `help:"Why, for the answer." default:"cancelled by a person"`
}

// Run cancels the job and prints how it ended: a job that had its answer keeps it.
func (c *cancelCmd) Run(ctx context.Context, t *console.Terminal) error {
	return c.withClient(func(remote *client.Client) error {
		err := c.runAudited(c.serverFlags, telemetry.ActCancel, c.Job, func() error { return remote.Cancel(ctx, c.Job, c.Reason) })
		if err != nil {
			return err
		}
		wait, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		answer, err := remote.Wait(wait, c.Job)
		if err != nil {
			return fault.New(fault.Infrastructure, "the cancellation is stored, but no answer came: %w", err)
		}
		fmt.Fprintf(t.Out, "%s: %s\n", c.Job, answer.Status)
		return nil
	})
}
