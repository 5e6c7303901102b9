// Package evaluate holds the experiments that say how good the methods are: random models whose
// answers are known, every method on each, rows of numbers and the figures of them. The models
// follow from the seeds; seconds are the machine's.
package evaluate

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/basetensor/basetensor/internal/base/cputime"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Options set the extent of a run. The zero value is the whole experiment.
type Options struct {
	Short    bool      // small models and few of them: to see that everything works
	Seeds    int       // models per setting; 0: 10, or 2 where Short
	First    int       // of the experiment families: the first seed
	Methods  []Method  // of the experiments strength, calibration, families and solvable; nil: their own
	Models   []string  // patterns (path.Match) of names: of models in the first three, of families in the last; nil: all
	Progress io.Writer // a line per model; nil: none
	// Of the experiment families: an earlier run's rows, which are not measured again, and a function that saves the rows after every
	// model; nil: none.
	Earlier []Row
	Keep    func(rows []Row) error
}

// seeds is the number of models per setting, by default usual, or short.
func (o Options) seeds(usual, short int) int {
	if o.Short {
		usual = short
	}
	return cmp.Or(o.Seeds, usual)
}

// The usual number of models per setting, and of a short run.
const usualSeeds, shortSeeds = 10, 2

// Row is one method on one model. Numbers that are not known, or mean nothing in an experiment, are
// NaN. Columns that hold nothing in any row are left out of the CSV file.
type Row struct {
	Model         string  `csv:"model"` // a name, of models that are not drawn
	Family        string  `csv:"family"`
	Attractive    bool    `csv:"attractive"`
	Variables     int     `csv:"variables"`
	Strength      float64 `csv:"strength"` // Δ, or the largest |ln| of an entry
	Seed          uint64  `csv:"seed"`
	Method        string  `csv:"method"`
	Step          float64 `csv:"step"`                   // the quantity that grows: components, bond, number of observations
	LnZ           float64 `csv:"ln_z"`                   // exact, nats
	Estimate      float64 `csv:"estimate"`               // nats
	Error         float64 `csv:"error"`                  // |Estimate − LnZ|
	Uncertainty   float64 `csv:"uncertainty"`            // stated, nats
	MarginalError float64 `csv:"marginal_error"`         // mean over the variables of the total variation ½ Σ_x |p(x) − q(x)|
	Largest       float64 `csv:"largest_marginal_error"` // largest |p(x) − q(x)| of a variable and value
	Residual      float64 `csv:"residual"`               // ρ
	Flops         float64 `csv:"flops"`
	Seconds       float64 `csv:"seconds"` // of the estimate
	ExactSeconds  float64 `csv:"exact_seconds"`
	Failed        string  `csv:"failed"` // why there is no estimate
	Guarantee
}

// Guarantee holds an answer's statements beside its uncertainty, and its processor time.
type Guarantee struct {
	StandardError  float64 `csv:"standard_error"` // of ln Z, nats
	Tail           float64 `csv:"tail_index"`     // Pareto's k of the weights
	Lower          float64 `csv:"lower"`          // of ln Z, nats
	Upper          float64 `csv:"upper"`
	MarginalStated float64 `csv:"marginal_uncertainty"` // of a probability
	CPU            float64 `csv:"cpu_seconds"`          // of processors
	Used           string  `csv:"used"`                 // the family of the last estimate
}

// silent says nothing.
func silent() Guarantee {
	x := math.NaN()
	return Guarantee{StandardError: x, Tail: x, Lower: x, Upper: x, MarginalStated: x, CPU: x}
}

// label names the group of models that a row is of.
func (r Row) label() string {
	if r.Attractive {
		return r.Family + " attractive"
	}
	return r.Family
}

// answer writes a method's outcome into a row, beside the exact answer.
func (r *Row) answer(got, exact Outcome) {
	r.LnZ, r.ExactSeconds, r.Estimate, r.Uncertainty, r.Residual = exact.LnZ, exact.Seconds, got.LnZ, got.Uncertainty, got.Residual
	r.Guarantee = got.Guarantee
	r.Flops, r.Seconds = got.Flops, got.Seconds
	r.Error = math.Abs(got.LnZ - exact.LnZ)
	r.MarginalError, r.Largest = distance(got.Marginals, exact.Marginals)
}

// Figure is a drawing of rows.
type Figure struct {
	Name string // of its file, without .svg
	Draw func(io.Writer) error
}

// solved answers a model exactly.
func solved(ctx context.Context, name fmt.Stringer, model *factorgraph.Model, marginals bool) (Outcome, error) {
	exact, err := timed(ctx, Settings("exact", exactSettings), model, marginals)
	if err != nil {
		return exact, fmt.Errorf("%s: exactly: %w", name, err)
	}
	if exact.Uncertainty != 0 {
		return exact, fault.New(fault.Internal, "%s: the exact answer is not known to be exact", name)
	}
	return exact, nil
}

// compare answers every instance exactly and by every method.
func compare(ctx context.Context, o Options, list []instance, methods []Method, marginals bool) ([]Row, error) {
	var rows []Row
	for k, x := range list {
		model, err := x.build()
		if err != nil {
			return rows, err
		}
		exact, err := solved(ctx, x, model, marginals)
		if err != nil {
			return rows, err
		}
		line := fmt.Sprintf("%d/%d %s: ln Z = %.6g (%.2f s)", k+1, len(list), x, exact.LnZ, exact.Seconds)
		more, said, err := answers(ctx, x.row(len(model.Domains)), model, exact, methods, marginals)
		rows = append(rows, more...)
		if err != nil {
			return rows, err
		}
		o.say(line + said)
	}

	return rows, nil
}

// answers are the rows of the methods on one model, and a word on each.
func answers(
	ctx context.Context, row Row, model *factorgraph.Model, exact Outcome, methods []Method, marginals bool,
) (rows []Row, said string, err error) {
	for _, m := range methods {
		got, err := timed(ctx, m, model, marginals)
		if ctx.Err() != nil {
			return rows, said, ctx.Err()
		}
		r := row
		r.Method, r.Step = m.Name, m.Step
		if err != nil {
			seconds, cpu := got.Seconds, got.CPU
			got, r.Failed = unknown(), err.Error()
			got.Seconds, got.CPU = seconds, cpu
		} else if !math.IsNaN(m.Step) {
			r.Step = float64(got.Components)
		}
		r.answer(got, exact)
		rows = append(rows, r)
		said += fmt.Sprintf("  %s %s (%.2f s)", m.Name, short(r.Error), r.Seconds)
	}

	return rows, said, nil
}

// say reports progress.
func (o Options) say(line string) {
	if o.Progress != nil {
		fmt.Fprintln(o.Progress, line)
	}
}

// short writes an error with two digits.
func short(x float64) string {
	if math.IsNaN(x) {
		return "failed"
	}
	return strconv.FormatFloat(x, 'g', 2, 64)
}

// distance is the mean total variation of the marginals and their largest difference, NaN where
// there are none.
func distance(p, q [][]float64) (mean, largest float64) {
	if len(p) != len(q) || len(p) == 0 {
		return math.NaN(), math.NaN()
	}
	for v := range p {
		for x := range p[v] {
			d := math.Abs(p[v][x] - q[v][x])
			mean += d / 2 / float64(len(p))
			largest = max(largest, d)
		}
	}
	return mean, largest
}

// now and used are the clock and the processors' time, which tests replace.
var (
	now  = time.Now
	used = cputime.OfProcess
)
