// Count polynomials with one leg fixed, for every leg and value: the input of learning a leg's vector.

package tensor

import (
	"fmt"

	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// LegPolys returns, for every leg ℓ and value x of it, the count polynomial of t
// with leg ℓ fixed at x (weight 1 at level 0) and all other legs under their weights,
//
//	out[ℓ][x] = Σ_{y: y_ℓ=x} t[y] Π_{m≠ℓ} (Σ_{a<d} w[m][y_m·d+a] z^a).
//
// CountPoly(t, w) is Σ_x (Σ_a w[ℓ][x,a] z^a)·out[ℓ][x] for every ℓ. The weights of a leg do not
// enter its own polynomials. Cost for n legs and two levels: CP O(rank·n² log n), symmetric forms
// O(terms·n² log n), dense n times CountPoly. One level: linear. Errors as CountPoly; ErrTooLarge
// bounds all polynomials together.
// Source: the method, "R given S, leg by leg" (P^{−ℓ,a}).
func LegPolys(t Tensor, w []LegWeights, d int, ops *countspace.Ops) ([][]countspace.Poly, error) {
	if err := checkWeights(t, w, d); err != nil {
		return nil, err
	}
	if err := checkLegPolys(t.Dims(), weightBox(w, d)); err != nil {
		return nil, err
	}

	switch t := t.(type) {
	case *Dense:
		return t.legPolys(w, d, ops)
	case *CP:
		return t.legPolys(w, d, ops), nil
	case *Symmetric:
		return t.asSymmetryCP().legPolys(w, d, ops)
	case *SymmetryCP:
		return t.legPolys(w, d, ops)
	}
	panic("tensor: unknown form")
}

// checkLegPolys returns ErrTooLarge if polynomials of the shape box have too many coefficients together. There is one polynomial for each
// value of each leg, and one more on the way there.
func checkLegPolys(dims, box []int) error {
	values := 1 // the one on the way
	for _, d := range dims {
		values += d
	}
	if _, err := sizeWithin(append([]int{values}, box...), MaxCoefficients); err != nil {
		return fmt.Errorf("polynomials of every leg: %w", err)
	}
	return nil
}

// zeroLegPolys returns the polynomial 0 for every value of every leg.
func zeroLegPolys(dims []int, vars int) [][]countspace.Poly {
	polys := make([][]countspace.Poly, len(dims))
	for leg, d := range dims {
		polys[leg] = make([]countspace.Poly, d)
		for x := range polys[leg] {
			polys[leg][x] = countspace.Constant(vars, scaled.Number{})
		}
	}
	return polys
}

// legPolys returns, for every leg and value, the count polynomial of the table with that leg fixed at that value.
func (t *Dense) legPolys(w []LegWeights, d int, ops *countspace.Ops) ([][]countspace.Poly, error) {
	out := zeroLegPolys(t.Shape, d-1)
	for leg := range out {
		otherWeights := without(w, leg)
		for x := range out[leg] {
			p, err := t.fix(leg, x).countPoly(otherWeights, d, ops)
			if err != nil {
				return nil, err
			}
			out[leg][x] = p
		}
	}
	return out, nil
}

// legPolys returns, for every leg ℓ and value x, the count polynomial with the leg fixed at x: the sum over the terms of
// weight_t v_ℓt[x] Π_{m≠ℓ} (Σ_a ⟨v_mt, w_m[·,a]⟩ z^a).
func (t *CP) legPolys(w []LegWeights, d int, ops *countspace.Ops) [][]countspace.Poly {
	out := zeroLegPolys(t.Shape, d-1)
	for i, weight := range t.Weights {
		if weight == 0 {
			continue
		}
		for leg, polyOfOthers := range leaveOneOut(d-1, t.factors(i, w, d, ops), ops) {
			if polyOfOthers.IsZero() {
				continue
			}
			polyOfOthers = polyOfOthers.Scale(scaled.FromFloat(weight))

			v := t.Vectors[leg]
			if v == nil { // the identity: term i is at value i only
				out[leg][i] = out[leg][i].Add(polyOfOthers)
				continue
			}

			for x := range out[leg] {
				if f := v[i*t.Shape[leg]+x]; f != 0 {
					out[leg][x] = out[leg][x].Add(polyOfOthers.Scale(scaled.FromFloat(f)))
				}
			}
		}
	}
	return out
}

// legPolys returns, for every leg ℓ and value x, the count polynomial with the leg fixed at x. S is read at counts k with one more leg at
// the level λ(x) of the fixed value:
//
//	out[ℓ][x] = Σ_i α_i R_ℓ[x] Σ_k S_{k+e(λ(x))} [y^k] Π_{m≠ℓ} p_m(y),
//
// where i runs over the terms of t, e(λ) is one leg at level λ, and p_m is the polynomial of leg m (joining.legPoly).
func (t *SymmetryCP) legPolys(
	w []LegWeights, d int, ops *countspace.Ops,
) ([][]countspace.Poly, error) {
	out := zeroLegPolys(t.Shape, d-1)
	j := newJoining(t.Levels, w, d)
	box, err := j.box(w)
	if err == nil {
		err = checkLegPolys(t.Shape, box)
	}
	if err != nil {
		return nil, err
	}

	for _, term := range t.Terms {
		for leg, productOfOthers := range leaveOneOut(j.vars(), j.legPolys(term, w), ops) {
			r := term.vector(leg)
			for x, level := range t.Levels.Of[leg] {
				f := scaled.FromFloat(term.Alpha)
				if r != nil {
					f = f.Mul(scaled.FromFloat(r[x]))
				}
				if !f.IsZero() {
					p := j.countPoly(productOfOthers, term.S, len(w)-1, int(level)) // all legs but this one, which is at level
					out[leg][x] = out[leg][x].Add(p.Scale(f))
				}
			}
		}
	}
	return out, nil
}
