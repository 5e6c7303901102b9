package main

// A case per row of a CSV file: btn infer MODEL --cases FILE.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/basetensor/basetensor/internal/cases"
	"github.com/basetensor/basetensor/internal/config"
	"github.com/basetensor/basetensor/internal/console"
	"github.com/basetensor/basetensor/internal/telemetry"
	"github.com/basetensor/basetensor/internal/tracing/export"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
)

// casesFlags say which rows are asked, and where the answers go.
type casesFlags struct {
	Cases  string   `help:"${infer_cases}" placeholder:"FILE"`
	Output string   `short:"o" help:"${infer_output}" placeholder:"FILE"`
	ID     []string `name:"id" help:"With --cases: columns that are carried over." placeholder:"COLUMN"`
	Ignore []string `help:"With --cases: columns that are left out." placeholder:"COLUMN"`
}

// The streams of a process that sweeps: what is answered and written is soon forgotten.
const (
	sweepRoom = 512 << 20
	sweepKeep = 5 * time.Second
)

// validateCases refuses what does not go with --cases.
func (c *inferCmd) validateCases() error {
	if c.Cases == "" {
		if c.Output != "" || len(c.ID) > 0 || len(c.Ignore) > 0 {
			return errors.New("--output, --id and --ignore are for --cases")
		}
		return nil
	}
	for flag, given := range map[string]bool{
		"--evid": len(c.Evid) > 0, "--event": c.Event != "", "--queries": c.Queries != "", "--joint": len(c.Joint) > 0, "--ask": c.Ask != "",
		"--mar": c.Mar, "--json": c.JSON, "--format": c.Format != "text",
	} {
		if given {
			return fmt.Errorf("--cases and %s exclude each other: the rows of --cases have the evidence, and --target names what is asked", flag)
		}
	}
	if c.Model == console.StandardInput && c.Cases == console.StandardInput {
		return fmt.Errorf("standard input can be read once: 2 inputs are %q", console.StandardInput)
	}
	if strings.HasSuffix(c.Output, console.Zipped) {
		return errors.New("--output: a compressed file cannot be gone on with; leave it out and compress standard output")
	}
	return nil
}

// sweep answers the rows of a file.
func (c *inferCmd) sweep(ctx context.Context, t *console.Terminal, common *config.Common) (err error) {
	m, err := c.loadModel(ctx, t.Opener(ctx), natsFlag{c.NATS, c.AsNATS, c.Signing})
	if err != nil {
		return err
	}
	c.tables = tables(c.Memory, m)
	labels, err := m.Labels()
	if err != nil {
		return err
	}
	asked, err := c.asked(labels)
	if err != nil {
		return err
	}
	file, size, err := t.Stream(ctx, c.Cases)
	if err != nil {
		return err
	}
	defer file.Close()
	in, err := cases.NewReader(file, labels, cases.Columns{IDs: c.ID, Ignore: c.Ignore})
	if err != nil {
		return fault.New(fault.CodeOf(err), "%s: %w", console.Called(c.Cases), err)
	}

	request, err := c.message(c.AsNATS.Job(console.NewJob(time.Now())), m, nil)
	if err != nil {
		return err
	}
	request.DeadlineMS = milliseconds(c.Deadline)
	graph, err := wire.NewGraph(m)
	if err != nil {
		return fault.Wrap(fault.BadInput, err)
	}
	_, digest, err := wire.EncodeGraph(graph)
	if err != nil {
		return err
	}
	s := &cases.Sweep{Request: request, Model: digest, Domains: m.Domains, Labels: labels, Targets: asked.Targets}
	var journal *cases.Journal
	if c.Output != "" {
		if journal, err = cases.OpenJournal(c.Output, s.Digest(in)); err != nil {
			return err
		}
		defer journal.Close()
	}

	logger := telemetry.Logger(t.Err, common.LogLevel, common.LogFormat)
	provider, flush, err := export.Traces(ctx, "btn", logger)
	if err != nil {
		return err
	}
	defer flush()
	if c.NATS == "" {
		t.CheckRedis(ctx, c.Redis)
	}
	ctx, remote, closeRemote, err := c.connect(ctx, logger, provider)
	if err != nil {
		return err
	}
	defer closeRemote()
	if request.ModelDigest == "" {
		if s.Request.ModelDigest, err = remote.PutModel(ctx, graph); err != nil {
			return err
		}
		s.Request.Model = nil
	}

	bar := newProgressBar(t.Err)
	p := &sweepProgress{bar: bar, size: size, read: &file.Count, began: time.Now()}
	s.Tell = c.telling(func(err error) { bar.clear(); t.Say(err) })
	s.Passed = p.show
	done, err := s.Run(ctx, remote, in, t.Out, journal)
	bar.clear()
	if err != nil {
		if journal != nil {
			fmt.Fprintf(t.Err, "btn: %s has %d rows: the same command goes on\n", c.Output, done.Resumed+done.Rows)
		}
		return err
	}
	fmt.Fprintf(t.Err, "btn: %s\n", p.sum(done))
	return nil
}

// sweepProgress draws how far a sweep is.
type sweepProgress struct {
	bar   *progressBar
	size  int64 // bytes of the input; 0: not known
	read  *atomic.Int64
	began time.Time
	drawn time.Time
}

// show draws the bar, a few times a second.
func (p *sweepProgress) show(d cases.Done) {
	if p.bar == nil || time.Since(p.drawn) < 200*time.Millisecond {
		return
	}
	p.drawn = time.Now()
	p.bar.share(p.sum(d), float64(p.read.Load()), float64(p.size))
}

// sum says what was done.
func (p *sweepProgress) sum(d cases.Done) string {
	took := time.Since(p.began)
	s := fmt.Sprintf("%d rows in %.1f s, %.0f a second", d.Rows, took.Seconds(), float64(d.Rows)/max(took.Seconds(), 1e-3))
	if d.Resumed > 0 {
		s += fmt.Sprintf("; %d were there", d.Resumed)
	}
	if d.Failed > 0 {
		s += fmt.Sprintf("; %d with an error", d.Failed)
	}
	return s
}
