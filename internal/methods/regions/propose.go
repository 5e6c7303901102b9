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

// Propose proposes regions of growing size under the evidence of the query, with the messages that belief propagation ended with, so that
// all parts have the same messages. It returns nil if the exact way is as cheap: there is no cycle, or Z is 0.
func Propose(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	e, err := expressionOf(ctx, j.Conditioned)
	if err != nil {
		return nil, err
	}
	h := e.Hypergraph()
	if exact.Decided(h) || isForest(h) {
		return nil, nil // belief propagation is exact there, and there is no region
	}
	if len(e.Tables) > policy.PhaseTables && proposal.IsPlanningOver(ctx) {
		return proposal.Approximate(hastyBethePlan(j.Settings), j.CacheState(), e), nil
	}

	phases, err := propagateAll(ctx, j, e)
	if err != nil {
		return nil, err
	}
	states := phases.states
	if s := states[0]; s.Contradiction >= 0 && !s.Signed {
		return nil, nil // Z = 0, which the exact way confirms
	}

	plan, hit, err := rememberPlan(ctx, j, h, ask.Marginals)
	if err != nil {
		return nil, err
	}
	assignment := proposal.Approximate(plan, hit, e)
	assignment.Propagation, assignment.Messages = phases.report(), phases.messages()
	if isRestricted, err := j.Restricts(ctx, h); err != nil {
		return nil, err
	} else if isRestricted {
		assignment.Relearned = "regions: for what the evidence leaves"
	}

	return assignment, nil
}

// rememberPlan returns the plan by regions of a shape, through the memo, and the state of the cache for it.
func rememberPlan(
	ctx context.Context, j *proposal.Job, h contractionorder.Hypergraph, marginals bool,
) (plan *btn.Plan, hit string, err error) {
	kind := "regions"
	if proposal.HasDeadline(ctx) {
		kind += " from the value of belief propagation"
	}
	return j.RememberComplete(ctx, j.GrowthKey(kind, marginals), h, func(computing context.Context) (*btn.Plan, bool, error) {
		return buildPlan(computing, h, j.Settings, marginals)
	})
}

// isForest reports whether the graph of tables and indices has no cycle.
func isForest(h contractionorder.Hypergraph) bool {
	parent := make([]int, len(h.Dims))
	for i := range parent {
		parent[i] = i
	}
	find := func(i int) int {
		for parent[i] != i {
			parent[i] = parent[parent[i]]
			i = parent[i]
		}
		return i
	}
	for _, e := range h.Edges {
		for k := 1; k < len(e); k++ {
			a, b := find(e[0]), find(e[k])
			if a == b {
				return false
			}
			parent[b] = a
		}
	}

	return true
}

// report returns how belief propagation ended.
func (o *phaseSet) report() *query.Propagation {
	states := o.states
	s := states[0]
	p := &query.Propagation{Converged: s.Converged, Updates: s.Updates, Change: math.MaxFloat64, Signed: s.Signed, Impossible: s.Impossible()}
	if s.Change < math.MaxFloat64 { // messages that overflow are not a number, and no number in JSON
		p.Change = s.Change
	}
	for k, s := range states {
		z := s.LnZ()
		if math.IsInf(z, 0) || math.IsNaN(z) {
			continue
		}
		if k == 0 {
			p.LogZ = &z
		}
		if s.Converged {
			p.Phases = append(p.Phases, z)
		}
	}

	if z, terms := o.sumOfPhases(); len(p.Phases) > 1 && !math.IsInf(z, 0) && !math.IsNaN(z) {
		p.Together, p.Apart = &z, terms == len(p.Phases)
	}
	return p
}

// regionMoveFlops is the cost of a move of the planning of regions, 2.5 ns.
// Measured with RegionMoves.
const regionMoveFlops = 2.5e-9 * policy.Rate

// leastRegionMoves is the number of moves that the planning of all sizes together may take under any budget, about 170 ms.
// Chosen; like leastUpdates.
const leastRegionMoves = 1 << 26

// buildPlan plans regions of growing size within the budget. Under a deadline the first estimate is the value of belief propagation,
// which is there at once. Planning is done again where regions are contracted; it takes at most the share of the budget for searches, and
// one size at most half of what remains of that. isComplete is false if the time for planning ended first.
func buildPlan(
	ctx context.Context, h contractionorder.Hypergraph, s query.Settings, marginals bool,
) (plan *btn.Plan, isComplete bool, err error) {
	plan = &btn.Plan{Method: query.MethodRegions, Accuracy: s.Accuracy}
	if proposal.HasDeadline(ctx) {
		plan.Estimates = append(plan.Estimates, betheEstimate())
	}
	g := &growing{h: h, s: s, marginals: marginals, plan: plan, bethe: len(plan.Estimates), remaining: s.Budget}
	g.moves = int64(max(policy.MoveFlops/regionMoveFlops*float64(proposal.MoveLimit(s)), leastRegionMoves))
	planning, cancel := proposal.PlanningContext(ctx, 1)
	defer cancel()
	err = g.grow(planning, region.Windows, windowSizes)
	if fault.CodeOf(err) == fault.Unsupported && err != nil { // no lattice
		err = g.grow(planning, region.Balls, ballSizes)
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

// growing is a plan of regions under construction.
type growing struct {
	h         contractionorder.Hypergraph
	s         query.Settings
	marginals bool

	plan      *btn.Plan
	bethe     int     // estimates of belief propagation alone
	remaining float64 // flops of the budget
	moves     int64   // that planning may still take
}

// regionTaskFlops is the flops of a task of regions, mostRegionParts the largest number of tasks of an estimate.
// A bound: of 34 models a grid of 200×200 has a family beyond it (1.7e10 flops), no other a fifth
// of it, decision 20.
const (
	regionTaskFlops = 4e9
	mostRegionParts = 64
)

// grow adds an estimate for each size of regions of a kind, until the budget ends, or a larger size has the same regions. It returns the
// error of the last size without regions, if there is one: unsupported for windows if the graph is no lattice, over_budget for regions
// that are too wide or take too many moves to plan. Other errors end the planning.
func (g *growing) grow(ctx context.Context, kind string, sizes []int) (last error) {
	before, isModel := 0.0, false // flops of the last estimate's regions, and whether its one region is the model
	for k, size := range sizes {
		moves := min(policy.RegionMoves, max(g.moves/2, 1))
		if g.s.Method == query.MethodRegions && k == 0 { // nothing else would answer
			moves = policy.RegionMoves
		}
		family, err := region.Plan(ctx, g.h, region.Options{Kind: kind, Size: size, Marginals: g.marginals, Moves: moves})
		switch {
		case fault.CodeOf(err) == fault.OverBudget:
			g.moves -= moves
			if last = err; errors.Is(err, region.ErrMoves) { // larger ones take more
				return last
			}
			continue
		case err != nil:
			return err
		}
		g.moves -= family.Moves
		if family.Len() == 0 {
			last = fault.New(fault.OverBudget, "plan: %s of size %d: no region is narrow enough, or there is no cycle", kind, size)
			continue
		}
		n := len(g.plan.Estimates)
		if n > g.bethe && family.Flops == before || isModel && family.Regions == 1 {
			return last // the same regions again
		}
		isModel = family.Regions == 1
		flops := family.Flops + regionMoveFlops/policy.RegionRate*float64(family.Moves) // whoever contracts plans again
		if n > g.bethe && policy.RegionRate*flops > g.remaining {
			return last
		}
		g.remaining -= policy.RegionRate * flops
		before = family.Flops
		shares := 1
		if !g.marginals {
			shares = max(1, int(min(math.Ceil(family.Flops/regionTaskFlops), mostRegionParts)))
		}
		e := estimate(n, kind, size, shares)
		e.Cost = query.Cost{Flops: flops, Bytes: float64(family.Bytes)}
		g.plan.Estimates = append(g.plan.Estimates, e)
	}
	return last
}

// betheLevel is the level of the value of belief propagation, below those of all regions.
const betheLevel = -1

// estimate returns an estimate by regions of a kind and size, in so many parts of equal shares. level is its place among the estimates,
// since sizes of different kinds do not compare.
func estimate(level int, kind string, size, shares int) btn.Estimate {
	e := btn.Estimate{Rule: btn.LogLinear, Level: float64(level), Slices: 1, Track: string(query.FamilyRegions) + " " + kind}
	for k := range shares {
		e.Parts = append(e.Parts, &Regions{Kind: kind, Size: size, From: region.Share(k, shares), To: region.Share(k+1, shares)})
	}
	return e
}
