package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/basetensor/basetensor/internal/backup"
	"github.com/basetensor/basetensor/internal/bus"
	"github.com/basetensor/basetensor/internal/console"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/nats-io/nats.go"
)

// backupCmd copies the streams that cannot be made again.
type backupCmd struct {
	File string `arg:"" help:"File to write, a tar archive; '-' is standard output."`
	natsFlag
}

// restoreCmd is its inverse.
type restoreCmd struct {
	File string `arg:"" help:"File that btn backup wrote; '-' is standard input."`
	natsFlag
}

// link connects without a client around it.
func (f natsFlag) link(name string) (*nats.Conn, *bus.Bus, error) {
	options, err := f.AsNATS.Options()
	if err != nil {
		return nil, nil, err
	}
	nc, err := bus.Connect(f.NATS, name, nil, options...)
	if err != nil {
		return nil, nil, err
	}
	b, err := bus.New(nc)
	if err != nil {
		nc.Close()
	}
	return nc, b, err
}

// Run writes the copy. A file is there when it is whole, and not before.
func (c *backupCmd) Run(ctx context.Context, t *console.Terminal) error {
	nc, b, err := c.link("btn-backup")
	if err != nil {
		return err
	}
	defer nc.Close()
	if c.File == "-" {
		out := bufio.NewWriter(t.Out)
		n, err := backup.Write(ctx, b, out)
		if err == nil {
			err = fault.Wrap(fault.Infrastructure, out.Flush())
		}
		fmt.Fprintln(t.Err, describeCounts("copied", n))
		return err
	}

	f, err := os.CreateTemp(filepath.Dir(c.File), filepath.Base(c.File)+".part-*")
	if err != nil {
		return fault.Wrap(fault.BadInput, err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	out := bufio.NewWriter(f)
	n, err := backup.Write(ctx, b, out)
	if err != nil {
		return err
	}
	for _, step := range []func() error{out.Flush, f.Sync, func() error { return os.Rename(f.Name(), c.File) }} {
		if err := step(); err != nil {
			return fault.Wrap(fault.Infrastructure, err)
		}
	}
	fmt.Fprintln(t.Out, describeCounts("copied", n))
	return nil
}

// Run stores the contents of the file. The signatures of answers come with them, so it needs no keys.
func (c *restoreCmd) Run(ctx context.Context, t *console.Terminal) error {
	var in io.Reader = t.In
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return fault.Wrap(fault.BadInput, err)
		}
		defer f.Close()
		in = bufio.NewReader(f)
	}
	nc, b, err := c.link("btn-restore")
	if err != nil {
		return err
	}
	defer nc.Close()
	remote, err := client.New(nc, client.Options{})
	if err != nil {
		return err
	}
	n, err := backup.Read(ctx, b, remote, in)
	fmt.Fprintf(t.Out, "%s; %d of these were there\n", describeCounts("stored", n), n.Known)
	return err
}

func describeCounts(did string, n backup.Counts) string {
	return fmt.Sprintf("%s %d registered models, %d jobs without an answer, %d answers", did, n.Registered, n.Jobs, n.Answers)
}
