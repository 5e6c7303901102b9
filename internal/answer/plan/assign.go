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

// Assign chooses a plan for every demand on net, and returns one assignment for each. A demand is what is wanted under one evidence. Plans
// are taken from memo, and made if it does not have them; if memo is nil, nothing is remembered. known is what earlier calls for the
// network have found, nil if nothing. If a demand cannot be answered, its assignment has the error. The error that Assign returns is that
// of ctx.
//
//   - Method exact: the first proposal of methods.Exact.
//   - Method auto: the same if it fits the memory and costs at most AutoFlops, otherwise a sequence of estimates (package estimates).
//   - Other methods: see methods.Requested.
//
// A plan depends only on the network and the settings, unless an elimination order or a tree for the evidence is cheaper.
func Assign(
	ctx context.Context, net *btn.Network, demands []btn.Demand, s query.Settings, memo proposal.Memo, known *NetworkMemory,
) ([]btn.Assignment, error) {
	s = s.WithDefaults()
	if known == nil {
		known = new(NetworkMemory)
	}
	job := jobPlanner{
		settings: s, memo: memo, known: known, problems: known.Problems, options: known.Options,
		hasOneDemand: len(demands) == 1, method: requested(s.Method), planners: map[*btn.Network]*planner{},
	}
	if job.options.Memory == 0 {
		job.options.Memory = s.Memory
	}
	if job.problems == nil {
		job.problems = new(problem.Shared)
	}
	var assignments []btn.Assignment
	for _, d := range demands {
		assignment, err := job.assign(ctx, net, d)
		if err != nil {
			if ctxErr := ctx.Err(); ctxErr != nil {
				return nil, ctxErr
			}
			assignment = &btn.Assignment{
				Cache: job.cacheState(),
				Error: &query.ErrorInfo{Code: fault.CodeOf(err), Message: sentence.Text(err.Error()), Stage: query.StageLearn},
			}
		}
		addDemand(assignment, net, d)
		assignments = append(assignments, *assignment)
	}

	return assignments, nil
}

// addDemand writes into an assignment what its demand wants, and puts the warnings of the network before its own.
func addDemand(a *btn.Assignment, net *btn.Network, d btn.Demand) {
	a.Want = d.Want
	a.Warnings = slices.Concat(net.Warnings, a.Warnings)
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
	facts        *facts // of the network
	hasOneDemand bool   // the job has one query
}

// withJob returns the planner of the same network for another job, which is for one query.
func (p planner) withJob(j *proposal.Job) planner {
	p.Job = j
	return p
}

// assign chooses how one demand (what is wanted under one evidence) is answered: by which parts of a plan. Usually net below is the
// planner's network, and conditioned is net under the evidence. If likelihoods leave the range of float64, net is another network, which
// has them as tensors (spread), and the planner of that network chooses. That is not possible for a global method (IsGlobal), whose plan is
// for the complete network of all queries.
func (p planner) assign(ctx context.Context, d btn.Demand) (*btn.Assignment, error) {
	net, remaining, conditioned, err := p.Net.UnderEvidence(d.Evidence)
	if wasSpread := net != p.Net; wasSpread && err == nil {
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

	isOnlyTotal := p.hasOneDemand && d.IsTotal() // the job wants nothing but one Z
	p = p.withJob(p.ForQuery(d.Evidence, conditioned, isOnlyTotal))
	if d.WantsAssignments() {
		return methods.Assignments(ctx, p.Job, proposal.Ask{Want: d.Want, Exact: p.exactForAssignments})
	}
	return p.total(ctx, d.Want)
}

// exactForAssignments returns an exact plan for a demand that wants assignments of values. The plan provides Z and all that is wanted in
// addition to the assignments. It is chosen as by total if a joint marginal or derivatives are wanted, or if the request names an exact
// method.
func (p planner) exactForAssignments(ctx context.Context, ask proposal.Ask) (*btn.Assignment, error) {
	namesExactMethod := p.Method != nil && p.Method.IsExact()
	if len(ask.Joint) > 0 || ask.IsParametric() || namesExactMethod {
		return p.total(ctx, ask.Want)
	}
	return p.withCautions(p.exactInTime(ctx, ask))
}

// total chooses a plan for Z, marginals, joint marginals and derivatives. It is
//
//   - an exact plan if derivatives or a joint marginal are wanted
//   - the plan of the method that the request names
//   - for methods exact and auto, an exact plan
//   - for method auto, estimates if no exact plan fits the budget, the memory and the deadline, or if all digits of the exact plan may
//     cancel. If there are no estimates either, it is the exact plan that is late.
func (p planner) total(ctx context.Context, want btn.Want) (*btn.Assignment, error) {
	// Wants and methods that leave no choice.
	switch m := p.Method; { // nil for methods exact and auto
	case want.IsParametric():
		return p.parametric(ctx, want)
	case len(want.Joint) > 0:
		return p.withCautions(p.joint(ctx, want))
	case m != nil && !m.Grows:
		return p.withCautions(p.estimates(ctx, want))
	case m != nil || p.IsAuto() && p.Settings.NoExact:
		return p.estimates(ctx, want)
	}

	exact, err := p.exactTotal(ctx, want)
	// A plan that is Summed is for another network than estimates are, and cannot be among them.
	mayHaveNoDigits := err == nil && exact.MayCancel && !exact.Summed
	if mayHaveNoDigits && p.IsAuto() {
		return p.amongEstimates(ctx, want, exact) // the estimates are the answer if all digits cancel
	}
	needsEstimates := p.IsAuto() && err != nil && fault.CodeOf(err) == fault.OverBudget
	if !needsEstimates {
		return exact, err
	}

	// Estimates. Here exact is nil, or an exact plan that is late.
	estimates, refused := p.estimates(ctx, want)
	if refused != nil && exact != nil && ctx.Err() == nil {
		return exact, nil // late is better than nothing
	}
	if refused == nil {
		estimates.Warnings = slices.Insert(estimates.Warnings, 0, "the exact way does not fit: "+err.Error())
	}
	return estimates, refused
}

// exactTotal returns an exact plan for Z and marginals. If method auto is asked for and the plan does not fit the deadline, it returns the
// plan with the error fault.OverBudget. If only Z is wanted, the plan may be for a network in which some variables are summed out
// (btn.Network.Summed).
func (p planner) exactTotal(ctx context.Context, want btn.Want) (*btn.Assignment, error) {
	onNetwork := p // the planner of the network that the plan is for
	// The sum over a variable that only Z needs may make terms of a core vanish: without them the network is a smaller one.
	if summed := p.Conditioned.WithoutVanishingTerms(); summed != p.Conditioned && want.IsTotal() {
		onNetwork = p.withJob(p.OnSummedNetwork(summed))
	}
	exact, err := onNetwork.exactInTime(ctx, proposal.Ask{Want: want})
	if err != nil {
		return exact, err
	}
	exact.Summed = onNetwork.Options.Summed
	p.addCautions(exact)
	if flopLimit, ok := proposal.FitsDeadline(ctx, exact.Plan); !ok && p.IsAuto() {
		e := &exact.Plan.Estimates[0]
		return exact, fault.New(fault.OverBudget, "plan: the exact way takes %.3g flops in %d parts, and the deadline is worth %.3g for each",
			e.Cost.Flops, len(e.Parts), flopLimit)
	}
	return exact, nil
}

// exact returns the first proposal of methods.Exact that ask accepts: a plan for Z and for the marginals or the joint marginal that are
// wanted.
func (p planner) exact(ctx context.Context, ask proposal.Ask) (*btn.Assignment, error) {
	want := btn.Want{Marginals: ask.Marginals, Targets: ask.Targets, Joint: ask.Joint}
	return methods.Exact.Propose(ctx, p.Job, proposal.Ask{Want: want, Accepts: ask.Accepts})
}

// estimates returns a plan of estimates that grow with the budget, or an exact plan if that is as cheap.
func (p planner) estimates(ctx context.Context, want btn.Want) (*btn.Assignment, error) {
	return methods.Estimates(ctx, p.Job, proposal.Ask{Want: want, Exact: p.exact})
}

// leastExact is the time that the search for an exact plan has under any deadline. A small network needs far less, and estimates of it
// would take longer.
const leastExact = 5 * time.Millisecond

// exactInTime returns an exact plan for Z and marginals, as exact does. Under method auto the search for it may take only a share of the
// time for planning, since estimates can answer as well. If that time ends, the error is fault.OverBudget.
func (p planner) exactInTime(ctx context.Context, ask proposal.Ask) (assignment *btn.Assignment, err error) {
	// Z and marginals alone, whatever else is wanted.
	ask = proposal.Ask{Want: btn.Want{Marginals: ask.Marginals, Targets: ask.Targets}, Accepts: ask.Accepts}
	if !p.IsAuto() {
		return p.exact(ctx, ask)
	}
	planning := proposal.WithMinimumTime(ctx, leastExact)
	err = proposal.RunInTimeShare(planning, policy.ExactShare, "a plan of the exact way", func(ctx context.Context) error {
		assignment, err = p.exact(ctx, ask)
		return err
	})
	return assignment, err
}

// joint returns an exact plan for a joint marginal. It returns an error if the request names a method that is not exact, since no other
// method has joint marginals.
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

// parametric returns an exact plan for derivatives by every number of the network: an elimination with a pass back to the numbers or, if
// the request names an exact method such as circuit, the plan of that method. It returns an error if the request names a method that is
// not exact, since no other method has derivatives.
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
	assignment, err := propose(ctx, p.Job, proposal.Ask{Want: want})
	if err != nil {
		return nil, err
	}
	if want.Target != nil { // the sensitivity needs the numbers of the model beside the derivatives
		assignment.Numbers = lower.Numbers(p.Net)
	}
	return assignment, nil
}

// amongEstimates returns a plan that is a sequence of estimates, into which the estimate of the exact plan is inserted: after the first
// estimate and the bounds that follow it. It is for an exact plan whose digits may all cancel. If the exact estimate has a value, that is
// the answer; otherwise the other estimates go on. It returns exact if there is no such sequence.
func (p planner) amongEstimates(ctx context.Context, want btn.Want, exact *btn.Assignment) (*btn.Assignment, error) {
	estimates, err := p.estimates(ctx, want)
	if err != nil || !estimates.Plan.Grows() { // the exact plan alone, unless the context has ended
		return exact, ctx.Err()
	}
	// The plan is made once for each exact.Plan, and shared.
	estimates.Plan = p.DerivePlan(fmt.Sprintf("else %p", exact.Plan), estimates.Plan, func() *btn.Plan {
		plan := *estimates.Plan
		position := 1
		for position < len(plan.Estimates) && plan.Estimates[position].Rule == btn.Bounding {
			position++
		}
		plan.Estimates = slices.Insert(slices.Clone(plan.Estimates), position, exact.Plan.Estimates[0])
		return &plan
	})
	return estimates, nil
}

// forSpreadNetwork returns a planner for net, which is the planner's network with the likelihoods of one query as tensors. It does not
// share facts and problems with other planners, since no other query has this network.
func (p planner) forSpreadNetwork(net *btn.Network) planner {
	facts := new(NetworkMemory).factsOf(net)
	p.facts, p.Job = facts, &proposal.Job{
		Net: net, Settings: p.Settings, Memo: p.Memo, Facts: facts.Facts, Problems: new(problem.Shared), Options: p.Options,
		Method: p.Method, HasLikelihoods: true,
	}
	return p
}

// addCautions marks an assignment with an exact plan as unsure, and adds warnings, if the answer may not be exact: if maps have rounded
// the tensors of the network, or if its entries span more than float64 holds. A wide span does not matter if the plan keeps every
// term in range or finds out what it has lost (KeepsRange).
func (p planner) addCautions(a *btn.Assignment) {
	if a.Plan == nil || !a.Plan.Exact() {
		return
	}
	warnings := p.facts.mapWarnings
	if !a.Plan.Estimates[0].KeepsRange() {
		warnings = slices.Concat(warnings, p.facts.coreSpan.warnings(p.Conditioned))
	}
	a.Unsure = len(warnings) > 0
	a.Warnings = append(a.Warnings, warnings...)
}

// withCautions returns a proposal and its error as they are, after addCautions if there is no error.
func (p planner) withCautions(assignment *btn.Assignment, err error) (*btn.Assignment, error) {
	if err == nil {
		p.addCautions(assignment)
	}
	return assignment, err
}
