// Exact decompositions of low rank: the entry point, and the verification that decides.

package tensor

import (
	"math"
	"slices"
)

const (
	// exactTolerance is the largest error of a decomposition, relative to the tensor's largest entry.
	exactTolerance = 1e-13
	// entryTolerance is the largest error of any single entry, relative to that entry:
	// conditioning on evidence can make the smallest entries the only ones that matter. A zero
	// entry has to come out as zero.
	entryTolerance = 1e-9
	// lowRankEntries is the largest table another form
	// is written out to when its rank is looked for.
	lowRankEntries = 1 << 16
)

// LowRank returns t as a CP tensor of at most maxRank terms that is exact up to rounding, or false
// if none was found. It finds: rank one; a constant plus one point or slab (clauses); noisy-or
// as two terms, parity, equality, and in general the decomposition of a table that has one with
// linearly independent terms on two groups of legs and pairwise different ones on the rest
// (simultaneous diagonalisation); tables over two legs by elimination, equality, selectors and
// other mixtures by their slices; symmetric tensors of two levels over any number of legs by the
// recurrence of their values (Prony). A CP tensor of few terms is returned without its zero terms.
//
// Every result has been compared with t: each entry agrees within 1e-13 of the largest and 1e-9 of
// itself, zeros exactly (symmetric: each value over its count class). So false does not mean that
// there is none, but true is never wrong. off bounds the error of every entry, relative to the sum
// of the absolute values of its terms, in units of 2^-53. The zero tensor has one term of weight 0.
// Cost about O(legs·maxRank·entries), and O(maxRank·entries) to reject a table of full rank.
func LowRank(t Tensor, maxRank int) (c *CP, off float64, ok bool) {
	if t == nil || maxRank < 1 {
		return nil, 0, false
	}

	switch t := t.(type) {
	case *Dense:
		return lowRankTable(t, maxRank)
	case *CP:
		if c := t.withoutZeros(); len(c.Weights) <= maxRank {
			return c, 0, true
		}
	case *Symmetric:
		if c, off, ok := t.asSymmetryCP().lowRank(maxRank); ok {
			return c, off, true
		}
	case *SymmetryCP:
		if c, off, ok := t.lowRank(maxRank); ok {
			return c, off, true
		}
	}

	dense, err := ToDense(t, lowRankEntries)
	if err != nil {
		return nil, 0, false
	}
	return lowRankTable(dense, maxRank)
}

// lowRankTable is lowRankDense of a table whose entries may be near the ends of float64,
// where sums of a few of them overflow.
func lowRankTable(t *Dense, maxRank int) (*CP, float64, bool) {
	level, e := levelled(t)
	c, ok := lowRankDense(level, maxRank, mixtureDepth)
	if !ok {
		return nil, 0, false
	}

	off, ok := c.deviation(level)
	if !ok || e == 0 {
		return c, off, ok
	}

	for i, w := range c.Weights {
		w = math.Ldexp(w, e)
		if math.IsInf(w, 0) || w != 0 && math.Abs(w) < leastNormal {
			return nil, 0, false
		}
		c.Weights[i] = w
	}
	return c, off, true
}

// deviation is off of LowRank.
// It is false where a term of an entry of 0 was too small for a float64.
func (t *CP) deviation(d *Dense) (off float64, ok bool) {
	got, err := ToDense(t, len(d.Data))
	sizes := t.each(math.Abs)
	terms := t.each(func(x float64) float64 {
		if x != 0 {
			return 1
		}
		return 0
	})
	size, err2 := ToDense(sizes, len(d.Data))
	count, err3 := ToDense(terms, len(d.Data))
	if err != nil || err2 != nil || err3 != nil {
		return 0, false
	}

	for i, want := range d.Data {
		switch {
		case count.Data[i] == 0: // and want is 0: zeros have been compared
		case size.Data[i] < leastNormal:
			return 0, false
		default:
			off = max(off, math.Abs(got.Data[i]-want)/size.Data[i])
		}
	}

	return math.Ldexp(off, 53) + float64(len(t.Shape)+len(t.Weights)), true
}

// each returns t with f of all its numbers, the identity written out.
func (t *CP) each(f func(float64) float64) *CP {
	apply := func(list []float64) []float64 {
		out := make([]float64, len(list))
		for k, x := range list {
			out[k] = f(x)
		}
		return out
	}

	out := &CP{Shape: t.Shape, Weights: apply(t.Weights), Vectors: make([][]float64, len(t.Shape))}
	for leg, v := range t.Vectors {
		if v != nil { // else the identity, whose entries are 0 and 1
			out.Vectors[leg] = apply(v)
		}
	}
	return out
}

const (
	// leastNormal is the least float64 with all its digits.
	leastNormal = 0x1p-1022
	// farFromOne is the exponent beyond which a table is levelled.
	farFromOne = 400
)

// levelled returns t·2^−e with a largest entry in [½, 1)
// where that is far from 1 and no entry would lose digits, else t and 0.
func levelled(t *Dense) (*Dense, int) {
	_, e := math.Frexp(maxAbs(t.Data))
	if -farFromOne < e && e < farFromOne {
		return t, 0
	}

	out := &Dense{Shape: t.Shape, Data: make([]float64, len(t.Data))}
	for i, x := range t.Data {
		out.Data[i] = math.Ldexp(x, -e)
		if x != 0 && math.Abs(out.Data[i]) < leastNormal {
			return t, 0
		}
	}
	return out, e
}

// lowRankDense tries the closed forms first: they keep zeros and ones as they are.
// depth bounds how often mixture may come back here.
func lowRankDense(t *Dense, maxRank, depth int) (*CP, bool) {
	if maxRank < 1 {
		return nil, false
	}
	if c := rankOne(t); c.equals(t) {
		return c, true
	}

	if _, ok := prefixSkeleton(t, len(t.Shape)/2, maxRank); !ok || maxRank < 2 {
		return nil, false // full rank across the middle: most tables end here
	}

	if c, ok := backgroundPlusOne(t); ok && c.equals(t) {
		return c, true
	}
	if c, ok := diagonalise(t, maxRank); ok {
		return c, true
	}
	if depth > 0 {
		if c, ok := mixture(t, maxRank, depth-1); ok && c.equals(t) {
			return c, true
		}
	}
	return nil, false
}

// equals compares entry by entry, with the tolerances above.
func (t *CP) equals(d *Dense) bool {
	got, err := ToDense(t, len(d.Data))
	if err != nil {
		return false
	}
	limit := exactTolerance * maxAbs(d.Data)
	for i, want := range d.Data {
		if !(math.Abs(got.Data[i]-want) <= min(limit, entryTolerance*math.Abs(want))) {
			return false
		}
	}
	return true
}

// newCP makes a CP tensor from terms[i][ℓ], the vector of term i on leg ℓ.
func newCP(shape []int, weights []float64, terms [][][]float64) *CP {
	t := &CP{Shape: shape, Weights: weights, Vectors: make([][]float64, len(shape))}
	for leg := range shape {
		for _, term := range terms {
			t.Vectors[leg] = append(t.Vectors[leg], term[leg]...)
		}
	}
	return t
}

// withoutZeros drops terms with weight 0 or a zero vector; if all go, one of weight 0 stays.
func (t *CP) withoutZeros() *CP {
	var keep []int
	for i, w := range t.Weights {
		zero := w == 0
		for leg, d := range t.Shape {
			zero = zero || maxAbs(t.vector(i, leg, d)) == 0
		}
		if !zero {
			keep = append(keep, i)
		}
	}

	if len(keep) == len(t.Weights) && len(keep) > 0 {
		return t
	}

	var weights []float64
	var terms [][][]float64
	for _, i := range keep {
		term := make([][]float64, len(t.Shape))
		for leg, d := range t.Shape {
			term[leg] = t.vector(i, leg, d)
		}
		weights = append(weights, t.Weights[i])
		terms = append(terms, term)
	}

	if len(keep) == 0 {
		weights = []float64{0}
		terms = [][][]float64{ones(t.Shape)}
	}
	return newCP(t.Shape, weights, terms)
}

// ones returns a vector of ones for every dimension.
func ones(dims []int) [][]float64 {
	term := make([][]float64, len(dims))
	for leg, d := range dims {
		term[leg] = slices.Repeat([]float64{1}, d)
	}
	return term
}
