// Count polynomials of a tensor under leg weights: the entry point and the parts common to all forms.

package tensor

import (
	"fmt"

	"github.com/basetensor/basetensor/pkg/countspace"
)

// CountPoly returns the count polynomial of t under leg weights over d levels,
//
//	p(z) = Σ_x t[x] Π_ℓ (Σ_{a<d} w[ℓ][x_ℓ·d+a] z^a),   z^0 = 1,
//
// a polynomial in z_1 … z_{d−1}. With d = 1 it is the number ⟨t, ⊗w⟩ of Lemma 2. Coefficients have
// any range. The box of the result, its coefficients along each variable, is as narrow as the weights
// allow: a level that no leg has adds no degree.
//
// Cost for n legs: dense O(d·entries·box) with partial tables contracted from the last leg to the
// first (Lemma 3's d^n, never (levels·d)^n); CP O(rank·n²) for two levels, O(rank·Σ dims) for one;
// symmetric forms O(n²) where the weights' levels determine the core's or the other way round, else
// a joint count polynomial over both sets of levels, O(n·(n+1)^(D+d−2)). It returns ErrShape if w
// does not fit, ErrNotFinite for a NaN or an infinity in w, and ErrTooLarge beyond MaxCoefficients
// coefficients. Source: Hamid and Braun, Lemmas 2 to 4.
func CountPoly(t Tensor, w []LegWeights, d int, ops *countspace.Ops) (countspace.Poly, error) {
	if err := checkWeights(t, w, d); err != nil {
		return countspace.Poly{}, err
	}
	switch t := t.(type) {
	case *Dense:
		return t.countPoly(w, d, ops)
	case *CP:
		return t.countPoly(w, d, ops)
	case *Symmetric:
		return t.asSymmetryCP().countPoly(w, d, ops)
	case *SymmetryCP:
		return t.countPoly(w, d, ops)
	}
	panic("tensor: unknown form")
}

// checkWeights checks that w has a finite weight for every leg, value and level.
func checkWeights(t Tensor, w []LegWeights, d int) error {
	if t == nil {
		return fmt.Errorf("%w: nil tensor", ErrShape)
	}

	dims := t.Dims()
	if d < 1 {
		return fmt.Errorf("%w: %d levels, at least 1 is needed", ErrShape, d)
	}
	if len(w) != len(dims) {
		return fmt.Errorf("%w: weights for %d legs, the tensor has %d", ErrShape, len(w), len(dims))
	}

	for leg, list := range w {
		if len(list)/d != dims[leg] || len(list)%d != 0 {
			return fmt.Errorf("%w: leg %d has %d weights, %d values at %d levels are needed",
				ErrShape, leg, len(list), dims[leg], d)
		}
		if i := notFinite(list); i >= 0 {
			return fmt.Errorf("%w: leg %d, weight %d is %v", ErrNotFinite, leg, i, list[i])
		}
	}
	return nil
}

// weightBox returns the shape of a count polynomial under the leg weights w over d levels: for each level above 0, one more than the number
// of legs that have a weight other than 0 at that level.
func weightBox(w []LegWeights, d int) []int {
	shape := make([]int, d-1)
	for a := range shape {
		shape[a] = 1
	}
	for _, list := range w {
		for a := 1; a < d; a++ {
			if hasLevel(list, d, a) {
				shape[a-1]++
			}
		}
	}
	return shape
}

// hasLevel reports whether a leg has a weight other than 0 at level a of d.
func hasLevel(w LegWeights, d, a int) bool {
	for i := a; i < len(w); i += d {
		if w[i] != 0 {
			return true
		}
	}
	return false
}
