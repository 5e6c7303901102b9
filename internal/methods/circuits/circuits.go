package circuits

// C = B as an arithmetic circuit: evaluated under the weights of the network.

import (
	"context"
	"math/big"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/internal/methods/circuits/circuit"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Load implements contraction.Loader. What is wrong with the circuit Fits says.
func (p *Circuit) Load(ctx context.Context) {
	if p.Of != nil {
		_, _ = p.Of.Circuit(ctx)
	}
}

// Cost implements contraction.Priced: an operation per edge.
func (p *Circuit) Cost(*problem.Problem) query.Cost {
	c, err := p.Of.Circuit(context.Background())
	if err != nil {
		return query.Cost{}
	}
	return query.Cost{Flops: float64(c.Edges())}
}

// Contract implements contraction.Contractor. Its sums have no terms below 0, and its numbers carry exponents: values are right up to
// rounding.
func (p *Circuit) Contract(ctx context.Context, of *problem.Problem, want btn.Want) (btn.Value, error) {
	c, err := p.Of.Circuit(ctx)
	if ctx.Err() != nil {
		return btn.Value{}, ctx.Err()
	}
	if err != nil {
		return btn.Value{}, fault.Wrap(fault.BadInput, err)
	}
	j, err := contraction.Begin(ctx, of, want)
	if err != nil {
		return btn.Value{}, err
	}
	if need := 2 * c.PassBytes(); need > of.Memory {
		return btn.Value{}, fault.New(fault.OverBudget, "%w: the passes over a circuit of %d edges take %d bytes, the budget is %d",
			contraction.ErrMemory, c.Edges(), need, of.Memory)
	}
	e := evaluation{Contraction: j, circuit: c, scale: of.Net.Scale, of: p.Of}
	if e.weights, err = circuitWeights(of.Net, c); err != nil {
		return btn.Value{}, err
	}
	if p.Of.Parametric {
		if err := e.numbers(); err != nil {
			return btn.Value{}, err
		}
	}

	if p.Ask != "" && of.Net.Scale.Sign() < 0 {
		return btn.Value{}, fault.New(fault.BadInput,
			"contract: the product of the factors without variables is below 0: weights of assignments are no probabilities then")
	}

	switch p.Ask {
	case btn.AskMPE:
		return e.best()
	case btn.AskSamples:
		return e.drawn(want)
	}
	if want.Derivatives || want.Target != nil {
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
			w[c.Offset(v)+a] = scaled.FromFloat(x)
		}
	}
	return w, positive(net)
}

// positive refuses weights of variables below 0.
func positive(net *btn.Network) error {
	for v, at := range net.Variables {
		cp, _ := net.Links[at.Link].T.(*tensor.CP)
		for a, x := range cp.Weights {
			if x < 0 {
				return fault.New(fault.Unsupported, "contract: circuits have weights of at least 0, value %d of variable %d has %v", a, v, x)
			}
		}
	}
	return nil
}

// evaluation is a circuit under weights.
type evaluation struct {
	contraction.Contraction
	circuit *circuit.Circuit
	weights circuit.Weights
	scale   scaled.Number // of the circuit
	of      *circuit.Compiled

	parameters *lower.Parametric // the numbers that are weights; nil: none are
}

// passes is a value that so many passes were made for.
func (e evaluation) passes(n int) btn.Value {
	return btn.Value{Flops: float64(n) * float64(e.circuit.Edges())}
}

// total returns Z, and the marginals that are wanted.
func (e evaluation) total() (btn.Value, error) {
	value := e.passes(1)
	if e.M == nil {
		z, err := e.circuit.Evaluate(e.Ctx, e.weights)
		if err != nil {
			return btn.Value{}, err
		}
		value.Z = z.Mul(e.scale)
	} else {
		z, shares, err := e.circuit.Marginals(e.Ctx, e.weights)
		if err != nil {
			return btn.Value{}, err
		}
		value = e.passes(3)
		value.Z = z.Mul(e.scale)
		copy(e.M.At, shares)
		value.Marginals = e.M.Result(e.scale)
	}
	if e.Joint == nil {
		return value, nil
	}

	if err := query.CheckJoint(contraction.Domains(e.Net), e.Joint); err != nil {
		return btn.Value{}, err
	}
	cells, err := e.circuit.Joint(e.Ctx, e.weights, e.Joint)
	if err != nil {
		return btn.Value{}, err
	}
	most := 1
	for k := range cells {
		cells[k] = cells[k].Mul(e.scale)
	}
	for _, v := range e.Joint {
		most = max(most, e.Net.Variables[v].Domain)
	}
	value.Joint = e.JointOf(cells)
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
	rounded := 2 * float64(e.circuit.Roundings()+len(e.Net.Cores)+2) * 0x1p-53
	near, err := e.circuit.Maximum(e.Ctx, e.weights, 2*rounded, mostNear)
	if err != nil {
		return btn.Value{}, fault.Wrap(fault.Unsupported, err)
	}
	if len(near.Values) == 0 {
		return value, nil
	}

	n := len(e.Net.Variables)
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
func (e evaluation) drawn(want btn.Want) (btn.Value, error) {
	value := e.passes(1)
	if err := query.CheckSamples(len(e.Net.Variables), want.Samples); err != nil {
		return btn.Value{}, err
	}
	z, all, err := e.circuit.Sample(e.Ctx, e.weights, want.Samples, func(k int) *rand.Rand {
		return rand.New(rand.NewPCG(want.Seed, uint64(k)))
	})
	if err != nil || all == nil {
		return value, err
	}
	value.Drawn = &btn.Drawn{Weight: z.Mul(e.scale)}
	width := e.circuit.Variables()
	for k := range want.Samples {
		value.Drawn.Values = append(value.Drawn.Values, all[k*width:][:len(e.Net.Variables)]...)
	}
	return value, nil
}
