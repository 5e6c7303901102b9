package countspace

import (
	"fmt"
	"slices"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// Making and reading count polynomials.
//
// Every polynomial that a function here returns is canonical: its mantissas are 0 or in ±[1, 2),
// and a zero coefficient has exponent 0. Arguments need not be canonical, and need not have
// exponents at all (Coef.Exp nil). From finite coefficients of any range no operation makes NaN or Inf; exponents stay
// far below 2^60. A NaN or Inf among the arguments comes out as NaN or Inf in the coefficients that depend on it.
//
// Shapes are the caller's to bound: a product has a coefficient of 16 bytes per cell of the box
// shape of p + shape of q − 1, and none of the pieces of a network leaves the box of its levels, so that Levels.Size
// bounds them all.

// New returns the polynomial 0 over a box.
// Its sides are at least 1.
func New(shape []int) Poly {
	n := volume(shape)
	return Poly{
		Shape: slices.Clone(shape),
		Coef:  scaled.Vector{Mant: make([]float64, n), Exp: make([]int64, n)},
	}
}

// Constant returns the polynomial c in vars variables, which has a single coefficient.
func Constant(vars int, c scaled.Number) Poly {
	shape := make([]int, vars)
	for a := range shape {
		shape[a] = 1
	}
	p := New(shape)
	p.put(0, c)
	return p
}

// Linear returns the polynomial of one leg, row[0] + Σ_{a≥1} row[a] z_a, for a row of D ≥ 1 weights
// by level. Its degree in z_a is 1 only where row[a] ≠ 0: a leg that is never at level a does not
// widen the box, so the product over all legs stays within Levels.Shape.
func Linear(row []float64) Poly {
	shape := make([]int, len(row)-1)
	for a := range shape {
		shape[a] = 1
		if row[a+1] != 0 {
			shape[a] = 2
		}
	}

	p := New(shape)
	p.put(0, scaled.FromFloat(row[0]))

	stride := 1
	for a := len(shape) - 1; a >= 0; a-- {
		if shape[a] == 2 {
			p.put(stride, scaled.FromFloat(row[a+1]))
		}
		stride *= shape[a]
	}
	return p
}

// Vars returns the number of variables, D−1.
func (p Poly) Vars() int { return len(p.Shape) }

// Size returns the number of coefficients of p's box.
func (p Poly) Size() int { return p.Coef.Len() }

// At returns the coefficient of z^c: 0 outside p's box.
func (p Poly) At(c []int) scaled.Number {
	i, ok := p.index(c)
	if !ok {
		return scaled.Number{}
	}
	return p.Coef.At(i)
}

// Set makes x the coefficient of z^c, which lies in p's box.
// It changes p in place; p has exponents, as New gives them.
func (p Poly) Set(c []int, x scaled.Number) {
	i, ok := p.index(c)
	if !ok {
		panic(fmt.Sprintf("countspace: coefficient %v outside the box %v", c, p.Shape))
	}
	p.put(i, x)
}

// IsZero reports whether every coefficient of p is exactly 0.
func (p Poly) IsZero() bool {
	for _, m := range p.Coef.Mant {
		if m != 0 {
			return false
		}
	}
	return true
}

// put sets coefficient i to x, normalised.
func (p Poly) put(i int, x scaled.Number) {
	x = scaled.Make(x.Mant, x.Exp)
	p.Coef.Mant[i] = x.Mant
	p.Coef.Exp[i] = x.Exp
}

// index returns the row-major index of the coefficient of z^c. ok is false if p has no such coefficient.
func (p Poly) index(c []int) (i int, ok bool) {
	mustHaveVars(len(p.Shape), len(c))
	for a, side := range p.Shape {
		if c[a] < 0 || c[a] >= side {
			return 0, false
		}
		i = i*side + c[a]
	}
	return i, true
}

// volume returns the number of coefficients of a box, whose size was checked before.
func volume(shape []int) int {
	n := 1
	for _, s := range shape {
		n *= s
	}
	return n
}

// mustHaveVars panics if polynomials of one computation have different numbers of variables. The levels decide these, so no data can mix
// them.
func mustHaveVars(want, got int) {
	if want != got {
		panic(fmt.Sprintf("countspace: %d variables met %d", want, got))
	}
}

// next moves c to the next count vector with 0 ≤ c[a] < shape[a], the last variable fastest. It returns false after the last one, and c is
// then the first.
func next(c, shape []int) bool {
	for a := len(c) - 1; a >= 0; a-- {
		c[a]++
		if c[a] < shape[a] {
			return true
		}
		c[a] = 0
	}
	return false
}
