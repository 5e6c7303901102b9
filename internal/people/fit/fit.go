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
	Iterations    int                                 // M steps at most, of every start
	Tolerance     float64                             // a start has converged when an iteration gains less than this share of the objective
	Pseudocount   float64                             // added to the count of each entry that is not 0, a Dirichlet prior with this + 1
	Prior         *Prior                              // adds its counts too; nil: none
	EarlierCounts *Counts                             // counts of earlier cases, which are added; nil: none
	ReturnCounts  bool                                // whether Report gets the counts after these cases
	HeldOut       *Data                               // cases that are not learned from, whose likelihood is reported; nil: none
	Seed          uint64                              // the first start begins with rows drawn by this seed; 0: with the model's own tables
	Starts        int                                 // number of starts; start k draws its rows by Seed + k; 0: one start
	Resume        *State                              // state of an interrupted run that is continued; nil: begin anew
	OnStep        func(Step)                          // hears of each E step; may be nil
	OnProgress    func(iteration int, weight float64) // hears during an E step which weight of the cases is done; may be nil
	OnNote        func(text string)                   // hears, as a text for people, that tables were perturbed; may be nil
	OnStartEnd    func(Start)                         // hears of each start that has ended; may be nil
	// keeps the state after every iteration, so that an interrupted run can go on; may be nil
	Save       func(*State) error
	OnUnserved func(error) // hears that nobody serves a job
}

// Step is the progress of EM.
type Step struct {
	Start     int     // from 0 on
	Iteration int     // from 0 on
	Ln        float64 // ln-likelihood of all cases, nats
	Objective float64 // Ln plus the logarithm of the prior's density, up to a constant; Ln if there is no prior
	Exact     bool    // whether Ln is exact, and not an estimate
}

// Start is how EM ended from one start.
type Start struct {
	Step
	Seed      uint64 // of the rows that it began with; 0: it began with the model's tables
	Converged bool   // false: it ended after Options.Iterations
}

// Report says how EM ended.
type Report struct {
	Start                   // the best one
	Starts          []Start // all starts
	Tables          int     // number of tables that were fitted
	UnfittedFactors int     // number of factors in other forms than tables, which stay as they are

	Unreached  Unreached // rows of the best tables that no case is expected to have
	Parameters int       // free numbers of the tables: entries that are not 0, less one for each row
	Weight     float64   // of all cases
	Counts     *Counts   // if they are asked for
	HeldOut    *HeldOut  // if there are such cases
}

// AIC is Akaike's criterion 2k − 2 ln L, with k parameters: lower is better.
func (r *Report) AIC() float64 { return 2*float64(r.Parameters) - 2*r.Ln }

// BIC is the Bayesian criterion k ln n − 2 ln L of Schwarz, with k parameters and n the weight of the cases: lower is better.
func (r *Report) BIC() float64 { return float64(r.Parameters)*math.Log(r.Weight) - 2*r.Ln }

// HeldOut is the likelihood of cases that nothing is learned from.
type HeldOut struct {
	Ln         float64 // nats; −∞ if a case is impossible
	Impossible int64   // row of a case with probability 0; 0: none
	Exact      bool
}

// fitting is a run of EM.
type fitting struct {
	Options
	pipeline    cases.Pipeline     // answers the jobs
	request     wire.Request       // settings, tenant and the beginning of the jobs' ids
	data        *Data              // the cases that are learned from
	model       *factorgraph.Model // the model whose tables change
	cpts        []cpt              // the tables that are fitted
	startTables [][]float64        // the tables that fitting began with, by cpt
	addedCounts [][]float64        // counts that the M step adds to those of the cases, by cpt
	state       State              // where the run is
}

// Run fits the tables of m to cases by EM, and returns the model with the tables of the best start, the first of equal ones. request has
// the settings, the tenant and the beginning of the jobs' ids.
//
// The likelihood never falls: a step that lowers the objective by more than rounding is an error (fault.Internal). Entries of 0 stay 0,
// and rows that no case reaches stay as they are. The same data and options give the same bits, for any number of workers, interrupted
// or not.
//
// A variable that no case observes may have states that are alike in all tables. EM cannot tell them apart, though it seems to have
// converged: the tables are perturbed, once before the first iteration and once after convergence, and the better end is kept.
//
// Errors: bad_input for a model that is no Bayesian network and for a case of probability 0, with
// its row; errors of jobs.
func Run(
	ctx context.Context, pipeline cases.Pipeline, request wire.Request, m *factorgraph.Model, data *Data, options Options,
) (*factorgraph.Model, Report, error) {
	// Find the tables, make their rows sum to 1, and add what is counted besides the cases.
	normalised, _ := m.Normalised() // whether rows were changed does not matter
	model, cpts, fixed, err := conditionalTables(normalised)
	if err != nil {
		return nil, Report{}, err
	}
	f := &fitting{Options: options, pipeline: pipeline, request: request, data: data, model: model, cpts: cpts}
	for _, c := range cpts {
		c.normalise(c.data) // files have six digits
	}
	if err := f.setAddedCounts(ctx, m); err != nil {
		return nil, Report{}, err
	}
	f.startTables = f.copyTables()

	// Run EM from every start, or from where an interrupted run was.
	if options.Resume != nil {
		if err := f.resume(options.Resume); err != nil {
			return nil, Report{}, err
		}
	}
	for f.state.Start < max(1, options.Starts) {
		if err := f.runStart(ctx); err != nil {
			return nil, Report{Tables: len(cpts), UnfittedFactors: fixed}, err
		}
	}

	// Report the best start. An entry that EM has brought to 0 is a free parameter too: they are counted in the first tables.
	report := Report{
		Start: f.state.Best.Start, Starts: f.state.Ended, Tables: len(cpts), UnfittedFactors: fixed, Weight: data.Weight,
		Unreached: f.state.Best.Unreached,
	}
	f.setTables(f.startTables)
	for _, c := range cpts {
		report.Parameters += c.freeParameters()
	}
	f.setTables(f.state.Best.Tables)
	if err := f.reportOnCases(ctx, &report); err != nil {
		return nil, report, err
	}
	return model, report, nil
}

// reportOnCases adds to a report the likelihood of the cases that are held out, and the counts, if they are asked for.
func (f *fitting) reportOnCases(ctx context.Context, report *Report) (err error) {
	if f.HeldOut != nil {
		if report.HeldOut, err = f.heldOutLikelihood(ctx); err != nil {
			return err
		}
	}
	if f.ReturnCounts {
		counts, _, err := f.countCases(ctx, "counts", f.data, func(float64) {})
		if err != nil {
			return err
		}
		report.Counts = f.totalCounts(counts)
	}
	return nil
}

// heldOutLikelihood returns the likelihood of the cases that are held out. A case of probability 0 makes it −∞.
func (f *fitting) heldOutLikelihood(ctx context.Context) (*HeldOut, error) {
	_, step, err := f.countCases(ctx, "held-out", f.HeldOut, func(float64) {})
	var impossible *impossibleRow
	switch {
	case errors.As(err, &impossible):
		return &HeldOut{Ln: math.Inf(-1), Impossible: impossible.row, Exact: impossible.isExact}, nil
	case err != nil:
		return nil, err
	}
	return &HeldOut{Ln: step.Ln, Exact: step.Exact}, nil
}

// runStart runs EM from one start until it has converged or has no iterations left. It begins anew, or with the state of an interrupted
// run. f.cpts has the tables of the model that jobs get; f.state.Tables keeps those that the next iteration begins with.
func (f *fitting) runStart(ctx context.Context) error {
	state := &f.state
	if state.Tables == nil {
		f.beginStart() // sets state.Tables
	}
	for {
		// The E step: its likelihood is that of the tables that the iteration begins with.
		f.setTables(state.Tables)
		counts, step, err := f.expectCounts(ctx)
		if err != nil {
			return err
		}
		if f.OnStep != nil {
			f.OnStep(step)
		}

		// What the iteration before has gained.
		gain := math.Inf(1) // of the first iteration, and of the first after a perturbation, which may lose
		if state.Last != nil {
			gain = step.Objective - *state.Last
		}
		if gain < -rounding*(1+math.Abs(step.Objective)) {
			return fault.New(fault.Internal,
				"iteration %d lowers the likelihood by %.3g nats, from %.12g", step.Iteration, -gain, *state.Last)
		}

		// After convergence perturb the tables, once, if EM cannot leave them; else end the start, or take the M step, which changes
		// f.cpts. The end before the perturbation is kept, as the one after it may be worse.
		hasConverged := gain <= f.Tolerance*(1+math.Abs(step.Objective))
		isLast := step.Iteration >= f.Iterations
		if hasConverged && !state.Perturbed && !isLast && f.perturbAlike(step.Iteration) {
			state.Before = &Outcome{
				Start: Start{Step: step, Seed: f.seed(), Converged: true}, Tables: state.Tables, Unreached: f.findUnreached(counts),
			}
			state.Perturbed, state.Last = true, nil
		} else if hasConverged || isLast {
			return f.endStart(Outcome{
				Start: Start{Step: step, Seed: f.seed(), Converged: hasConverged}, Tables: state.Tables, Unreached: f.findUnreached(counts),
			})
		} else {
			state.Last = &step.Objective
			f.maximise(counts)
		}

		// Keep the tables for the next iteration.
		state.Tables = f.copyTables()
		state.Iteration++
		if err := f.save(); err != nil {
			return err
		}
	}
}

// seed returns the seed for the rows that the present start begins with; 0 if it begins with the model's own.
func (f *fitting) seed() uint64 {
	if f.state.Start == 0 {
		return f.Seed
	}
	return f.Seed + uint64(f.state.Start)
}

// beginStart sets the tables that a start begins with: the model's own, or rows drawn by its seed. It perturbs them if
// EM would not move away from them.
func (f *fitting) beginStart() {
	f.setTables(f.startTables)
	if seed := f.seed(); seed != 0 {
		rng := rand.New(rand.NewPCG(seed, 1)) // the second seed is 1 for rows, and 2 or more for perturbations
		for _, c := range f.cpts {
			c.drawRows(rng)
		}
	}
	f.perturbAlike(-1)
	f.state.Tables = f.copyTables()
}

// maximise is the M step: it adds the prior's counts to counts and makes each row of each table proportional to them.
func (f *fitting) maximise(counts [][]float64) {
	for k, c := range f.cpts {
		for i, n := range f.addedCounts[k] {
			counts[k][i] += n
		}
		c.normalise(counts[k])
	}
}

// endStart notes how a start ended, keeps its tables if they are the best so far, and prepares the state for the next
// start.
func (f *fitting) endStart(outcome Outcome) error {
	state := &f.state
	if state.Before != nil && state.Before.Objective >= outcome.Objective {
		outcome = *state.Before // the perturbation has gained nothing
	}
	state.Ended = append(state.Ended, outcome.Start)
	if state.Best == nil || outcome.Objective > state.Best.Objective {
		state.Best = &outcome
	}
	if f.OnStartEnd != nil {
		f.OnStartEnd(outcome.Start)
	}
	f.state = State{Start: state.Start + 1, Best: state.Best, Ended: state.Ended}
	return f.save()
}

// save gives the state to the function that keeps it, if there is one.
func (f *fitting) save() error {
	if f.Save == nil {
		return nil
	}
	return f.Save(&f.state)
}

// copyTables returns a copy of each table's entries.
func (f *fitting) copyTables() [][]float64 {
	tables := make([][]float64, len(f.cpts))
	for k, c := range f.cpts {
		tables[k] = slices.Clone(c.data)
	}
	return tables
}

// setTables overwrites the entries of all tables.
func (f *fitting) setTables(tables [][]float64) {
	for k, c := range f.cpts {
		copy(c.data, tables[k])
	}
}
