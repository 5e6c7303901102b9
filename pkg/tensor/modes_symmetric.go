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

// applyCommon returns the terms of t, and their levels, with the same map applied to all legs. ok is false if the legs differ in their
// dimension, level map, map or vectors, or if the count space is too large: then t has to be written out.
func (t *SymmetryCP) applyCommon(
	maps [][]float64,
) (terms []SymmetryRankOne, levels countspace.Levels, ok bool, err error) {
	if !t.hasLikeLegs(maps) {
		return nil, levels, false, nil
	}

	// The result has a level for each value, and a coefficient for each count vector of the values. To transform them takes about the third
	// power of their number.
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
		s := transform(t.valueCounts(term, shape), maps[0], t.Shape[0], len(t.Shape))
		if err := finite(s.Mant, "transformed value"); err != nil {
			return nil, levels, false, fmt.Errorf("symmetric transform: %w", err)
		}
		terms = append(terms, SymmetryRankOne{Alpha: term.Alpha, S: s})
	}
	return terms, levels, true, nil
}

// hasLikeLegs reports whether all legs have the same dimension, level map, map and vectors, and no map is nil.
func (t *SymmetryCP) hasLikeLegs(maps [][]float64) bool {
	for leg := range maps {
		isLikeFirst := t.Shape[leg] == t.Shape[0] && slices.Equal(maps[leg], maps[0]) &&
			slices.Equal(t.Levels.Of[leg], t.Levels.Of[0])
		if maps[leg] == nil || !isLikeFirst {
			return false
		}
	}
	for _, term := range t.Terms {
		first := term.vector(0)
		for leg := range t.Shape {
			v := term.vector(leg)
			if !slices.Equal(v, first) || (v == nil) != (first == nil) {
				return false
			}
		}
	}
	return true
}

// valueCounts returns a term by the counts c of values instead of those of levels, as coefficients of this shape: S at the counts of levels
// that follow from c, times Π_a R[a]^{c_a}. The vector R and the levels are the same on all legs.
func (t *SymmetryCP) valueCounts(term SymmetryRankOne, shape []int) countspace.Poly {
	n := len(t.Shape)
	levelOf := t.Levels.Of[0] // by value
	r := term.vector(0)
	step := levelSteps(t.Levels)
	counts := countspace.New(shape)

	everyCount(shape, n, func(i, count0 int, c []int) {
		levelCount := count0 * step[levelOf[0]] // its index in S
		product := power(r, 0, count0)
		for a, k := range c {
			levelCount += k * step[levelOf[a+1]]
			product = product.Mul(power(r, a+1, k))
		}
		set(counts, i, product.Mul(term.S.At(levelCount)))
	})
	return counts
}

// power returns r[a]^k by repeated squaring; 1 if r is nil.
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

// everyCount calls f for every count vector c, 0 ≤ c[a] < shape[a], whose sum is at most n, the number of legs. c has the counts of the
// levels above 0, i is its row-major index, and count0 is the count of level 0, n minus the sum.
func everyCount(shape []int, n int, f func(i, count0 int, c []int)) {
	c := make([]int, len(shape))
	for i := 0; ; i++ {
		count0 := n
		for _, k := range c {
			count0 -= k
		}
		if count0 >= 0 {
			f(i, count0, c)
		}
		if !advance(c, shape) {
			return
		}
	}
}

// transform applies the d × d matrix m to all n legs of a symmetric tensor, whose values s are by the counts of values. It returns the new
// values, for all counts k with Σ_a k_a = n,
//
//	out_k = Σ_c s_c [z^c] Π_a P_a(z)^{k_a},
//
// where P_a is the linear polynomial of row a of m. Powers are built once. s is contracted with the powers of one row at a time
// (Correlate), from the last row, so that many k share intermediate results h: out_k = ⟨h, P_0^{k_0}⟩. Cost O(n³) for two values and n
// legs.
func transform(s countspace.Poly, m []float64, d, n int) scaled.Vector {
	powers := make([][]countspace.Poly, d) // powers[a][k] is P_a^k
	for a := range powers {
		row := countspace.Linear(m[a*d : (a+1)*d])
		powers[a] = []countspace.Poly{countspace.Constant(d-1, scaled.One)}
		for k := 1; k <= n; k++ {
			powers[a] = append(powers[a], powers[a][k-1].Mul(row, nil)) // nil: operations are not counted
		}
	}

	out := countspace.New(s.Shape)
	step := append([]int{0}, strides(s.Shape)...)

	// contract sets all values whose counts of the rows above a are chosen. h is s contracted with their powers, index the position of the
	// counts chosen, and legs the number of legs that are left.
	var contract func(h countspace.Poly, a, index, legs int)
	contract = func(h countspace.Poly, a, index, legs int) {
		if a == 0 {
			set(out, index, countspace.Dot(h, powers[0][legs], nil))
			return
		}
		for k := 0; k <= legs; k++ {
			contract(countspace.Correlate(h, powers[a][k], nil), a-1, index+k*step[a], legs-k)
		}
	}

	contract(s, d-1, 0, n)
	return out.Coef
}
