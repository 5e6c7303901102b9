package regions

// Proposals: regions of growing size in the BP gauge, for very large sparse models.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/engine/region"
	"github.com/basetensor/basetensor/internal/families/exact"
	"github.com/basetensor/basetensor/internal/network/bp"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/proposal"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// seeds are the families tried on graphs without a lattice and on lattices, in the sequence of their accuracy.
var (
	graphSeeds = []family{
		{region.Balls, 2},
		{region.Loops, 8},
		{region.Balls, 3},
		{region.Loops, 10},
		{region.Loops, 12},
		{region.Balls, 4},
		{region.Loops, 14},
		{region.Balls, 5},
		{region.Loops, 16},
	}
	latticeSeeds = []family{
		{region.Windows, 2},
		{region.Windows, 3},
		{region.Windows, 4},
		{region.Windows, 5},
		{region.Windows, 6},
		{region.Windows, 7},
		{region.Windows, 8},
		{region.Windows, 9},
		{region.Windows, 10},
		{region.Windows, 12},
	}
)

// family is a kind of regions and the size of their seeds.
type family struct {
	kind string
	size int
}

// Method is method regions.
var Method = proposal.Method{Name: query.MethodRegions, Propose: Propose, Grows: true}

// Propose is the proposal of a growing family of regions under the query's evidence, with the messages that belief
// propagation ended with, so that all parts are computed from the same ones; nil where the exact way is as cheap: there is no cycle, or Z
// is 0.
func Propose(j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	e, err := expressionOf(j.Ctx, j.Conditioned)
	if err != nil {
		return nil, err
	}
	h := e.Hypergraph()
	if exact.Decided(h) || forest(h) {
		return nil, nil // belief propagation is exact there, and there is no region
	}
	if len(e.Tables) > policy.PhaseTables && proposal.Over(j.Ctx) {
		return proposal.Approximate(betheUnseen(j.Settings), j.CacheState(), e), nil
	}

	ordered, err := passed(j, e)
	if err != nil {
		return nil, err
	}
	states := ordered.states
	if s := states[0]; s.Contradiction >= 0 && !s.Signed {
		return nil, nil // Z = 0, which the exact way confirms
	}

	plan, hit, err := whole(j, h, ask.Marginals)
	if err != nil {
		return nil, err
	}
	found := proposal.Approximate(plan, hit, e)
	found.Propagation, found.Messages = ordered.report(), ordered.messages()
	if own, err := j.Restricts(h); err != nil {
		return nil, err
	} else if own {
		found.Relearned = "regions: for what the evidence leaves"
	}

	if len(e.Tables) <= policy.PhaseTables {
		if found.Plan, err = sliced(j, plan, e, states); err != nil {
			return nil, err
		}
		if found.Plan != plan && !j.Evidence.IsEmpty() {
			found.Relearned = "regions and the variables of their slices: for what the evidence leaves"
		}
	}
	return found, nil
}

// whole returns the plan by regions of a shape, none in slices.
func whole(j *proposal.Job, h contractionorder.Hypergraph, marginals bool) (plan *btn.Plan, hit string, err error) {
	kind := "regions"
	if proposal.Timed(j.Ctx) {
		kind += " from the value of belief propagation"
	}
	return j.RememberWhole(j.GrowthKey(kind, marginals), h, func(ctx context.Context) (*btn.Plan, bool, error) {
		return planOf(ctx, h, j.Settings, marginals)
	})
}

// forest reports whether the graph of tables and indices has no cycle.
func forest(h contractionorder.Hypergraph) bool {
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

// report says how belief propagation ended.
func (o *phased) report() *query.Propagation {
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

	if z, terms := o.together(); len(p.Phases) > 1 && !math.IsInf(z, 0) && !math.IsNaN(z) {
		p.Together, p.Apart = &z, terms == len(p.Phases)
	}
	return p
}

// planOf plans families of growing size within the budget. Under a deadline the first estimate is the
// value of belief propagation, which is there at once. Planning, which whoever contracts does again, takes the share of the budget for
// searches at most, a family half of what is left of it. whole is false where the time for planning ended first.
func planOf(
	ctx context.Context, h contractionorder.Hypergraph, s query.Settings, marginals bool,
) (plan *btn.Plan, whole bool, err error) {
	plan = &btn.Plan{Method: query.MethodRegions, Accuracy: s.Accuracy}
	left := s.Budget
	seeds, everything := latticeSeeds, false
	bethe := 0
	if proposal.Timed(ctx) {
		plan.Estimates = append(plan.Estimates, betheEstimate())
		bethe = 1
	}
	planning, cancel := proposal.Planning(ctx, 1)
	defer cancel()
	searches := int64(max(policy.MoveFlops/policy.RegionMoveFlops*float64(proposal.Moves(s)), policy.LeastRegionMoves))
	var last error
	over := map[string]bool{} // kinds of which a family took too many moves
	before := 0.0             // flops of the regions of the last estimate
	for k := 0; k < len(seeds); k++ {
		r := seeds[k]
		// good for ln Z; marginals beside partly included tables are worse than without
		if marginals && r.kind == region.Loops {
			continue
		}
		moves := min(policy.RegionMoves, max(searches/2, 1))
		if s.Method == query.MethodRegions && k == 0 { // nothing else would answer
			moves = policy.RegionMoves
		}
		if over[r.kind] {
			searches -= moves
			continue
		}
		f, err := region.Plan(planning, h, region.Options{Kind: r.kind, Size: r.size, Marginals: marginals, Moves: moves})
		if ctxErr := ctx.Err(); ctxErr != nil {
			return nil, false, ctxErr
		}
		if proposal.OutOfTime(ctx, err) {
			if len(plan.Estimates) == 0 {
				plan.Estimates = append(plan.Estimates, betheEstimate())
			}
			return plan, false, nil
		}

		switch {
		case err == nil:
			searches -= f.Moves
		case fault.CodeOf(err) == fault.OverBudget:
			searches -= moves
			over[r.kind] = errors.Is(err, region.ErrMoves)
		}
		switch {
		case fault.CodeOf(err) == fault.Unsupported && r.kind == region.Windows:
			seeds, k = graphSeeds, -1
			continue
		case err != nil:
			last = err
			continue
		case f.Len() == 0:
			last = fault.New(fault.OverBudget, "plan: %s of size %d: no region is narrow enough, or there is no cycle",
				r.kind, r.size)
			continue
		}

		n := len(plan.Estimates)
		if n > bethe && familyOf(&plan.Estimates[n-1]).kind == r.kind && f.Flops == before || everything && f.Regions == 1 {
			break // the same regions again, the whole model as a rule
		}
		everything = f.Regions == 1
		// Whoever contracts plans again.
		flops := f.Flops + policy.RegionMoveFlops/policy.RegionRate*float64(f.Moves)
		if n > bethe && (policy.RegionRate*flops > left || s.Components > 0 && plan.Len() >= s.Components) {
			break
		}
		left -= policy.RegionRate * flops
		before = f.Flops
		shares := 1
		if !marginals {
			shares = max(1, int(min(math.Ceil(f.Flops/policy.RegionTaskFlops), policy.MostRegionParts)))
		}
		e := estimate(n, r, nil, 1, shares)
		e.Cost = query.Cost{Flops: flops, Bytes: float64(f.Bytes)}
		plan.Estimates = append(plan.Estimates, e)
	}

	if len(plan.Estimates) == 0 {
		if last == nil {
			last = fault.New(fault.OverBudget, "plan: no family of regions fits")
		}
		return nil, false, fmt.Errorf("plan: regions: %w", last)
	}

	return plan, true, nil
}

// familyOf is the family of an estimate by regions.
func familyOf(e *btn.Estimate) family {
	q := e.Parts[0].(*Regions)
	return family{q.Kind, q.Size}
}

// sliced returns the plan with estimates in slices, as far as the budget goes: the variables follow
// the query's evidence, so they are not remembered.
func sliced(j *proposal.Job, plan *btn.Plan, e *sumproduct.Expression, states []*bp.State) (*btn.Plan, error) {
	left := j.Settings.Budget
	for k := range plan.Estimates {
		left -= policy.RegionRate * plan.Estimates[k].Cost.Flops
	}
	base := sliceable(plan, left)
	if base == nil {
		return plan, nil
	}

	planning, cancel := proposal.Planning(j.Ctx, 1)
	defer cancel()
	variables, err := influential(planning, j.Conditioned, e, states, j.Settings.Budget)
	if proposal.OutOfTime(j.Ctx, err) {
		return plan, nil
	}
	if err != nil || len(variables) == 0 {
		return plan, err
	}

	// Belief propagation runs in every slice, and takes all that it may where it does not converge.
	updates := max(int64(policy.MessageShare*j.Settings.Budget/policy.UpdateFlops/policy.MostSlices), 2*int64(incidencesOf(e)))
	messages := 0.0
	if !states[0].Converged {
		messages = float64(updates) * policy.UpdateFlops
	}

	further := *plan
	further.Estimates = slices.Clone(plan.Estimates)
	count := int64(1)
	for n, v := range variables {
		count *= int64(j.Net.Variables[v].Domain)
		flops := base.Cost.Flops * float64(count)
		work := policy.RegionRate*flops + messages*float64(count)
		if count > policy.MostSlices || work > left ||
			j.Settings.Components > 0 && further.Len()+int(count) > j.Settings.Components {
			break
		}
		left -= work
		next := estimate(len(further.Estimates), familyOf(base), slices.Clone(variables[:n+1]), count, 1)
		for _, part := range next.Parts {
			part.(*Regions).Updates = updates
		}
		next.Cost = query.Cost{Flops: flops, Bytes: base.Cost.Bytes}
		further.Estimates = append(further.Estimates, next)
	}

	return &further, nil
}

// sliceable is one of the two largest families of the last kind, where the budget has room for four slices of
// it: slices of smaller ones are worse than the largest whole.
func sliceable(plan *btn.Plan, left float64) *btn.Estimate {
	last, larger := &plan.Estimates[len(plan.Estimates)-1], 0
	for k := len(plan.Estimates) - 1; k >= 0 && larger < 2; k-- {
		e := &plan.Estimates[k]
		if familyOf(e).kind != familyOf(last).kind {
			continue
		}
		larger++
		if 4*policy.RegionRate*e.Cost.Flops <= left {
			if familyOf(e).size == 0 {
				return nil
			}
			return e
		}
	}
	return nil
}

// betheLevel is that of the value of belief propagation, below all others.
const betheLevel = -1

// estimate has so many shares of the regions of every slice. level is its place among the estimates:
// sizes of regions of different kinds do not compare.
func estimate(level int, f family, fixed []int, slices int64, shares int) btn.Estimate {
	e := btn.Estimate{
		Rule:   btn.LogLinear,
		Level:  float64(level),
		Slices: slices,
		Track:  string(query.FamilyRegions) + " " + f.kind,
	}
	if slices > 1 { // these grow by slices, at one size
		e.Track += fmt.Sprintf(" of size %d, in slices", f.size)
	}
	for at := range slices {
		for k := range shares {
			e.Parts = append(e.Parts, &Regions{
				Kind: f.kind, Size: f.size, Slice: btn.Slice{Variables: fixed, At: at},
				From: region.Share(k, shares), To: region.Share(k+1, shares),
			})
		}
	}
	return e
}
