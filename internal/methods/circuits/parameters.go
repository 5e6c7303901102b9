package circuits

// Derivatives of Z by the numbers of the cores: the derivatives of a circuit by its weights.

import (
	"github.com/basetensor/basetensor/internal/methods/circuits/logic"
	"github.com/basetensor/basetensor/internal/methods/gradients"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// setNumbers sets the weights of the circuit that are numbers of the network's cores, and multiplies e.scale by the numbers that are
// factors of Z. The circuit's variables are those of the network, then one for each table that comes from a core, whose values stand for
// the table's entries, then others. Linear time. Errors: over budget if passes and derivatives do not fit the memory; bad_input if the
// circuit is for another network.
func (e *evaluation) setNumbers() error {
	if entries, err := gradients.ParameterCount(e.Net); err != nil {
		return err
	} else if bytes := 2*e.circuit.PassBytes() + gradients.ParameterBytes*int64(entries); bytes > e.Memory {
		return fault.New(fault.OverBudget, "%w: the passes over a circuit of %d edges and %d derivatives take %d bytes, the budget is %d",
			contraction.ErrMemory, e.circuit.Edges(), entries, bytes, e.Memory)
	}
	parameters, err := logic.Parameters(e.Ctx, e.Net)
	if err != nil {
		return err
	}

	if err := e.checkTables(parameters); err != nil {
		return err
	}
	offset := e.circuit.FirstWeight(len(e.Net.Variables)) // the weights before are those of the network's variables
	copy(e.weights[offset:], logic.ParameterWeights(parameters))
	e.parameters = parameters
	e.scale = e.scale.Mul(parameters.Scale)
	return nil
}

// checkTables returns an error if the circuit has no variable with as many values as entries for a table that comes from a core. These
// variables follow those of the network, in the order of the tables.
func (e *evaluation) checkTables(parameters *lower.Parametric) error {
	v := len(e.Net.Variables) // the variable of the next such table
	for t := range parameters.Tables {
		if parameters.Sources[t].Core < 0 { // not from a core
			continue
		}
		if v >= e.circuit.Variables() || e.circuit.FirstWeight(v+1)-e.circuit.FirstWeight(v) != len(parameters.Tables[t].Data) {
			return fault.New(fault.BadInput, "%w: table %d of the network is no variable of the circuit", btn.ErrPart, t)
		}
		v++
	}
	return nil
}

// derivatives returns Z and its derivatives by the numbers of the cores, with the marginals if e.Marginals is not nil. If want has a
// target, it also returns Z and the derivatives with the target observed: with weights of 0 for the target variable's other values, which
// stay in e.weights.
func (e *evaluation) derivatives(want btn.Want) (btn.Value, error) {
	if err := contraction.RefuseJoint(want); err != nil {
		return btn.Value{}, err
	}
	value := e.newValue(3) // one pass up and one down take the flops of three
	z, byWeight, err := e.circuit.Derivatives(e.Ctx, e.weights)
	if err != nil {
		return btn.Value{}, err
	}
	value.Z = z.Mul(e.scale)
	value.Derivatives = btn.NewDerivatives(e.parameters.Sizes, e.byParameter(z, byWeight))
	if e.Marginals != nil { // the share of a value is its weight times the derivative by it
		for i := range e.Marginals.At {
			e.Marginals.At[i] = byWeight[i].Mul(e.weights[i])
		}
		value.Marginals = e.Marginals.Result(e.scale)
	}
	if want.Target == nil {
		return value, nil
	}

	// Z and the derivatives with the target observed.
	firstWeight := e.circuit.FirstWeight(want.Target.Var) // of the variable's value 0
	for a := range e.Net.Variables[want.Target.Var].Domain {
		if a != want.Target.Value {
			e.weights[firstWeight+a] = scaled.Number{} // 0
		}
	}
	if z, byWeight, err = e.circuit.Derivatives(e.Ctx, e.weights); err != nil {
		return btn.Value{}, err
	}
	value.Target = &btn.TargetValue{Z: z.Mul(e.scale), Derivatives: btn.NewDerivatives(e.parameters.Sizes, e.byParameter(z, byWeight))}
	value.Flops *= 2
	return value, nil
}

// byParameter returns the derivatives of Z by the parameters of all cores, one core after the other. z is the value of the circuit and
// byWeight its derivatives by the weights of its leaves; Z is z times e.scale. A parameter may be an entry of several tables, and so the
// weight of several leaves: its derivative is the sum of those by these weights, times e.scale. A parameter whose table has no other entry
// left is a factor p of Z, and its derivative is Z / p.
func (e *evaluation) byParameter(z scaled.Number, byWeight []scaled.Number) []scaled.Number {
	sizes := e.parameters.Sizes
	firstOfCore := make([]int, len(sizes)) // by core: the number of its first parameter
	total := 0
	for c, n := range sizes {
		firstOfCore[c] = total
		total += n
	}

	// The weights from offset on, behind those of variables, are the entries of the tables that come from cores. source.Positions has the
	// position of each entry's parameter in its core, or −1.
	derivatives := make([]scaled.Number, total)
	offset := e.circuit.FirstWeight(len(e.Net.Variables))
	for _, source := range e.parameters.Sources {
		if source.Core < 0 {
			continue
		}
		for k, parameter := range source.Positions {
			if parameter >= 0 {
				d := &derivatives[firstOfCore[source.Core]+parameter]
				*d = d.Add(byWeight[offset+k].Mul(e.scale))
			}
		}
		offset += len(source.Positions)
	}

	for _, single := range e.parameters.ScaleParameters { // factors of Z
		if !single.Value.IsZero() {
			derivatives[firstOfCore[single.Core]+single.Position] = z.Mul(e.scale).Div(single.Value)
		}
	}
	return derivatives
}
