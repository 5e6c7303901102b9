// Package fit learns the conditional probability tables of a Bayesian network from cases with missing values, by EM over the workers:
// the expected counts of an E step are θ · ∂ ln-likelihood/∂θ, the sum of the cases' gradients, which comes in jobs of many cases each.
package fit

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/internal/doors/cases"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
)

// rounding is the largest relative fall of a likelihood by rounding alone.
const rounding = 1e-9

// Options say when EM ends. The zero value of Pseudocount is maximum likelihood.
type Options struct {
	Iterations  int     // M steps at most, of every start
	Tolerance   float64 // it has converged when an iteration gains less than this share of the likelihood
	Pseudocount float64 // of every entry that is not 0: a Dirichlet prior with this + 1
	Prior       *Prior  // adds counts, too; nil: none
	Counts      *Counts // of earlier cases, which are added; nil: none
	Count       bool    // Report has the counts after these cases
	HeldOut     *Data   // cases whose likelihood is reported; nil: none
	Seed        uint64  // 0: the first start is with the tables as they are; else with rows drawn by it
	Starts      int     // the next ones are with rows drawn by Seed + 1 and so on; 0: one
	From        *State  // nil: the beginning
	Passed      func(Step)
	Counted     func(iteration int, weight float64) // of the cases that are done; may be nil
	Said        func(text string)                   // hears what EM does about tables; may be nil
	Ended       func(Start)                         // may be nil
	Save        func(*State) error                  // keeps what an interrupted run goes on from, after every iteration; may be nil
	Tell        func(error)                         // hears that nobody serves a job
}

// Step is the progress of EM.
type Step struct {
	Start     int // from 0 on
	Iteration int
	Ln        float64 // likelihood of all cases, nats
	Objective float64 // and of the prior; the same without
	Exact     bool
}

// Start is how EM ended from one start.
type Start struct {
	Step
	Seed      uint64 // of the rows that it began with; 0: the model's tables
	Converged bool
}

// Report says how EM ended.
type Report struct {
	Start          // the best one
	Starts []Start // all
	Tables int     // that were fitted
	Fixed  int     // factors in other forms, which stay as they are

	Unreached  Unreached
	Parameters int      // free numbers of the tables: entries that are not 0, less one for each row
	Weight     float64  // of the cases
	Counts     *Counts  // if they are asked for
	HeldOut    *HeldOut // if there are such cases
}

// AIC is Akaike's criterion 2k − 2 ln L, with k parameters: lower is better.
func (r *Report) AIC() float64 { return 2*float64(r.Parameters) - 2*r.Ln }

// BIC is the Bayesian criterion k ln n − 2 ln L of Schwarz, with k parameters and n the weight of the cases: lower is better.
func (r *Report) BIC() float64 { return float64(r.Parameters)*math.Log(r.Weight) - 2*r.Ln }

// HeldOut is the likelihood of cases that nothing is learned from.
type HeldOut struct {
	Ln         float64 // nats; −∞ if a case is impossible
	Impossible int64   // its row; 0: none
	Exact      bool
}

// fitting is a run of EM.
type fitting struct {
	Options
	pipeline cases.Pipeline
	request  wire.Request
	data     *Data
	model    *factorgraph.Model // whose tables change
	cpts     []cpt
	given    [][]float64 // tables of the model, by cpt
	prior    [][]float64 // counts that are added to those of the cases, by cpt
	state    State
}

// Run fits the tables of m. request has the settings, the tenant and the beginning of the jobs'
// ids. The likelihood never falls: a step that lowers the objective by more than rounding is an
// error (fault.Internal). Entries of 0 stay 0, and rows that no case reaches stay as they are. The
// same data and options give the same bits, for any number of workers, interrupted or not. The best of several starts is kept, the first
// of equal ones.
//
// A variable that no case observes may have states that are alike in all tables. EM cannot tell them apart, though it seems to have
// converged: the tables are perturbed, once before the first iteration and once after convergence, and the better end is kept.
//
// Errors: bad_input for a model that is no Bayesian network and for a case of probability 0, with
// its row; errors of jobs.
func Run(
	ctx context.Context, p cases.Pipeline, request wire.Request, m *factorgraph.Model, d *Data, o Options,
) (*factorgraph.Model, Report, error) {
	normal, _ := m.Normalised()
	model, cpts, fixed, err := tables(normal)
	if err != nil {
		return nil, Report{}, err
	}
	f := &fitting{Options: o, pipeline: p, request: request, data: d, model: model, cpts: cpts}
	for _, c := range cpts {
		c.normalise(c.data) // files have six digits
	}
	if err := f.addPrior(ctx, m); err != nil {
		return nil, Report{}, err
	}
	f.given = f.copied()
	if o.From != nil {
		if err := f.resume(o.From); err != nil {
			return nil, Report{}, err
		}
	}
	for f.state.Start < max(1, o.Starts) {
		if err := f.climb(ctx); err != nil {
			return nil, Report{Tables: len(cpts), Fixed: fixed}, err
		}
	}
	report := Report{
		Start: f.state.Best.Start, Starts: f.state.Ended, Tables: len(cpts), Fixed: fixed, Weight: d.Weight,
		Unreached: f.state.Best.Unreached,
	}
	f.write(f.given)
	for _, c := range cpts {
		report.Parameters += c.parameters()
	}
	f.write(f.state.Best.Tables)
	if err := f.judge(ctx, &report); err != nil {
		return nil, report, err
	}
	return model, report, nil
}

// judge adds to a report how the tables do with other cases, and the counts of these.
func (f *fitting) judge(ctx context.Context, report *Report) (err error) {
	if f.HeldOut != nil {
		if report.HeldOut, err = f.holdOut(ctx); err != nil {
			return err
		}
	}
	if f.Count {
		counts, _, err := f.count(ctx, "counts", f.data, func(float64) {})
		if err != nil {
			return err
		}
		report.Counts = f.added(counts)
	}
	return nil
}

// holdOut returns the likelihood of the cases that are held out.
func (f *fitting) holdOut(ctx context.Context) (*HeldOut, error) {
	_, step, err := f.count(ctx, "held-out", f.HeldOut, func(float64) {})
	var row *impossible
	switch {
	case errors.As(err, &row):
		return &HeldOut{Ln: math.Inf(-1), Impossible: row.row, Exact: row.exact}, nil
	case err != nil:
		return nil, err
	}
	return &HeldOut{Ln: step.Ln, Exact: step.Exact}, nil
}

// climb is EM from one start, or from where an interrupted run was.
func (f *fitting) climb(ctx context.Context) error {
	s := &f.state
	if s.Tables == nil {
		f.begin()
	}
	for {
		f.write(s.Tables)
		counts, step, err := f.expect(ctx)
		if err != nil {
			return err
		}
		if f.Passed != nil {
			f.Passed(step)
		}
		gain := math.Inf(1)
		if s.Last != nil {
			gain = step.Objective - *s.Last
		}
		if gain < -rounding*(1+math.Abs(step.Objective)) {
			return fault.New(fault.Internal,
				"iteration %d lowers the likelihood by %.3g nats, from %.12g", step.Iteration, -gain, *s.Last)
		}
		converged := gain <= f.Tolerance*(1+math.Abs(step.Objective))
		if converged && !s.Perturbed && step.Iteration < f.Iterations && f.perturb(step.Iteration) {
			s.Before = &Outcome{Start: Start{Step: step, Seed: f.seed(), Converged: true}, Tables: s.Tables, Unreached: f.unreached(counts)}
			s.Perturbed, s.Last = true, nil
		} else if converged || step.Iteration >= f.Iterations {
			return f.end(Outcome{
				Start: Start{Step: step, Seed: f.seed(), Converged: converged}, Tables: s.Tables, Unreached: f.unreached(counts),
			})
		} else {
			s.Last = &step.Objective
			f.maximise(counts)
		}
		s.Tables = f.copied()
		s.Iteration++
		if err := f.save(); err != nil {
			return err
		}
	}
}

// seed is that of the rows that a start begins with; 0: the model's.
func (f *fitting) seed() uint64 {
	if f.state.Start == 0 {
		return f.Seed
	}
	return f.Seed + uint64(f.state.Start)
}

// begin sets the tables that a start begins with.
func (f *fitting) begin() {
	f.write(f.given)
	if seed := f.seed(); seed != 0 {
		rng := rand.New(rand.NewPCG(seed, 1))
		for _, c := range f.cpts {
			c.draw(rng)
		}
	}
	f.perturb(-1)
	f.state.Tables = f.copied()
}

// maximise is the M step.
func (f *fitting) maximise(counts [][]float64) {
	for k, c := range f.cpts {
		for i, n := range f.prior[k] {
			counts[k][i] += n
		}
		c.normalise(counts[k])
	}
}

// end ends a start, and begins the next one.
func (f *fitting) end(o Outcome) error {
	s := &f.state
	if s.Before != nil && s.Before.Objective >= o.Objective {
		o = *s.Before
	}
	s.Ended = append(s.Ended, o.Start)
	if s.Best == nil || o.Objective > s.Best.Objective {
		s.Best = &o
	}
	if f.Ended != nil {
		f.Ended(o.Start)
	}
	s.Start, s.Iteration, s.Tables, s.Last, s.Before, s.Perturbed = s.Start+1, 0, nil, nil, nil, false
	return f.save()
}

// save keeps the state.
func (f *fitting) save() error {
	if f.Save == nil {
		return nil
	}
	return f.Save(&f.state)
}

// copied returns copies of all tables.
func (f *fitting) copied() [][]float64 {
	tables := make([][]float64, len(f.cpts))
	for k, c := range f.cpts {
		tables[k] = slices.Clone(c.data)
	}
	return tables
}

// write sets all tables.
func (f *fitting) write(tables [][]float64) {
	for k, c := range f.cpts {
		copy(c.data, tables[k])
	}
}
