package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/basetensor/basetensor/internal/base/codec"
	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/queue/telemetry"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
)

// dlqCmd are the commands on messages that no worker could handle.
type dlqCmd struct {
	List   dlqListCmd   `cmd:"" help:"List dead letters, oldest first."`
	Show   dlqShowCmd   `cmd:"" help:"Show the dead letters of one job, with the reason in full."`
	Replay dlqReplayCmd `cmd:"" help:"Run a failed job again from its stored model; its error answer is dropped."`
}

// dlqListCmd lists them.
type dlqListCmd struct {
	natsFlag
}

// Run prints a line per dead letter.
func (c *dlqListCmd) Run(ctx context.Context, t *console.Terminal) error {
	return c.withClient(func(remote *client.Client) error {
		letters, err := remote.DeadLetters(ctx)
		if err != nil {
			return err
		}
		w := tabwriter.NewWriter(t.Out, 0, 8, 2, ' ', 0)
		fmt.Fprintln(w, "TIME\tSTAGE\tJOB\tCODE\tREASON")
		for _, l := range letters {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%.100s\n",
				time.UnixMilli(l.Time).UTC().Format(time.RFC3339), l.Stage, l.Job, l.Error.Code, l.Error.Message)
		}
		return w.Flush()
	})
}

// dlqShowCmd shows one with its reason.
type dlqShowCmd struct {
	Job string `arg:"" help:"Id of the job."`
	natsFlag
}

// Run prints the dead letters of a job as indented JSON.
func (c *dlqShowCmd) Run(ctx context.Context, t *console.Terminal) error {
	return c.withClient(func(remote *client.Client) error {
		letters, err := remote.DeadLettersOf(ctx, c.Job)
		if err != nil {
			return asBadInput(err)
		}

		for i := range letters {
			packed, err := wire.Encode((*message.DeadLetter)(&letters[i]))
			if err != nil {
				return fault.Wrap(fault.Internal, err)
			}
			view, err := codec.View(packed)
			if err != nil {
				return fault.Wrap(fault.Internal, err)
			}
			var text bytes.Buffer
			if err := json.Indent(&text, view, "", "  "); err != nil {
				return fault.Wrap(fault.Internal, err)
			}
			fmt.Fprintln(t.Out, text.String())
		}

		return nil
	})
}

// dlqReplayCmd runs a failed job again.
type dlqReplayCmd struct {
	Job string `arg:"" help:"Id of the job."`
	natsFlag
	auditFlag
}

// Run starts a job again that was given up.
func (c *dlqReplayCmd) Run(ctx context.Context, t *console.Terminal) error {
	return c.withClient(func(remote *client.Client) error {
		err := c.runAudited(c.serverFlags, telemetry.ActReplay, c.Job, func() error { return remote.Replay(ctx, c.Job) })
		if err != nil {
			return asBadInput(err)
		}
		fmt.Fprintf(t.Out, "%s runs again; btn watch %s follows it\n", c.Job, c.Job)
		return nil
	})
}

// asBadInput gives the error for a missing job the code bad_input: the caller named it wrongly.
func asBadInput(err error) error {
	if errors.Is(err, client.ErrNotFound) {
		return &fault.Error{Code: fault.BadInput, Err: err}
	}
	return err
}
