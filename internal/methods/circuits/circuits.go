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

// Load implements contraction.Loader: it decodes the circuit, so that later calls find it. It ignores errors, which Fits reports.
func (p *Circuit) Load(ctx context.Context) {
	if p.Of != nil {
		_, _ = p.Of.Circuit(ctx) // keeps what it has decoded
	}
}

// Cost implements contraction.Priced: a flop for each edge of the circuit.
func (p *Circuit) Cost(*problem.Problem) query.Cost {
	c, err := p.Of.Circuit(context.Background())
	if err != nil {
		return query.Cost{}
	}
	return query.Cost{Flops: float64(c.Edges())}
}

// Contract implements contraction.Contractor: it evaluates the circuit under the weights of the network. According to p.Ask and want it
// returns the most probable assignment, drawn assignments, derivatives, or Z with marginals. Sums have no terms below 0, and numbers have
// exponents of their own, so that values are exact up to rounding.
func (p *Circuit) Contract(ctx context.Context, instance *problem.Problem, want btn.Want) (btn.Value, error) {
	e, err := p.begin(ctx, instance, want)
	if err != nil {
		return btn.Value{}, err
	}
	if p.Ask != "" && instance.Net.Scale.Sign() < 0 {
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
	return e.sumAndMarginals()
}

// begin returns the evaluation of the circuit under the weights of the network. It returns an error if the memory is too small for the
// passes over the circuit.
func (p *Circuit) begin(ctx context.Context, instance *problem.Problem, want btn.Want) (e evaluation, err error) {
	c, err := p.Of.Circuit(ctx)
	if ctx.Err() != nil {
		return evaluation{}, ctx.Err()
	}
	if err != nil {
		return evaluation{}, fault.Wrap(fault.BadInput, err)
	}

	j, err := contraction.Begin(ctx, instance, want)
	if err != nil {
		return evaluation{}, err
	}
	if need := 2 * c.PassBytes(); need > instance.Memory { // a pass up and one down
		return evaluation{}, fault.New(fault.OverBudget, "%w: the passes over a circuit of %d edges take %d bytes, the budget is %d",
			contraction.ErrMemory, c.Edges(), need, instance.Memory)
	}
	e = evaluation{Contraction: j, circuit: c, scale: instance.Net.Scale, compiled: p.Of}
	if e.weights, err = circuitWeights(instance.Net, c); err != nil {
		return evaluation{}, err
	}
	if p.Of.Parametric { // the numbers of the factors are leaves, too
		err = e.setNumbers()
	}
	return e, err
}

// circuitWeights returns the weights of a circuit's leaves: those of the values of the network's variables, which are the circuit's first
// variables, and 1 for the values of its auxiliary variables. The error is unsupported if a weight is below 0.
func circuitWeights(net *btn.Network, c *circuit.Circuit) (circuit.Weights, error) {
	weights := c.UnitWeights()
	for v, variable := range net.Variables {
		valueWeights, ok := net.Links[variable.Link].T.(*tensor.CP)
		if !ok {
			return nil, fault.New(fault.Internal, "contract: the link of variable %d is no list of weights", v)
		}
		for a, x := range valueWeights.Weights {
			weights[c.FirstWeight(v)+a] = scaled.FromFloat(x)
		}
	}
	return weights, checkNonNegative(net)
}

// checkNonNegative returns an error, unsupported, if the weight of a value of a variable is below 0.
func checkNonNegative(net *btn.Network) error {
	for v, variable := range net.Variables {
		valueWeights, _ := net.Links[variable.Link].T.(*tensor.CP) // the link of a variable is a list of weights
		for a, x := range valueWeights.Weights {
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
	circuit  *circuit.Circuit
	weights  circuit.Weights
	scale    scaled.Number // that the value of the circuit is multiplied by
	compiled *circuit.Compiled

	parameters *lower.Parametric // the numbers that are weights; nil: none are
}

// newValue returns a value with the flops of that many passes over the circuit, and nothing else.
func (e evaluation) newValue(passes int) btn.Value {
	return btn.Value{Flops: float64(passes) * float64(e.circuit.Edges())}
}

// smallestTied returns the number of the term whose assignment is the smallest, among the terms that are tied with the largest one, and the
// number of ties. A term is a tie if it is at least 1 − tieWidth times the largest one. Assignments are compared by their first n values.
func smallestTied(near circuit.Near, n int, tieWidth float64) (best, ties int) {
	largest := 0
	for k, x := range near.Terms {
		if x.Cmp(near.Terms[largest]) > 0 {
			largest = k
		}
	}
	leastTied := new(big.Float).Mul(near.Terms[largest], big.NewFloat(1-tieWidth))
	best = largest
	for k, x := range near.Terms {
		if x.Cmp(leastTied) < 0 {
			continue
		}
		ties++
		if slices.Compare(near.Values[k][:n], near.Values[best][:n]) < 0 {
			best = k
		}
	}
	return best, ties
}

// sumAndMarginals returns Z, with the marginals if e.Marginals is not nil, and with the joint marginal of the variables e.Joint if that
// is not nil. e.newValue(n) has the flops of n passes over the circuit: one for Z, three for marginals.
func (e evaluation) sumAndMarginals() (btn.Value, error) {
	// Z and marginals.
	value := e.newValue(1)
	if e.Marginals == nil {
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
		copy(e.Marginals.At, shares)
		value.Marginals = e.Marginals.Result(e.scale)
	}
	if e.Joint == nil {
		return value, nil
	}
	if err := e.addJoint(&value); err != nil {
		return btn.Value{}, err
	}
	return value, nil
}

// addJoint adds the joint marginal of the variables e.Joint to value. It takes three passes for each combination of values of these
// variables without the one of the largest domain.
func (e evaluation) addJoint(value *btn.Value) error {
	if err := query.CheckJoint(contraction.Domains(e.Net), e.Joint); err != nil {
		return err
	}
	cells, err := e.circuit.Joint(e.Ctx, e.weights, e.Joint)
	if err != nil {
		return err
	}
	for k := range cells {
		cells[k] = cells[k].Mul(e.scale)
	}
	largestDomain := 1
	for _, v := range e.Joint {
		largestDomain = max(largestDomain, e.Net.Variables[v].Domain)
	}
	value.Joint = e.JointOf(cells)
	value.Flops += e.newValue(3 * len(cells) / largestDomain).Flops
	return nil
}

// maxCompared is the largest number of assignments with nearly the largest term that findBest compares.
const maxCompared = 256

// findBest returns the most probable assignment. Maximum finds the terms near the largest one in float64, and computes them once more in
// 192 bits. Terms that differ by no more than one rounding for each factor are tied. Of the assignments tied with the largest one, findBest
// returns the smallest, comparing values in the order of the variables. Value.Found is nil if all terms are 0. The error is unsupported if
// the network's variables do not determine the circuit's auxiliary variables: then maxima of the circuit are not those of the network.
func (e evaluation) findBest() (btn.Value, error) {
	value := e.newValue(1)
	if !e.compiled.Functional {
		return value, fault.New(fault.Unsupported,
			"contract: the circuit has auxiliary variables that do not follow from the others: its maxima are no maxima over these alone")
	}
	// The relative difference of tied terms: each of two terms has a rounding error of 2^-53 for every factor.
	tieWidth := 2 * float64(e.circuit.MaxTermFactors()+len(e.Net.Cores)+2) * 0x1p-53
	near, err := e.circuit.Maximum(e.Ctx, e.weights, 2*tieWidth, maxCompared) // twice, since its pass rounds the terms, too
	if err != nil {
		return btn.Value{}, fault.Wrap(fault.Unsupported, err)
	}
	if len(near.Values) == 0 {
		return value, nil
	}

	n := len(e.Net.Variables) // the circuit's first variables are those of the network
	best, ties := smallestTied(near, n, tieWidth)
	value.Found = &btn.Found{
		Values: near.Values[best][:n],
		Weight: scaled.FromBig(near.Terms[best]).Mul(e.scale),
		Unique: near.All && ties == 1,
		Close:  tieWidth,
	}
	return value, nil
}

// drawStates returns want.Samples assignments, drawn with their probabilities. Draw k has a random stream of its own, by want.Seed and k.
func (e evaluation) drawStates(want btn.Want) (btn.Value, error) {
	value := e.newValue(1)
	if err := query.CheckSamples(len(e.Net.Variables), want.Samples); err != nil {
		return btn.Value{}, err
	}
	z, draws, err := e.circuit.Sample(e.Ctx, e.weights, want.Samples, func(k int) *rand.Rand {
		return rand.New(rand.NewPCG(want.Seed, uint64(k)))
	})
	if err != nil || draws == nil {
		return value, err
	}

	// Draw k has values of all variables of the circuit, of which the first are those of the network.
	value.Drawn = &btn.Drawn{Weight: z.Mul(e.scale)}
	drawLength := e.circuit.Variables()
	for k := range want.Samples {
		value.Drawn.Values = append(value.Drawn.Values, draws[k*drawLength:][:len(e.Net.Variables)]...)
	}
	return value, nil
}
