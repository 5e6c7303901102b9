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

// Contract implements contraction.Contractor. It contracts the share of the regions that the part has, or returns the value of belief
// propagation if the kind is bethe. With marginals it contracts all regions, and Value.Marginals are those of the log-linear estimate,
// times Z.
func (q *Regions) Contract(ctx context.Context, p *problem.Problem, want btn.Want) (btn.Value, error) {
	if err := contraction.RefuseJoint(want); err != nil {
		return btn.Value{}, err
	}
	begun, err := contraction.Begin(ctx, p, want)
	if err != nil {
		return btn.Value{}, err
	}
	j := run{begun}
	g, err := ProblemGround(ctx, p, q.Updates)
	if err != nil || g.State == nil { // without a state Z is 0
		return btn.Value{}, err
	}
	if q.Kind == btn.KindBethe {
		return j.betheValue(g), nil
	}

	f, err := g.Family(ctx, region.Options{Kind: q.Kind, Size: q.Size, Marginals: want.Marginals})
	if err != nil {
		return btn.Value{}, err
	}
	if want.Marginals {
		return j.regionMarginals(g, f)
	}
	prepared, err := g.Prepare(ctx, f)
	if err != nil {
		return btn.Value{}, err
	}

	// Contract the regions of the part's share, from q.From to q.To in units of 2^−20 of all regions, and add up their terms.
	from, to := region.RegionsBetween(f.Len(), q.From, q.To)
	blocks, err := j.contractBlocks(prepared, from, to)
	if err != nil {
		return btn.Value{}, err
	}
	sums := &btn.RegionPart{
		LnBethe:   g.LnBethe + g.lnOtherPhases(f), // with ln of what other phases multiply the value by
		Widest:    float64(f.Widest),
		Converged: g.State.Converged,
	}
	v := btn.Value{Z: scaled.FromLog(sums.LnBethe), Region: sums}
	addBlocks(&v, blocks)
	return v, nil
}

// addBlocks adds the sums and the flops of blocks of regions to a value, in their sequence.
func addBlocks(v *btn.Value, blocks []*region.Part) {
	sums := v.Region
	for _, block := range blocks {
		lnSum, linear := block.Sums()
		sums.LnSum += lnSum
		sums.Linear = sums.Linear.Add(scaled.FromFloat(linear))
		sums.Regions += int64(block.To - block.From)
		sums.NonPositive += int64(block.NonPositive)
		v.Flops += block.Flops
	}
}

// blockRegions is the number of regions in a block.
const blockRegions = 1 << 14

// contractBlocks contracts the regions from ≤ k < to in blocks of blockRegions, on several threads. The blocks, and so the bits of sums, do
// not depend on the number of threads.
func (j run) contractBlocks(p *region.Prepared, from, to int) ([]*region.Part, error) {
	var bounds [][2]int
	for first := from; first < to; first += blockRegions {
		bounds = append(bounds, [2]int{first, min(first+blockRegions, to)})
	}

	blocks := make([]*region.Part, len(bounds))
	ctx := pace.KeepGiveWay(j.Ctx) // the blocks give way to more urgent work if j.Ctx does
	err := sumproduct.RunChunks(ctx, sumproduct.Threads(j.Threads), len(bounds), func(_, k int) (err error) {
		blocks[k], err = p.Part(ctx, bounds[k][0], bounds[k][1])
		return err
	})
	return blocks, err
}

// betheValue returns the value and the beliefs of belief propagation. If it ends in several states, called phases, the value is the sum of
// their values, and the beliefs are the mixture of their beliefs.
func (j run) betheValue(g *Ground) btn.Value {
	lnPhases := g.lnOtherPhases(nil) // ln of what other phases multiply the value by; nil: without regions
	lnBethe := g.LnBethe + lnPhases
	v := btn.Value{
		Z:      scaled.FromLog(lnBethe),
		Region: &btn.RegionPart{LnBethe: lnBethe, Converged: g.State.Converged},
	}

	wantsMarginals := j.Marginals != nil
	if wantsMarginals {
		beliefs := make([][]float64, len(g.Expression.Dims))
		for i := range beliefs {
			beliefs[i] = g.State.Belief(i)
		}
		if lnPhases > 0 {
			g.mixPhases(beliefs, lnPhases)
		}
		v.Marginals = j.ScaledMarginals(j.variableRows(g.Expression, beliefs), v.Z)
	}
	return v
}

// regionMarginals contracts all regions of a family, with a backward pass for marginals, and returns their value. The beliefs of other
// phases, states in which belief propagation ends, are mixed into the marginals.
func (j run) regionMarginals(g *Ground, f *region.Family) (btn.Value, error) {
	est, err := region.Run(j.Ctx, g.Expression, g.State, f, j.Threads)
	if err != nil {
		return btn.Value{}, err
	}

	lnPhases := g.lnOtherPhases(f) // ln of what other phases multiply the value by
	lnBethe := est.LnZBP + lnPhases
	z := scaled.FromLog(est.LnZ + lnPhases) // the log-linear estimate, by which marginals are scaled; v.Z is without the regions
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
	} else { // the linear sum is not above 0: −1 makes the factor 1 + Linear be 0
		v.Region.Linear = scaled.One.Neg()
	}

	if lnPhases > 0 {
		g.mixPhases(est.Marginals, lnPhases)
	}
	v.Marginals = j.ScaledMarginals(j.variableRows(g.Expression, est.Marginals), z)
	return v, nil
}

// variableRows returns the marginals of the network's variables. marginals has those of the indices of the expression; each variable is
// an index. Values that the network excludes have probability 0.
func (j run) variableRows(e *sumproduct.Expression, marginals [][]float64) [][]float64 {
	rows := make([][]float64, len(j.Net.Variables))
	for v, variable := range j.Net.Variables {
		i := e.Variables[v]
		row := marginals[i]
		if support := e.Support[i]; support != nil { // the index has only some values of the variable
			domainRow := make([]float64, variable.Domain)
			for k, x := range support {
				domainRow[x] = row[k]
			}
			row = domainRow
		}
		rows[v] = row
	}
	return rows
}
