package message

import (
	"github.com/basetensor/basetensor/internal/btn"
)

// components is an estimate of sampled components of each kind, two parts each, and one of bounds of each kind.
func (r random) components(sweep *btn.TruncatedPlan) []btn.Estimate {
	drawn := btn.Estimate{Rule: btn.Pooled, Track: string(btn.FamilySampled), Slices: 1, Cost: r.cost()}
	for _, along := range []*btn.Sampling{
		{Kind: btn.SampledByAnnealing, Rungs: 1 + r.IntN(99), Metropolis: r.IntN(2) == 0, Product: true, Of: 20},
		{Kind: btn.SampledByAnnealing, Rungs: 1 + r.IntN(99), Forests: true},
		{Kind: btn.SampledByMiniBuckets, Order: r.Perm(3), Entries: 16},
		{Kind: btn.SampledBySlices, Order: r.Perm(3), Entries: 16, Rest: 1 + r.IntN(3)},
		{Kind: btn.SampledBySweep, Order: r.Perm(3), Entries: 16, Sweep: sweep, Bond: 4, Defence: 1e-4},
		{Kind: btn.SampledByBeliefs, Order: r.Perm(3), Entries: 16, Follow: 0.1, Defence: 1e-2},
	} {
		along.Shape, along.Seed, along.Spread = digestA, r.Uint64(), r.Float64()
		along.Each, along.Setup = 100*r.Float64(), 100*r.Float64()
		drawn.Parts = append(drawn.Parts, &btn.Sampled{Along: along, To: 8}, &btn.Sampled{Along: along, From: 8, To: 20})
	}
	return []btn.Estimate{drawn, {Rule: btn.Bounding, Slices: 1, Cost: r.cost(), Parts: []btn.Part{
		&btn.Bound{Kind: btn.BoundMiniBuckets, Shape: digestA, Order: r.Perm(3), Entries: 64},
		&btn.Bound{Kind: btn.BoundDeterminant, Shape: digestA, Rounds: 9},
		&btn.Bound{Kind: btn.BoundBethe, Shape: digestA, Rounds: 9},
	}}}
}
