// Package faults runs the workers as they are deployed, as processes that talk to real servers through proxies, strikes them and
// the servers with faults drawn from a seed, and finds out whether every job got exactly one answer, with the right bits, and how
// soon.
package faults

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/basetensor/basetensor/internal/testing/testserver"
)

// Options select the batches.
type Options struct {
	Root     string   // of the source
	Bin      string   // folder of the workers and btn
	Old      string   // folder of the same of an earlier version; empty: no rolling upgrades
	Helper   []string // program and arguments that run a worker with another clock: a stage and a duration follow
	Classes  []string
	Seed     uint64
	Batches  int           // 0: until For is over
	For      time.Duration // at most an hour
	Faults   int           // of a batch
	Jobs     int           // of a batch at least
	Rate     float64       // jobs a second
	Cluster  bool
	LogLevel string // of the workers
	Keep     string // folder of the logs and files; it stays when something is wrong
	Log      func(format string, args ...any)
}

// Run runs batches of the classes in turn and calls done with each. It returns the versions of the servers, and an error
// if the harness failed.
func Run(ctx context.Context, o Options, done func(Row) error) (versions string, err error) {
	list, err := choose(o)
	if err != nil {
		return "", err
	}
	if _, err := testserver.FindNATSOf(o.Root); err != nil {
		return "", err
	}

	end := time.Now().Add(o.For)
	r := &runner{o: o}
	defer func() { r.leave(err == nil) }()
	for i := 0; ctx.Err() == nil; i++ {
		if o.Batches > 0 && i == o.Batches*len(list) || o.Batches == 0 && time.Now().After(end) {
			break
		}
		row, err := r.batch(ctx, list[i%len(list)], o.Seed+uint64(i/len(list)))
		if err != nil {
			return r.versions, err
		}
		if err := done(row); err != nil {
			return r.versions, err
		}
	}
	return r.versions, ctx.Err()
}

// runner runs one batch after the other on one stack, as long as that is sound.
type runner struct {
	o        Options
	s        *stack
	kind     string // of the stack
	before   map[*worker]size
	number   int
	versions string
	bad      bool
}

// batch runs one batch.
func (r *runner) batch(ctx context.Context, c *class, seed uint64) (Row, error) {
	began := time.Now()
	row := Row{Class: c.name, Seed: seed, Began: began.UTC().Truncate(time.Second), Servers: "single"}
	if r.o.Cluster {
		row.Servers = "cluster"
	}
	if err := r.ready(ctx, c); err != nil {
		return row, err
	}
	b := &batch{s: r.s, class: c, log: r.o.Log, common: common(r.o)}
	faults := max(1, int(float64(r.o.Faults)/c.worth))
	jobs := max(10, int(float64(r.o.Jobs)/c.worth))
	v, err := b.run(ctx, seed, faults, jobs, r.o.Rate)
	if err != nil {
		r.bad = true
		return row, err
	}
	if c.rules.stack == nil {
		after, err := r.s.sizes(ctx)
		if err != nil {
			return row, err
		}
		for _, text := range grown(r.before, after) {
			v.problem("grown: %s", text)
		}
		for w, one := range after {
			if r.before[w].pid != one.pid {
				r.before[w] = one
			}
		}
	}
	row.note(b, v, time.Since(began))
	if len(v.problems) > 0 || c.rules.stack != nil {
		r.bad = r.bad || len(v.problems) > 0
		r.leave(len(v.problems) == 0)
	}
	return row, nil
}

// ready makes a stack for the class, unless there is one.
func (r *runner) ready(ctx context.Context, c *class) (err error) {
	kind, own := "common", ownStack{}
	if c.rules.stack != nil {
		kind, own = c.name, *c.rules.stack
	}
	if r.s != nil && r.kind == kind {
		return nil
	}
	r.leave(true)
	r.number++
	folder := filepath.Join(r.o.Keep, fmt.Sprintf("stack-%d", r.number))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if own.prepare != nil {
		if err := own.prepare(folder); err != nil {
			return err
		}
	}
	if r.s, err = newStack(ctx, r.o, folder, own); err != nil {
		return err
	}
	r.kind, r.versions = kind, r.s.versions()
	r.before, err = r.s.idle(ctx)
	return err
}

// leave ends the stack; its folder is kept if something was wrong.
func (r *runner) leave(good bool) {
	if r.s == nil {
		return
	}
	r.s.close()
	if r.s.own.clean != nil {
		r.s.own.clean(r.s.folder)
	}
	if good && !r.bad {
		os.RemoveAll(r.s.folder)
	}
	r.s = nil
}

// Replay is the command that runs a row's batch again.
func (o Options) Replay(row Row) string {
	text := fmt.Sprintf("btnlab faults --class %s --seed %d --batches 1 --faults %d --jobs %d --rate %g",
		row.Class, row.Seed, o.Faults, o.Jobs, o.Rate)
	if row.Servers == "cluster" {
		text += " --cluster"
	}
	return strings.TrimSpace(text)
}
