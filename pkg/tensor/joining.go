// Joint counts: the exponents that a monomial must carry so that a core's levels and the weights' levels can both be read off it.

package tensor

import (
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// A symmetric core counts its own levels b = λ(x), the weights count levels a. joining says which
// of the two a monomial of the legs' product has to carry, so that both counts can be read off it.
type joining struct {
	core countspace.Levels
	d    int // levels of the weights
	// toWeights[b] is the only weight level met with core level b;
	// toCore[a] the only core level met with weight level a.
	toWeights, toCore []int
	kind              joiningKind
}

// joiningKind says which counts a monomial carries.
type joiningKind int

const (
	// the core's level determines the weights' (always so for one level)
	carryCore    joiningKind = iota
	carryWeights             // the weights' level determines the core's
	carryBoth                // neither: variables y_1 … y_{D−1}, z_1 … z_{d−1}
)

// newJoining looks which pairs of levels (b, a) have a weight that is not zero.
func newJoining(core countspace.Levels, w []LegWeights, d int) joining {
	j := joining{core: core, d: d, toWeights: filled(core.D, -1), toCore: filled(d, -1)}
	coreFixes := true
	weightsFix := true
	for leg, list := range w {
		for i, x := range list {
			if x == 0 {
				continue
			}
			b := int(core.Of[leg][i/d])
			a := i % d
			coreFixes = coreFixes && (j.toWeights[b] < 0 || j.toWeights[b] == a)
			weightsFix = weightsFix && (j.toCore[a] < 0 || j.toCore[a] == b)
			j.toWeights[b] = a
			j.toCore[a] = b
		}
	}

	switch {
	case coreFixes && (core.D <= d || !weightsFix):
		j.kind = carryCore
	case weightsFix:
		j.kind = carryWeights
	default:
		j.kind = carryBoth
	}
	return j
}

// filled returns n times v.
func filled(n, v int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = v
	}
	return list
}

// vars is the number of variables of the carried monomials.
func (j joining) vars() int {
	switch j.kind {
	case carryCore:
		return j.core.D - 1
	case carryWeights:
		return j.d - 1
	}
	return j.core.D + j.d - 2
}

// exponent returns the variables that a weight at levels (b, a) multiplies:
// at most two, −1 for none.
func (j joining) exponent(b, a int) (int, int) {
	switch j.kind {
	case carryCore:
		return b - 1, -1
	case carryWeights:
		return -1, a - 1
	}
	if a == 0 {
		return b - 1, -1
	}
	return b - 1, j.core.D - 1 + a - 1
}

// legPoly returns the polynomial of one leg,
// Σ_x Σ_a r[x] w[x,a] y^λ(x) z^a in the carried variables.
func (j joining) legPoly(leg int, r []float64, w LegWeights) countspace.Poly {
	// sums[b, a] = Σ over the values x at core level b of r[x] w[x, a]
	sums := make([]scaled.Number, j.core.D*j.d)
	for i, f := range w {
		if f == 0 {
			continue
		}
		v := scaled.FromFloat(f)
		if r != nil {
			v = v.Mul(scaled.FromFloat(r[i/j.d]))
		}
		at := int(j.core.Of[leg][i/j.d])*j.d + i%j.d
		sums[at] = sums[at].Add(v)
	}

	shape := filled(j.vars(), 1)
	for i, v := range sums {
		if !v.IsZero() {
			y, z := j.exponent(i/j.d, i%j.d)
			widen(shape, y)
			widen(shape, z)
		}
	}

	p := countspace.New(shape)
	step := strides(shape)
	for i, v := range sums {
		if !v.IsZero() {
			y, z := j.exponent(i/j.d, i%j.d)
			addAt(p, stepOf(step, y)+stepOf(step, z), v)
		}
	}
	return p
}

// widen makes variable a linear, if there is one.
func widen(shape []int, a int) {
	if a >= 0 {
		shape[a] = 2
	}
}

// stepOf is the stride of variable a, 0 for none.
func stepOf(step []int, a int) int {
	if a < 0 {
		return 0
	}
	return step[a]
}

// box returns the box of the product over all legs,
// and ErrTooLarge if it has too many coefficients.
func (j joining) box(w []LegWeights) ([]int, error) {
	shape := filled(j.vars(), 1)
	for leg, list := range w {
		seen := make([]bool, len(shape))
		for i, x := range list {
			if x == 0 {
				continue
			}
			y, z := j.exponent(int(j.core.Of[leg][i/j.d]), i%j.d)
			for _, a := range [2]int{y, z} {
				if a >= 0 && !seen[a] {
					seen[a] = true
					shape[a]++
				}
			}
		}
	}

	if _, err := sizeWithin(shape, MaxCoefficients); err != nil {
		return nil, err
	}
	_, err := sizeWithin(j.readShape(shape, len(w)), MaxCoefficients)
	return shape, err
}

// read turns the product of the legs' polynomials into the count polynomial of the core: every
// monomial is multiplied by the value of S at its core count and added at its weight count. legs is
// the number of legs in the product; extra is the core level of one more leg at weight level 0, or
// −1.
func (j joining) read(product countspace.Poly, s scaled.Vector, legs, extra int) countspace.Poly {
	coreStep := levelSteps(j.core)
	shape := j.readShape(product.Shape, legs)
	out := countspace.New(shape)
	outStep := append([]int{0}, strides(shape)...)

	c := make([]int, len(product.Shape))
	for i := range product.Coef.Mant {
		if v := product.Coef.At(i); !v.IsZero() {
			from, to := j.counts(c, legs, coreStep, outStep)
			if extra >= 0 {
				from += coreStep[extra]
			}
			addAt(out, to, v.Mul(s.At(from)))
		}
		advance(c, product.Shape)
	}
	return out
}

// counts returns the index of the core count and of the weight count of monomial c.
func (j joining) counts(c []int, legs int, coreStep, outStep []int) (from, to int) {
	rest := legs
	for _, k := range c {
		rest -= k
	}

	switch j.kind {
	case carryCore:
		to = rest * outStep[max(j.toWeights[0], 0)]
		for b, k := range c {
			from += k * coreStep[b+1]
			to += k * outStep[max(j.toWeights[b+1], 0)]
		}
	case carryWeights:
		from = rest * coreStep[max(j.toCore[0], 0)]
		for a, k := range c {
			from += k * coreStep[max(j.toCore[a+1], 0)]
			to += k * outStep[a+1]
		}
	default:
		for i, k := range c {
			if i < j.core.D-1 {
				from += k * coreStep[i+1]
			} else {
				to += k * outStep[i-j.core.D+2]
			}
		}
	}
	return from, to
}

// readShape returns the box of the count polynomial in z that read makes.
func (j joining) readShape(carried []int, legs int) []int {
	switch j.kind {
	case carryWeights:
		return append([]int(nil), carried...)
	case carryBoth:
		return append([]int(nil), carried[j.core.D-1:]...)
	}

	shape := filled(j.d-1, 1)
	for b, s := range carried {
		if a := j.toWeights[b+1]; a > 0 {
			shape[a-1] = min(shape[a-1]+s-1, legs+1)
		}
	}
	if a := j.toWeights[0]; a > 0 {
		shape[a-1] = legs + 1
	}
	return shape
}
