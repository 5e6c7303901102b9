package families

// Truths of dense models by a few hidden quantities: sums over hidden units, over dependencies of parities, integrals over two numbers.

import (
	"context"
	"math"
	"math/bits"
	"slices"

	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
)

// hiddenLayer is ln Z of a Boltzmann machine whose hidden units are its last spins: a sum over their states, in which visible units are
// independent,
//
//	Z = Σ_h e^(b·h) Π_i 2 cosh(a_i + Σ_j W_ij h_j).
//
// States follow each other in a Gray code; e^2(…) of each visible unit is kept, and computed anew from time to time. Errors:
// fault.BadInput for other graphs, fault.OverBudget for more than 30 hidden units, fault.Unsupported for fields beyond mostReach, and the
// context's.
func hiddenLayer(ctx context.Context, m *factorgraph.Model) (float64, [][]float64, error) {
	s, err := readSpins(m)
	if err != nil {
		return 0, nil, err
	}
	visible := s.spins
	for _, p := range s.products {
		visible = min(visible, p.scope[len(p.scope)-1])
	}
	hidden := s.spins - visible
	if hidden > 30 {
		return 0, nil, fault.New(fault.OverBudget, "families: %d hidden units", hidden)
	}
	w := make([][]float64, hidden)
	for j := range w {
		w[j] = make([]float64, visible)
	}
	for _, p := range s.products {
		if len(p.scope) != 2 || p.scope[0] >= visible {
			return 0, nil, fault.New(fault.BadInput, "families: spins %v are no visible and a hidden unit", p.scope)
		}
		w[p.scope[1]-visible][p.scope[0]] += p.coupling
	}
	for i := range visible {
		reach := math.Abs(s.fields[i])
		for j := range w {
			reach += math.Abs(w[j][i])
		}
		if !(reach <= mostReach) {
			return 0, nil, fault.New(fault.Unsupported, "families: fields of unit %d reach %v, at most %v", i, reach, mostReach)
		}
	}

	const refresh = 1 << 10               // states between two computations of the fields from the start
	flips := make([][2][]float64, hidden) // factors on e^2(…) where a unit becomes −1, +1
	for j := range flips {
		for i := range visible {
			flips[j][0] = append(flips[j][0], math.Exp(-4*w[j][i]))
			flips[j][1] = append(flips[j][1], math.Exp(4*w[j][i]))
		}
	}
	var sum lnSum
	odds, bias := make([]float64, visible), 0.0
	for k := range uint(1) << hidden {
		state := k ^ k>>1 // bit j: unit j is +1
		if k%refresh == 0 {
			if err := ctx.Err(); err != nil {
				return 0, nil, err
			}
			bias = s.restart(state, w, odds)
		} else {
			j := bits.TrailingZeros(k)
			value := int(state >> j & 1)
			bias += float64(4*value-2) * s.fields[visible+j]
			for i := range w[j] {
				bias -= float64(4*value-2) * w[j][i]
			}
			for i, factor := range flips[j][value] {
				odds[i] *= factor
			}
		}
		// Π (1 + odds), of eight units at a time: the exponent is kept apart
		product, exponent := 1.0, 0
		for i, x := range odds {
			product *= 1 + x
			if i%8 == 7 {
				fraction, e := math.Frexp(product)
				product, exponent = fraction, exponent+e
			}
		}
		sum.add(bias + math.Log(product) + float64(exponent)*math.Ln2)
	}
	return s.constant + sum.ln(), nil, nil
}

// mostReach bounds the field of a visible unit, so that eight odds e^2(…) stay within float64.
const mostReach = 40

// restart sets the odds e^2(a + W h) of the visible units in a state of the hidden ones, and returns the bias b·h − Σ (a + W h): the state
// weighs e^bias · Π (1 + odds).
func (s *spinModel) restart(state uint, w [][]float64, odds []float64) (bias float64) {
	for i := range odds {
		field := s.fields[i]
		for j := range w {
			field += float64(2*int(state>>j&1)-1) * w[j][i]
		}
		odds[i] = math.Exp(2 * field)
		bias -= field
	}
	for j := range w {
		bias += float64(2*int(state>>j&1)-1) * s.fields[len(odds)+j]
	}
	return bias
}

// lnSum is a sum of exponentials of finite numbers: mantissa · e^largest.
type lnSum struct{ largest, mantissa float64 }

// add adds e^ln.
func (s *lnSum) add(ln float64) {
	switch {
	case s.mantissa == 0:
		s.largest, s.mantissa = ln, 1
	case ln <= s.largest:
		s.mantissa += math.Exp(ln - s.largest)
	default:
		s.mantissa = s.mantissa*math.Exp(s.largest-ln) + 1
		s.largest = ln
	}
}

// ln is the logarithm of the sum, −Inf of none.
func (s *lnSum) ln() float64 { return s.largest + math.Log(s.mantissa) }

// dependencies is ln Z of products of spins without fields: every product is cosh J (1 + tanh J Π x), and the sum over the spins leaves
// the sets of products in which every spin is an even number of times, a vector space over the integers modulo 2,
//
//	Z = 2^n Π cosh J · Σ_S Π_{k in S} tanh J_k.
//
// There are no marginals. Errors: fault.BadInput for fields, fault.OverBudget where it has more than 24 dimensions, fault.FailedEstimate
// where the terms cancel, and the context's.
func dependencies(ctx context.Context, m *factorgraph.Model) (float64, [][]float64, error) {
	s, err := readSpins(m)
	if err != nil {
		return 0, nil, err
	}
	if s.hasFields() {
		return 0, nil, fault.New(fault.BadInput, "families: products of spins with fields")
	}
	lnZ := s.constant + float64(s.spins)*math.Ln2
	var reduced, null []relation // no reduced one has the first spin of an earlier one
	for k, p := range s.products {
		lnZ += lnCosh(p.coupling)
		r := relation{odd: p.scope, products: []int{k}}
		for _, earlier := range reduced {
			if slices.Contains(r.odd, earlier.odd[0]) {
				r.add(earlier)
			}
		}
		if len(r.odd) == 0 {
			null = append(null, r)
			continue
		}
		reduced = append(reduced, r)
	}
	if len(null) > 24 {
		return 0, nil, fault.New(fault.OverBudget, "families: products of %d dependencies", len(null))
	}
	sum, absolute, present := 1.0, 1.0, make([]bool, len(s.products)) // of the empty set alone
	for k := uint(1); k < 1<<len(null); k++ {
		if k%1024 == 0 && ctx.Err() != nil {
			return 0, nil, ctx.Err()
		}
		for _, i := range null[bits.TrailingZeros(k)].products {
			present[i] = !present[i]
		}
		term := 1.0
		for i, isPresent := range present {
			if isPresent {
				term *= math.Tanh(s.products[i].coupling)
			}
		}
		sum += term
		absolute += math.Abs(term)
	}
	if !(sum > 1e-4*absolute) {
		return 0, nil, fault.New(fault.FailedEstimate, "families: terms of %v in all cancel to %v", absolute, sum)
	}
	return lnZ + math.Log(sum), nil, nil
}

// relation is a set of products, added modulo 2.
type relation struct{ odd, products []int } // spins that it has an odd number of times, and its products

func (r *relation) add(other relation) {
	r.odd, r.products = difference(r.odd, other.odd), difference(r.products, other.products)
}

// difference lists what one of two sets has alone.
func difference(a, b []int) (list []int) {
	for _, x := range a {
		if !slices.Contains(b, x) {
			list = append(list, x)
		}
	}
	for _, x := range b {
		if !slices.Contains(a, x) {
			list = append(list, x)
		}
	}
	return list
}

// integral is ln Z of spins that are coupled by two directions alone (Hubbard and Stratonovich): with J = β/n (u u + v v) and x² = 1,
//
//	Z = e^(−β/2n Σ (u² + v²)) ∫∫ dy dz / 2π e^(−(y² + z²)/2) Π_i 2 cosh(h_i + √(β/n) (u_i y + v_i z)),
//
// by the trapezoidal rule, which converges faster than any power for a function that is analytic and vanishes: half the step must give
// the same to 1e-12. Errors: fault.FailedEstimate where it does not, and the context's.
func integral(ctx context.Context, member Member, m *factorgraph.Model) (float64, [][]float64, error) {
	s, err := readSpins(m)
	if err != nil {
		return 0, nil, err
	}
	u, v := modeltest.Directions(s.spins, member.Seed)
	scale := math.Sqrt(member.Strength / float64(s.spins))
	lnZ := s.constant
	for i := range u {
		u[i], v[i] = scale*u[i], scale*v[i]
		lnZ -= (u[i]*u[i] + v[i]*v[i]) / 2
	}
	previous := math.NaN()
	for step := 0.5; step > 0.01; step /= 2 {
		ln, err := trapezoid(ctx, s.fields, u, v, step)
		if err != nil {
			return 0, nil, err
		}
		if math.Abs(ln-previous) <= 1e-12*math.Abs(ln) {
			return lnZ + ln, nil, nil
		}
		previous = ln
	}
	return 0, nil, fault.New(fault.FailedEstimate, "families: an integral that does not converge")
}

// trapezoid is the logarithm of the integral on a grid of this step, nine standard deviations beyond where all spins can pull.
func trapezoid(ctx context.Context, fields, u, v []float64, step float64) (float64, error) {
	reach := [2]float64{9, 9}
	for i := range u {
		reach[0] += math.Abs(u[i])
		reach[1] += math.Abs(v[i])
	}
	var sum lnSum
	rows, columns := int(reach[0]/step), int(reach[1]/step)
	for row := -rows; row <= rows; row++ {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		y := float64(row) * step
		for column := -columns; column <= columns; column++ {
			z := float64(column) * step
			ln := -(y*y + z*z) / 2
			for i, h := range fields {
				ln += lnCosh(h + u[i]*y + v[i]*z)
			}
			sum.add(ln)
		}
	}
	return sum.ln() + float64(len(fields))*math.Ln2 + math.Log(step*step/(2*math.Pi)), nil
}
