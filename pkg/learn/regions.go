package learn

// Regions in the BP gauge: the family for very large sparse models.

import (
	"context"
	"fmt"
	"math"

	"github.com/basetensor/basetensor/pkg/bp"
	"github.com/basetensor/basetensor/pkg/btn"
	contraction "github.com/basetensor/basetensor/pkg/contract"
	"github.com/basetensor/basetensor/pkg/einsum"
	"github.com/basetensor/basetensor/pkg/elimination"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/region"
	"github.com/basetensor/basetensor/pkg/scaled"
)

const (
	// phaseStarts is how many starts of belief propagation look for competing fixed points, on networks of at most
	// phaseTables tables; larger ones have one.
	phaseStarts = 4
	phaseTables = 20_000
	// regionFlops is what a task of regions shall cost.
	regionFlops = 4e9
	// regionRate is how many flops of a large multiplication a flop of regions takes: they are small.
	regionRate = 4
	// mostRegionParts bounds the tasks of one slice of one rung.
	mostRegionParts = 64
)

// seeds are the families tried on graphs without a lattice and on lattices, in the sequence of their accuracy.
var (
	graphSeeds   = []btn.Rung{{Kind: region.Balls, Size: 2}, {Kind: region.Loops, Size: 8}, {Kind: region.Balls, Size: 3}, {Kind: region.Loops, Size: 10}, {Kind: region.Loops, Size: 12}, {Kind: region.Balls, Size: 4}, {Kind: region.Loops, Size: 14}, {Kind: region.Balls, Size: 5}, {Kind: region.Loops, Size: 16}}
	latticeSeeds = []btn.Rung{{Kind: region.Windows, Size: 2}, {Kind: region.Windows, Size: 3}, {Kind: region.Windows, Size: 4}, {Kind: region.Windows, Size: 5}, {Kind: region.Windows, Size: 6}, {Kind: region.Windows, Size: 7}, {Kind: region.Windows, Size: 8}, {Kind: region.Windows, Size: 9}, {Kind: region.Windows, Size: 10}, {Kind: region.Windows, Size: 12}}
)

// regions assigns a growing family of regions under the query's evidence, with the messages that belief propagation ended
// with, so that every component stands on the same ones.
func (a *assigner) regions(conditioned *btn.Network, q Query) (btn.Assignment, error) {
	e, err := einsum.Build(conditioned)
	if err != nil {
		return btn.Assignment{}, err
	}
	h := e.Hypergraph()
	if decided(h) {
		return a.exact(conditioned, q.Marginals)
	}
	states, err := propagate(a.ctx, e, a.settings.Seed)
	if err != nil {
		return btn.Assignment{}, err
	}
	if s := states[0]; s.Contradiction >= 0 && !s.Signed {
		return a.exact(conditioned, q.Marginals) // Z = 0, which the exact way confirms
	}
	index, hit, err := a.remember(a.growthKey("regions", q.Marginals), h, func(ctx context.Context) (*btn.Decomposition, error) {
		return regionDecomposition(ctx, h, a.settings, q.Marginals)
	})
	if err != nil {
		return btn.Assignment{}, err
	}
	return btn.Assignment{
		Decomposition: index, Cache: hit, LnLinks: math.Inf(-1), Propagation: report(states), Messages: states[0].Messages(),
	}, nil
}

// propagate returns the distinct states of belief propagation, the one to stand on first.
func propagate(ctx context.Context, e *einsum.Expression, seed uint64) ([]*bp.State, error) {
	if len(e.Tables) > phaseTables {
		s, err := bp.Run(ctx, e, bp.Options{})
		return []*bp.State{s}, err
	}
	return bp.FixedPoints(ctx, e, phaseStarts, bp.Options{Seed: seed})
}

// report says how belief propagation ended.
func report(states []*bp.State) *btn.Propagation {
	s := states[0]
	p := &btn.Propagation{Converged: s.Converged, Updates: s.Updates, Change: s.Change}
	if z := s.LnZ(); !math.IsInf(z, 0) && !math.IsNaN(z) {
		p.LogZ = &z
	}
	for _, s := range states {
		if z := s.LnZ(); s.Converged && !math.IsInf(z, 0) && !math.IsNaN(z) {
			p.Phases = append(p.Phases, z)
		}
	}
	return p
}

// regionDecomposition plans families of growing size within the budget.
func regionDecomposition(ctx context.Context, h elimination.Hypergraph, s btn.Settings, marginals bool) (*btn.Decomposition, error) {
	g := &btn.Growth{Accuracy: s.Accuracy}
	d := grown(btn.MethodRegions, g)
	left := s.Budget
	seeds := latticeSeeds
	var last error
	for k := 0; k < len(seeds); k++ {
		r := seeds[k]
		f, err := region.Plan(ctx, h, contraction.RegionOptions(&r, marginals))
		if ctxErr := ctx.Err(); ctxErr != nil {
			return nil, ctxErr
		}
		switch {
		case fault.CodeOf(err) == fault.Unsupported && r.Kind == region.Windows:
			seeds, k = graphSeeds, -1
			continue
		case err != nil:
			last = err
			continue
		case f.Len() == 0:
			last = fault.New(fault.OverBudget, "learn: %s of size %d: no region is narrow enough, or there is no cycle", r.Kind, r.Size)
			continue
		}
		flops := f.Flops
		if marginals {
			flops *= 3
		}
		if len(g.Rungs) > 0 && regionRate*flops > left {
			break
		}
		left -= regionRate * flops
		r.Family, r.Count, r.Flops, r.Bytes = btn.FamilyRegions, 1, flops, 8*math.Exp2(float64(f.Widest))
		parts := int(min(math.Ceil(flops/regionFlops), mostRegionParts))
		if parts < 1 || marginals {
			parts = 1
		}
		addRegions(d, r, parts)
	}
	if len(g.Rungs) == 0 {
		if last == nil {
			last = fault.New(fault.OverBudget, "learn: no family of regions fits")
		}
		return nil, fmt.Errorf("learn: regions: %w", last)
	}
	return d, nil
}

// addRegions appends a rung, every slice of which is computed in so many parts.
func addRegions(d *btn.Decomposition, r btn.Rung, parts int) {
	r.From = len(d.Components)
	for slice := range r.Count {
		for k := range parts {
			d.Components = append(d.Components, btn.Component{
				Class: btn.ClassRegion, Rung: len(d.Growth.Rungs), Slice: slice,
				From: contraction.RegionShare(k, parts), To: contraction.RegionShare(k+1, parts),
			})
			d.Alpha = append(d.Alpha, scaled.One)
		}
	}
	r.To = len(d.Components)
	d.Growth.Rungs = append(d.Growth.Rungs, r)
}
