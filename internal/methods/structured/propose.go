package structured

// Proposals: the exact way of networks that are functions of few linear statistics, which nobody declared.

import (
	"context"
	"math"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/exact"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// flopsRatio is the flops of contractions in the time of one of nodes, which are no large matrices: 0.75e9 a second and core, measured
// with four patterns of 100 spins, beside policy.Rate.
const flopsRatio = 4

const (
	// maxTriedFlops is the work of a sum of terms of both signs up to which it is computed before it is proposed.
	maxTriedFlops = 1e9
	// tolerable is the relative error of a sum that is exact.
	tolerable = 1e-10
)

// Propose proposes the exact sum over a model's few linear statistics. It returns nil if the model has none, or if the sum takes more than
// the exact way may.
//
// ask.Flops is the work of the best known elimination order. If it is 0, no order is known, and only crowded networks are examined.
// Otherwise the sum has to take less. A sum with a negative λ is computed before it is proposed. It is not proposed if no digit of it is
// certain. If only some digits are, it is proposed only if ask.Flops is not 0 and ask.Next has no proposal. The plan, or that there is
// none, is remembered.
func Propose(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	if ask.Flops == 0 && !IsCrowded(j.Net) || ask.Flops > 0 && !HasEnoughPairTables(j.Net) {
		return nil, nil
	}

	plan, hit, err := rememberPlan(ctx, j)
	if err != nil || len(plan.Estimates) == 0 {
		return nil, err
	}

	// Price it under this evidence.
	priced := proposal.NewPricedAssignment(plan, hit)
	f := plan.Estimates[0].Parts[0].(*Nodes).Fit
	ok, err := priceLeaves(ctx, j, ask, priced, f) // may raise the price
	if !ok || err != nil {
		return nil, err
	}
	if f.Integers != nil {
		priced.Cost.Flops = f.Integers.flops(ask.Marginals)
	}
	work := flopsRatio * priced.Cost.Flops
	isOverLimit := policy.ExactRate*work > proposal.ExactFlopLimit(j.Settings)
	isOrderCheaper := ask.Flops > 0 && work >= ask.Flops
	if isOverLimit || isOrderCheaper {
		return nil, nil
	}

	// Terms of both signs cancel: see how many digits that leaves.
	if f.hasNegativeLambda() {
		digits, err := findCertainty(ctx, j, ask, f, priced.Cost)
		if err != nil || digits == noDigit {
			return nil, err
		}
		if digits == someDigits {
			if ask.Flops == 0 { // no order is known: a cheap one may give all digits
				return nil, nil
			}
			if ask.Next != nil { // another method may give all digits
				if next, err := ask.Next(ctx); next != nil && err == nil {
					return next, nil
				}
			}
		}
	}
	if len(ask.Joint) > 0 { // one more sum for each cell of the joint marginal
		cells := 1.0
		for _, v := range ask.Joint {
			cells *= float64(j.Net.Variables[v].Domain)
		}
		priced.Cost.Flops *= 1 + cells
	}
	return priced, nil
}

// rememberPlan finds the plan of the exact sum, or takes the remembered one: hit says which. If there is no such sum, the plan has no
// estimate, so that this is remembered, too. The plan is that of the network without evidence. So the key has the empty hypergraph, in
// place of that of the network under the evidence.
func rememberPlan(ctx context.Context, j *proposal.Job) (plan *btn.Plan, hit string, err error) {
	const settings = "structured with integers" // of the key
	return j.Remember(ctx, settings, contractionorder.Hypergraph{}, func(computing context.Context) (*btn.Plan, error) {
		estimate, err := Plan(computing, j.Net, j.Settings.Memory)
		if err != nil {
			return nil, err
		}
		plan := &btn.Plan{Method: query.MethodExact}
		if estimate != nil {
			plan.Estimates = []btn.Estimate{*estimate}
		}
		return plan, nil
	})
}

// certainty is how many digits of a sum of terms of both signs are certain.
type certainty int

const (
	noDigit    certainty = iota // or nothing is known
	someDigits                  // one digit, at least
	allDigits                   // as many as of an exact sum
)

// findCertainty computes the sum of a quadrature with terms of both signs under the evidence, and returns how many digits of Z are certain
// by the sum's error bound. It returns noDigit, without the sum, if that takes more than maxTriedFlops. cost has the number of nodes.
//
// The only error is that of the context. If the form or its nodes fail for another reason, nothing is known, and the result is noDigit
// without an error.
func findCertainty(ctx context.Context, j *proposal.Job, ask proposal.Ask, f *Fit, cost *query.Cost) (certainty, error) {
	problem := j.Problem()
	form, err := formOf(ctx, problem, f, ask.Joint)
	if err != nil {
		return noDigit, ctx.Err() // nil if it failed for another reason
	}
	if form.isZero { // Z is 0 exactly
		return allDigits, nil
	}
	const hasMarginals = false
	if cost.Nodes*form.nodeFlops(hasMarginals) > maxTriedFlops {
		return noDigit, nil
	}
	nodes, err := form.listNodes(ctx, form.region, 0, WholeShare) // all nodes of the region
	if err != nil {
		return noDigit, ctx.Err() // as above
	}
	s, err := form.sumNodes(ctx, nodes, problem.Threads, hasMarginals, nil) // nil: every value is allowed
	if err != nil {
		return noDigit, err // the context's: sumNodes has no other
	}

	// Compare the bound of the sum's error with Z. Neither has the network's scale.
	bound := form.errorBound(&s, len(nodes), ask.Marginals, scaled.One)
	z := s.inUnits(s.z)
	if z.Sign() <= 0 {
		return noDigit, nil
	}
	switch relative := bound.Div(z).Float64(); {
	case relative <= tolerable:
		return allDigits, nil
	case relative <= policy.LeastCertain:
		return someDigits, nil
	}
	return noDigit, nil
}

// priceLeaves raises the price of an assignment by the work for the leaves, variables that the fit has summed out. Some of them become
// variables again under the evidence or for a joint marginal. With marginals, leaves whose neighbours depend on each other take a sum for
// each value of their first neighbour. ok is false, without an error, if the leaves cannot be priced: if a weight is below 0, or if an
// elimination with the restored leaves is too wide. An error is the context's.
func priceLeaves(ctx context.Context, j *proposal.Job, ask proposal.Ask, priced *btn.Assignment, f *Fit) (ok bool, err error) {
	if len(f.Leaves) == 0 {
		return true, nil
	}
	weights, err := weightsOf(j.Conditioned)
	if err != nil { // a weight is below 0
		return false, nil
	}
	restored, err := f.restoreLeaves(ctx, weights, ask.Joint)
	if err != nil {
		return false, ctx.Err() // nil if the elimination is too wide
	}
	e, err := newEvaluator(restored, nil) // nil: weights of 1, which do not change the price
	if err != nil {                       // too wide as well
		return false, nil
	}
	flops := e.nodeFlops(ask.Marginals)
	if ask.Marginals {
		for firstNeighbour := range e.program.dependentLeaves() {
			const hasMarginals = true
			flops += float64(restored.Domains[firstNeighbour]) * e.nodeFlops(hasMarginals)
		}
	}
	priced.Cost.Flops = max(priced.Cost.Flops, priced.Cost.Nodes*flops)
	return true, nil
}

// ProposeCrowded is Propose for a network in which every elimination order takes more work than the limit. If Propose has no proposal or
// fails, it returns an error that says why no order is within reach. With that error, callers do not search for an order. It returns nil
// without an error if an order is within reach, or if the network has no shape: then other ways decide.
func ProposeCrowded(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	shape, err := j.Facts.Shape(ctx, j.Net)
	if err != nil { // the network has no shape
		return nil, nil
	}
	outOfReach := exact.WithinReach(ctx, shape, proposal.ExactFlopLimit(j.Settings)) // an error if no order is within reach
	if outOfReach == nil {
		return nil, nil
	}
	ask.Flops = math.Inf(1) // the price of an order, with which Propose compares its sum: any sum is cheaper
	if assignment, _ := Propose(ctx, j, ask); assignment != nil {
		return assignment, nil
	}
	return nil, outOfReach
}

var _ proposal.Finder = (*Nodes)(nil)

// FindingParts implements proposal.Finder: it returns parts that draw assignments from the nodes of a plan's parts, or nil if they cannot.
func (*Nodes) FindingParts(_ context.Context, _ *proposal.Job, parts []btn.Part, ask btn.Ask) ([]btn.Part, error) {
	return DrawingParts(parts, ask), nil
}
