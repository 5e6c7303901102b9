package contract

// C = B as an arithmetic circuit: evaluated under the weights of the network.

import (
	"context"
	"math/big"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/circuit"
	"github.com/basetensor/basetensor/internal/lower"
	"github.com/basetensor/basetensor/internal/problem"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// circuits evaluates circuits. Its sums have no terms below 0, and its numbers carry exponents: values are right up to rounding.
type circuits struct{}

// Cost implements Engine: an operation per edge.
func (circuits) Cost(_ *problem.Problem, part btn.Part) btn.Cost {
	c, err := part.(*btn.Circuit).Of.Circuit(context.Background())
	if err != nil {
		return btn.Cost{}
	}
	return btn.Cost{Flops: float64(c.Edges())}
}

// Contract implements Engine.
func (circuits) Contract(
	ctx context.Context, p *problem.Problem, part btn.Part, want problem.Want,
) (btn.Value, error) {
	q := part.(*btn.Circuit)
	c, err := q.Of.Circuit(ctx)
	if ctx.Err() != nil {
		return btn.Value{}, ctx.Err()
	}
	if err != nil {
		return btn.Value{}, fault.Wrap(fault.BadInput, err)
	}
	differentiates := want.Derivatives || want.Target != nil
	if differentiates && !q.Of.Parametric {
		return btn.Value{}, fault.Wrap(fault.Unsupported, ErrNoDerivatives)
	}
	j, err := begin(ctx, p, want)
	if err != nil {
		return btn.Value{}, err
	}
	if need := 2 * c.PassBytes(); need > p.Memory {
		return btn.Value{}, fault.New(fault.OverBudget, "%w: the passes over a circuit of %d edges take %d bytes, the budget is %d",
			ErrMemory, c.Edges(), need, p.Memory)
	}
	e := evaluation{contraction: j, circuit: c, scale: p.Net.Scale, of: q.Of}
	if e.weights, err = circuitWeights(p.Net, c); err != nil {
		return btn.Value{}, err
	}
	if q.Of.Parametric {
		if err := e.numbers(); err != nil {
			return btn.Value{}, err
		}
	}

	if q.Ask != "" && p.Net.Scale.Sign() < 0 {
		return btn.Value{}, fault.New(fault.BadInput,
			"contract: the product of the factors without variables is below 0: weights of assignments are no probabilities then")
	}

	switch q.Ask {
	case btn.AskMPE:
		return e.best()
	case btn.AskSamples:
		return e.drawn(want)
	}
	if differentiates {
		return e.derivatives(want)
	}
	return e.total()
}

// circuitWeights are the weights of the network's variables, and 1 for auxiliary ones.
func circuitWeights(net *btn.Network, c *circuit.Circuit) (circuit.Weights, error) {
	w := c.Ones()
	for v, at := range net.Variables {
		cp, ok := net.Links[at.Link].T.(*tensor.CP)
		if !ok {
			return nil, fault.New(fault.Internal, "contract: the link of variable %d is no list of weights", v)
		}
		for a, x := range cp.Weights {
			if x < 0 {
				return nil, fault.New(fault.Unsupported, "contract: circuits have weights of at least 0, value %d of variable %d has %v",
					a, v, x)
			}
			w[c.Offset(v)+a] = scaled.FromFloat(x)
		}
	}
	return w, nil
}

// evaluation is a circuit under weights.
type evaluation struct {
	contraction
	circuit *circuit.Circuit
	weights circuit.Weights
	scale   scaled.Number // of the circuit
	of      *btn.Compiled

	parameters *lower.Parametric // the numbers that are weights; nil: none are
}

// passes is a value that so many passes were made for.
func (e evaluation) passes(n int) btn.Value {
	return btn.Value{Flops: float64(n) * float64(e.circuit.Edges())}
}

// total returns Z, and the marginals that are wanted.
func (e evaluation) total() (btn.Value, error) {
	value := e.passes(1)
	if e.m == nil {
		z, err := e.circuit.Evaluate(e.ctx, e.weights)
		if err != nil {
			return btn.Value{}, err
		}
		value.Z = z.Mul(e.scale)
	} else {
		z, shares, err := e.circuit.Marginals(e.ctx, e.weights)
		if err != nil {
			return btn.Value{}, err
		}
		value = e.passes(3)
		value.Z = z.Mul(e.scale)
		copy(e.m.at, shares)
		value.Marginals = e.m.result(e.scale)
	}
	if e.joint == nil {
		return value, nil
	}

	if err := query.CheckJoint(domains(e.net), e.joint); err != nil {
		return btn.Value{}, err
	}
	cells, err := e.circuit.Joint(e.ctx, e.weights, e.joint)
	if err != nil {
		return btn.Value{}, err
	}
	most := 1
	for k := range cells {
		cells[k] = cells[k].Mul(e.scale)
	}
	for _, v := range e.joint {
		most = max(most, e.net.Variables[v].Domain)
	}
	value.Joint = e.jointOf(cells)
	value.Flops += e.passes(3 * len(cells) / most).Flops
	return value, nil
}

// mostNear is how many assignments of nearly the largest term are looked at.
const mostNear = 256

// best returns the most probable assignment. Terms are computed once more in 192 bits, and equal up to a rounding per number
// is a tie: of tied ones the smallest in the order of the variables is taken.
func (e evaluation) best() (btn.Value, error) {
	value := e.passes(1)
	if !e.of.Functional {
		return value, fault.New(fault.Unsupported,
			"contract: the circuit has auxiliary variables that do not follow from the others: its maxima are no maxima over these alone")
	}
	rounded := 2 * float64(e.circuit.Roundings()+len(e.net.Cores)+2) * 0x1p-53
	near, err := e.circuit.Maximum(e.ctx, e.weights, 2*rounded, mostNear)
	if err != nil {
		return btn.Value{}, fault.Wrap(fault.Unsupported, err)
	}
	if len(near.Values) == 0 {
		return value, nil
	}

	n := len(e.net.Variables)
	top := 0
	for k, x := range near.Terms {
		if x.Cmp(near.Terms[top]) > 0 {
			top = k
		}
	}
	floor := new(big.Float).Mul(near.Terms[top], big.NewFloat(1-rounded))
	best, ties := top, 0
	for k, x := range near.Terms {
		if x.Cmp(floor) < 0 {
			continue
		}
		ties++
		if slices.Compare(near.Values[k][:n], near.Values[best][:n]) < 0 {
			best = k
		}
	}
	value.Found = &btn.Found{
		Values: near.Values[best][:n],
		Weight: scaled.FromBig(near.Terms[best]).Mul(e.scale),
		Unique: near.All && ties == 1,
		Close:  rounded,
	}
	return value, nil
}

// drawn returns assignments, each drawn with a stream of its own.
func (e evaluation) drawn(want problem.Want) (btn.Value, error) {
	value := e.passes(1)
	if err := query.CheckSamples(len(e.net.Variables), want.Samples); err != nil {
		return btn.Value{}, err
	}
	z, all, err := e.circuit.Sample(e.ctx, e.weights, want.Samples, func(k int) *rand.Rand {
		return rand.New(rand.NewPCG(want.Seed, uint64(k)))
	})
	if err != nil || all == nil {
		return value, err
	}
	value.Drawn = &btn.Drawn{Weight: z.Mul(e.scale)}
	width := e.circuit.Variables()
	for k := range want.Samples {
		value.Drawn.Values = append(value.Drawn.Values, all[k*width:][:len(e.net.Variables)]...)
	}
	return value, nil
}
