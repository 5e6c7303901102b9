package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/lab/bench"
	"github.com/basetensor/basetensor/lab/chart"
	"github.com/basetensor/basetensor/pkg/fault"
)

// explainCmd compares most probable assignments with those of toulbar2.
type explainCmd struct {
	Folders  []string        `arg:"" optional:"" name:"folder" help:"Folders of models (*.uai, *.uai.gz), each with its .evid beside it."`
	Filter   []string        `help:"${bench_filter}" placeholder:"GLOB"`
	Budgets  []time.Duration `help:"Budgets, rising: a solver runs with the next one until it has proved the optimum." default:"1s,5s,20s,60s"`
	BTN      string          `name:"btn" help:"${bench_btn}" placeholder:"FILE"`
	Toulbar2 string          `help:"The toulbar2 beside it; without it the one on the path, or none." placeholder:"FILE"`
	Out      string          `help:"${explain_out}" default:"explain.csv"`
	Redraw   bool            `help:"Measure nothing: print the tables of --out and draw its picture."`
}

// Validate refuses values that the flag types let through; kong calls it.
func (c *explainCmd) Validate() error {
	if (len(c.Folders) == 0) == !c.Redraw {
		return errors.New("either a folder of models or --redraw is needed")
	}
	return nil
}

// Run prints a line for every run as it ends, then the tables. An interrupt keeps the rows until then.
func (c *explainCmd) Run(ctx context.Context, t *console.Terminal) error {
	if c.Redraw {
		f, err := os.Open(c.Out)
		if err != nil {
			return fault.Wrap(fault.BadInput, err)
		}
		defer f.Close()
		rows, err := chart.ReadCSV[bench.Explanation](f, chart.Columns[bench.Explanation]()...)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Out, err)
		}
		return c.show(t, rows)
	}

	var models []bench.Model
	for _, folder := range c.Folders {
		found, err := bench.Find(folder, c.Filter, false)
		if err != nil {
			return err
		}
		models = append(models, found...)
	}
	own, err := answerer(ctx, c.BTN)
	if err != nil {
		return err
	}
	programs := map[string]string{bench.Own: own}
	other := c.Toulbar2
	if other == "" {
		other = bench.Toulbar
	}
	if path, err := exec.LookPath(other); err == nil {
		programs[bench.Toulbar] = path
	} else if c.Toulbar2 != "" {
		return fault.Wrap(fault.BadInput, err)
	} else {
		fmt.Fprintln(t.Err, "btnlab: toulbar2 is not on the path: btn runs alone")
	}

	var rows []bench.Explanation
	interrupted := bench.Explain(ctx, programs, c.Budgets, models, func(e bench.Explanation) {
		rows = append(rows, e)
		fmt.Fprintf(t.Out, "%-28s %-9s %3gs  CPU %6.2fs  best %.6g  bound %.6g  optimal %v  %s\n", e.Model, e.Solver, e.Budget, e.CPU, e.Best,
			e.Bound, e.Optimal, e.Note)
	})
	if err := chart.WriteFile(c.Out, func(w io.Writer) error { return chart.WriteCSV(w, rows, false) }); err != nil {
		return err
	}
	return errors.Join(interrupted, c.show(t, rows))
}

// show prints the tables and draws the picture.
func (c *explainCmd) show(t *console.Terminal, rows []bench.Explanation) error {
	fmt.Fprint(t.Out, bench.SummaryOfExplanations(rows))
	if len(rows) == 0 {
		return nil
	}
	limit := 0.0
	for _, e := range rows {
		limit = max(limit, e.Budget)
	}
	return chart.WriteFile(c.Out[:len(c.Out)-len(filepath.Ext(c.Out))]+".svg", func(w io.Writer) error {
		return bench.WriteSVG(w, "Most probable assignments, proved", bench.SeriesOfExplanations(rows), bench.CPU, limit)
	})
}
