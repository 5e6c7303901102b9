package contract

// Regions in the BP gauge: some of the regions of one slice.

import (
	"context"
	"runtime"

	"github.com/basetensor/basetensor/internal/bp"
	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/region"
	"github.com/basetensor/basetensor/internal/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
	"golang.org/x/sync/errgroup"
)

// regions contracts the component's regions. With marginals it has all of its slice's, and Value.Marginals are those of
// the log-linear estimate; times the slice's Z they add up.
func (j job) regions() (btn.Value, error) {
	rung := &j.dec.Growth.Rungs[j.q.Rung]
	g, err := j.ground(rung)
	if err != nil || g.state == nil {
		return btn.Value{}, err
	}
	if rung.Kind == btn.KindBethe {
		return j.bethe(g), nil
	}
	f, err := region.Plan(j.ctx, g.e.Hypergraph(), region.Options{Kind: rung.Kind, Size: rung.Size, Marginals: j.m != nil})
	if err != nil {
		return btn.Value{}, err
	}
	if j.m != nil {
		return j.regionMarginals(g.e, g.state, f)
	}
	p, err := j.prepare(g, f)
	if err != nil {
		return btn.Value{}, err
	}
	out := &btn.RegionPart{LnBethe: g.lnBethe, Widest: float64(f.Widest), Converged: g.state.Converged}
	v := btn.Value{Z: scaled.FromLog(g.lnBethe), Region: out}
	from, to := region.InShare(f.Len(), j.q.From, j.q.To)
	parts, err := j.parts(p, from, to)
	if err != nil {
		return btn.Value{}, err
	}
	for _, part := range parts {
		a, b := part.Sums()
		out.LnSum += a
		out.Linear = out.Linear.Add(scaled.FromFloat(b))
		out.Regions += int64(part.To - part.From)
		out.NonPositive += int64(part.NonPositive)
		v.Flops += part.Flops
	}
	return v, nil
}

// blockRegions is how many regions are summed at a time.
const blockRegions = 1 << 14

// parts contracts regions in blocks, whose bounds do not depend on the number of threads.
func (j job) parts(p *region.Prepared, from, to int) ([]*region.Part, error) {
	var bounds [][2]int
	for at := from; at < to; at += blockRegions {
		bounds = append(bounds, [2]int{at, min(at+blockRegions, to)})
	}
	out := make([]*region.Part, len(bounds))
	err := j.each(len(bounds), func(ctx context.Context, k int) (err error) {
		out[k], err = p.Part(ctx, bounds[k][0], bounds[k][1])
		return err
	})
	return out, err
}

// each calls f for every k < n, on as many goroutines as the job has threads.
func (j job) each(n int, f func(ctx context.Context, k int) error) error {
	group, ctx := errgroup.WithContext(j.ctx)
	group.SetLimit(max(1, j.threads))
	if j.threads <= 0 {
		group.SetLimit(runtime.GOMAXPROCS(0))
	}
	for k := range n {
		group.Go(func() error { return f(ctx, k) })
	}
	return group.Wait()
}

// propagate runs belief propagation, or restores the state that learning ended with.
func (j job) propagate(e *sumproduct.Expression, whole bool) (*bp.State, error) {
	if whole && j.options.Messages != nil {
		if s, err := bp.Restore(e, j.options.Messages); err == nil || fault.CodeOf(err) != fault.BadInput {
			return s, err
		}
	}
	states, err := bp.Propagate(j.ctx, e, bp.PropagateOptions{})
	if err != nil {
		return nil, err
	}
	return states[0], nil
}

// bethe is the component of a rung without regions: the value and the beliefs of belief propagation.
func (j job) bethe(g *ground) btn.Value {
	v := btn.Value{Z: scaled.FromLog(g.lnBethe), Region: &btn.RegionPart{LnBethe: g.lnBethe, Converged: g.state.Converged}}
	if j.m != nil {
		beliefs := make([][]float64, len(g.e.Dims))
		for i := range beliefs {
			beliefs[i] = g.state.Belief(i)
		}
		v.Marginals = j.weighted(j.rows(g.e, beliefs), v.Z)
	}
	return v
}

func (j job) regionMarginals(e *sumproduct.Expression, state *bp.State, f *region.Family) (btn.Value, error) {
	est, err := region.Run(j.ctx, e, state, f, j.threads)
	if err != nil {
		return btn.Value{}, err
	}
	z := scaled.FromLog(est.LnZ)
	v := btn.Value{Z: scaled.FromLog(est.LnZBP), Flops: est.Flops, Region: &btn.RegionPart{
		LnBethe: est.LnZBP, LnSum: est.LnZ - est.LnZBP, Regions: int64(est.Regions), NonPositive: int64(est.NonPositive),
		Widest: float64(est.Widest), Converged: state.Converged,
	}}
	if est.LinearOK {
		v.Region.Linear = scaled.FromLog(est.LnZLinear - est.LnZBP).Sub(scaled.One)
	} else {
		v.Region.Linear = scaled.One.Neg()
	}
	v.Marginals = j.weighted(j.rows(e, est.Marginals), z)
	return v, nil
}

// rows brings the marginals of the expression's indices to the values of the model's variables.
func (j job) rows(e *sumproduct.Expression, marginals [][]float64) [][]float64 {
	rows := make([][]float64, len(j.net.Variables))
	for variable, place := range j.net.Variables {
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
