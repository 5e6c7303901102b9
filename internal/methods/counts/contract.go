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

// formSlot is the slot of forms in count space in a problem's memory.
type formSlot struct{}

// FormOf returns a problem's network in the form of a part. It is made once for a problem, and for the cores and terms of the part. Its
// errors are those of NewForm.
func FormOf(ctx context.Context, p *problem.Problem, part *Counts) (*Form, error) {
	return problem.Form(ctx, p, formSlot{}, fmt.Sprint(part.Cores, part.Terms), func() (*Form, error) {
		return NewForm(ctx, p.Net, part, Options{Memory: p.Memory})
	})
}

// partContraction is one contraction of one part.
type partContraction struct{ contraction.Contraction }

// Contract implements contraction.Contractor: it computes Z of the part and what is wanted beside it, or finds assignments if the part asks
// for them.
func (p *Counts) Contract(ctx context.Context, problem *problem.Problem, want btn.Want) (btn.Value, error) {
	begun, err := contraction.Begin(ctx, problem, want)
	if err != nil {
		return btn.Value{}, err
	}
	j := partContraction{begun}
	form, err := FormOf(ctx, problem, p)
	if err != nil {
		return btn.Value{}, err
	}
	if p.Ask != "" {
		return j.findAssignments(form, p, want)
	}

	// Z and the marginals.
	answer, err := form.Value(ctx, j.Marginals != nil)
	if err != nil {
		return btn.Value{}, err
	}
	value := btn.Value{Z: answer.Z.Mul(j.Net.Scale), Flops: 2 * float64(answer.MulAdds)}
	if j.Marginals != nil {
		j.Marginals.At = answer.Marginals
		if err := j.Marginals.CheckFinite(); err != nil {
			return btn.Value{}, err
		}
		value.Marginals = j.Marginals.Result(j.Net.Scale)
	}
	if err := j.judgeCancellation(&value, p); err != nil || j.Joint == nil {
		return value, err
	}

	if err := j.addJoint(&value, form); err != nil {
		return btn.Value{}, err
	}
	return value, nil
}

// addJoint adds the joint marginal to a value, times the network's scale, and its flops.
func (j partContraction) addJoint(value *btn.Value, form *Form) error {
	answer, err := form.Joint(j.Ctx, j.Joint)
	if err != nil {
		return err
	}
	for x := range answer.Joint {
		answer.Joint[x] = answer.Joint[x].Mul(j.Net.Scale)
		if !answer.Joint[x].IsFinite() {
			return fmt.Errorf("%w: cell %d of the joint marginal", tensor.ErrNotFinite, x)
		}
	}
	value.Flops += 2 * float64(answer.MulAdds) // a product and a sum each
	value.Joint = j.JointOf(answer.Joint)
	return nil
}

// findAssignments finds the most probable assignment or draws assignments, as part.Ask says. The value has no assignments if Z is 0.
// Weights of assignments include the network's scale and the coefficients α of the part's terms.
func (j partContraction) findAssignments(form *Form, part *Counts, want btn.Want) (value btn.Value, err error) {
	scale := j.Net.Scale
	for k, c := range part.Cores {
		scale = scale.Mul(scaled.FromFloat(AsSymmetricTerms(j.Net.Cores[c].T).Terms[part.Terms[k]].Alpha))
	}
	if scale.Sign() < 0 {
		return value, fault.New(fault.BadInput,
			"contract: the product of the factors without variables is below 0: weights of assignments are no probabilities then")
	}

	if part.Ask == btn.AskMPE {
		value.Flops = 8 * float64(len(j.Net.Links)) // about 8 for each variable
		if value.Found, err = form.MostProbable(j.Ctx); value.Found != nil {
			value.Found.Weight = value.Found.Weight.Mul(scale)
		}
		return value, err
	}

	if err := query.CheckSamples(len(j.Net.Variables), want.Samples); err != nil {
		return value, err
	}
	stream := func(sample int) *rand.Rand { return rand.New(rand.NewPCG(want.Seed, uint64(sample))) }
	answer, samples, err := form.Draw(j.Ctx, want.Samples, stream)
	if err != nil || samples == nil {
		return value, err
	}
	value.Drawn = &btn.Drawn{Weight: answer.Z.Mul(scale), Values: samples}
	value.Flops = 2 * float64(answer.MulAdds)
	return value, nil
}

// judgeCancellation sets Rounding, Digits and Doubt of a value if the network has numbers below 0, so that terms may cancel. It compares
// the value with the same contraction of the absolute numbers, and bounds the roundings relative to that.
func (j partContraction) judgeCancellation(value *btn.Value, part *Counts) error {
	if !HasNegativeNumber(j.Net) {
		return nil
	}
	form, err := NewForm(j.Ctx, absoluteNetwork(j.Net), part, Options{Memory: j.Memory})
	if err != nil {
		return err
	}
	const hasMarginals = false
	positive, err := form.Value(j.Ctx, hasMarginals)
	if err != nil {
		return err
	}
	value.Flops += 2 * float64(positive.MulAdds)

	// Bound the roundings of any one term, in 2^−53 of it.
	legs := len(j.Net.Dims)
	roundings := float64(len(j.Net.Rounded)) + btn.ClosedFormRounding(j.Net) + float64(4*legs+len(j.Net.Links)) // 4 for a leg, 1 for a link
	for _, d := range j.Net.Dims {
		roundings += floats.SumRoundings(float64(d))
	}
	for _, core := range j.Net.Cores {
		if n := len(core.Legs); n > 1 { // once for each level of the product tree
			roundings += floats.SumRoundings(float64(n)) * float64(1+bits.Len(uint(legs)))
		}
		if t, ok := core.T.(*tensor.Dense); ok {
			roundings += floats.SumRoundings(float64(len(t.Data)))
		}
	}
	abs := positive.Z.Mul(j.Net.Scale.Abs())
	value.Rounding = exact.RoundingBound(abs, roundings)
	value.Digits, value.Doubt = exact.CancelledDigits(value.Z, abs, value.Rounding)
	return nil
}

// absoluteNetwork returns a copy of the network with every number of its cores and links replaced by its absolute value.
func absoluteNetwork(net *btn.Network) *btn.Network {
	absolute := *net
	absolute.Links = make([]btn.Link, len(net.Links))
	for k, link := range net.Links {
		absolute.Links[k] = btn.Link{Legs: link.Legs, T: contraction.Absolute(link.T)}
	}
	absolute.Cores = make([]btn.Core, len(net.Cores))
	for k, core := range net.Cores {
		absolute.Cores[k] = btn.Core{Legs: core.Legs, T: contraction.Absolute(core.T)}
	}
	return &absolute
}
