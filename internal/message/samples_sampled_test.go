package message

import (
	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/families/bounding"
	"github.com/basetensor/basetensor/internal/families/sampled"
	"github.com/basetensor/basetensor/internal/families/truncated"
)

// components is an estimate of sampled components of each kind, two parts each, and one of bounds of each kind.
func (r random) components(sweep *truncated.TruncatedPlan) []btn.Estimate {
	drawn := btn.Estimate{Rule: btn.Pooled, Track: string(btn.FamilySampled), Slices: 1, Cost: r.cost()}
	for _, along := range []*sampled.Sampling{
		{Kind: sampled.ByAnnealing, Rungs: 1 + r.IntN(99), Metropolis: r.IntN(2) == 0, Product: true, Of: 20},
		{Kind: sampled.ByAnnealing, Rungs: 1 + r.IntN(99), Forests: true},
		{Kind: sampled.ByMiniBuckets, Order: r.Perm(3), Entries: 16},
		{Kind: sampled.BySlices, Order: r.Perm(3), Entries: 16, Rest: 1 + r.IntN(3)},
		{Kind: sampled.BySweep, Order: r.Perm(3), Entries: 16, Sweep: sweep, Bond: 4, Defence: 1e-4},
		{Kind: sampled.ByBeliefs, Order: r.Perm(3), Entries: 16, Follow: 0.1, Defence: 1e-2},
	} {
		along.Shape, along.Seed, along.Spread = digestA, r.Uint64(), r.Float64()
		along.Each, along.Setup = 100*r.Float64(), 100*r.Float64()
		drawn.Parts = append(drawn.Parts, &sampled.Sampled{Along: along, To: 8}, &sampled.Sampled{Along: along, From: 8, To: 20})
	}
	return []btn.Estimate{drawn, {Rule: btn.Bounding, Slices: 1, Cost: r.cost(), Parts: []btn.Part{
		&bounding.Bound{Kind: bounding.MiniBuckets, Shape: digestA, Order: r.Perm(3), Entries: 64},
		&bounding.Bound{Kind: bounding.Determinant, Shape: digestA, Rounds: 9},
		&bounding.Bound{Kind: bounding.Bethe, Shape: digestA, Rounds: 9},
	}}}
}
