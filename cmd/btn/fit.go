package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
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
	Iterations  int         `help:"Iterations at most." default:"100"`
	Tolerance   float64     `help:"Converged: an iteration gains less than this share of the ln-likelihood." default:"1e-7"`
	Pseudocount float64     `help:"Counts added to every entry that is not 0: a Dirichlet prior. 0: maximum likelihood." default:"0"`
	Seed        uint64      `help:"${fit_seed}"`
	Ignore      []string    `help:"Columns that are no variables." placeholder:"COLUMN"`
	Memory      config.Size `help:"${request_memory}" default:"2GiB" placeholder:"SIZE"`
	placeFlags
}

// Validate refuses values that the flag types let through; kong calls it.
func (c *fitCmd) Validate() error {
	switch {
	case c.Model == console.StandardInput && c.Data == console.StandardInput:
		return fmt.Errorf("standard input can be read once: 2 inputs are %q", console.StandardInput)
	case c.Iterations < 1:
		return fmt.Errorf("--iterations must be at least 1, not %d", c.Iterations)
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
	m, err := c.loadModel(ctx, t.Opener(ctx), c.server())
	if err != nil {
		return err
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

	say := t.Out
	if c.Output == "" {
		say = t.Err
	}
	fmt.Fprintf(say, "cases       %d, %d of them distinct\n", data.Rows, data.Distinct())
	request := wire.Request{
		Job:      c.AsNATS.Job(console.NewJob(time.Now())),
		Settings: query.Settings{Method: query.MethodExact, Memory: tables(c.Memory, m)},
	}
	fitted, report, err := fit.Run(ctx, remote, request, m, data, fit.Options{
		Iterations: c.Iterations, Tolerance: c.Tolerance, Pseudocount: c.Pseudocount, Seed: c.Seed,
		Passed: func(s fit.Step) { c.passed(say, s) }, Tell: c.telling(t.Say),
	})
	if err != nil {
		return err
	}
	ended := fmt.Sprintf("not converged after %d iterations: --iterations takes it further", report.Iteration)
	if report.Converged {
		ended = fmt.Sprintf("converged after %d iterations", report.Iteration)
	}
	fmt.Fprintf(say, "ended       %s\nfitted      %d tables", ended, report.Tables)
	if report.Fixed > 0 {
		fmt.Fprintf(say, "; %d factors in other forms stay as they are", report.Fixed)
	}
	fmt.Fprintln(say)
	return c.write(t, fitted)
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
	in, err := cases.NewReader(file, labels, cases.Columns{Ignore: c.Ignore})
	var data *fit.Data
	if err == nil {
		data, err = fit.Read(in)
	}
	if err != nil {
		return nil, fault.New(fault.CodeOf(err), "%s: %w", console.Called(c.Data), err)
	}
	return data, nil
}

// passed prints an iteration.
func (c *fitCmd) passed(to io.Writer, s fit.Step) {
	trust := ""
	if !s.Exact {
		trust = ", an estimate"
	}
	fmt.Fprintf(to, "iteration   %3d  ln likelihood %.6f nats", s.Iteration, s.Ln)
	if c.Pseudocount > 0 {
		fmt.Fprintf(to, ", with the prior %.6f", s.Objective)
	}
	fmt.Fprintln(to, trust)
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
