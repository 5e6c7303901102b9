package ladder

// Plans along which legs are truncated, and the estimates along them.

import (
	"context"
	"time"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/methods/truncated"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// searchBond is the bond at which plans are compared if the request names none. leastBond is the smallest one, if the memory does not hold
// more.
// Measured: a quarter and four times of searchBond make the true error smaller on 3 and 2 models,
// larger on 1 and 3, the largest from below 4e-7 to 0.06; of leastBond they change nothing in 512
// KiB, decision 20.
const (
	searchBond = 32
	leastBond  = 4
)

// Plan searches plans of contraction for a simplified network and builds a ladder along them: estimates, its rungs, with growing bonds.
// masked says that evidence enters the network as a mask, weights of the values of indices (TruncatedPlan.Masked). isComplete is false if
// the time for planning ended first. The error is over budget if no plan fits the memory, or the first estimate takes longer than a
// deadline allows.
func Plan(
	ctx context.Context, p *truncated.Prepared, s query.Settings, masked, marginals bool,
) (plan *btn.Plan, isComplete bool, err error) {
	bond := s.Bond
	if bond == 0 {
		bond = searchBond
	}
	plans, bond, isComplete, err := searchPlans(ctx, p, s, bond, marginals)
	if err != nil {
		return nil, false, err
	}

	for k := range plans {
		plans[k].Number, plans[k].Masked = k, masked
	}

	// Prices of a large network have to be there within the time for planning, all that remains of it.
	pricing, cancel := proposal.PlanningContext(ctx, 1)
	defer cancel()
	if len(p.Expression().Tables) <= policy.MostHasty { // prices take no time
		pricing = ctx
	}
	rungs, hasAll, err := chooseRungs(ctx, pricing, p, plans, s, bond, marginals)
	if err != nil {
		return nil, false, err
	}
	if err := checkFirst(ctx, rungs, s); err != nil {
		return nil, false, err
	}
	if r, ok := slicedRung(pricing, p, plans, rungs, s, marginals); ok {
		rungs = append(rungs, r)
	}
	isComplete = isComplete && hasAll && pricing.Err() == nil // if prices were cut off, more time might give more rungs

	plan = &btn.Plan{Method: query.MethodTruncated, Accuracy: s.Accuracy}
	domains := p.Domains()
	for _, r := range rungs {
		plan.Estimates = append(plan.Estimates, r.estimate(plans, domains))
	}

	return plan, isComplete, nil
}

// chooseRungs returns the rungs of the ladder, estimates along one plan at one bond each. If the first plan truncates nothing at the bond
// for which it was searched, that is the only rung. pricing limits the time of prices. If it ends, hasAll is false, and the rungs are those
// that were priced before, or the first one.
func chooseRungs(
	ctx, pricing context.Context, p *truncated.Prepared, plans []truncated.TruncatedPlan, s query.Settings, bond int, marginals bool,
) (rungs []rung, hasAll bool, err error) {
	c, err := p.Price(pricing, &plans[0], bond, marginals)
	fits := c.Bytes <= float64(s.Memory) && (c.Flops <= s.Budget || s.Bond > 0) // a bond that is asked for may exceed the budget
	if err == nil && c.Lossless && fits {
		return []rung{{bond: bond, cost: query.Cost{Flops: c.Flops, Bytes: c.Bytes}}}, true, nil
	}

	prices := make([]price, len(plans))
	for k := range plans {
		prices[k] = price(func(bond int) (float64, float64, error) {
			c, err := p.Price(pricing, &plans[k], bond, marginals)
			return c.Flops, c.Bytes, err
		}).memoised()
	}
	rungs, err = buildRungs(prices, s)
	if err == nil {
		return rungs, true, nil
	}
	// Prices have failed. If the time for them has ended, go on with the rungs so far.
	if !proposal.IsOutOfTime(ctx, err) {
		return nil, false, err
	}
	if len(rungs) == 0 {
		rungs = firstRung(ctx, p, &plans[0], s, marginals)
	}
	if len(rungs) == 0 {
		return nil, false, fault.New(fault.OverBudget,
			"plan: truncated legs: no bond was priced in the time that the deadline leaves, %d tables are left", len(p.Expression().Tables))
	}
	return rungs, false, nil
}

// checkFirst returns an error (over budget) if there are no rungs: estimates along one plan at one bond each. It also does if the first
// rung takes longer than the deadline allows and other methods may answer instead.
func checkFirst(ctx context.Context, rungs []rung, s query.Settings) error {
	if len(rungs) == 0 {
		return fault.New(fault.OverBudget, "plan: no plan of truncated legs fits %d bytes", s.Memory)
	}
	first, hasOthers := rungs[0], s.Method == query.MethodAuto && s.Bond == 0 // method auto has other methods
	if hasOthers && proposal.HasDeadline(ctx) && first.cost.Flops > s.Budget {
		return fault.New(fault.OverBudget,
			"plan: the first estimate of truncated legs, at bond %d, takes %.3g flops, %.3g are what the deadline is worth",
			first.bond, first.cost.Flops, s.Budget)
	}
	return nil
}

// firstRung returns one rung along a plan after the time for prices is over: at the first bond, or at the smallest one if that exceeds the
// memory or the budget. It returns nil if neither fits, or their prices take longer than hastyTime. A rung is an estimate along one plan at
// one bond.
func firstRung(ctx context.Context, p *truncated.Prepared, plan *truncated.TruncatedPlan, s query.Settings, marginals bool) []rung {
	hasty, cancel := proposal.PlanningContext(proposal.WithMinimumTime(ctx, hastyTime), 1) // all of hastyTime, though the time is over
	defer cancel()
	for _, bond := range []int{policy.FirstBond, leastBond} {
		c, err := p.Price(hasty, plan, bond, marginals)
		if err == nil && c.Bytes <= float64(s.Memory) && c.Flops <= s.Budget {
			return []rung{{bond: bond, cost: query.Cost{Flops: c.Flops, Bytes: c.Bytes}}}
		}
	}
	return nil
}

// searchTime is the share of the time for planning that the search for plans of a large network may take. The rest is for prices.
// Measured: a price of 18,000 tables takes 0.3 s, 0.7 s with marginals, and a ladder up to twenty of them.
const searchTime = 3.0 / 4

// searchPlans searches plans that fit the memory at a bond, or at a smaller one if none does. It returns the plans and the bond that they
// are for. If the time for planning ends, it returns the plans so far, or greedy ones, and isComplete is false. Greedy plans are for the
// bond of the request, or the smallest one if the request names none.
//
// A network of more than policy.MostHasty tables is large. For a large network under MethodAuto, which has other methods, it makes no
// greedy plans, since these take long as well: the error is over budget.
func searchPlans(
	ctx context.Context, p *truncated.Prepared, s query.Settings, bond int, marginals bool,
) (plans []truncated.TruncatedPlan, planBond int, isComplete bool, err error) {
	tables := len(p.Expression().Tables)
	isLarge := tables > policy.MostHasty
	share := 1.0
	if isLarge { // the rest of the time is for the prices of the plans, which are fast for other networks
		share = searchTime
	}
	planning, cancel := proposal.PlanningContext(ctx, share)
	defer cancel()

	// Halve the bond until a plan fits the memory, unless the request names the bond.
	o := truncated.SearchOptions{Bond: bond, Memory: s.Memory, Seed: s.Seed, Marginals: marginals, Moves: proposal.MoveLimit(s)}
	plans, isComplete, err = p.Search(planning, o)
	for s.Bond == 0 && o.Bond > leastBond && fault.CodeOf(err) == fault.OverBudget {
		o.Bond /= 2
		o.Moves = max(o.Moves/2, 1)
		plans, isComplete, err = p.Search(planning, o)
	}

	if proposal.IsOutOfTime(ctx, err) {
		isComplete = false
		if s.Method == query.MethodAuto && isLarge {
			return nil, 0, false, fault.New(fault.OverBudget,
				"plan: truncated legs: no plan was found in the time that the deadline leaves, %d tables are left", tables)
		}
		if s.Bond == 0 {
			o.Bond = leastBond
		}
		plans, err = greedyPlans(ctx, p, s, o)
	}

	return plans, o.Bond, isComplete, err
}

// hastyTime is how long a greedy plan, or the price of a first bond, may take after the time for planning is over. Chosen: plans of
// networks with little fill take milliseconds, prices 0.1 s on a grid of 60×60.
const hastyTime = 250 * time.Millisecond

// greedyPlans returns greedy plans after the time for planning is over. For method auto, which has other methods, the error is over budget
// if that takes longer than hastyTime.
func greedyPlans(
	ctx context.Context, p *truncated.Prepared, s query.Settings, o truncated.SearchOptions,
) ([]truncated.TruncatedPlan, error) {
	if s.Method != query.MethodAuto {
		return p.GreedySweeps(ctx, o)
	}
	hasty, cancel := proposal.PlanningContext(proposal.WithMinimumTime(ctx, hastyTime), 1) // all of hastyTime, though the time is over
	defer cancel()
	plans, err := p.GreedySweeps(hasty, o)
	if proposal.IsOutOfTime(ctx, err) {
		return nil, fault.New(fault.OverBudget, "plan: truncated legs: no greedy plan was found in %s", hastyTime)
	}
	return plans, err
}

// slicedRung returns a further rung with twice the bond of the last one, in slices that fit the memory. ok is false if the bond fits the
// memory without slices, or there are no slices that fit the memory and the remaining budget. A rung is an estimate along one plan at one
// bond. A slice fixes the values of some variables, and the slices add up.
func slicedRung(
	ctx context.Context, p *truncated.Prepared, plans []truncated.TruncatedPlan, rungs []rung, s query.Settings, marginals bool,
) (r rung, ok bool) {
	remaining := s.Budget
	for _, r := range rungs {
		remaining -= r.cost.Flops
	}
	last := rungs[len(rungs)-1]
	bond := 2 * last.bond
	if s.Bond > 0 || remaining <= 0 {
		return rung{}, false
	}

	// Slices are needed only if the memory, and not the budget, excludes the bond.
	unsliced, err := p.Price(ctx, &plans[last.plan], bond, marginals)
	if err != nil || unsliced.Bytes <= float64(s.Memory) || unsliced.Lossless { // lossless: a larger bond changes nothing
		return rung{}, false
	}
	domains := p.Domains()
	sliced, cost := findSlices(ctx, p, domains, &plans[last.plan], bond, s.Memory, marginals)
	if sliced == nil {
		return rung{}, false
	}
	r = rung{plan: last.plan, bond: bond, sliced: sliced, cost: query.Cost{Bytes: cost.Bytes}}
	r.cost.Flops = cost.Flops * float64(sliceCount(sliced, domains))
	return r, r.cost.Flops <= remaining
}
