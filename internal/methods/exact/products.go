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
func (p *Product) Contract(ctx context.Context, pr *problem.Problem, want btn.Want) (btn.Value, error) {
	j, err := begin(ctx, pr, want)
	if err != nil {
		return btn.Value{}, err
	}
	return j.multiplyFactors(p.Factors)
}

// factorValue is the result of one factor. The set is the list of variables whose joint marginal is wanted (run.Joint).
type factorValue struct {
	z            scaled.Number
	variables    []int           // the variables of the factor, by their numbers in the network
	marginals    []scaled.Number // of these variables, one after the other
	setPositions []int           // the positions in the set of the variables that the factor has
	joint        []scaled.Number // the joint marginal of these, the last one fastest
	digits       float64         // the number of decimal digits that cancelled
	rounding     *scaled.Number  // bound of the error of z; nil: not known
	doubt        string          // the first reason why z is not known to be exact
}

// multiplyFactors contracts all factors of the network and returns the product of their values, with the marginals and the joint marginal
// that are wanted.
func (j run) multiplyFactors(factors []btn.ProductFactor) (btn.Value, error) {
	values := make([]factorValue, len(factors))
	flops := 0.0
	for f := range factors {
		var factorFlops float64
		var err error
		if values[f], factorFlops, err = j.contractFactor(&factors[f]); err != nil {
			return btn.Value{}, fmt.Errorf("factor %d: %w", f, err)
		}
		flops += factorFlops
	}

	total, cofactors := multiplyOthers(j.Net.Scale, values)
	value := btn.Value{Z: total, Flops: flops}
	for f := range values {
		value.Digits += values[f].digits // log10 Σ|terms|/|Z|, which adds up over the factors of a product
		value.Doubt = cmp.Or(value.Doubt, values[f].doubt)
		if r := values[f].rounding; r != nil {
			value.Rounding = addBounds(r.Mul(cofactors[f].Abs()), value.Rounding)
		}
	}
	if j.Marginals != nil {
		j.collectMarginals(values, cofactors)
		if err := j.Marginals.CheckFinite(); err != nil {
			return btn.Value{}, err
		}
		value.Marginals = j.Marginals.Result(scaled.One)
	}
	if j.Joint != nil {
		value.Joint = j.JointOf(j.multiplyJoints(values))
	}
	return value, nil
}

// multiplyOthers returns the product of the scale and of the values of all factors, and, by factor, the same product without the factor.
func multiplyOthers(scale scaled.Number, values []factorValue) (total scaled.Number, cofactors []scaled.Number) {
	cofactors = make([]scaled.Number, len(values))
	prefix := scale // times the values of the factors before f
	for f := range values {
		cofactors[f] = prefix
		prefix = prefix.Mul(values[f].z)
	}
	suffix := scaled.One // the values of the factors after f
	for f := len(values) - 1; f >= 0; f-- {
		cofactors[f] = cofactors[f].Mul(suffix)
		suffix = suffix.Mul(values[f].z)
	}
	return prefix, cofactors
}

// addBounds returns the sum of two bounds of an error. b is nil if there is no second one.
func addBounds(a scaled.Number, b *scaled.Number) *scaled.Number {
	if b != nil {
		a = a.Add(*b)
	}
	return &a
}

// collectMarginals sets the marginals of the variables of all factors, each times the values of all other factors. cofactors[f] is the
// product of the values of all factors except f. j.Marginals.At[j.Marginals.Offset[v]+x] is the marginal of value x of variable v.
func (j run) collectMarginals(values []factorValue, cofactors []scaled.Number) {
	for f, factor := range values {
		next := 0 // in the marginals of the factor
		for _, v := range factor.variables {
			for x := range j.Net.Variables[v].Domain {
				j.Marginals.At[j.Marginals.Offset[v]+x] = factor.marginals[next].Mul(cofactors[f])
				next++
			}
		}
	}
}

// contractFactor contracts one factor, and returns its value and the flops. The value has the marginals of its variables if they are
// wanted, and the joint marginal of those of its variables that are in the set j.Joint.
func (j run) contractFactor(factor *btn.ProductFactor) (factorValue, float64, error) {
	var v factorValue
	var net *btn.Network
	net, v.variables = j.Net.Subnetwork(factor.Links)
	numberInFactor := make(map[int]int, len(v.variables)) // by number in the network
	for number, variable := range v.variables {
		numberInFactor[variable] = number
	}

	var set []int // the variables of j.Joint that the factor has, by their numbers in the factor
	for position, variable := range j.Joint {
		if number, ok := numberInFactor[variable]; ok {
			v.setPositions = append(v.setPositions, position)
			set = append(set, number)
		}
	}

	// An elimination order has no joint marginals: they are contracted cell by cell.
	want := btn.Want{Marginals: j.Marginals != nil && len(v.variables) > 0}
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

// sumFactor contracts the parts of a factor's estimate e, and sets v.z, v.marginals and v.joint to the sums of their values, weighted by
// e.Weights(). v also gets the sum of their bounds of rounding, the most digits that cancelled, and the first doubt. It returns the flops.
// net is the network of the factor.
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
			v.rounding = addBounds(r.Mul(e.Weights()[i].Abs()), v.rounding) // v.rounding is nil until a part has rounding
		}
	}

	alpha := e.Weights()
	v.z = scaled.SumProducts(alpha, z)

	marginals, joints := make([]*btn.Marginals, len(values)), make([]*btn.Marginals, len(values))
	for i, value := range values {
		marginals[i], joints[i] = value.Marginals, value.Joint
	}
	v.marginals, v.joint = sumTables(alpha, marginals), sumTables(alpha, joints)
	return flops, nil
}

// sumTables returns Σ_i alpha[i] tables[i], entry by entry. It returns nil if the first table is nil: then no tables were wanted.
func sumTables(alpha []scaled.Number, tables []*btn.Marginals) []scaled.Number {
	if tables[0] == nil {
		return nil
	}
	sums := make([]scaled.Number, len(tables[0].Mant))
	terms := make([]scaled.Number, len(tables))
	for k := range sums {
		for i, table := range tables {
			terms[i] = scaled.Make(table.Mant[k], table.Exp)
		}
		sums[k] = scaled.SumProducts(alpha, terms)
	}
	return sums
}

// enumerate sets the joint marginal of a factor that is contracted along an elimination order: each cell is Z of the factor's network net
// under the observation of that cell. set has the variables by their numbers in the factor. The error is over budget if that takes more
// than policy.MostEnumerated flops.
func (j run) enumerate(
	v *factorValue, net *btn.Network, e *btn.Estimate, set []int,
) (flops float64, err error) {
	cells := 1
	for _, v := range set {
		cells *= net.Variables[v].Domain
	}
	if price := float64(cells) * e.Cost.Flops; price > policy.MostEnumerated {
		return 0, fault.New(fault.OverBudget,
			"the joint marginal takes %d contractions of %.3g flops, at most %.0g flops are "+
				"done", cells, e.Cost.Flops, policy.MostEnumerated)
	}

	v.joint = make([]scaled.Number, cells)
	for cell := range v.joint {
		conditioned, err := net.Condition(cellEvidence(net, set, cell))
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

// cellEvidence returns the observation of a cell of a set of variables. The digits of the cell are the values of the set, the last variable
// fastest. Observations are in the order of the variables.
func cellEvidence(net *btn.Network, set []int, cell int) factorgraph.Evidence {
	var ev factorgraph.Evidence
	digits := cell
	for k := len(set) - 1; k >= 0; k-- {
		domain := net.Variables[set[k]].Domain
		ev.Hard = append(ev.Hard, factorgraph.Observation{Var: set[k], Value: digits % domain})
		digits /= domain
	}
	slices.SortFunc(ev.Hard, func(a, b factorgraph.Observation) int { return a.Var - b.Var })
	return ev
}

// multiplyJoints returns the joint marginal of the set j.Joint, the last variable fastest. Each cell is the product of the scale, of the
// cells of those factors that have variables of the set, and of the values of all other factors.
func (j run) multiplyJoints(values []factorValue) []scaled.Number {
	size := 1
	domains := make([]int, len(j.Joint)) // by position in the set
	for k, v := range j.Joint {
		domains[k] = j.Net.Variables[v].Domain
		size *= domains[k]
	}

	cells := make([]scaled.Number, size)
	valueAt := make([]int, len(j.Joint)) // the value of each variable of the set in a cell
	for cell := range cells {
		digits := cell
		for k := len(j.Joint) - 1; k >= 0; k-- {
			valueAt[k] = digits % domains[k]
			digits /= domains[k]
		}

		product := j.Net.Scale
		for _, factor := range values {
			if len(factor.setPositions) == 0 {
				product = product.Mul(factor.z)
				continue
			}
			factorCell := 0
			for _, k := range factor.setPositions {
				factorCell = factorCell*domains[k] + valueAt[k]
			}
			product = product.Mul(factor.joint[factorCell])
		}
		cells[cell] = product
	}
	return cells
}
