package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/base/sentence"
	"github.com/basetensor/basetensor/internal/methods"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// Assign decides for every demand which decomposition of net's base tensor provides what it wants, learning what is not in memo (nil:
// nothing is remembered, Cache is "off"). known is what earlier calls for the network have found (nil: nothing). What is learned depends
// on the network and the settings alone; only how C = B is contracted is adapted to a query's evidence, where that is cheaper.
//
// Method exact: the first proposal of methods.Exact. Other methods: see methods.Requested.
// Method auto: exact where it fits the memory and costs at most AutoFlops, else what
// grows: see package estimates. A query that exceeds the budget has its error in its assignment, with what it
// needs.
func Assign(
	ctx context.Context, net *btn.Network, demands []btn.Demand, s query.Settings, memo proposal.Memo, known *Known,
) ([]btn.Assignment, error) {
	s = s.WithDefaults()
	if known == nil {
		known = new(Known)
	}
	as := planners{
		settings: s, memo: memo, known: known, problems: known.Problems, options: known.Options,
		hasOneDemand: len(demands) == 1, method: requested(s.Method), of: map[*btn.Network]*planner{},
	}
	if as.options.Memory == 0 {
		as.options.Memory = s.Memory
	}
	if as.problems == nil {
		as.problems = new(problem.Shared)
	}
	var assignments []btn.Assignment
	for _, d := range demands {
		assignment, err := as.assign(ctx, net, d)
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

// requested returns the method that a request asks for by name, nil for exact, auto and unknown names.
func requested(name query.Method) *proposal.Method {
	for _, m := range methods.Requested {
		if m.Name == name {
			return m
		}
	}
	return nil
}

// ReadsMaps reports whether a method reads maps on the legs of a network.
func ReadsMaps(name query.Method) bool {
	m := requested(name)
	return m != nil && m.ReadsMaps
}

// planner chooses how demands on one network are answered.
type planner struct {
	*proposal.Job
	facts        *facts
	hasOneDemand bool // the job has one query
}

// withJob returns the planner of the same network for another job, which is for one query.
func (p planner) withJob(j *proposal.Job) planner {
	p.Job = j
	return p
}

// assign chooses how one demand is answered: which parts provide what it wants.
func (p planner) assign(ctx context.Context, d btn.Demand) (*btn.Assignment, error) {
	net, remaining, conditioned, err := p.Net.Given(d.Evidence)
	if wasSpread := net != p.Net; wasSpread && err == nil { // likelihoods left the range of float64, and are tensors of net now
		if p.Method != nil && p.Method.IsGlobal {
			return nil, fault.New(fault.Unsupported, "plan: likelihoods leave the range of float64 beside the weights of their variables, "+
				"method exact answers these")
		}
		// Plan for net in place of p.Net. The remaining evidence has no likelihoods, so net is not spread again.
		d.Evidence = remaining
		return p.forSpreadNetwork(net).assign(ctx, d)
	}
	switch {
	case errors.Is(err, btn.ErrRange):
		return nil, fault.Wrap(fault.Unsupported, err)
	case err != nil:
		return nil, fault.Wrap(fault.BadInput, err)
	case p.Method == nil && !p.IsPlanned():
		return nil, fault.New(fault.BadInput, "plan: unknown method %q", p.Settings.Method)
	}

	isOnce := p.hasOneDemand && d.IsTotal()
	p = p.withJob(p.For(d.Evidence, conditioned, isOnce))
	if d.Descends() {
		return methods.Assignments(ctx, p.Job, proposal.Ask{Want: d.Want, Exact: p.exactForAssignments})
	}
	return p.total(ctx, d.Want)
}

// exactForAssignments assigns the exact way to a demand for assignments of values. Its plan provides Z and all that is wanted in addition
// to the assignments.
func (p planner) exactForAssignments(ctx context.Context, ask proposal.Ask) (*btn.Assignment, error) {
	if len(ask.Joint) > 0 || ask.IsParametric() || p.Method != nil && p.Method.IsExact() {
		return p.total(ctx, ask.Want)
	}
	return p.cautioned(p.exactInTime(ctx, ask.Want))
}

// total assigns what Z, marginals, joint marginals and derivatives are computed by.
func (p planner) total(ctx context.Context, want btn.Want) (*btn.Assignment, error) {
	switch m := p.Method; {
	case want.IsParametric():
		return p.parametric(ctx, want)
	case len(want.Joint) > 0:
		return p.cautioned(p.joint(ctx, want))
	case m != nil && !m.Grows:
		return p.cautioned(p.estimates(ctx, want))
	case m != nil || p.IsAuto() && p.Settings.NoExact:
		return p.estimates(ctx, want)
	}

	exact := p
	if summed := p.Conditioned.Summed(); summed != p.Conditioned && want.IsTotal() {
		exact = p.withJob(p.Summed(summed))
	}
	found, err := exact.exactInTime(ctx, want)
	if err == nil {
		found.Summed = exact.Options.Summed
		p.caution(found)
		if worth, ok := proposal.FitsDeadline(ctx, found.Plan); !ok && p.IsAuto() { // there would be no answer
			e := &found.Plan.Estimates[0]
			err = fault.New(fault.OverBudget, "plan: the exact way takes %.3g flops in %d parts, and the deadline is worth %.3g for each",
				e.Cost.Flops, len(e.Parts), worth)
		}
	}
	if err == nil && found.MayCancel && p.IsAuto() && !found.Summed {
		return p.orElse(ctx, want, found)
	}
	if err == nil || !p.IsAuto() || fault.CodeOf(err) != fault.OverBudget {
		return found, err
	}
	estimates, refused := p.estimates(ctx, want)
	if refused != nil && found != nil && ctx.Err() == nil {
		return found, nil
	}
	if refused == nil {
		estimates.Warnings = slices.Insert(estimates.Warnings, 0, "the exact way does not fit: "+err.Error())
	}
	return estimates, refused
}

// exact assigns the exact way: C = B by the first of methods.Exact that has a proposal.
func (p planner) exact(ctx context.Context, ask proposal.Ask) (*btn.Assignment, error) {
	asked := btn.Want{Marginals: ask.Marginals, Targets: ask.Targets, Joint: ask.Joint}
	return methods.Exact.Propose(ctx, p.Job, proposal.Ask{Want: asked})
}

// estimates assigns what grows with the budget, or the exact way if that is as cheap.
func (p planner) estimates(ctx context.Context, want btn.Want) (*btn.Assignment, error) {
	return methods.Estimates(ctx, p.Job, proposal.Ask{Want: want, Exact: p.exact})
}

// leastExact is what the exact way of a small network takes to be planned, many times over: estimates of it would take longer.
const leastExact = 5 * time.Millisecond

// exactInTime is exact for a share of the time for planning if method auto has something else to answer with.
func (p planner) exactInTime(ctx context.Context, want btn.Want) (found *btn.Assignment, err error) {
	ask := proposal.Ask{Want: btn.Want{Marginals: want.Marginals, Targets: want.Targets}}
	if !p.IsAuto() {
		return p.exact(ctx, ask)
	}
	planning := proposal.WithMinimumTime(ctx, leastExact)
	err = proposal.Within(planning, policy.ExactShare, "a plan of the exact way", func(ctx context.Context) error {
		found, err = p.exact(ctx, ask)
		return err
	})
	return found, err
}

// joint assigns an exact method with an index over the cells of the joint marginal. There is no other way to one: methods that are not
// exact are refused, and method auto does not fall back to them.
func (p planner) joint(ctx context.Context, want btn.Want) (*btn.Assignment, error) {
	ask := proposal.Ask{Want: want}
	switch m := p.Method; {
	case m == nil:
		return p.exact(ctx, ask)
	case m.IsExact():
		return m.Propose(ctx, p.Job, ask)
	case m.Grows:
		return nil, fault.New(fault.BadInput, "plan: joint marginals are computed exactly only, not by method %s", m.Name)
	default:
		return nil, fault.New(fault.Unsupported, "plan: joint marginals are computed exactly only, not by method %s", m.Name)
	}
}

// parametric assigns an elimination with a pass back to every number of the network, or by method circuit a circuit whose leaves
// they are. There is no other way to them: methods that are not exact are unsupported, and method auto does not fall back to them.
func (p planner) parametric(ctx context.Context, want btn.Want) (*btn.Assignment, error) {
	propose := methods.Derivatives
	switch m := p.Method; {
	case m != nil && !m.IsExact():
		return nil, fault.New(fault.Unsupported, "plan: gradients are computed exactly only, not by method %s", m.Name)
	case len(want.Joint) > 0:
		return nil, fault.New(fault.Unsupported, "plan: gradients and a joint marginal are two queries of a job")
	case want.Cases != nil && m != nil:
		return nil, fault.New(fault.Unsupported, "plan: cases are summed up by methods auto and exact only, not by method %s", m.Name)
	case m != nil:
		propose = m.Parametric
	}
	found, err := propose(ctx, p.Job, proposal.Ask{Want: want})
	if err != nil {
		return nil, err
	}
	if want.Target != nil {
		found.Numbers = lower.Numbers(p.Net)
	}
	return found, nil
}

// orElse puts an exact plan whose digits may all cancel among estimates, behind the first of them. It is the answer if it has one, and else
// they go on.
func (p planner) orElse(ctx context.Context, want btn.Want, found *btn.Assignment) (*btn.Assignment, error) {
	estimates, err := p.estimates(ctx, want)
	if err != nil || !estimates.Plan.Grows() {
		return found, ctx.Err()
	}
	estimates.Plan = p.DerivePlan(fmt.Sprintf("else %p", found.Plan), estimates.Plan, func() *btn.Plan {
		plan := *estimates.Plan
		first := 1
		for first < len(plan.Estimates) && plan.Estimates[first].Rule == btn.Bounding {
			first++
		}
		plan.Estimates = slices.Insert(slices.Clone(plan.Estimates), first, found.Plan.Estimates[0])
		return &plan
	})
	return estimates, nil
}

// forSpreadNetwork returns a planner for net, which is the planner's network with the likelihoods of one query as tensors. No other
// query has this network, so its facts and problems are not shared.
func (p planner) forSpreadNetwork(net *btn.Network) planner {
	facts := new(Known).factsOf(net)
	p.facts, p.Job = facts, &proposal.Job{
		Net: net, Settings: p.Settings, Memo: p.Memo, Facts: facts.Facts, Problems: new(problem.Shared), Options: p.Options,
		Method: p.Method, HasLikelihoods: true,
	}
	return p
}

// caution warns beforehand if an answer of an exact decomposition may not be exact: the network's
// tensors were rounded by maps, or, for closed forms of rank one, float64 may lose something. Who contracts C
// = B finds out what it has lost, and numbers in count space carry exponents of their own.
func (p planner) caution(to *btn.Assignment) {
	if to.Plan == nil || !to.Plan.Exact() {
		return
	}
	warnings := p.facts.mapped
	if !to.Plan.Estimates[0].KeepsRange() {
		warnings = slices.Concat(warnings, p.facts.span.warnings(p.Conditioned))
	}
	to.Unsure = len(warnings) > 0
	to.Warnings = append(to.Warnings, warnings...)
}

// cautioned is caution for a proposal, if there is one.
func (p planner) cautioned(found *btn.Assignment, err error) (*btn.Assignment, error) {
	if err == nil {
		p.caution(found)
	}
	return found, err
}
