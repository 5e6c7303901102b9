package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/lab/faults"
	"github.com/basetensor/basetensor/pkg/fault"
)

type faultsCmd struct {
	Class   []string      `help:"${faults_class}" placeholder:"NAME,…"`
	Seed    uint64        `help:"Seed of the first batch of each class; the next ones count on." default:"1"`
	For     time.Duration `help:"How long batches are begun." default:"10m"`
	Batches int           `help:"Batches of each class in place of a time." placeholder:"N"`
	Faults  int           `help:"Faults of a batch; of expensive classes a part of it." default:"20"`
	Jobs    int           `help:"Jobs of a batch at least." default:"200"`
	Rate    float64       `help:"Jobs a second." default:"20"`
	Cluster bool          `help:"Three nats-servers with replicated streams in place of one."`
	Old     string        `help:"Commit whose workers take turns with the present ones; without it no rolling upgrades." placeholder:"COMMIT"`
	Bin     string        `help:"Folder of the workers and btn; without it they are built." type:"existingdir" placeholder:"DIR"`
	Root    string        `help:"Folder of the source." default:"." type:"existingdir"`
	Out     string        `help:"${faults_out}" placeholder:"FILE"`
	Workers string        `help:"Least level that workers log." enum:"debug,info,warn,error" default:"warn"`
}

// Run runs batches, adds their rows to the file and rewrites the page.
func (c *faultsCmd) Run(ctx context.Context, t *console.Terminal) error {
	keep, err := os.MkdirTemp("", "basetensor-faults-")
	if err != nil {
		return fault.Wrap(fault.Infrastructure, err)
	}
	o := faults.Options{
		Root: c.Root, Bin: c.Bin, Classes: c.Class, Seed: c.Seed, Batches: c.Batches, For: c.For, Faults: c.Faults,
		Jobs: c.Jobs, Rate: c.Rate, Cluster: c.Cluster, LogLevel: c.Workers, Keep: keep,
		Log: func(format string, args ...any) {
			fmt.Fprintf(t.Err, time.Now().UTC().Format("15:04:05.000 ")+format+"\n", args...)
		},
	}
	if self, err := os.Executable(); err == nil {
		o.Helper = []string{self, skewedWorker}
	}
	if o.Bin == "" {
		o.Bin = filepath.Join(keep, "bin")
		if err := faults.Build(o.Root, o.Bin); err != nil {
			return fault.Wrap(fault.Infrastructure, err)
		}
	}
	if c.Old != "" {
		o.Old = filepath.Join(keep, "old")
		if err := faults.BuildOld(o.Root, c.Old, o.Old); err != nil {
			return fault.Wrap(fault.Infrastructure, err)
		}
	}

	bad := false
	versions, err := faults.Run(ctx, o, func(r faults.Row) error {
		bad = bad || r.Bad()
		fmt.Fprintln(t.Out, r)
		for _, text := range r.Problems {
			fmt.Fprintln(t.Out, "  "+text)
		}
		if r.Bad() {
			fmt.Fprintf(t.Out, "  again: %s\n  logs: %s\n", o.Replay(r), keep)
		}
		if c.Out == "" {
			return nil
		}
		return faults.Append(c.Out, r)
	})
	if err != nil {
		return fault.Wrap(fault.Infrastructure, err)
	}
	os.Remove(filepath.Join(keep, "bin"))
	if !bad {
		os.RemoveAll(keep)
	}
	if c.Out != "" {
		if err := faults.WritePage(c.Out, versions); err != nil {
			return fault.Wrap(fault.Infrastructure, err)
		}
	}
	if bad {
		return console.Exit(config.ExitFailedEstimate)
	}
	return nil
}
