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
	Iterations  int         `help:"Most iterations of a run." default:"100"`
	Tolerance   float64     `help:"Stop once an iteration changes the ln-likelihood by less than this share of it." default:"1e-7"`
	Pseudocount float64     `help:"Count added to every entry that is not 0 in the model. 0 gives the maximum likelihood." default:"0"`
	Prior       string      `help:"${fit_prior}" placeholder:"MODEL"`
	Equivalent  float64     `name:"equivalent-size" help:"${fit_equivalent}" placeholder:"CASES"`
	Update      string      `help:"${fit_update}" placeholder:"FILE"`
	Forget      float64     `help:"${fit_forget}" default:"1" placeholder:"SHARE"`
	HeldOut     string      `name:"held-out" help:"${fit_held_out}" placeholder:"FILE"`
	Seed        uint64      `help:"${fit_seed}" placeholder:"N"`
	Starts      int         `help:"${fit_starts}" default:"1"`
	Ignore      []string    `help:"Columns that are not variables of the model." placeholder:"COLUMN"`
	Missing     []string    `help:"${cases_missing}" placeholder:"WORD"`
	Weight      string      `help:"${fit_weight}" placeholder:"COLUMN"`
	Memory      config.Size `help:"${request_memory}" default:"${default_memory}" placeholder:"SIZE"`
	placeFlags
}

// Validate refuses values that the flag types let through; kong calls it.
func (c *fitCmd) Validate() error {
	if err := checkStandardInput(c.Model, c.Data, c.Prior, c.HeldOut); err != nil {
		return err
	}
	switch {
	case (c.Prior == "") != (c.Equivalent == 0):
		return errors.New("--prior and --equivalent-size belong together")
	case !(c.Equivalent >= 0) || math.IsInf(c.Equivalent, 1):
		return fmt.Errorf("--equivalent-size must be above 0, not %v", c.Equivalent)
	case !(c.Forget >= 0 && c.Forget <= 1):
		return fmt.Errorf("--forget must be 0 to 1, not %v", c.Forget)
	case c.Forget != 1 && c.Update == "":
		return errors.New("--forget is about the counts of --update")
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

// Run fits and writes the model. The summary goes to standard error if the model goes to standard output.
func (c *fitCmd) Run(ctx context.Context, t *console.Terminal, common *config.Common) error {
	// the inputs
	model, err := c.loadStructure(ctx, t)
	if err != nil {
		return err
	}
	inputs, err := c.readInputs(ctx, t, model)
	if err != nil {
		return err
	}

	// the workers
	ctx, remote, closeRemote, err := c.connectToSweep(ctx, t, common, c.Memory)
	if err != nil {
		return err
	}
	defer closeRemote()

	// the run
	if err := c.tellUnseen(t, model, inputs); err != nil {
		return err
	}
	run := newFitRun(c, t, inputs)
	options := run.options(inputs)
	if err := run.resume(&options, model, inputs); err != nil {
		return err
	}
	run.printBegin(inputs, options.Resume)
	request := wire.Request{
		Job:      c.AsNATS.Job(console.NewJob(time.Now())),
		Settings: query.Settings{Method: query.MethodExact, Memory: tableMemory(c.Memory, model)},
	}
	fitted, report, err := fit.Run(ctx, remote, request, model, inputs.data, options)
	run.bar.Clear()
	if err != nil {
		if run.isSaved {
			fmt.Fprintf(t.Err, "btn: %s has the last iteration: the same command goes on from it\n", run.stateFile)
		}
		return err
	}

	run.printReport(&report)
	if err := c.checkCounts(inputs); err != nil {
		return err
	}
	if err := c.writeModel(t, fitted); err != nil {
		return err
	}
	// The state is removed before the counts are saved, so that the same command after a kill in between counts the cases once.
	if err := run.removeState(); err != nil {
		return err
	}
	return c.saveCounts(report.Counts)
}

// fitRun is a run of the command: what it prints, and the file with its state.
type fitRun struct {
	*fitCmd
	terminal   *console.Terminal
	say        io.Writer    // for the summary
	bar        *console.Bar // nil: standard error is no terminal
	weight     float64      // of all cases
	heldOut    float64      // the weight of the cases that are held out
	addsCounts bool         // whether something is added to the counts of the cases
	toldAt     time.Time    // when progress was told last
	stateFile  string       // the file of the state; empty: the model goes to standard output, and no state is kept
	digest     string       // of what the state depends on
	isSaved    bool         // whether there is a file of the state
}

// newFitRun returns a run of the command on inputs.
func newFitRun(c *fitCmd, t *console.Terminal, in fitInputs) *fitRun {
	r := &fitRun{
		fitCmd: c, terminal: t, say: t.Out, weight: in.data.Weight, addsCounts: c.addsCounts(in), bar: console.NewBar(t.Err), toldAt: time.Now(),
	}
	if c.Output == "" {
		r.say = t.Err
	}
	if in.heldOut != nil {
		r.heldOut = in.heldOut.Weight
	}
	return r
}

// printBegin prints how many cases there are, and from where an unfinished run goes on.
func (r *fitRun) printBegin(in fitInputs, unfinished *fit.State) {
	fmt.Fprintf(r.say, "cases       %d, %d of them distinct", in.data.Rows, in.data.Distinct())
	if in.data.Weight != float64(in.data.Rows) {
		fmt.Fprintf(r.say, ", of weight %g together", in.data.Weight)
	}
	fmt.Fprintln(r.say)
	if in.counts != nil {
		fmt.Fprintf(r.say, "earlier     %g cases, from %s\n", in.counts.Weight, r.Update)
	}
	if unfinished != nil {
		fmt.Fprintf(r.say, "resumed     start %d at iteration %d, from %s\n", unfinished.Start+1, unfinished.Iteration, r.stateFile)
	}
}

// options returns the options of the fit by the flags, without an earlier state. The run prints the fit's progress.
func (r *fitRun) options(in fitInputs) fit.Options {
	return fit.Options{
		Iterations: r.Iterations, Tolerance: r.Tolerance, Pseudocount: r.Pseudocount, Seed: r.Seed, Starts: r.Starts,
		Prior: in.prior, EarlierCounts: in.counts, ReturnCounts: r.Update != "", HeldOut: in.heldOut,
		OnStep: r.printStep, OnProgress: r.showProgress, OnNote: r.printNote, OnStartEnd: r.printStart,
		OnUnserved: r.telling(func(err error) { r.bar.Clear(); r.terminal.WarnWaiting(err) }),
	}
}

// resume makes the run keep its state in a file beside the output, and go on from the state in it, if there is one of
// the same run.
func (r *fitRun) resume(o *fit.Options, m *factorgraph.Model, in fitInputs) error {
	if r.Output == "" {
		return nil
	}

	// the digest of everything that the state depends on
	graph, err := wire.NewGraph(m)
	if err != nil {
		return fault.Wrap(fault.BadInput, err)
	}
	_, model, err := wire.EncodeGraph(graph)
	if err != nil {
		return err
	}
	r.stateFile = r.Output + ".run"
	text := fmt.Appendf(nil, "fit 1 %s %s %v %d %d", model, in.data.Digest(), r.Pseudocount, r.Seed, r.Starts)
	if in.prior != nil {
		graph, err := wire.NewGraph(in.prior.Model)
		if err != nil {
			return fault.Wrap(fault.BadInput, err)
		}
		_, prior, err := wire.EncodeGraph(graph)
		if err != nil {
			return err
		}
		text = fmt.Appendf(text, " prior %s %v", prior, in.prior.Size)
	}
	r.digest = wire.Digest(fmt.Appendf(text, " counts %s %v", in.countsDigest, r.Forget))

	// the state
	if o.Resume, err = fit.LoadState(r.stateFile, r.digest); err != nil {
		return err
	}
	r.isSaved = o.Resume != nil
	o.Save = func(s *fit.State) error {
		err := console.ReplaceFile(r.stateFile, 0o666, func(w io.Writer) error { return fit.WriteState(w, r.digest, s) })
		r.isSaved = r.isSaved || err == nil
		return fault.Wrap(fault.Infrastructure, err)
	}
	return nil
}

// removeState removes the file of the state, once the model is written.
func (r *fitRun) removeState() error {
	if err := os.Remove(r.stateFile); r.isSaved && err != nil {
		return fault.Wrap(fault.Infrastructure, err)
	}
	return nil
}

// printStep prints an iteration.
func (r *fitRun) printStep(s fit.Step) {
	r.bar.Clear()
	r.toldAt = time.Now()
	trust := ""
	if !s.Exact {
		trust = ", an estimate"
	}
	fmt.Fprintf(r.say, "iteration   %3d  ln likelihood %.6f", s.Iteration, s.Ln)
	if s.Objective != s.Ln {
		fmt.Fprintf(r.say, ", with the prior and earlier counts %.6f", s.Objective)
	}
	fmt.Fprintln(r.say, trust)
}

// showProgress shows the weight of the cases of an iteration that are done: as a bar on a terminal, else in a line
// every ten seconds.
func (r *fitRun) showProgress(iteration int, weight float64) {
	text := fmt.Sprintf("iteration %d: %.0f of %.0f cases", iteration, weight, r.weight)
	if r.bar != nil {
		r.bar.Draw("", weight, r.weight, text)
	} else if time.Since(r.toldAt) > 10*time.Second {
		r.toldAt = time.Now()
		fmt.Fprintf(r.terminal.Err, "btn: %s\n", text)
	}
}

// printNote prints what EM says about tables.
func (r *fitRun) printNote(text string) {
	r.bar.Clear()
	fmt.Fprintf(r.terminal.Err, "btn: %s\n", text)
}

// printReport prints which tables were fitted, and how good they are.
func (r *fitRun) printReport(report *fit.Report) {
	// the start and the tables
	if len(report.Starts) > 1 {
		fmt.Fprintf(r.say, "best        start %d, ln likelihood %.6f\n", report.Start.Start+1, report.Ln)
	}
	fmt.Fprintf(r.say, "fitted      %d tables", report.Tables)
	if report.UnfittedFactors > 0 {
		fmt.Fprintf(r.say, "; %d factors in other forms stay as they are", report.UnfittedFactors)
	}
	fmt.Fprintln(r.say)
	if text := report.Unreached.Text(r.addsCounts); text != "" {
		fmt.Fprintf(r.terminal.Err, "btn: %s\n", text)
	}

	// criteria, and the cases that are held out
	fmt.Fprintf(r.say, "criteria    BIC %.6f, AIC %.6f, of %d parameters: lower is better\n", report.BIC(), report.AIC(), report.Parameters)
	h := report.HeldOut
	if h == nil {
		return
	}
	if h.Impossible > 0 {
		fmt.Fprintf(r.say, "held out    ln likelihood -inf: row %d of %s is impossible\n", h.Impossible, console.InputName(r.HeldOut))
		return
	}
	trust := ""
	if !h.Exact {
		trust = ", an estimate"
	}
	fmt.Fprintf(r.say, "held out    ln likelihood %.6f, %.6f a case%s\n", h.Ln, h.Ln/r.heldOut, trust)
}

// printStart prints how a start ended.
func (r *fitRun) printStart(s fit.Start) {
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
	fmt.Fprintf(r.say, "start       %3d  from %s: ln likelihood %.6f, %s\n", s.Start+1, origin, s.Ln, how)
}

// writeModel writes the model, in the native format to standard output or in the format of the output file's name.
func (c *fitCmd) writeModel(t *console.Terminal, m *factorgraph.Model) error {
	if c.Output == "" {
		return fault.Wrap(fault.Infrastructure, formats.Write(t.Out, formats.JSON, m))
	}
	err := console.ReplaceFile(c.Output, 0o666, func(w io.Writer) error { return formats.Write(w, formats.Of(c.Output), m) })
	if err != nil {
		return fault.Wrap(fault.Infrastructure, fmt.Errorf("%s: %w", c.Output, err))
	}
	for _, loss := range formats.Losses(formats.Of(c.Output), m) {
		fmt.Fprintf(t.Err, "%s: %s\n", c.Output, loss)
	}
	return nil
}
