// Package evaluate holds the experiments that say how good the methods are: random models whose answers are known, every
// method on each, rows of numbers and the figures of them. The models follow from the seeds; seconds are the machine's.
package evaluate

import (
	"context"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/basetensor/basetensor/pkg/fault"
)

// Options say how much is run. The zero value is the whole experiment.
type Options struct {
	Short    bool      // small models and few of them: to see that everything works
	Seeds    int       // models per setting; 0: 10, or 2 where Short
	Methods  []Method  // nil: the experiment's own
	Progress io.Writer // a line per model; nil: none
}

func (o Options) seeds() int {
	switch {
	case o.Seeds > 0:
		return o.Seeds
	case o.Short:
		return 2
	}
	return 10
}

// Row is one method on one model. Numbers that are not known are NaN.
type Row struct {
	Family        string
	Attractive    bool
	Variables     int
	Strength      float64 // Δ, or the largest |ln| of an entry
	Seed          uint64
	Method        string
	LnZ           float64 // exact, nats
	Estimate      float64 // nats
	Error         float64 // |Estimate − LnZ|
	Uncertainty   float64 // stated, nats
	MarginalError float64 // mean over the variables of the total variation ½ Σ_x |p(x) − q(x)|
	Flops         float64
	Seconds       float64 // of the estimate
	ExactSeconds  float64
	Failed        string // why there is no estimate
}

// Columns of the CSV file, as Cells gives them.
var Columns = []string{
	"family", "attractive", "variables", "strength", "seed", "method", "ln_z", "estimate", "error", "uncertainty", "marginal_error",
	"flops", "seconds", "exact_seconds", "failed",
}

// Cells are the row's values in the sequence of Columns.
func (r Row) Cells() []any {
	return []any{
		r.Family, r.Attractive, r.Variables, r.Strength, r.Seed, r.Method, r.LnZ, r.Estimate, r.Error, r.Uncertainty, r.MarginalError,
		r.Flops, r.Seconds, r.ExactSeconds, r.Failed,
	}
}

// Figure is a drawing of rows.
type Figure struct {
	Name string // of its file, without .svg
	Draw func(io.Writer) error
}

// Experiment is a question about the methods.
type Experiment struct {
	Name        string
	Description string
	Run         func(ctx context.Context, o Options) ([]Row, error)
	Figures     func(rows []Row) []Figure
	Summary     func(rows []Row) string // a few lines of text
}

// Experiments are all there are.
func Experiments() []Experiment { return []Experiment{strength(), calibration()} }

// Find returns the experiment of that name, or all of them for "all".
func Find(name string) ([]Experiment, error) {
	if name == "all" {
		return Experiments(), nil
	}
	for _, x := range Experiments() {
		if x.Name == name {
			return []Experiment{x}, nil
		}
	}
	return nil, fault.New(fault.BadInput, "evaluate: no experiment %q", name)
}

// compare answers every instance exactly and by every method.
func compare(ctx context.Context, o Options, list []instance, methods []Method, marginals bool) ([]Row, error) {
	if len(o.Methods) > 0 {
		methods = o.Methods
	}
	var rows []Row
	truth := Settings("exact", exactSettings)
	for k, x := range list {
		model, err := x.build()
		if err != nil {
			return rows, err
		}
		exact, err := timed(ctx, truth, model, marginals)
		if err != nil {
			return rows, fmt.Errorf("%s: exactly: %w", x, err)
		}
		if exact.Uncertainty != 0 {
			return rows, fault.New(fault.Internal, "%s: the exact answer is not known to be exact", x)
		}
		line := fmt.Sprintf("%d/%d %s: ln Z = %.6g (%.2f s)", k+1, len(list), x, exact.LnZ, exact.Seconds)
		for _, m := range methods {
			row := Row{
				Family: x.family.name, Attractive: x.attractive, Variables: len(model.Domains), Strength: x.strength, Seed: x.seed,
				Method: m.Name, LnZ: exact.LnZ, ExactSeconds: exact.Seconds,
			}
			got, err := timed(ctx, m, model, marginals)
			if ctx.Err() != nil {
				return rows, ctx.Err()
			}
			row.Seconds = got.Seconds
			if err != nil {
				got, row.Failed = unknown(), err.Error()
			}
			row.Estimate, row.Uncertainty, row.Flops = got.LnZ, got.Uncertainty, got.Flops
			row.Error, row.MarginalError = math.Abs(got.LnZ-exact.LnZ), distance(got.Marginals, exact.Marginals)
			rows = append(rows, row)
			line += fmt.Sprintf("  %s %s (%.2f s)", m.Name, short(row.Error), row.Seconds)
		}
		if o.Progress != nil {
			fmt.Fprintln(o.Progress, line)
		}
	}
	return rows, nil
}

// short writes an error with two digits.
func short(x float64) string {
	if math.IsNaN(x) {
		return "failed"
	}
	return strconv.FormatFloat(x, 'g', 2, 64)
}

// distance is the mean total variation of the marginals, NaN where there are none.
func distance(p, q [][]float64) float64 {
	if len(p) != len(q) || len(p) == 0 {
		return math.NaN()
	}
	total := 0.0
	for v := range p {
		for x := range p[v] {
			total += math.Abs(p[v][x]-q[v][x]) / 2
		}
	}
	return total / float64(len(p))
}

// now is the clock, which tests replace.
var now = time.Now
