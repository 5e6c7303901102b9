package regions

// Proposals: regions of growing size in the BP gauge, for very large sparse models.

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/exact"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/methods/regions/region"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// Sizes of regions, in the sequence of their accuracy: of windows on lattices, and of balls on other graphs.
var (
	windowSizes = []int{2, 3, 4, 5, 6, 7, 8, 9, 10, 12}
	ballSizes   = []int{2, 3, 4, 5}
)

// Method is method regions.
var Method = proposal.Method{Name: query.MethodRegions, Propose: Propose, Grows: true}

// Propose proposes regions of growing size for the network under the evidence of the query. It runs belief propagation and puts its
// messages into the assignment, so that all parts of the job use the same messages. If the time for planning of a large network is over,
// it proposes only the value of belief propagation. It returns nil if an exact method is as cheap: the network has no cycle, or Z is 0.
func Propose(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	e, err := expressionOf(ctx, j.Conditioned)
	if err != nil {
		return nil, err
	}
	h := e.Hypergraph()
	if exact.IsDecided(h) || isForest(h) {
		return nil, nil // belief propagation is exact there, and there is no region
	}
	if len(e.Tables) > policy.PhaseTables && proposal.IsPlanningOver(ctx) {
		return proposal.NewApproximateAssignment(hastyBethePlan(j.Settings), j.CacheState(), e), nil
	}

	phases, err := propagateAll(ctx, j, e)
	if err != nil {
		return nil, err
	}
	if first := phases.states[0]; first.Contradiction >= 0 && !first.Signed {
		return nil, nil // Z = 0, which the exact way confirms
	}

	plan, cacheState, err := rememberPlan(ctx, j, h, ask.Marginals)
	if err != nil {
		return nil, err
	}
	assignment := proposal.NewApproximateAssignment(plan, cacheState, e)
	assignment.Propagation, assignment.Messages = phases.report(), phases.messages()
	// Evidence that excludes values of indices leaves another network, and these regions are planned for it.
	if isRestricted, err := j.Restricts(ctx, h); err != nil {
		return nil, err
	} else if isRestricted {
		assignment.Relearned = "regions: for what the evidence leaves"
	}

	return assignment, nil
}

// rememberPlan returns the plan by regions for a hypergraph, from the plan cache if it is there, and the state of the cache. A plan under a
// deadline has another key, since it begins with the value of belief propagation (buildPlan).
func rememberPlan(
	ctx context.Context, j *proposal.Job, h contractionorder.Hypergraph, marginals bool,
) (plan *btn.Plan, cacheState string, err error) {
	kind := "regions"
	if proposal.HasDeadline(ctx) {
		kind += " from the value of belief propagation"
	}
	return j.RememberComplete(ctx, j.GrowthKey(kind, marginals), h, func(computing context.Context) (*btn.Plan, bool, error) {
		return buildPlan(computing, h, j.Settings, marginals)
	})
}

// isForest reports whether the graph of tables and indices has no cycle. It joins the indices of one table after the other (union-find);
// two indices that are connected already close a cycle.
func isForest(h contractionorder.Hypergraph) bool {
	parent := make([]int, len(h.Dims)) // by index: its parent in the tree of its connected part
	for i := range parent {
		parent[i] = i
	}
	root := func(i int) int {
		for parent[i] != i {
			parent[i] = parent[parent[i]]
			i = parent[i]
		}
		return i
	}
	for _, e := range h.Edges {
		for k := 1; k < len(e); k++ {
			a, b := root(e[0]), root(e[k])
			if a == b {
				return false
			}
			parent[b] = a
		}
	}

	return true
}

// report returns how belief propagation ended: how the first state has converged, its value, the values of all fixed points, and ln of a
// sum of them (sumOfPhases). A phase is a state in which belief propagation ends.
func (set *phaseSet) report() *query.Propagation {
	first := set.states[0]
	p := &query.Propagation{
		Converged: first.Converged, Updates: first.Updates, Change: math.MaxFloat64, Signed: first.Signed, Impossible: first.HasNegativeEntropy(),
	}
	if first.Change < math.MaxFloat64 { // messages that overflow are not a number, and no number in JSON
		p.Change = first.Change
	}
	for k, state := range set.states {
		lnZ := state.LnZ()
		if math.IsInf(lnZ, 0) || math.IsNaN(lnZ) {
			continue
		}
		if k == 0 {
			p.LogZ = &lnZ
		}
		if state.Converged {
			p.Phases = append(p.Phases, lnZ)
		}
	}

	if lnSum, count := set.sumOfPhases(); len(p.Phases) > 1 && !math.IsInf(lnSum, 0) && !math.IsNaN(lnSum) {
		p.Together, p.Apart = &lnSum, count == len(p.Phases) // Apart: no two phases overlap
	}
	return p
}

// regionMoveFlops is the cost of a move of the planning of regions, 2.5 ns.
// Measured with RegionMoves.
const regionMoveFlops = 2.5e-9 * policy.Rate

// leastRegionMoves is the number of moves that the planning of all sizes together may take under any budget, about 170 ms.
// Chosen; like leastUpdates.
const leastRegionMoves = 1 << 26

// buildPlan returns a plan with estimates by regions of growing size, within the budget: windows if the graph is a lattice, balls
// otherwise. Under a deadline the first estimate is the value of belief propagation, which is there at once. isComplete is false if the
// time for planning ended first. Planning takes at most the moves that the budget has for searches (proposal.MoveLimit). Planning one size
// takes at most half of the moves that remain; moves count elementary operations.
func buildPlan(
	ctx context.Context, h contractionorder.Hypergraph, s query.Settings, marginals bool,
) (plan *btn.Plan, isComplete bool, err error) {
	plan = &btn.Plan{Method: query.MethodRegions, Accuracy: s.Accuracy}
	if proposal.HasDeadline(ctx) {
		plan.Estimates = append(plan.Estimates, betheEstimate())
	}

	g := &planner{hypergraph: h, settings: s, marginals: marginals, plan: plan, betheCount: len(plan.Estimates), remaining: s.Budget}
	// The limit counts moves of the search for an order, of policy.MoveFlops each.
	g.moves = int64(max(policy.MoveFlops/regionMoveFlops*float64(proposal.MoveLimit(s)), leastRegionMoves))
	planning, cancel := proposal.PlanningContext(ctx, 1) // 1: all of the time that remains for planning
	defer cancel()
	err = g.addSizes(planning, region.Windows, windowSizes)
	isNoLattice := fault.CodeOf(err) == fault.Unsupported && err != nil // the only reason for which windows are unsupported
	if isNoLattice {
		err = g.addSizes(planning, region.Balls, ballSizes)
	}

	switch {
	case ctx.Err() != nil:
		return nil, false, ctx.Err()
	case proposal.IsOutOfTime(ctx, err):
		if len(plan.Estimates) == 0 {
			plan.Estimates = append(plan.Estimates, betheEstimate())
		}
		return plan, false, nil
	case len(plan.Estimates) == 0:
		return nil, false, fmt.Errorf("plan: regions: %w", err)
	}
	return plan, true, nil
}

// planner builds a plan by regions.
type planner struct {
	hypergraph contractionorder.Hypergraph
	settings   query.Settings
	marginals  bool

	plan       *btn.Plan
	betheCount int     // number of estimates by belief propagation alone, which come first
	remaining  float64 // flops of the budget that the estimates leave
	moves      int64   // moves that planning may still take
}

// regionTaskFlops is the flops of a task of regions, mostRegionParts the largest number of tasks of an estimate.
// A bound: of 34 models a grid of 200×200 has a family beyond it (1.7e10 flops), no other a fifth
// of it, decision 20.
const (
	regionTaskFlops = 4e9
	mostRegionParts = 64
)

// addSizes adds an estimate for each size of regions of a kind, until the budget ends, or a larger size has the same regions. If a size has
// no regions, it goes on with the next size. It returns the error of the last size without regions: unsupported for windows if the graph is
// no lattice, over_budget for regions that are too wide or take too many moves to plan. Other errors end the planning. A move is an
// elementary operation of planning.
func (g *planner) addSizes(ctx context.Context, kind string, sizes []int) (lastErr error) {
	var previous *region.Family // of the last estimate; nil: none
	for k, size := range sizes {
		family, err := g.planFamily(ctx, kind, size, k == 0)
		if err != nil {
			if fault.CodeOf(err) != fault.OverBudget || errors.Is(err, region.ErrMoves) { // larger ones take more moves
				return err
			}
			lastErr = err
			continue
		}
		if previous != nil && areSameRegions(previous, family) || !g.addFamily(family) {
			return lastErr
		}
		previous = family
	}
	return lastErr
}

// areSameRegions reports whether the regions of two sizes are the same: if they take as many flops, or if each is one region, the whole
// model.
func areSameRegions(smaller, larger *region.Family) bool {
	return larger.Flops == smaller.Flops || smaller.Regions == 1 && larger.Regions == 1
}

// planFamily plans the regions of a kind and size, with at most half of the moves that remain, and takes its moves from them. The error is
// over budget if there are no regions, or if they are too wide or take too many moves. For method regions the first size has the moves of
// the default limit, since nothing else would answer.
func (g *planner) planFamily(ctx context.Context, kind string, size int, isFirstSize bool) (*region.Family, error) {
	moves := min(policy.RegionMoves, max(g.moves/2, 1))
	if g.settings.Method == query.MethodRegions && isFirstSize {
		moves = policy.RegionMoves
	}
	family, err := region.Plan(ctx, g.hypergraph, region.Options{Kind: kind, Size: size, Marginals: g.marginals, Moves: moves})
	if err != nil {
		if fault.CodeOf(err) == fault.OverBudget {
			g.moves -= moves
		}
		return nil, err
	}
	g.moves -= family.Moves
	if family.Len() == 0 {
		return nil, fault.New(fault.OverBudget, "plan: %s of size %d: no region is narrow enough, or there is no cycle", kind, size)
	}
	return family, nil
}

// addFamily adds an estimate by a family of regions to the plan, and takes its price from the remaining budget. It reports whether the
// family fits the budget. The first estimate by regions always does. Budgets are in flops of large contractions, of which a flop of regions
// takes the time of policy.RegionRate.
func (g *planner) addFamily(family *region.Family) bool {
	n := len(g.plan.Estimates)
	isFirst := n <= g.betheCount                                                 // the estimates before are no regions
	planningFlops := regionMoveFlops / policy.RegionRate * float64(family.Moves) // planning is done again where regions are contracted
	flops := family.Flops + planningFlops
	if !isFirst && policy.RegionRate*flops > g.remaining {
		return false
	}
	g.remaining -= policy.RegionRate * flops
	parts := 1
	if !g.marginals {
		parts = max(1, int(min(math.Ceil(family.Flops/regionTaskFlops), mostRegionParts)))
	}
	e := newEstimate(n, family.Options.Kind, family.Options.Size, parts)
	e.Cost = query.Cost{Flops: flops, Bytes: float64(family.Bytes)}
	g.plan.Estimates = append(g.plan.Estimates, e)
	return true
}

// betheLevel is the level of the value of belief propagation, below those of all regions.
const betheLevel = -1

// newEstimate returns an estimate by regions of a kind and size, divided into the given number of parts with equal shares of the regions.
// level is its place among the estimates of the plan, since sizes of different kinds do not compare.
func newEstimate(level int, kind string, size, parts int) btn.Estimate {
	e := btn.Estimate{Rule: btn.LogLinear, Level: float64(level), Slices: 1, Track: string(query.FamilyRegions) + " " + kind}
	for k := range parts {
		e.Parts = append(e.Parts, &Regions{Kind: kind, Size: size, From: region.ShareBound(k, parts), To: region.ShareBound(k+1, parts)})
	}
	return e
}
