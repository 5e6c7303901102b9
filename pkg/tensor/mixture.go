// Decompositions leg value by leg value: equality, selectors, any matrix of few columns.

package tensor

import (
	"slices"
)

// mixtureDepth bounds the legs that are taken apart one within the other. Two cover a selector:
// of copy(s, c, p, m), c = p or c = m by the switch s, every slice at s and c has rank one.
const mixtureDepth = 2

// mixture returns t as a CP tensor of at most maxRank terms. It decomposes the slices of t at the values of one leg, the tables that remain
// when the leg is fixed at a value (mixtureOver), and takes the leg that gives the fewest terms. ok is false if no leg does. It is tried
// last, as it may take more terms than needed.
func mixture(t *Dense, maxRank, depth int) (best *CP, ok bool) {
	for leg := range t.Shape {
		limit := maxRank
		if ok {
			limit = len(best.Weights) - 1
		}
		if c, found := t.mixtureOver(leg, limit, depth); found {
			best = c
			ok = true
		}
	}
	return best, ok
}

// mixtureOver returns t as Σ_A 1_A ⊗ (decomposition of a slice): for each set A of values of the leg that have the same slice, the terms of
// this slice times the vector that is 1 on A and 0 elsewhere. Slices of zeros have no terms, so zeros stay zeros. ok is false if t takes
// more than maxRank terms, or none, since all its entries are 0. depth bounds how often slices may be decomposed in this way themselves.
func (t *Dense) mixtureOver(leg, maxRank, depth int) (c *CP, ok bool) {
	c = &CP{Shape: t.Shape, Vectors: make([][]float64, len(t.Shape))}
	sliceAt := make([]*Dense, t.Shape[leg]) // by value of the leg
	for x := range sliceAt {
		sliceAt[x] = t.fix(leg, x)
	}

	for x, slice := range sliceAt {
		isSame := func(s *Dense) bool { return slices.Equal(s.Data, slice.Data) }
		isRepeated := slices.IndexFunc(sliceAt, isSame) < x
		if isRepeated || maxAbs(slice.Data) == 0 {
			continue
		}

		part, ok := lowRankDense(slice, maxRank-len(c.Weights), depth)
		if !ok {
			return nil, false
		}

		indicator := make([]float64, len(sliceAt)) // 1_A
		for y, s := range sliceAt {
			if isSame(s) {
				indicator[y] = 1
			}
		}

		c.Weights = append(c.Weights, part.Weights...)
		vectors := slices.Insert(part.Vectors, leg, slices.Repeat(indicator, len(part.Weights)))
		for m := range vectors {
			c.Vectors[m] = append(c.Vectors[m], vectors[m]...)
		}
	}
	return c, len(c.Weights) > 0
}
