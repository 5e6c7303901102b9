// Joint counts: the exponents that a monomial must carry so that a core's levels and the weights' levels can both be read off it.

package tensor

import (
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// joining says which counts a monomial of the legs' product has to carry. A symmetric core counts the legs at its own levels b = λ(x), the
// weights count them at levels a, and both counts have to be read off the monomial. If each level of one kind goes with a single level of
// the other, counts of the first are enough.
type joining struct {
	core countspace.Levels
	d    int // number of levels of the weights
	// toWeights[b] is the weight level that goes with core level b, toCore[a] the core level that goes with weight level a: the last pair
	// that a weight other than 0 has; −1 if there is none.
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

// newJoining returns which counts the monomials of a product over legs have to carry as exponents, to tell both how many legs are at each
// level b of the core and how many are at each of the d levels a of the weights. A weight other than 0 of a value of a leg makes a pair of
// levels (b, a). If every b occurs with a single a only, or every a with a single b, counting the levels of that kind is enough; if both
// hold, the kind with fewer levels is carried. Otherwise both kinds are.
func newJoining(core countspace.Levels, w []LegWeights, d int) joining {
	j := joining{core: core, d: d, toWeights: filled(core.D, -1), toCore: filled(d, -1)} // −1: no pair yet
	coreDetermines, weightsDetermine := true, true
	for leg, list := range w {
		for i, x := range list {
			if x == 0 {
				continue
			}
			b := int(core.Of[leg][i/d])
			a := i % d
			coreDetermines = coreDetermines && (j.toWeights[b] < 0 || j.toWeights[b] == a)
			weightsDetermine = weightsDetermine && (j.toCore[a] < 0 || j.toCore[a] == b)
			j.toWeights[b] = a
			j.toCore[a] = b
		}
	}

	switch {
	case coreDetermines && (core.D <= d || !weightsDetermine):
		j.kind = carryCore
	case weightsDetermine:
		j.kind = carryWeights
	default:
		j.kind = carryBoth
	}
	return j
}

// filled returns a list of n entries v.
func filled(n, v int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = v
	}
	return list
}

// vars returns the number of variables of the carried monomials: one for each carried level but level 0.
func (j joining) vars() int {
	switch j.kind {
	case carryCore:
		return j.core.D - 1
	case carryWeights:
		return j.d - 1
	}
	return j.core.D + j.d - 2
}

// variables returns the variables y and z that a leg at core level b and weight level a multiplies its monomial by; −1 stands for none.
// Level 0 has no variable.
func (j joining) variables(b, a int) (y, z int) {
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

// legPoly returns the polynomial of one leg, Σ_x Σ_a r[x] w[x,a] y_λ(x) z_a over its values x and the weight levels a, where λ(x) is the
// core level of x. y_b stands for a leg at core level b, z_a for one at weight level a, and a variable that the joining does not carry
// is 1. A nil r is all ones.
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
		position := int(j.core.Of[leg][i/j.d])*j.d + i%j.d
		sums[position] = sums[position].Add(v)
	}

	// The shape: the exponents 0 and 1 of each variable that occurs, and the exponent 0 alone of each other one.
	shape := filled(j.vars(), 1)
	var multipliers [2]int
	for i, v := range sums {
		if v.IsZero() {
			continue
		}
		for _, variable := range j.appendMultipliers(multipliers[:0], i/j.d, i%j.d) {
			shape[variable] = 2
		}
	}

	p := countspace.New(shape)
	stride := strides(shape)
	for i, v := range sums {
		if v.IsZero() {
			continue
		}
		position := 0
		for _, variable := range j.appendMultipliers(multipliers[:0], i/j.d, i%j.d) {
			position += stride[variable]
		}
		addAt(p, position, v)
	}
	return p
}

// appendMultipliers appends the variables that a leg at core level b and weight level a multiplies its monomial by: at most one for each
// kind of levels that is carried. Level 0 has no variable.
func (j joining) appendMultipliers(list []int, b, a int) []int {
	y, z := j.variables(b, a)
	for _, variable := range [2]int{y, z} {
		if variable >= 0 {
			list = append(list, variable)
		}
	}
	return list
}

// box returns the shape of the product of the polynomials of all legs, the number of coefficients along each variable: one more than the
// number of legs in whose polynomial the variable occurs. It returns ErrTooLarge if the product, or the count polynomial that is made of
// it, has too many coefficients.
func (j joining) box(w []LegWeights) ([]int, error) {
	shape := filled(j.vars(), 1)
	for leg, list := range w {
		isCounted := make([]bool, len(shape))
		for i, x := range list {
			if x == 0 {
				continue
			}
			y, z := j.variables(int(j.core.Of[leg][i/j.d]), i%j.d)
			for _, variable := range [2]int{y, z} {
				if variable >= 0 && !isCounted[variable] {
					isCounted[variable] = true
					shape[variable]++
				}
			}
		}
	}

	if _, err := sizeWithin(shape, MaxCoefficients); err != nil {
		return nil, err
	}
	_, err := sizeWithin(j.weightShape(shape, len(w)), MaxCoefficients)
	return shape, err
}

// countPoly turns the product of the legs' polynomials into the count polynomial of the core: every monomial is multiplied by the value
// of s at its core count, and added at its weight count. legs is the number of legs in the product. extra is the core level of one
// further leg, which has weight level 0; −1 if there is none.
func (j joining) countPoly(product countspace.Poly, s scaled.Vector, legs, extra int) countspace.Poly {
	coreStep := levelSteps(j.core)
	shape := j.weightShape(product.Shape, legs)
	counts := countspace.New(shape)
	weightStep := append([]int{0}, strides(shape)...)

	c := make([]int, len(product.Shape)) // the exponents of monomial i
	for i := range product.Coef.Mant {
		if v := product.Coef.At(i); !v.IsZero() {
			coreIndex, weightIndex := j.countIndices(c, legs, coreStep, weightStep)
			if extra >= 0 {
				coreIndex += coreStep[extra]
			}
			addAt(counts, weightIndex, v.Mul(s.At(coreIndex)))
		}
		advance(c, product.Shape)
	}
	return counts
}

// countIndices takes the exponents c of a monomial over so many legs. It returns the row-major index of the counts of legs at the core's
// levels, and that of the counts at the weights' levels. One leg more at level b of the core raises coreIndex by coreStep[b], and one more
// at level a of the weights raises weightIndex by weightStep[a].
func (j joining) countIndices(c []int, legs int, coreStep, weightStep []int) (coreIndex, weightIndex int) {
	// toWeights and toCore are −1 for a level that no leg has. Its count is 0 then, and max only keeps the index valid.
	atLevel0 := legs // legs at level 0 of the carried kind, which have no variable
	for _, k := range c {
		atLevel0 -= k
	}

	switch j.kind {
	case carryCore:
		weightIndex = atLevel0 * weightStep[max(j.toWeights[0], 0)]
		for b, k := range c {
			coreIndex += k * coreStep[b+1]
			weightIndex += k * weightStep[max(j.toWeights[b+1], 0)]
		}
	case carryWeights:
		coreIndex = atLevel0 * coreStep[max(j.toCore[0], 0)]
		for a, k := range c {
			coreIndex += k * coreStep[max(j.toCore[a+1], 0)]
			weightIndex += k * weightStep[a+1]
		}
	default: // the core's variables, then the weights'
		for i, k := range c {
			if i < j.core.D-1 {
				coreIndex += k * coreStep[i+1]
			} else {
				weightIndex += k * weightStep[i-j.core.D+2]
			}
		}
	}
	return coreIndex, weightIndex
}

// weightShape returns the shape of a polynomial in the counts of the weight levels: for each level above 0, one more than the largest
// number of legs that can be at it. carried is the shape of the product of the polynomials of so many legs, in the counts that are carried.
// If these are counts of core levels, a weight level can have as many legs as all core levels that go with it together.
func (j joining) weightShape(carried []int, legs int) []int {
	switch j.kind {
	case carryWeights:
		return append([]int(nil), carried...)
	case carryBoth:
		return append([]int(nil), carried[j.core.D-1:]...)
	}

	shape := filled(j.d-1, 1)
	for b, side := range carried {
		if a := j.toWeights[b+1]; a > 0 {
			shape[a-1] = min(shape[a-1]+side-1, legs+1)
		}
	}
	if a := j.toWeights[0]; a > 0 { // core level 0 has no variable: any number of legs
		shape[a-1] = legs + 1
	}
	return shape
}
