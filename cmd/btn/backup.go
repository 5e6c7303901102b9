package main

import (
	"bufio"
	"context"
	"fmt"
	"io"

	"github.com/basetensor/basetensor/internal/people/backup"
	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/telemetry"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/fault"
)

// backupCmd copies the streams that cannot be made again.
type backupCmd struct {
	File string `arg:"" help:"File to write, a tar archive; '-' is standard output."`
	natsFlag
}

// restoreCmd stores what backupCmd copied.
type restoreCmd struct {
	File string `arg:"" help:"File that btn backup wrote; '-' is standard input."`
	natsFlag
}

// Run writes a copy of the streams' content. If it goes to a file, that is there only once it is whole.
func (c *backupCmd) Run(ctx context.Context, t *console.Terminal) error {
	return c.withOperator(ctx, "btn-backup", nil, func(b *bus.Bus) error {
		var n backup.Counts
		writeCopy := func(w io.Writer) (err error) {
			n, err = backup.Write(ctx, b, w)
			return err
		}
		defer func() { tellSkipped(t, n.Skipped) }()

		// to standard output
		if c.File == console.StandardInput {
			buffered := bufio.NewWriter(t.Out)
			err := writeCopy(buffered)
			if err == nil {
				err = fault.Wrap(fault.Infrastructure, buffered.Flush())
			}
			fmt.Fprintln(t.Err, describeCounts("copied", n))
			return err
		}

		// to a file
		if err := console.ReplaceFile(c.File, 0o600, writeCopy); err != nil {
			return fault.Wrap(fault.Infrastructure, err)
		}
		fmt.Fprintln(t.Out, describeCounts("copied", n))
		return nil
	})
}

// Run stores the content of a copy in the streams. It needs no keys, since the signatures of answers are in the copy.
func (c *restoreCmd) Run(ctx context.Context, t *console.Terminal) error {
	content, _, err := t.Stream(ctx, c.File)
	if err != nil {
		return err
	}
	defer content.Close()
	return c.withOperator(ctx, "btn-restore", nil, func(b *bus.Bus) error {
		remote, err := client.New(b.Conn.NC, client.Options{})
		if err != nil {
			return err
		}
		n, err := backup.Read(ctx, b, remote, bufio.NewReader(content))
		tellSkipped(t, n.Skipped)
		fmt.Fprintf(t.Out, "%s; %d of these were there\n", describeCounts("stored", n), n.AlreadyThere)
		return err
	})
}

// forgetCmd erases a tenant's data.
type forgetCmd struct {
	Tenant string `arg:"" help:"Whose jobs, answers, models and dead letters are erased."`
	natsFlag
	auditFlag
}

// Run erases all that the streams have of a tenant, and prints how much it was.
func (c *forgetCmd) Run(ctx context.Context, t *console.Terminal) error {
	return c.withOperator(ctx, "btn-forget", nil, func(b *bus.Bus) error {
		var f bus.Forgotten
		err := c.runAudited(c.serverFlags, telemetry.ActForget, c.Tenant, func() (err error) {
			f, err = b.Log.Forget(ctx, c.Tenant)
			return err
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(t.Out, "%s is forgotten: %d jobs, %d messages\n", c.Tenant, f.Jobs, f.Messages)
		return nil
	})
}

// describeCounts says what was done with how many things: did is a verb, copied or stored.
func describeCounts(did string, n backup.Counts) string {
	return fmt.Sprintf("%s %d registered models, %d names of models, %d jobs without an answer, %d answers",
		did, n.Registered, n.Names, n.Jobs, n.Answers)
}
