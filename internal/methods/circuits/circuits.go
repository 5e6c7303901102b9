package circuits

// C = B as an arithmetic circuit: its evaluation under the weights of the network.

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

// Load implements contraction.Loader. It ignores errors, which Fits reports.
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

// Contract implements contraction.Contractor. Sums have no terms below 0, and numbers have exponents, so that values are exact up to
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
		if err := e.setNumbers(); err != nil {
			return btn.Value{}, err
		}
	}

	if p.Ask != "" && of.Net.Scale.Sign() < 0 {
		return btn.Value{}, fault.New(fault.BadInput,
			"contract: the product of the factors without variables is below 0: weights of assignments are no probabilities then")
	}

	switch p.Ask {
	case btn.AskMPE:
		return e.findBest()
	case btn.AskSamples:
		return e.drawStates(want)
	}
	if want.Derivatives || want.Target != nil {
		return e.derivatives(want)
	}
	return e.total()
}

// circuitWeights returns the weights of the variables of a network, and 1 for auxiliary variables of the circuit. The error is
// unsupported if a weight is below 0.
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
	return w, checkPositive(net)
}

// checkPositive returns an error, unsupported, if a weight of a variable is below 0.
func checkPositive(net *btn.Network) error {
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

// evaluation is the evaluation of a circuit under the weights of a network.
type evaluation struct {
	contraction.Contraction
	circuit *circuit.Circuit
	weights circuit.Weights
	scale   scaled.Number // that the value of the circuit is multiplied by
	of      *circuit.Compiled

	parameters *lower.Parametric // the numbers that are weights; nil: none are
}

// newValue returns a value with the flops of n passes over the circuit.
func (e evaluation) newValue(n int) btn.Value {
	return btn.Value{Flops: float64(n) * float64(e.circuit.Edges())}
}

// total returns Z, with the marginals and the joint marginal that are wanted.
func (e evaluation) total() (btn.Value, error) {
	value := e.newValue(1)
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
		value = e.newValue(3)
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
	largestDomain := 1
	for k := range cells {
		cells[k] = cells[k].Mul(e.scale)
	}
	for _, v := range e.Joint {
		largestDomain = max(largestDomain, e.Net.Variables[v].Domain)
	}
	value.Joint = e.JointOf(cells)
	value.Flops += e.newValue(3 * len(cells) / largestDomain).Flops
	return value, nil
}

// mostNear is the largest number of assignments with nearly the largest term that findBest compares.
const mostNear = 256

// findBest returns the most probable assignment. It computes the terms near the largest once more in 192 bits. Terms that are equal up to
// one rounding for each number are a tie, of which it returns the smallest assignment in the order of the variables. Value.Found is nil
// if all terms are 0. The error is unsupported if maxima over auxiliary variables are no maxima over the variables of the network.
func (e evaluation) findBest() (btn.Value, error) {
	value := e.newValue(1)
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

// drawStates returns assignments, each drawn with a random stream of its number.
func (e evaluation) drawStates(want btn.Want) (btn.Value, error) {
	value := e.newValue(1)
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
