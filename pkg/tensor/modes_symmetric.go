// One map along all modes of a symmetric tensor, in count space.

package tensor

import (
	"fmt"
	"slices"

	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// maxTransform bounds the cube of the count space's size,
// and with it the multiply-adds of a transform: 2^36 is 4,096 legs of two values, some 20 seconds.
const maxTransform = 1 << 36

// applyCommon transforms every term if legs, levels,
// maps and vectors are the same on all legs; else ok is false.
func (t *SymmetryCP) applyCommon(
	maps [][]float64,
) (terms []SymmetryRankOne, levels countspace.Levels, ok bool, err error) {
	for leg := range maps {
		if maps[leg] == nil || t.Shape[leg] != t.Shape[0] || !slices.Equal(maps[leg], maps[0]) ||
			!slices.Equal(t.Levels.Of[leg], t.Levels.Of[0]) {
			return nil, levels, false, nil
		}
	}

	for _, term := range t.Terms {
		for leg := range t.Shape {
			if !slices.Equal(term.vector(leg), term.vector(0)) ||
				(term.vector(leg) == nil) != (term.vector(0) == nil) {
				return nil, levels, false, nil
			}
		}
	}

	if levels, err = countspace.Identity(t.Shape); err != nil {
		return nil, levels, false, nil // more levels than a count space has
	}
	shape := levels.Shape()
	size, err := sizeWithin(shape, MaxCoefficients)
	if err != nil || len(t.Shape)*size > MaxCoefficients ||
		float64(size)*float64(size)*float64(size) > maxTransform {
		return nil, levels, false, nil
	}

	for _, term := range t.Terms {
		s := transform(t.lift(term, shape), maps[0], t.Shape[0], len(t.Shape))
		if err := finite(s.Mant, "transformed value"); err != nil {
			return nil, levels, false, fmt.Errorf("symmetric transform: %w", err)
		}
		terms = append(terms, SymmetryRankOne{Alpha: term.Alpha, S: s})
	}
	return terms, levels, true, nil
}

// lift returns S_λ(c) Π_a R[a]^{c_a} over the counts c of values instead of levels:
// R is the same on all legs.
func (t *SymmetryCP) lift(term SymmetryRankOne, shape []int) countspace.Poly {
	n := len(t.Shape)
	of := t.Levels.Of[0]
	r := term.vector(0)
	step := levelSteps(t.Levels)
	out := countspace.New(shape)

	everyCount(shape, n, func(i, rest int, c []int) {
		from := rest * step[of[0]]
		f := power(r, 0, rest)
		for a, k := range c {
			from += k * step[of[a+1]]
			f = f.Mul(power(r, a+1, k))
		}
		set(out, i, f.Mul(term.S.At(from)))
	})
	return out
}

// power returns r[a]^k, by squaring; 1 for a nil r.
func power(r []float64, a, k int) scaled.Number {
	p := scaled.One
	if r == nil {
		return p
	}

	for square := scaled.FromFloat(r[a]); k > 0; k >>= 1 {
		if k&1 != 0 {
			p = p.Mul(square)
		}
		square = square.Mul(square)
	}
	return p
}

// everyCount calls f with every feasible count vector of n legs:
// its index, the count of level 0, and the others.
func everyCount(shape []int, n int, f func(i, rest int, c []int)) {
	c := make([]int, len(shape))
	for i := 0; ; i++ {
		rest := n
		for _, k := range c {
			rest -= k
		}
		if rest >= 0 {
			f(i, rest, c)
		}
		if !advance(c, shape) {
			return
		}
	}
}

// transform returns, over the feasible k,
//
//	out_k = Σ_c s_c [z^c] Π_a P_a(z)^{k_a}
//
// P_a being the polynomial of row a of m. The powers are built once; S is contracted with the
// powers of one row at a time (Correlate), so that many k share intermediate results: with
// h = s contracted with P_{d−1}^{k_{d−1}} … P_1^{k_1}, out_k = ⟨h, P_0^{k_0}⟩.
// Cost O(n³) for two values and n legs.
func transform(s countspace.Poly, m []float64, d, n int) scaled.Vector {
	powers := make([][]countspace.Poly, d)
	for a := range powers {
		row := countspace.Linear(m[a*d : (a+1)*d])
		powers[a] = []countspace.Poly{countspace.Constant(d-1, scaled.One)}
		for k := 1; k <= n; k++ {
			powers[a] = append(powers[a], powers[a][k-1].Mul(row, nil))
		}
	}

	out := countspace.New(s.Shape)
	step := append([]int{0}, strides(s.Shape)...)

	var contract func(h countspace.Poly, a, at, rest int)
	contract = func(h countspace.Poly, a, at, rest int) {
		if a == 0 {
			set(out, at, countspace.Dot(h, powers[0][rest], nil))
			return
		}
		for k := 0; k <= rest; k++ {
			contract(countspace.Correlate(h, powers[a][k], nil), a-1, at+k*step[a], rest-k)
		}
	}

	contract(s, d-1, 0, n)
	return out.Coef
}
