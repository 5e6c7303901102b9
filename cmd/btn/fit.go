package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/basetensor/basetensor/internal/people/cases"
	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/internal/people/fit"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/formats"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// fitCmd learns the tables of a Bayesian network, in this process or by the workers of a server.
type fitCmd struct {
	modelFlag
	Data        string      `arg:"" help:"${fit_data}"`
	Output      string      `short:"o" help:"${fit_output}" placeholder:"FILE"`
	Iterations  int         `help:"Iterations at most, of every start." default:"100"`
	Tolerance   float64     `help:"Converged: an iteration gains less than this share of the ln-likelihood." default:"1e-7"`
	Pseudocount float64     `help:"Counts added to every entry that is not 0: a Dirichlet prior. 0: maximum likelihood." default:"0"`
	Seed        uint64      `help:"${fit_seed}"`
	Starts      int         `help:"${fit_starts}" default:"1"`
	Ignore      []string    `help:"Columns that are no variables." placeholder:"COLUMN"`
	Missing     []string    `help:"${cases_missing}" placeholder:"WORD"`
	Weight      string      `help:"${fit_weight}" placeholder:"COLUMN"`
	Memory      config.Size `help:"${request_memory}" default:"${default_memory}" placeholder:"SIZE"`
	placeFlags
}

// Validate refuses values that the flag types let through; kong calls it.
func (c *fitCmd) Validate() error {
	switch {
	case c.Model == console.StandardInput && c.Data == console.StandardInput:
		return fmt.Errorf("standard input can be read once: 2 inputs are %q", console.StandardInput)
	case c.Iterations < 1:
		return fmt.Errorf("--iterations must be at least 1, not %d", c.Iterations)
	case c.Starts < 1:
		return fmt.Errorf("--starts must be at least 1, not %d", c.Starts)
	case !(c.Tolerance >= 0) || math.IsInf(c.Tolerance, 1):
		return fmt.Errorf("--tolerance must be at least 0, not %v", c.Tolerance)
	case !(c.Pseudocount >= 0) || math.IsInf(c.Pseudocount, 1):
		return fmt.Errorf("--pseudocount must be at least 0, not %v", c.Pseudocount)
	case c.Output != "" && formats.Of(c.Output) == "":
		return errors.New("--output: its name says no format")
	}
	return nil
}

// Run fits and writes the model; the summary goes to standard error where the model goes to standard output.
func (c *fitCmd) Run(ctx context.Context, t *console.Terminal, common *config.Common) error {
	var unknown []string
	c.limits.Unknown = func(node string) { unknown = append(unknown, node) }
	m, err := c.loadModel(ctx, t.Opener(ctx), c.server())
	if err != nil {
		return err
	}
	if n := len(unknown); n > 0 {
		fmt.Fprintf(t.Err, "btn: tables of %d variables are unknown, as of %.80q: their rows are uniform at the start, or drawn with --seed\n",
			n, unknown[0])
	}
	data, err := c.read(ctx, t, m)
	if err != nil {
		return err
	}

	ctx, remote, closeRemote, err := c.connectToSweep(ctx, t, common, c.Memory)
	if err != nil {
		return err
	}
	defer closeRemote()

	r := &fitRun{fitCmd: c, terminal: t, say: t.Out, weight: data.Weight, bar: console.NewBar(t.Err), told: time.Now()}
	if c.Output == "" {
		r.say = t.Err
	}
	options := fit.Options{
		Iterations: c.Iterations, Tolerance: c.Tolerance, Pseudocount: c.Pseudocount, Seed: c.Seed, Starts: c.Starts,
		Passed: r.passed, Counted: r.counted, Said: r.said, Ended: r.ended,
		Tell: c.telling(func(err error) { r.bar.Clear(); t.Say(err) }),
	}
	if err := r.resume(&options, m, data); err != nil {
		return err
	}
	fmt.Fprintf(r.say, "cases       %d, %d of them distinct", data.Rows, data.Distinct())
	if data.Weight != float64(data.Rows) {
		fmt.Fprintf(r.say, ", of weight %g together", data.Weight)
	}
	fmt.Fprintln(r.say)
	if s := options.From; s != nil {
		fmt.Fprintf(r.say, "resumed     start %d at iteration %d, from %s\n", s.Start+1, s.Iteration, r.state)
	}
	request := wire.Request{
		Job:      c.AsNATS.Job(console.NewJob(time.Now())),
		Settings: query.Settings{Method: query.MethodExact, Memory: tables(c.Memory, m)},
	}
	fitted, report, err := fit.Run(ctx, remote, request, m, data, options)
	r.bar.Clear()
	if err != nil {
		if r.isSaved {
			fmt.Fprintf(t.Err, "btn: %s has the last iteration: the same command goes on from it\n", r.state)
		}
		return err
	}
	if len(report.Starts) > 1 {
		fmt.Fprintf(r.say, "best        start %d, ln likelihood %.6f nats\n", report.Start.Start+1, report.Ln)
	}
	fmt.Fprintf(r.say, "fitted      %d tables", report.Tables)
	if report.Fixed > 0 {
		fmt.Fprintf(r.say, "; %d factors in other forms stay as they are", report.Fixed)
	}
	fmt.Fprintln(r.say)
	if err := c.write(t, fitted); err != nil {
		return err
	}
	return r.finish()
}

// read reads the cases.
func (c *fitCmd) read(ctx context.Context, t *console.Terminal, m *factorgraph.Model) (*fit.Data, error) {
	labels, err := m.Labels()
	if err != nil {
		return nil, err
	}
	file, _, err := t.Stream(ctx, c.Data)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	in, err := cases.NewReader(file, labels, cases.Columns{
		Ignore: c.Ignore, Weight: c.Weight, Missing: c.Missing, Advice: "; --ignore leaves a column out",
	})
	var data *fit.Data
	if err == nil {
		data, err = fit.Read(in)
	}
	if err != nil {
		return nil, fault.New(fault.CodeOf(err), "%s: %w", console.Called(c.Data), err)
	}
	if data.Left > 0 {
		for _, wrong := range data.Wrong {
			fmt.Fprintf(t.Err, "btn: %s: %v\n", console.Called(c.Data), wrong)
		}
		fmt.Fprintf(t.Err, "btn: %s: %d of %d rows are no cases and left out\n", console.Called(c.Data), data.Left, data.Left+data.Rows)
	}
	return data, nil
}

// fitRun is a run of the command: what it prints, and the file with its state.
type fitRun struct {
	*fitCmd
	terminal *console.Terminal
	say      io.Writer
	bar      *console.Bar // nil where standard error is no terminal
	weight   float64      // of all cases
	told     time.Time    // when progress was said last
	state    string       // file; empty: the model goes to standard output
	digest   string       // of what the state depends on
	isSaved  bool
}

// resume has the state kept in a file beside the output, and goes on from the one that is there.
func (r *fitRun) resume(o *fit.Options, m *factorgraph.Model, data *fit.Data) error {
	if r.Output == "" {
		return nil
	}
	graph, err := wire.NewGraph(m)
	if err != nil {
		return fault.Wrap(fault.BadInput, err)
	}
	_, model, err := wire.EncodeGraph(graph)
	if err != nil {
		return err
	}
	r.state = r.Output + ".run"
	r.digest = wire.Digest(fmt.Appendf(nil, "fit 1 %s %s %v %d %d", model, data.Digest(), r.Pseudocount, r.Seed, r.Starts))
	if o.From, err = fit.LoadState(r.state, r.digest); err != nil {
		return err
	}
	r.isSaved = o.From != nil
	o.Save = func(s *fit.State) error {
		err := console.Replace(r.state, 0o666, func(w io.Writer) error { return fit.WriteState(w, r.digest, s) })
		r.isSaved = r.isSaved || err == nil
		return fault.Wrap(fault.Infrastructure, err)
	}
	return nil
}

// finish removes the state: the model is written.
func (r *fitRun) finish() error {
	if err := os.Remove(r.state); r.isSaved && err != nil {
		return fault.Wrap(fault.Infrastructure, err)
	}
	return nil
}

// passed prints an iteration.
func (r *fitRun) passed(s fit.Step) {
	r.bar.Clear()
	r.told = time.Now()
	trust := ""
	if !s.Exact {
		trust = ", an estimate"
	}
	fmt.Fprintf(r.say, "iteration   %3d  ln likelihood %.6f nats", s.Iteration, s.Ln)
	if r.Pseudocount > 0 {
		fmt.Fprintf(r.say, ", with the prior %.6f", s.Objective)
	}
	fmt.Fprintln(r.say, trust)
}

// counted shows the weight of the cases of an iteration that are done: a bar on a terminal, else a line every ten seconds.
func (r *fitRun) counted(iteration int, weight float64) {
	text := fmt.Sprintf("iteration %d: %.0f of %.0f cases", iteration, weight, r.weight)
	if r.bar != nil {
		r.bar.Draw("", weight, r.weight, text)
	} else if time.Since(r.told) > 10*time.Second {
		r.told = time.Now()
		fmt.Fprintf(r.terminal.Err, "btn: %s\n", text)
	}
}

// said passes on what EM does about tables.
func (r *fitRun) said(text string) {
	r.bar.Clear()
	fmt.Fprintf(r.terminal.Err, "btn: %s\n", text)
}

// ended prints how a start ended.
func (r *fitRun) ended(s fit.Start) {
	how := fmt.Sprintf("not converged after %d iterations: --iterations takes it further", s.Iteration)
	if s.Converged {
		how = fmt.Sprintf("converged after %d iterations", s.Iteration)
	}
	if r.Starts == 1 {
		fmt.Fprintf(r.say, "ended       %s\n", how)
		return
	}
	origin := "the model's tables"
	if s.Seed != 0 {
		origin = fmt.Sprintf("seed %d", s.Seed)
	}
	fmt.Fprintf(r.say, "start       %3d  from %s: ln likelihood %.6f nats, %s\n", s.Start+1, origin, s.Ln, how)
}

// write writes the model.
func (c *fitCmd) write(t *console.Terminal, m *factorgraph.Model) error {
	if c.Output == "" {
		return fault.Wrap(fault.Infrastructure, formats.Write(t.Out, formats.JSON, m))
	}
	err := console.Replace(c.Output, 0o666, func(w io.Writer) error { return formats.Write(w, formats.Of(c.Output), m) })
	if err != nil {
		return fault.Wrap(fault.Infrastructure, fmt.Errorf("%s: %w", c.Output, err))
	}
	for _, lost := range losses(formats.Of(c.Output), m) {
		fmt.Fprintf(t.Err, "%s: %s\n", c.Output, lost)
	}
	return nil
}
