package counts

// C = B in count space, with what hangs on the legs of symmetric cores as polynomials.

import (
	"context"
	"fmt"
	"math/bits"
	"math/rand/v2"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/methods/exact"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// formSlot is the place of the network in count space among the forms of a problem.
type formSlot struct{}

// Of returns the form of a problem's network for a part, made once for each. Errors: those of New.
func Of(ctx context.Context, p *problem.Problem, part *Counts) (*Form, error) {
	return problem.Form(ctx, p, formSlot{}, fmt.Sprint(part.Cores, part.Terms), func() (*Form, error) {
		return New(ctx, p.Net, part, Options{Memory: p.Memory})
	})
}

// partContraction is one contraction of one part.
type partContraction struct{ contraction.Contraction }

// Contract implements contraction.Contractor.
func (p *Counts) Contract(ctx context.Context, of *problem.Problem, want btn.Want) (btn.Value, error) {
	own, err := contraction.Begin(ctx, of, want)
	if err != nil {
		return btn.Value{}, err
	}
	j := partContraction{own}
	form, err := Of(ctx, of, p)
	if err != nil {
		return btn.Value{}, err
	}
	if p.Ask != "" {
		return j.findAssignments(form, p, want)
	}
	a, err := form.Value(ctx, j.M != nil)
	if err != nil {
		return btn.Value{}, err
	}

	value := btn.Value{Z: a.Z.Mul(j.Net.Scale), Flops: 2 * float64(a.MulAdds)}
	if j.M != nil {
		j.M.At = a.Marginals
		if err := j.M.Finite(); err != nil {
			return btn.Value{}, err
		}
		value.Marginals = j.M.Result(j.Net.Scale)
	}
	if err := j.judgeCancellation(&value, p); err != nil || j.Joint == nil {
		return value, err
	}

	cells, err := form.Joint(ctx, j.Joint)
	if err != nil {
		return btn.Value{}, err
	}
	for x := range cells.Joint {
		if cells.Joint[x] = cells.Joint[x].Mul(j.Net.Scale); !cells.Joint[x].IsFinite() {
			return btn.Value{}, fmt.Errorf("%w: cell %d of the joint marginal", tensor.ErrNotFinite, x)
		}
	}
	value.Flops += 2 * float64(cells.MulAdds)
	value.Joint = j.JointOf(cells.Joint)
	return value, nil
}

// findAssignments finds the most probable assignment or draws, as part.Ask demands. The weights of the part's terms go into the scale. The
// value has no assignments if Z is 0.
func (j partContraction) findAssignments(form *Form, part *Counts, want btn.Want) (value btn.Value, err error) {
	scale := j.Net.Scale
	for k, c := range part.Cores {
		scale = scale.Mul(scaled.FromFloat(Terms(j.Net.Cores[c].T).Terms[part.Terms[k]].Alpha))
	}
	if scale.Sign() < 0 {
		return value, fault.New(fault.BadInput,
			"contract: the product of the factors without variables is below 0: weights of assignments are no probabilities then")
	}
	if part.Ask == btn.AskMPE {
		value.Flops = 8 * float64(len(j.Net.Links))
		if value.Found, err = form.Best(j.Ctx); value.Found != nil {
			value.Found.Weight = value.Found.Weight.Mul(scale)
		}
		return value, err
	}
	if err := query.CheckSamples(len(j.Net.Variables), want.Samples); err != nil {
		return value, err
	}
	a, all, err := form.Draw(j.Ctx, want.Samples, func(k int) *rand.Rand { return rand.New(rand.NewPCG(want.Seed, uint64(k))) })
	if err != nil || all == nil {
		return value, err
	}
	value.Drawn = &btn.Drawn{Weight: a.Z.Mul(scale), Values: all}
	value.Flops = 2 * float64(a.MulAdds)
	return value, nil
}

// judgeCancellation sets Rounding, Digits and Doubt if terms may cancel: it compares the value with the same contraction without signs.
func (j partContraction) judgeCancellation(value *btn.Value, part *Counts) error {
	if !Signed(j.Net) {
		return nil
	}
	form, err := New(j.Ctx, absoluteNetwork(j.Net), part, Options{Memory: j.Memory})
	if err != nil {
		return err
	}
	positive, err := form.Value(j.Ctx, false)
	if err != nil {
		return err
	}
	value.Flops += 2 * float64(positive.MulAdds)

	// steps bounds the roundings along any one product.
	legs := len(j.Net.Dims)
	steps := float64(len(j.Net.Rounded)) + btn.ClosedFormRounding(j.Net) + float64(4*legs+len(j.Net.Links))
	for _, d := range j.Net.Dims {
		steps += floats.SumRoundings(float64(d))
	}
	for _, core := range j.Net.Cores {
		if n := len(core.Legs); n > 1 { // once a level of the tree of products
			steps += floats.SumRoundings(float64(n)) * float64(1+bits.Len(uint(legs)))
		}
		if t, ok := core.T.(*tensor.Dense); ok {
			steps += floats.SumRoundings(float64(len(t.Data)))
		}
	}
	abs := positive.Z.Mul(j.Net.Scale.Abs())
	value.Rounding = exact.Roundings(abs, steps)
	value.Digits, value.Doubt = exact.Cancelled(value.Z, abs, value.Rounding)
	return nil
}

// absoluteNetwork returns the network with the absolute value of every number of its cores and links.
func absoluteNetwork(net *btn.Network) *btn.Network {
	out := *net
	out.Links = make([]btn.Link, len(net.Links))
	for k, link := range net.Links {
		out.Links[k] = btn.Link{Legs: link.Legs, T: contraction.Absolute(link.T)}
	}
	out.Cores = make([]btn.Core, len(net.Cores))
	for k, core := range net.Cores {
		out.Cores[k] = btn.Core{Legs: core.Legs, T: contraction.Absolute(core.T)}
	}
	return &out
}
