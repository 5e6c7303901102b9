package regions

// The contraction of regions in the gauge of belief propagation.

import (
	"context"

	"github.com/basetensor/basetensor/internal/base/pace"
	"github.com/basetensor/basetensor/internal/methods/regions/region"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// run is the contraction of one part of a plan on one problem.
type run struct{ contraction.Contraction }

// Contract implements contraction.Contractor. With marginals it contracts all regions, and Value.Marginals are those
// of the log-linear estimate, times Z.
func (q *Regions) Contract(ctx context.Context, p *problem.Problem, want btn.Want) (btn.Value, error) {
	if err := contraction.NoJoint(want); err != nil {
		return btn.Value{}, err
	}
	own, err := contraction.Begin(ctx, p, want)
	if err != nil {
		return btn.Value{}, err
	}
	j := run{own}
	g, err := GroundOf(ctx, p, q.Updates)
	if err != nil || g.State == nil {
		return btn.Value{}, err
	}

	if q.Kind == btn.KindBethe {
		return j.bethe(g), nil
	}

	f, err := g.Family(ctx, region.Options{Kind: q.Kind, Size: q.Size, Marginals: want.Marginals})
	if err != nil {
		return btn.Value{}, err
	}

	if want.Marginals {
		return j.regionMarginals(g, f)
	}

	prepared, err := g.For(ctx, f)
	if err != nil {
		return btn.Value{}, err
	}

	out := &btn.RegionPart{
		LnBethe:   g.LnBethe + g.lnOtherPhases(f),
		Widest:    float64(f.Widest),
		Converged: g.State.Converged,
	}
	v := btn.Value{Z: scaled.FromLog(out.LnBethe), Region: out}

	from, to := region.InShare(f.Len(), q.From, q.To)
	blocks, err := j.blocks(prepared, from, to)
	if err != nil {
		return btn.Value{}, err
	}

	for _, block := range blocks {
		a, b := block.Sums()
		out.LnSum += a
		out.Linear = out.Linear.Add(scaled.FromFloat(b))
		out.Regions += int64(block.To - block.From)
		out.NonPositive += int64(block.NonPositive)
		v.Flops += block.Flops
	}
	return v, nil
}

// blockRegions is the number of regions in a block.
const blockRegions = 1 << 14

// blocks contracts the regions from ≤ k < to in blocks. Their bounds do not depend on the number of threads, so that the sums have the
// same bits for any.
func (j run) blocks(p *region.Prepared, from, to int) ([]*region.Part, error) {
	var bounds [][2]int
	for at := from; at < to; at += blockRegions {
		bounds = append(bounds, [2]int{at, min(at+blockRegions, to)})
	}

	out := make([]*region.Part, len(bounds))
	ctx := pace.Still(j.Ctx)
	err := sumproduct.Share(ctx, sumproduct.Threads(j.Threads), len(bounds), func(_, k int) (err error) {
		out[k], err = p.Part(ctx, bounds[k][0], bounds[k][1])
		return err
	})
	return out, err
}

// bethe returns the value of the part without regions: the value and the beliefs of belief propagation. If there are several phases, it
// is the sum of their values, and the mixture of their beliefs.
func (j run) bethe(g *Ground) btn.Value {
	phases := g.lnOtherPhases(nil)
	lnBethe := g.LnBethe + phases
	v := btn.Value{
		Z:      scaled.FromLog(lnBethe),
		Region: &btn.RegionPart{LnBethe: lnBethe, Converged: g.State.Converged},
	}

	if j.M != nil {
		beliefs := make([][]float64, len(g.Expression.Dims))
		for i := range beliefs {
			beliefs[i] = g.State.Belief(i)
		}
		if phases > 0 {
			g.mix(beliefs, phases)
		}
		v.Marginals = j.Weighted(j.rows(g.Expression, beliefs), v.Z)
	}
	return v
}

// regionMarginals contracts all regions, with a backward pass for their marginals.
func (j run) regionMarginals(g *Ground, f *region.Family) (btn.Value, error) {
	est, err := region.Run(j.Ctx, g.Expression, g.State, f, j.Threads)
	if err != nil {
		return btn.Value{}, err
	}

	phases := g.lnOtherPhases(f)
	lnBethe := est.LnZBP + phases
	z := scaled.FromLog(est.LnZ + phases)
	v := btn.Value{
		Z:     scaled.FromLog(lnBethe),
		Flops: est.Flops,
		Region: &btn.RegionPart{
			LnBethe:     lnBethe,
			LnSum:       est.LnZ - est.LnZBP,
			Regions:     int64(est.Regions),
			NonPositive: int64(est.NonPositive),
			Widest:      float64(est.Widest),
			Converged:   g.State.Converged,
		},
	}
	if est.LinearOK {
		v.Region.Linear = scaled.FromLog(est.LnZLinear - est.LnZBP).Sub(scaled.One)
	} else {
		v.Region.Linear = scaled.One.Neg()
	}

	if phases > 0 {
		g.mix(est.Marginals, phases)
	}
	v.Marginals = j.Weighted(j.rows(g.Expression, est.Marginals), z)
	return v, nil
}

// rows returns the marginals of the network's variables. marginals has those of the indices of the expression. Values that the network
// excludes have probability 0.
func (j run) rows(e *sumproduct.Expression, marginals [][]float64) [][]float64 {
	rows := make([][]float64, len(j.Net.Variables))
	for variable, place := range j.Net.Variables {
		i := e.Variables[variable]
		row := marginals[i]
		if s := e.Support[i]; s != nil {
			wide := make([]float64, place.Domain)
			for k, x := range s {
				wide[x] = row[k]
			}
			row = wide
		}

		rows[variable] = row
	}
	return rows
}
