// inner products and norms, without writing out any form that is not a table already.

package tensor

import (
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// NormSq returns ‖t‖² = Σ_x t[x]², never below 0. Dense tables are summed with a common exponent;
// CP by the Gram of its terms, symmetric by the sizes N_c of its count classes, symmetry-CP by the
// Gram of its terms in count space (section "Learning" of the method: G_ij). It returns ErrTooLarge
// if a count space is beyond MaxCoefficients. A form with numbers of both signs is summed as a table
// if it has at most 2^16 entries. Of a larger one the Gram cancels where terms nearly do: the error is
// relative to Σ_ij |G_ij|, not to the norm.
func NormSq(t Tensor) (scaled.Number, error) {
	if absolute(t) == nil {
		return inner(t, t)
	}

	// Terms of both signs may cancel in an entry, and then the products of the Gram do too. The squares of entries cannot cancel.
	if table, err := ToDense(t, lowRankEntries); err == nil {
		return inner(table, table)
	}

	if size, err := sizeWithin(t.Dims(), lowRankEntries); err == nil { // entries beyond float64
		return entryNormSq(t, size), nil
	}

	n, err := inner(t, t)
	if err == nil && n.Sign() <= 0 {
		return scaled.Number{}, fmt.Errorf("%w: terms of both signs cancel in the norm",
			ErrNotFinite)
	}
	return n, err
}

// entryNormSq returns ‖t‖² as the sum of the squares of its size entries, one by one.
func entryNormSq(t Tensor, size int) scaled.Number {
	var sum scaled.Number
	dims := t.Dims()
	x := make([]int, len(dims))
	for range size {
		e := At(t, x)
		sum = sum.Add(e.Mul(e))
		advance(x, dims)
	}
	return sum
}

// inner returns ⟨a, b⟩ = Σ_x a[x] b[x] for any two forms of one shape:
//
//	CP with anything:          Σ_t weight_t ⟨b, ⊗_ℓ v_ℓt⟩
//	symmetric with anything:   Σ_i α_i Σ_c S^(i)_c [z^c] p(z)
//
// where p is the count polynomial of b under R^(i).
//
// It returns ErrShape for different shapes and
// ErrTooLarge if a count space is beyond MaxCoefficients.
func inner(a, b Tensor) (scaled.Number, error) {
	if a == nil || b == nil || !slices.Equal(a.Dims(), b.Dims()) {
		return scaled.Number{}, fmt.Errorf("%w: inner product of different shapes", ErrShape)
	}
	if _, ok := a.(*Dense); ok {
		a, b = b, a // the other form first: it knows how to contract a table
	}

	switch a := a.(type) {
	case *Dense:
		return innerDense(a.Data, b.(*Dense).Data), nil
	case *CP:
		return a.innerWith(b)
	case *Symmetric:
		return a.asSymmetryCP().innerWith(b)
	case *SymmetryCP:
		return a.innerWith(b)
	}
	panic("tensor: unknown form")
}

// innerDense returns Σ_i a_i·b_i. If the largest entries are far from 1, the entries are divided by powers of two first, so that no product
// overflows or vanishes beside the largest.
func innerDense(a, b []float64) scaled.Number {
	_, expA := math.Frexp(maxAbs(a))
	_, expB := math.Frexp(maxAbs(b))
	sum := 0.0

	isNearOne := expA > -400 && expA < 400 && expB > -400 && expB < 400 // the largest product and its 53 bits are then within ±2^900
	if isNearOne {
		for i, x := range a {
			sum += float64(x * b[i])
		}
		return scaled.FromFloat(sum)
	}

	for i, x := range a {
		sum += float64(math.Ldexp(x, -expA) * math.Ldexp(b[i], -expB))
	}
	return scaled.Make(sum, int64(expA+expB))
}

// innerWith returns the inner product ⟨t, b⟩ = Σ_t weight_t ⟨b, ⊗_ℓ v_ℓt⟩ over the terms of t.
func (t *CP) innerWith(b Tensor) (scaled.Number, error) {
	var sum scaled.Number
	w := make([]LegWeights, len(t.Shape))
	for i, weight := range t.Weights {
		for leg, d := range t.Shape {
			w[leg] = t.vector(i, leg, d)
		}
		p, err := CountPoly(b, w, 1, nil) // one level: a number; nil: operations are not counted
		if err != nil {
			return scaled.Number{}, err
		}
		sum = sum.Add(p.Coef.At(0).Mul(scaled.FromFloat(weight)))
	}
	return sum, nil
}

// innerWith returns the inner product ⟨t, b⟩ = Σ_i α_i Σ_c S^(i)_c [z^c] p_i(z), where p_i is the count polynomial of b under the vectors
// R^(i) of term i, with every value at its level of t.
func (t *SymmetryCP) innerWith(b Tensor) (scaled.Number, error) {
	var sum scaled.Number
	shape := t.Levels.Shape()
	w := make([]LegWeights, len(t.Shape))
	for _, term := range t.Terms {
		for leg, levels := range t.Levels.Of {
			w[leg] = weightsAtLevels(term.vector(leg), levels, t.Levels.D)
		}

		p, err := CountPoly(b, w, t.Levels.D, nil) // nil: operations are not counted
		if err != nil {
			return scaled.Number{}, err
		}
		s := countspace.Poly{Shape: shape, Coef: term.S}
		sum = sum.Add(countspace.Dot(s, p, nil).Mul(scaled.FromFloat(term.Alpha)))
	}
	return sum, nil
}

// weightsAtLevels returns leg weights over d levels in which value x has the weight v[x] at its own level, levels[x], and 0 at all
// others. A nil v is all ones.
func weightsAtLevels(v []float64, levels []uint8, d int) LegWeights {
	w := make(LegWeights, len(levels)*d)
	for x, a := range levels {
		w[x*d+int(a)] = 1
		if v != nil {
			w[x*d+int(a)] = v[x]
		}
	}
	return w
}
