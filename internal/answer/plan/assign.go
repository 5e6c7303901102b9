package plan

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/base/sentence"
	"github.com/basetensor/basetensor/internal/methods"
	"github.com/basetensor/basetensor/internal/methods/learned"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// Assign decides for every demand which decomposition of net's base tensor provides what it wants, learning what is not in memo (nil:
// nothing is remembered, Cache is "off"). known is what earlier calls for the network have found (nil: nothing). What is learned depends
// on the network and the settings alone; only how C = B is contracted is adapted to a query's evidence, where that is cheaper.
//
// Method exact: see exact. Other methods: see methods.Methods.
// Method auto: exact where it fits the memory and costs at most AutoFlops, else what
// grows: see approximate. A query that exceeds the budget has its error in its assignment, with what it
// needs.
func Assign(
	ctx context.Context, net *btn.Network, demands []btn.Demand, s query.Settings, memo proposal.Memo, known *Known,
) ([]btn.Assignment, error) {
	s = s.WithDefaults()
	if known == nil {
		known = new(Known)
	}
	as := assigners{
		ctx: ctx, settings: s, memo: memo, known: known, problems: known.Problems, options: known.Options,
		alone: len(demands) == 1, method: methodOf(s.Method), of: map[*btn.Network]*assigner{},
	}
	if as.options.Memory == 0 {
		as.options.Memory = s.Memory
	}
	if as.problems == nil {
		as.problems = new(problem.Shared)
	}
	var assignments []btn.Assignment
	for _, d := range demands {
		assignment, err := as.assign(net, d)
		if err != nil {
			if ctxErr := ctx.Err(); ctxErr != nil {
				return nil, ctxErr
			}
			assignment = &btn.Assignment{
				Cache: as.cacheState(),
				Error: &query.ErrorInfo{Code: fault.CodeOf(err), Message: sentence.Text(err.Error()), Stage: query.StageLearn},
			}
		}
		note(assignment, net, d)
		assignments = append(assignments, *assignment)
	}

	return assignments, nil
}

// note writes what is wanted into an assignment, and the network's warnings.
func note(to *btn.Assignment, net *btn.Network, d btn.Demand) {
	to.Want = d.Want
	to.Warnings = slices.Concat(net.Warnings, to.Warnings)
}

// methodOf returns a method of a family, nil for others.
func methodOf(name query.Method) *proposal.Method {
	for _, m := range methods.Methods {
		if m.Name == name {
			return m
		}
	}
	return nil
}

// ReadsMaps reports whether a method reads maps on the legs of a network.
func ReadsMaps(name query.Method) bool {
	m := methodOf(name)
	return m != nil && m.Maps
}

// assigner carries one job's decisions on one network.
type assigner struct {
	*proposal.Job
	facts   *facts
	exactly *exactly
	isPart  bool             // the network is what one question depends on
	alone   bool             // the job has one query
	method  *proposal.Method // nil: exact or auto, the planner's own
	// hasLikelihoods says that the network has legs of the query's likelihoods: a task's plans are checked against the network without them,
	// so that no part may have numbers by leg.
	hasLikelihoods bool
}

// exactly is what an assigner, under any limits, remembers of the exact way.
type exactly struct {
	key   string // of its plan, once it was needed
	asked bool   // it was looked for before
}

// under returns the assigner with another job of the same network.
func (a *assigner) under(j *proposal.Job) *assigner {
	limited := *a
	limited.Job = j
	return &limited
}

// caution says beforehand why an answer of an exact decomposition may not be exact: the network's
// tensors were rounded by maps, or, for closed forms of rank one, float64 may lose something. Who contracts C
// = B finds out what it has lost, and numbers in count space carry exponents of their own.
func (a *assigner) caution(to *btn.Assignment, conditioned *btn.Network) {
	if to.Plan == nil || !to.Plan.Exact() {
		return
	}
	warnings := a.facts.mapped
	if !to.Plan.Estimates[0].KeepsRange() {
		warnings = slices.Concat(warnings, a.facts.span.warnings(conditioned))
	}
	to.Unsure = len(warnings) > 0
	to.Warnings = append(to.Warnings, warnings...)
}

// assign chooses the way of one query: joint marginals exactly; else by the method, and auto tries the exact way first.
func (a *assigner) assign(d btn.Demand) (*btn.Assignment, error) {
	of, rest, conditioned, err := a.Net.Given(d.Evidence)
	if err == nil && of != a.Net && a.method == &learned.Method {
		return nil, fault.New(fault.Unsupported, "plan: likelihoods leave the range of float64 beside the weights of their variables, "+
			"method exact answers these")
	}
	if err == nil && of != a.Net {
		d.Evidence = rest
		return a.onto(of).assign(d)
	}
	switch {
	case errors.Is(err, btn.ErrRange):
		return nil, fault.Wrap(fault.Unsupported, err)
	case err != nil:
		return nil, fault.Wrap(fault.BadInput, err)
	case a.method == nil && !a.Planned():
		return nil, fault.New(fault.BadInput, "plan: unknown method %q", a.Settings.Method)
	}

	a.On(conditioned, false)
	a.Evidence = d.Evidence
	a.Once = a.alone && d.IsTotal()
	if d.Descends() {
		return a.descents(d)
	}
	return a.total(d)
}

// total assigns what Z and its marginals are computed by.
func (a *assigner) total(d btn.Demand) (*btn.Assignment, error) {
	conditioned, m := a.Conditioned, a.method
	switch {
	case d.IsParametric():
		return a.gradients(d)
	case len(d.Joint) > 0:
		return a.cautioned(a.joint(d))
	case m != nil && !m.Grows:
		return a.cautioned(a.approximate(d, nil))
	case m != nil || a.Auto() && a.Settings.NoExact:
		return a.approximate(d, nil)
	}

	if of := conditioned.Summed(); of != conditioned && d.IsTotal() {
		a.On(of, true)
	}
	exact, err := a.exactInTime(d)
	if err == nil {
		exact.Summed = a.Options.Summed
		a.caution(exact, conditioned)
		if worth, ok := proposal.InTime(a.Ctx, exact.Plan); !ok && a.Auto() { // there would be no answer
			e := &exact.Plan.Estimates[0]
			err = fault.New(fault.OverBudget, "plan: the exact way takes %.3g flops in %d parts, and the deadline is worth %.3g for each",
				e.Cost.Flops, len(e.Parts), worth)
		}
	}
	if err == nil && a.unsettled(exact, d.Marginals) {
		return a.orElse(d, exact)
	}
	if err == nil || !a.Auto() || fault.CodeOf(err) != fault.OverBudget {
		return exact, err
	}
	if a.Options.Summed {
		a.On(conditioned, false)
	}
	found, refused := a.approximate(d, []string{"the exact way does not fit: " + err.Error()})
	if refused != nil && exact != nil && a.Ctx.Err() == nil {
		return exact, nil
	}
	return found, refused
}

// cautioned is caution for a proposal, if there is one.
func (a *assigner) cautioned(found *btn.Assignment, err error) (*btn.Assignment, error) {
	if err == nil {
		a.caution(found, a.Conditioned)
	}
	return found, err
}

// leastExact is what the exact way of a small network takes to be planned, many times over: estimates of it would take longer.
const leastExact = 5 * time.Millisecond

// exactInTime is exact for a share of the time for planning where method auto has something else to answer with.
func (a *assigner) exactInTime(d btn.Demand) (found *btn.Assignment, err error) {
	if !a.Auto() {
		return a.exact(d)
	}
	lasting := a.Under(proposal.AtLeast(a.Ctx, leastExact), a.Settings)
	err = lasting.Within(policy.ExactShare, "a plan of the exact way", func(j *proposal.Job) error {
		found, err = a.under(j).exact(d)
		return err
	})
	return found, err
}
