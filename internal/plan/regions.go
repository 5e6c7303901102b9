package plan

// Regions in the BP gauge: the family for very large sparse models.

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/bp"
	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/contractionorder"
	"github.com/basetensor/basetensor/internal/lower"
	"github.com/basetensor/basetensor/internal/policy"
	"github.com/basetensor/basetensor/internal/region"
	"github.com/basetensor/basetensor/internal/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// seeds are the families tried on graphs without a lattice and on lattices, in the sequence of their accuracy.
var (
	graphSeeds = []btn.Rung{
		{Kind: region.Balls, Size: 2},
		{Kind: region.Loops, Size: 8},
		{Kind: region.Balls, Size: 3},
		{Kind: region.Loops, Size: 10},
		{Kind: region.Loops, Size: 12},
		{Kind: region.Balls, Size: 4},
		{Kind: region.Loops, Size: 14},
		{Kind: region.Balls, Size: 5},
		{Kind: region.Loops, Size: 16},
	}
	latticeSeeds = []btn.Rung{
		{Kind: region.Windows, Size: 2},
		{Kind: region.Windows, Size: 3},
		{Kind: region.Windows, Size: 4},
		{Kind: region.Windows, Size: 5},
		{Kind: region.Windows, Size: 6},
		{Kind: region.Windows, Size: 7},
		{Kind: region.Windows, Size: 8},
		{Kind: region.Windows, Size: 9},
		{Kind: region.Windows, Size: 10},
		{Kind: region.Windows, Size: 12},
	}
)

// regions assigns a growing family of regions under the query's evidence, with the messages that belief
// propagation ended with, so that every component stands on the same ones.
func (a *assigner) regions(conditioned *btn.Network, q query.Query) (btn.Assignment, error) {
	e, err := lower.Build(a.ctx, conditioned)
	if err != nil {
		return btn.Assignment{}, err
	}
	h := e.Hypergraph()
	if decided(h) || forest(h) {
		return a.exact(conditioned, q.Marginals) // belief propagation is exact there, and there is no region
	}
	states, remembered, err := a.propagate(e, q)
	if err != nil {
		return btn.Assignment{}, err
	}
	if s := states[0]; s.Contradiction >= 0 && !s.Signed {
		return a.exact(conditioned, q.Marginals) // Z = 0, which the exact way confirms
	}
	index, hit, err := a.families(h, q.Marginals)
	if err != nil {
		return btn.Assignment{}, err
	}
	if !remembered && hit == "hit" {
		hit = "miss"
	}
	assignment := btn.Assignment{
		Decomposition: index, Cache: hit, LnLinks: math.Inf(-1), Propagation: report(states), Messages: states[0].Messages(),
		Hard: forbids(e), Unsure: beyondRange(e),
	}
	if own, err := a.restricts(h); err != nil {
		return btn.Assignment{}, err
	} else if own {
		assignment.Relearned = "regions: for what the evidence leaves"
	}
	if len(e.Tables) <= policy.PhaseTables {
		if assignment.Decomposition, err = a.slicedRegions(index, conditioned, e, states); err != nil {
			return btn.Assignment{}, err
		}
		if assignment.Decomposition != index && !q.Evidence.IsEmpty() {
			assignment.Relearned = "regions and the variables of their slices: for what the evidence leaves"
		}
	}
	return assignment, nil
}

// families returns the decomposition by regions of a shape.
func (a *assigner) families(h contractionorder.Hypergraph, marginals bool) (index int, hit string, err error) {
	kind := "regions"
	if timed(a.ctx) {
		kind += " from the value of belief propagation"
	}
	return a.rememberWhole(a.growthKey(kind, marginals), h, func(ctx context.Context) (*btn.Decomposition, bool, error) {
		return regionDecomposition(ctx, h, a.settings, marginals)
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
func report(states []*bp.State) *btn.Propagation {
	s := states[0]
	p := &btn.Propagation{Converged: s.Converged, Updates: s.Updates, Change: math.MaxFloat64}
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
	return p
}

// regionDecomposition plans families of growing size within the budget. Under a deadline the first estimate
// is the value of belief propagation, which is there at once. Families that are too large to plan are tried
// for as long as the share of the budget for searches lasts. whole is false where the time for planning ended
// first.
func regionDecomposition(
	ctx context.Context, h contractionorder.Hypergraph, s btn.Settings, marginals bool,
) (dec *btn.Decomposition, whole bool, err error) {
	g := &btn.Growth{Accuracy: s.Accuracy}
	d := grown(btn.MethodRegions, g)
	left := s.Budget
	seeds, everything := latticeSeeds, false
	bethe := 0
	if timed(ctx) {
		addRegions(d, betheRung(), 1)
		bethe = 1
	}
	planning, cancel := planningContext(ctx, 1)
	defer cancel()
	searches := searchMoves(s)
	var last error
	for k := 0; k < len(seeds); k++ {
		r := seeds[k]
		// good for ln Z; marginals beside partly included tables are worse than without
		if marginals && r.Kind == region.Loops {
			continue
		}
		if searches <= 0 {
			break
		}
		f, err := region.Plan(planning, h, region.Options{Kind: r.Kind, Size: r.Size, Marginals: marginals})
		if ctxErr := ctx.Err(); ctxErr != nil {
			return nil, false, ctxErr
		}
		if outOfTime(ctx, planning, err) {
			if len(g.Rungs) == 0 {
				addRegions(d, betheRung(), 1)
			}
			return d, false, nil
		}
		if fault.CodeOf(err) == fault.OverBudget {
			searches -= policy.RegionMoves
		}
		switch {
		case fault.CodeOf(err) == fault.Unsupported && r.Kind == region.Windows:
			seeds, k = graphSeeds, -1
			continue
		case err != nil:
			last = err
			continue
		case f.Len() == 0:
			last = fault.New(fault.OverBudget, "plan: %s of size %d: no region is narrow enough, or there is no cycle",
				r.Kind, r.Size)
			continue
		}
		flops := f.Flops
		if n := len(g.Rungs); n > 0 && g.Rungs[n-1].Flops == flops && g.Rungs[n-1].Kind == r.Kind ||
			everything && f.Regions == 1 {
			break // the same regions again, the whole model as a rule
		}
		everything = f.Regions == 1
		if len(g.Rungs) > bethe && (policy.RegionRate*flops > left || s.Components > 0 && len(d.Components) >= s.Components) {
			break
		}
		left -= policy.RegionRate * flops
		r.Family, r.Count, r.Flops, r.Bytes = btn.FamilyRegions, 1, flops, float64(f.Bytes)
		parts := int(min(math.Ceil(flops/policy.RegionTaskFlops), policy.MostRegionParts))
		if parts < 1 || marginals {
			parts = 1
		}
		addRegions(d, r, parts)
	}
	if len(g.Rungs) == 0 {
		if last == nil {
			last = fault.New(fault.OverBudget, "plan: no family of regions fits")
		}
		return nil, false, fmt.Errorf("plan: regions: %w", last)
	}
	return d, true, nil
}

// slicedRegions returns the decomposition with rungs in slices, as far as the budget goes: the variables
// follow the query's evidence, so they are not remembered.
func (a *assigner) slicedRegions(
	index int, conditioned *btn.Network, e *sumproduct.Expression, states []*bp.State,
) (int, error) {
	dec := a.job.Decompositions[index]
	left := a.settings.Budget
	for _, r := range dec.Growth.Rungs {
		left -= policy.RegionRate * r.Flops
	}
	// One of the two largest families of the last kind, where the budget has room for four slices of it: slices of smaller
	// ones are worse than the largest whole.
	last := dec.Growth.Rungs[len(dec.Growth.Rungs)-1]
	base, larger := btn.Rung{}, 0
	for i := len(dec.Growth.Rungs) - 1; i >= 0 && larger < 2 && base.Size == 0; i-- {
		r := dec.Growth.Rungs[i]
		if r.Kind != last.Kind {
			continue
		}
		if larger++; 4*policy.RegionRate*r.Flops <= left {
			base = r
		}
	}
	if base.Size == 0 {
		return index, nil
	}
	planning, cancel := planningContext(a.ctx, 1)
	defer cancel()
	variables, err := influential(planning, conditioned, e, states)
	if outOfTime(a.ctx, planning, err) {
		return index, nil
	}
	if err != nil || len(variables) == 0 {
		return index, err
	}
	grown := *dec
	growth := *dec.Growth
	growth.Rungs = slices.Clone(growth.Rungs)
	grown.Growth, grown.Components, grown.Alpha = &growth, slices.Clone(dec.Components), slices.Clone(dec.Alpha)
	count := int64(1)
	for n, v := range variables {
		count *= int64(a.net.Variables[v].Domain)
		flops := base.Flops * float64(count)
		if count > policy.MostSlices || policy.RegionRate*flops > left ||
			a.settings.Components > 0 && len(grown.Components)+int(count) > a.settings.Components {
			break
		}
		left -= policy.RegionRate * flops
		r := base
		r.Slices, r.Count, r.Flops = slices.Clone(variables[:n+1]), count, flops
		addRegions(&grown, r, 1)
	}
	a.job.Decompositions = append(a.job.Decompositions, &grown)
	return len(a.job.Decompositions) - 1, nil
}

// addRegions appends a rung, every slice of which is computed in so many parts.
func addRegions(d *btn.Decomposition, r btn.Rung, parts int) {
	r.From = len(d.Components)
	for slice := range r.Count {
		for k := range parts {
			d.Components = append(d.Components, btn.Component{
				Class: btn.ClassRegion, Rung: len(d.Growth.Rungs), Slice: slice,
				From: region.Share(k, parts), To: region.Share(k+1, parts),
			})
			d.Alpha = append(d.Alpha, scaled.One)
		}
	}
	r.To = len(d.Components)
	d.Growth.Rungs = append(d.Growth.Rungs, r)
}
