// Decompositions leg value by leg value: equality, selectors, any matrix of few columns.

package tensor

import (
	"slices"
)

// mixtureDepth bounds the legs that are taken apart one within the other. Two cover a selector:
// of copy(s, c, p, m), c = p or c = m by the switch s, every slice at s and c has rank one.
const mixtureDepth = 2

// mixture writes t as Σ_A 1_A ⊗ (decomposition of a slice), A the values of one leg that have the
// same slice, for the leg that takes fewest terms. It is tried last, as it may take more terms than
// needed. Zeros stay zeros.
func mixture(t *Dense, maxRank, depth int) (best *CP, ok bool) {
	for leg := range t.Shape {
		budget := maxRank
		if ok {
			budget = len(best.Weights) - 1
		}
		if c, found := t.mixtureOver(leg, budget, depth); found {
			best = c
			ok = true
		}
	}
	return best, ok
}

// mixtureOver is mixture for the values of one leg.
func (t *Dense) mixtureOver(leg, maxRank, depth int) (*CP, bool) {
	out := &CP{Shape: t.Shape, Vectors: make([][]float64, len(t.Shape))}
	slicesOf := make([]*Dense, t.Shape[leg])
	for x := range slicesOf {
		slicesOf[x] = t.fix(leg, x)
	}

	for x, slice := range slicesOf {
		same := func(s *Dense) bool { return slices.Equal(s.Data, slice.Data) }
		if slices.IndexFunc(slicesOf, same) < x || maxAbs(slice.Data) == 0 {
			continue
		}

		part, ok := lowRankDense(slice, maxRank-len(out.Weights), depth)
		if !ok {
			return nil, false
		}

		set := make([]float64, len(slicesOf))
		for y, s := range slicesOf {
			if same(s) {
				set[y] = 1
			}
		}

		out.Weights = append(out.Weights, part.Weights...)
		vectors := slices.Insert(part.Vectors, leg, slices.Repeat(set, len(part.Weights)))
		for m := range vectors {
			out.Vectors[m] = append(out.Vectors[m], vectors[m]...)
		}
	}
	return out, len(out.Weights) > 0
}
