package circuits

// Derivatives of Z by the numbers of the cores: the derivatives of a circuit by its weights.

import (
	"github.com/basetensor/basetensor/internal/methods/circuits/logic"
	"github.com/basetensor/basetensor/internal/methods/gradients"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// setNumbers sets the weights that are numbers of the cores of the network. The circuit has a variable for each table of such numbers. It
// takes linear time. Errors: over budget if passes and derivatives do not fit the memory; bad_input if the circuit is for another
// network.
func (e *evaluation) setNumbers() error {
	if entries, err := gradients.Entries(e.Net); err != nil {
		return err
	} else if bytes := 2*e.circuit.PassBytes() + gradients.EntryBytes*int64(entries); bytes > e.Memory {
		return fault.New(fault.OverBudget, "%w: the passes over a circuit of %d edges and %d derivatives take %d bytes, the budget is %d",
			contraction.ErrMemory, e.circuit.Edges(), entries, bytes, e.Memory)
	}
	parameters, err := logic.Parameters(e.Ctx, e.Net)
	if err != nil {
		return err
	}
	first, numbers := len(e.Net.Variables), logic.ParameterWeights(parameters)
	offset := e.circuit.Offset(first)
	for v, t := first, 0; t < len(parameters.Tables); t++ {
		if parameters.Sources[t].Core < 0 {
			continue
		}
		if v >= e.circuit.Variables() || e.circuit.Offset(v+1)-e.circuit.Offset(v) != len(parameters.Tables[t].Data) {
			return fault.New(fault.BadInput, "%w: table %d of the network is no variable of the circuit", btn.ErrPart, t)
		}
		v++
	}
	copy(e.weights[offset:], numbers)
	e.parameters = parameters
	e.scale = e.scale.Mul(parameters.Scale)
	return nil
}

// derivatives returns Z and its derivatives. If there is a target, it also returns both with the target observed. Each takes two passes.
func (e *evaluation) derivatives(want btn.Want) (btn.Value, error) {
	if err := contraction.NoJoint(want); err != nil {
		return btn.Value{}, err
	}
	value := e.newValue(3)
	z, by, err := e.circuit.Derivatives(e.Ctx, e.weights)
	if err != nil {
		return btn.Value{}, err
	}
	value.Z = z.Mul(e.scale)
	value.Derivatives = btn.NewDerivatives(e.parameters.Sizes, e.collect(z, by))
	if e.M != nil {
		for i := range e.M.At {
			e.M.At[i] = by[i].Mul(e.weights[i])
		}
		value.Marginals = e.M.Result(e.scale)
	}
	if want.Target == nil {
		return value, nil
	}

	at := e.circuit.Offset(want.Target.Var)
	for a := range e.Net.Variables[want.Target.Var].Domain {
		if a != want.Target.Value {
			e.weights[at+a] = scaled.Number{}
		}
	}
	if z, by, err = e.circuit.Derivatives(e.Ctx, e.weights); err != nil {
		return btn.Value{}, err
	}
	value.Target = &btn.TargetValue{Z: z.Mul(e.scale), Derivatives: btn.NewDerivatives(e.parameters.Sizes, e.collect(z, by))}
	value.Flops *= 2
	return value, nil
}

// collect returns the derivatives of Z by the parameters of all cores. byWeight has the derivatives of the circuit by its weights, z is
// the value of the circuit. A parameter of a core without variables is a factor of Z.
func (e *evaluation) collect(z scaled.Number, byWeight []scaled.Number) []scaled.Number {
	sizes := e.parameters.Sizes
	first := make([]int, len(sizes)) // by core: its first parameter
	total := 0
	for c, n := range sizes {
		first[c] = total
		total += n
	}
	out := make([]scaled.Number, total)
	offset := e.circuit.Offset(len(e.Net.Variables))
	for _, from := range e.parameters.Sources {
		if from.Core < 0 {
			continue
		}
		for k, place := range from.At {
			if place >= 0 {
				n := &out[first[from.Core]+place]
				*n = n.Add(byWeight[offset+k].Mul(e.scale))
			}
		}
		offset += len(from.At)
	}
	for _, s := range e.parameters.Single {
		if !s.Value.IsZero() {
			out[first[s.Core]+s.At] = z.Mul(e.scale).Div(s.Value)
		}
	}
	return out
}
