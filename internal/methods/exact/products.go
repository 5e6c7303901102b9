package exact

// C = B as the product of the connected parts of the network, each by an exact estimate.

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Cost implements contraction.Priced.
func (p *Product) Cost(*problem.Problem) (cost query.Cost) {
	for _, factor := range p.Factors {
		cost.Flops += factor.Estimate.Cost.Flops
		cost.Bytes = max(cost.Bytes, factor.Estimate.Cost.Bytes)
	}
	return cost
}

// Contract implements contraction.Contractor: Z is Scale · Π_f Z_f. A marginal is that of its factor times all other Z_f. The joint
// marginal is the product of those of the factors, which are independent. There is no division.
func (p *Product) Contract(ctx context.Context, of *problem.Problem, want btn.Want) (btn.Value, error) {
	j, err := begin(ctx, of, want)
	if err != nil {
		return btn.Value{}, err
	}
	return j.multiplyFactors(p.Factors)
}

// factorValue is the result of one factor.
type factorValue struct {
	z         scaled.Number
	marginals []scaled.Number // of its variables, one after the other
	joint     []scaled.Number // of those variables of the set that it has, the last one fastest
	variables []int           // of the network
	set       []int           // places in the set
	digits    float64         // that cancelled
	rounding  *scaled.Number  // bound of the error of z; nil: not known
	doubt     string          // the first reason why z is not known to be exact
}

// multiplyFactors contracts all factors and returns their product.
func (j run) multiplyFactors(factors []btn.ProductFactor) (btn.Value, error) {
	all := make([]factorValue, len(factors))
	flops := 0.0
	for f := range factors {
		var factorFlops float64
		var err error
		if all[f], factorFlops, err = j.contractFactor(&factors[f]); err != nil {
			return btn.Value{}, fmt.Errorf("factor %d: %w", f, err)
		}
		flops += factorFlops
	}

	// The product of all values before and after each factor.
	others := make([]scaled.Number, len(all))
	before := j.Net.Scale
	after := scaled.One
	for p := range all {
		others[p] = before
		before = before.Mul(all[p].z)
	}

	for p := len(all) - 1; p >= 0; p-- {
		others[p] = others[p].Mul(after)
		after = after.Mul(all[p].z)
	}

	value := btn.Value{Z: before, Flops: flops}
	for p := range all {
		value.Digits += all[p].digits
		value.Doubt = cmp.Or(value.Doubt, all[p].doubt)
		if r := all[p].rounding; r != nil {
			bound := r.Mul(others[p].Abs())
			if value.Rounding != nil {
				bound = bound.Add(*value.Rounding)
			}
			value.Rounding = &bound
		}
	}
	if j.M != nil {
		j.collectMarginals(all, others)
		if err := j.M.Finite(); err != nil {
			return btn.Value{}, err
		}
		value.Marginals = j.M.Result(scaled.One)
	}
	if j.Joint != nil {
		value.Joint = j.JointOf(j.productOfJoints(all))
	}
	return value, nil
}

// collectMarginals sets the marginals of all factors, each times the values of all other factors. others[p] is the product of the values
// of all factors except p.
func (j run) collectMarginals(all []factorValue, others []scaled.Number) {
	for p, part := range all {
		at := 0
		for _, v := range part.variables {
			for x := range j.Net.Variables[v].Domain {
				j.M.At[j.M.Offset[v]+x] = part.marginals[at].Mul(others[p])
				at++
			}
		}
	}
}

// contractFactor contracts one factor, and returns its value and the flops.
func (j run) contractFactor(factor *btn.ProductFactor) (factorValue, float64, error) {
	var v factorValue
	var net *btn.Network
	net, v.variables = j.Net.Sub(factor.Links)

	localOf := make(map[int]int, len(v.variables))
	for local, variable := range v.variables {
		localOf[variable] = local
	}

	// The places of the set that the factor has, and its own numbers of their variables.
	var set []int
	for place, variable := range j.Joint {
		if local, ok := localOf[variable]; ok {
			v.set = append(v.set, place)
			set = append(set, local)
		}
	}

	want := btn.Want{Marginals: j.M != nil && len(v.variables) > 0}

	// An elimination order has no joint marginals: they are contracted cell by cell.
	isEnumerated := false
	if len(set) > 0 {
		isEnumerated = factor.Estimate.Parts[0].Class() == btn.ClassElimination
		if !isEnumerated {
			want.Joint = set
		}
	}

	flops, err := j.sumFactor(&v, net, factor.Estimate, want)
	if err != nil || !isEnumerated {
		return v, flops, err
	}

	cellFlops, err := j.enumerate(&v, net, factor.Estimate, set)
	return v, flops + cellFlops, err
}

// sumFactor adds up the parts of a factor's estimate in v, and returns the flops.
func (j run) sumFactor(
	v *factorValue, net *btn.Network, e *btn.Estimate, want btn.Want,
) (float64, error) {
	p := problem.New(net, problem.Options{Memory: j.Memory, Threads: j.Threads})
	values := make([]btn.Value, len(e.Parts))
	z := make([]scaled.Number, len(values))
	flops := 0.0

	for i := range values {
		var err error
		if values[i], err = contraction.Part(j.Ctx, p, e.Parts[i], want); err != nil {
			return 0, err
		}
		z[i] = values[i].Z
		flops += values[i].Flops
		v.digits = max(v.digits, values[i].Digits)
		v.doubt = cmp.Or(v.doubt, values[i].Doubt)
		if r := values[i].Rounding; r != nil {
			bound := r.Mul(e.Weights()[i].Abs())
			if v.rounding != nil {
				bound = bound.Add(*v.rounding)
			}
			v.rounding = &bound
		}
	}

	alpha := e.Weights()
	v.z = scaled.SumProducts(alpha, z)

	sum := func(of func(btn.Value) *btn.Marginals) []scaled.Number {
		if of(values[0]) == nil {
			return nil
		}
		out := make([]scaled.Number, len(of(values[0]).Mant))
		terms := make([]scaled.Number, len(values))
		for at := range out {
			for i, value := range values {
				terms[i] = scaled.Make(of(value).Mant[at], of(value).Exp)
			}
			out[at] = scaled.SumProducts(alpha, terms)
		}
		return out
	}

	v.marginals = sum(func(x btn.Value) *btn.Marginals { return x.Marginals })
	v.joint = sum(func(x btn.Value) *btn.Marginals { return x.Joint })
	return flops, nil
}

// enumerate sets the joint marginal of a factor that is contracted along an elimination order, by one contraction for each cell. set has
// the variables by their numbers in the factor. The error is over budget if that takes more than policy.MostEnumerated flops.
func (j run) enumerate(
	v *factorValue, net *btn.Network, e *btn.Estimate, set []int,
) (flops float64, err error) {
	cells := 1
	for _, local := range set {
		cells *= net.Variables[local].Domain
	}
	if price := float64(cells) * e.Cost.Flops; price > policy.MostEnumerated {
		return 0, fault.New(fault.OverBudget,
			"the joint marginal takes %d contractions of %.3g flops, at most %.0g flops are "+
				"done", cells, e.Cost.Flops, policy.MostEnumerated)
	}

	v.joint = make([]scaled.Number, cells)
	for cell := range v.joint {
		var ev factorgraph.Evidence

		// The digits of the cell are the values of the set, the last variable fastest.
		digits := cell
		for k := len(set) - 1; k >= 0; k-- {
			domain := net.Variables[set[k]].Domain
			ev.Hard = append(ev.Hard, factorgraph.Observation{Var: set[k], Value: digits % domain})
			digits /= domain
		}
		slices.SortFunc(ev.Hard, func(a, b factorgraph.Observation) int { return a.Var - b.Var })

		conditioned, err := net.Condition(ev)
		if err != nil {
			return flops, err
		}

		var value factorValue
		cellFlops, err := j.sumFactor(&value, conditioned, e, btn.Want{})
		if err != nil {
			return flops, err
		}
		v.joint[cell] = value.z
		flops += cellFlops
	}
	return flops, nil
}

// productOfJoints returns the cells of the set from those of the parts,
// times the values of the parts that have none of it.
func (j run) productOfJoints(all []factorValue) []scaled.Number {
	size := 1
	for _, v := range j.Joint {
		size *= j.Net.Variables[v].Domain
	}

	cells := make([]scaled.Number, size)
	value := make([]int, len(j.Joint))
	for cell := range cells {
		rest := cell
		for k := len(j.Joint) - 1; k >= 0; k-- {
			domain := j.Net.Variables[j.Joint[k]].Domain
			value[k] = rest % domain
			rest /= domain
		}

		product := j.Net.Scale
		for _, part := range all {
			if len(part.set) == 0 {
				product = product.Mul(part.z)
				continue
			}
			at := 0
			for _, k := range part.set {
				at = at*j.Net.Variables[j.Joint[k]].Domain + value[k]
			}
			product = product.Mul(part.joint[at])
		}
		cells[cell] = product
	}
	return cells
}
