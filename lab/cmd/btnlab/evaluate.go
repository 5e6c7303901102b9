package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/lab/evaluate"
	"github.com/basetensor/basetensor/pkg/fault"
)

type evaluateCmd struct {
	Experiment string   `arg:"" optional:"" help:"${evaluate_experiment}" default:"all"`
	Out        string   `help:"Folder for the results." default:"evaluation" placeholder:"DIR"`
	Redraw     bool     `help:"Measure nothing: draw the figures again from the CSV files in --out."`
	Resume     bool     `help:"families, large, solvable: keep the rows of the CSV file in --out, and measure the missing ones."`
	Page       string   `help:"Also write tables of all CSV files in --out into this page, in the places that name them." placeholder:"FILE"`
	Short      bool     `help:"Small models and few of them."`
	Seeds      int      `help:"Models per setting; 0: 10, or 2 with --short." default:"0"`
	First      int      `help:"families: the first seed." default:"0"`
	Method     []string `help:"Only this method, of strength, calibration, families, solvable; repeat it for more." placeholder:"NAME"`
	Model      []string `help:"Only families whose name matches, e.g. '*_11'; repeat it for more." placeholder:"GLOB"`
}

// Validate refuses values that the flag types let through; kong calls it.
func (c *evaluateCmd) Validate() error {
	if c.Seeds < 0 {
		return fmt.Errorf("--seeds must not be negative, not %d", c.Seeds)
	}
	if c.First < 0 {
		return fmt.Errorf("--first must not be negative, not %d", c.First)
	}
	return nil
}

// Run makes each experiment, prints its progress, and writes its files. An interrupt keeps the measurements until then.
func (c *evaluateCmd) Run(ctx context.Context, t *console.Terminal) error {
	experiments, err := evaluate.Find(c.Experiment)
	if err != nil {
		return err
	}
	if c.Redraw {
		return c.redraw(experiments, t)
	}

	methods, err := evaluate.Named(c.Method...)
	if err != nil {
		return err
	}
	o := evaluate.Options{
		Short:    c.Short,
		Seeds:    c.Seeds,
		First:    c.First,
		Methods:  methods,
		Models:   c.Model,
		Progress: t.Err,
	}
	for _, x := range experiments {
		o.Keep = func(rows []evaluate.Row) error { return evaluate.WriteRows(c.Out, x, rows) }
		if c.Resume {
			if o.Earlier, err = evaluate.Rows(c.Out, x); err != nil {
				return err
			}
		}
		rows, err := x.Run(ctx, o)
		if len(rows) > 0 {
			err = errors.Join(err, evaluate.Write(c.Out, x, rows))
		}
		if err != nil {
			return fault.Wrap(fault.Internal, err)
		}
		if len(rows) == 0 {
			continue // it has said why
		}
		fmt.Fprintf(t.Out, "%s: %s\n%swritten to %s\n", x.Name, x.Description, x.Summary(rows), c.Out)
	}

	return c.page()
}

// redraw draws the figures of experiments from earlier measurements.
func (c *evaluateCmd) redraw(experiments []evaluate.Experiment, t *console.Terminal) error {
	all := 0
	for _, x := range experiments {
		n, err := evaluate.Redraw(c.Out, x)
		if err != nil {
			return err
		}
		all += n
	}
	if all == 0 {
		return fault.New(fault.BadInput, "%s has no results of %s", c.Out, c.Experiment)
	}
	fmt.Fprintf(t.Out, "%d figures drawn in %s\n", all, c.Out)
	return c.page()
}

// page writes tables of --out into the page of --page.
func (c *evaluateCmd) page() error {
	if c.Page == "" {
		return nil
	}
	old, err := os.ReadFile(c.Page)
	if err != nil {
		return fault.Wrap(fault.BadInput, err)
	}
	text, err := evaluate.Page(string(old), func(x evaluate.Experiment) ([]evaluate.Row, error) { return evaluate.Rows(c.Out, x) })
	if err != nil {
		return err
	}
	return fault.Wrap(fault.Infrastructure, os.WriteFile(c.Page, []byte(text), 0o644))
}
