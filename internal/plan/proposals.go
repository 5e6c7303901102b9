package plan

// Independent components: the pilot of what they are drawn from.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/engine/importance"
	"github.com/basetensor/basetensor/internal/engine/minibuckets"
	"github.com/basetensor/basetensor/internal/policy"
	"github.com/basetensor/basetensor/internal/sampling"
	"github.com/basetensor/basetensor/internal/truncated"
)

// propose chooses between mini-buckets and sweeps of growing bonds, by how far the weights of some draws spread, none of which is a
// component, within so much work; nil where nothing can be drawn from.
func propose(ctx context.Context, own *truncated.Prepared, s btn.Settings, work float64) (best *btn.Sampling, err error) {
	e := own.Expression()
	if e.Signed() || e.Unfit != "" || e.Scale.IsZero() {
		return nil, nil
	}
	order, plan, entries, err := buckets(ctx, own.Hypergraph(), policy.FirstSearch*work, s)
	if err != nil || plan == nil {
		return nil, err
	}
	bound, err := minibuckets.Run(ctx, e, plan, 0)
	if err != nil {
		return nil, err
	}
	given := btn.Sampling{
		Kind: btn.SampledByMiniBuckets, Shape: own.Shape(), Seed: s.Seed, Order: order, Entries: entries,
		Each: plan.Draw, Setup: plan.Flops,
	}
	spent := plan.Flops
	least := math.Inf(1) // variance of the mean
	try := func(along btn.Sampling, p *importance.Proposal) (better bool, err error) {
		spent += along.Each * policy.PilotChains
		// Pilots have seeds of their own: components never see what has chosen them.
		w, err := p.Run(ctx, ^s.Seed, 0, policy.PilotChains, 1, false)
		if err != nil {
			return false, err
		}
		along.Spread = max(relativeVariance(w.Ln), 2*along.Defence)
		if got := along.Spread * along.Each / max(s.Budget-along.Setup, along.Each); got < least {
			least, best, better = got, &along, true
		}
		return better, nil
	}
	p, err := importance.New(e, bound, nil, 1)
	if err == nil {
		_, err = try(given, p)
	}
	if err != nil || plan.Split == 0 {
		return best, err
	}

	memory := s.Memory - int64(plan.Bytes)
	sweep, err := own.Sweep(ctx, truncated.SearchOptions{
		Bond: 4 * policy.PilotBond, Memory: memory, Seed: s.Seed, Moves: int64(policy.FirstSearch * work),
	})
	if err != nil {
		return best, ctx.Err()
	}
	spent += policy.FirstSearch * work
	given.Kind, given.Sweep = btn.SampledBySweep, &sweep
	for given.Bond = policy.PilotBond; ; given.Bond *= 2 {
		cost, err := own.Price(&sweep, given.Bond, false)
		if err != nil || spent+cost.Flops > work {
			return best, ctx.Err()
		}
		sampler, err := own.Sampler(ctx, &sweep, given.Bond, memory)
		if err != nil { // no room, or nothing is left of the state
			return best, ctx.Err()
		}
		spent += cost.Flops
		given.Setup = plan.Flops + cost.Flops
		given.Each = plan.Draw + sampler.Flops()
		improved := false
		for _, defence := range policy.PilotDefences {
			if spent+given.Each*policy.PilotChains > work {
				break
			}
			given.Defence = defence
			p, err := importance.New(e, bound, sampler, defence)
			if err != nil {
				return nil, err
			}
			better, err := try(given, p)
			if err != nil {
				return nil, err
			}
			improved = improved || better
		}
		if !improved && best.Spread < policy.WeightVariance {
			return best, nil
		}
	}
}

// relativeVariance is the variance of weights over the square of their mean, or what it would be if the logarithms above their median
// were those of a normal distribution, if that is more: large weights that were not seen.
func relativeVariance(ln []float64) float64 {
	m := sampling.Of(ln)
	if math.IsInf(m.Ln, -1) {
		return math.Expm1(50)
	}
	sorted := slices.Sorted(slices.Values(ln))
	median := sorted[len(sorted)/2]
	if math.IsInf(median, -1) {
		median = m.Ln
	}
	above := 0.0
	for _, l := range sorted[len(sorted)/2:] {
		if l > median {
			above += (l - median) * (l - median)
		}
	}
	return max(m.StandardError*m.StandardError*float64(m.N), math.Expm1(min(50, 2*above/float64(m.N))))
}
