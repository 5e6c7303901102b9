package contract

// C = B in count space, with what hangs on the legs of symmetric cores as polynomials.

import (
	"context"
	"fmt"
	"math/bits"
	"math/rand/v2"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/engine/counts"
	"github.com/basetensor/basetensor/internal/exact"
	"github.com/basetensor/basetensor/internal/problem"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// inCounts contracts networks in count space.
type inCounts struct{ planned }

// Contract implements Engine.
func (inCounts) Contract(
	ctx context.Context, p *problem.Problem, part btn.Part, want problem.Want,
) (btn.Value, error) {
	j, err := begin(ctx, p, want)
	if err != nil {
		return btn.Value{}, err
	}
	q := part.(*btn.Counts)
	form, err := p.Counts(ctx, q)
	if err != nil {
		return btn.Value{}, err
	}
	if q.Ask != "" {
		return j.inCounts(form, q, want)
	}
	a, err := form.Value(ctx, j.m != nil)
	if err != nil {
		return btn.Value{}, err
	}

	value := btn.Value{Z: a.Z.Mul(j.net.Scale), Flops: 2 * float64(a.MulAdds)}
	if j.m != nil {
		j.m.at = a.Marginals
		if err := j.m.finite(); err != nil {
			return btn.Value{}, err
		}
		value.Marginals = j.m.result(j.net.Scale)
	}
	if err := j.judgeCounts(&value, q); err != nil || j.joint == nil {
		return value, err
	}

	cells, err := form.Joint(ctx, j.joint)
	if err != nil {
		return btn.Value{}, err
	}
	for x := range cells.Joint {
		if cells.Joint[x] = cells.Joint[x].Mul(j.net.Scale); !cells.Joint[x].IsFinite() {
			return btn.Value{}, fmt.Errorf("%w: cell %d of the joint marginal", tensor.ErrNotFinite, x)
		}
	}
	value.Flops += 2 * float64(cells.MulAdds)
	value.Joint = j.jointOf(cells.Joint)
	return value, nil
}

// inCounts finds assignments in count space, of a network whose one symmetric core is a term times its weight.
func (j contraction) inCounts(form *counts.Form, part *btn.Counts, want problem.Want) (value btn.Value, err error) {
	scale := j.net.Scale
	for k, c := range part.Cores {
		scale = scale.Mul(scaled.FromFloat(counts.Terms(j.net.Cores[c].T).Terms[part.Terms[k]].Alpha))
	}
	if scale.Sign() < 0 {
		return value, fault.New(fault.BadInput,
			"contract: the product of the factors without variables is below 0: weights of assignments are no probabilities then")
	}
	if part.Ask == btn.AskMPE {
		value.Flops = 8 * float64(len(j.net.Links))
		if value.Found, err = form.Best(j.ctx); value.Found != nil {
			value.Found.Weight = value.Found.Weight.Mul(scale)
		}
		return value, err
	}
	if err := query.CheckSamples(len(j.net.Variables), want.Samples); err != nil {
		return value, err
	}
	a, all, err := form.Draw(j.ctx, want.Samples, func(k int) *rand.Rand { return rand.New(rand.NewPCG(want.Seed, uint64(k))) })
	if err != nil || all == nil {
		return value, err
	}
	value.Drawn = &btn.Drawn{Weight: a.Z.Mul(scale), Values: all}
	value.Flops = 2 * float64(a.MulAdds)
	return value, nil
}

// judgeCounts fills Digits and Doubt where terms may cancel, by the same contraction without signs.
func (j contraction) judgeCounts(value *btn.Value, part *btn.Counts) error {
	if !counts.Signed(j.net) {
		return nil
	}
	form, err := counts.New(j.ctx, absoluteNetwork(j.net), part, counts.Options{Memory: j.memory})
	if err != nil {
		return err
	}
	positive, err := form.Value(j.ctx, false)
	if err != nil {
		return err
	}
	value.Flops += 2 * float64(positive.MulAdds)

	// steps bounds the roundings along any one product.
	legs := len(j.net.Dims)
	steps := float64(len(j.net.Rounded)) + btn.ClosedFormRounding(j.net) + float64(4*legs+len(j.net.Links))
	for _, d := range j.net.Dims {
		steps += scaled.SumRoundings(float64(d))
	}
	for _, core := range j.net.Cores {
		if n := len(core.Legs); n > 1 { // once a level of the tree of products
			steps += scaled.SumRoundings(float64(n)) * float64(1+bits.Len(uint(legs)))
		}
		if t, ok := core.T.(*tensor.Dense); ok {
			steps += scaled.SumRoundings(float64(len(t.Data)))
		}
	}
	value.Digits, value.Doubt = exact.Cancelled(value.Z, positive.Z.Mul(j.net.Scale.Abs()), steps)
	return nil
}

// absoluteNetwork is a network with the absolute value of every number of its cores and links.
func absoluteNetwork(net *btn.Network) *btn.Network {
	out := *net
	out.Links = make([]btn.Link, len(net.Links))
	for k, link := range net.Links {
		out.Links[k] = btn.Link{Legs: link.Legs, T: absolute(link.T)}
	}
	out.Cores = make([]btn.Core, len(net.Cores))
	for k, core := range net.Cores {
		out.Cores[k] = btn.Core{Legs: core.Legs, T: absolute(core.T)}
	}
	return &out
}
