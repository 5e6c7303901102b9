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

// LowRank returns t as a CP tensor of at most maxRank terms that is exact up to rounding, or false if
// none was found. It finds
//   - tables of rank one;
//   - a constant plus one point or slab (clauses), as two terms;
//   - tables over two legs, by elimination;
//   - tables whose terms are linearly independent on two groups of legs and pairwise different on
//     the rest (noisy-or as two terms, parity, equality), by simultaneous diagonalisation;
//   - mixtures, such as selectors (a leg that says which of two other legs a fourth copies), by
//     decomposing the slices, the tables with one leg fixed at each of its values;
//   - symmetric tensors of two levels over any number of legs, by the recurrence of their values
//     (Prony).
//
// A CP tensor of few terms is returned without its zero terms.
//
// Every result has been compared with t: each entry agrees within 1e-13 of the largest and 1e-9 of
// itself, zeros exactly. Entries of a symmetric tensor with the same counts are equal, so one of them
// is compared. So false does not mean that there is none, but true is never wrong. relativeError
// bounds the error of every entry, relative to the sum of the absolute values of its terms, in units
// of 2^-53. The zero tensor has one term of weight 0. Cost about O(legs·maxRank·entries), and
// O(maxRank·entries) to reject a table of full rank.
func LowRank(t Tensor, maxRank int) (c *CP, relativeError float64, ok bool) {
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
		if c, relativeError, ok := t.asSymmetryCP().lowRank(maxRank); ok {
			return c, relativeError, true
		}
	case *SymmetryCP:
		if c, relativeError, ok := t.lowRank(maxRank); ok {
			return c, relativeError, true
		}
	}

	dense, err := ToDense(t, lowRankEntries)
	if err != nil {
		return nil, 0, false
	}
	return lowRankTable(dense, maxRank)
}

// lowRankTable returns what LowRank does for a table. Entries near the ends of float64, where sums of a few of them would overflow, are
// scaled first (scaledToOne), and the weights scaled back.
func lowRankTable(t *Dense, maxRank int) (c *CP, relativeError float64, ok bool) {
	scaledTable, exp := scaledToOne(t)
	c, ok = lowRankDense(scaledTable, maxRank, mixtureDepth)
	if !ok {
		return nil, 0, false
	}

	relativeError, ok = c.errorAgainst(scaledTable)
	if !ok || exp == 0 {
		return c, relativeError, ok
	}

	for i, w := range c.Weights {
		w = math.Ldexp(w, exp)
		isTiny := w != 0 && math.Abs(w) < leastNormal
		if math.IsInf(w, 0) || isTiny {
			return nil, 0, false
		}
		c.Weights[i] = w
	}
	return c, relativeError, true
}

// errorAgainst returns the largest difference of an entry of t to that of the table d, relative to the sum of the absolute terms, in units
// of 2^-53, with the roundings of t's own numbers added. ok is false if the terms of an entry are not 0 but too small for a float64.
func (t *CP) errorAgainst(d *Dense) (relativeError float64, ok bool) {
	indicator := func(x float64) float64 {
		if x != 0 {
			return 1
		}
		return 0
	}
	got, err := ToDense(t, len(d.Data))
	absoluteSum, absoluteErr := ToDense(t.mapped(math.Abs), len(d.Data))
	termCount, countErr := ToDense(t.mapped(indicator), len(d.Data)) // by entry: the number of terms that are not 0
	if err != nil || absoluteErr != nil || countErr != nil {
		return 0, false
	}

	for i, want := range d.Data {
		switch {
		case termCount.Data[i] == 0: // and want is 0: zeros have been compared
		case absoluteSum.Data[i] < leastNormal:
			return 0, false
		default:
			relativeError = max(relativeError, math.Abs(got.Data[i]-want)/absoluteSum.Data[i])
		}
	}

	// A term is a product of a weight and a vector for each leg, each rounded, and adding the terms rounds once for each but one.
	return math.Ldexp(relativeError, 53) + float64(len(t.Shape)+len(t.Weights)), true
}

// mapped returns t with f applied to all weights and all entries of vectors. f has to keep 0 and 1, since vectors that are the identity
// stay so.
func (t *CP) mapped(f func(float64) float64) *CP {
	apply := func(list []float64) []float64 {
		result := make([]float64, len(list))
		for k, x := range list {
			result[k] = f(x)
		}
		return result
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
	// farFromOne is the exponent of a table's largest entry from which the table is scaled.
	farFromOne = 400
)

// scaledToOne returns t·2^−exp with a largest entry in [½, 1), and exp. It returns t and 0 if the largest entry is not far from 1, or if an
// entry would lose digits.
func scaledToOne(t *Dense) (scaled *Dense, exp int) {
	_, exp = math.Frexp(maxAbs(t.Data))
	if -farFromOne < exp && exp < farFromOne {
		return t, 0
	}

	scaled = &Dense{Shape: t.Shape, Data: make([]float64, len(t.Data))}
	for i, x := range t.Data {
		scaled.Data[i] = math.Ldexp(x, -exp)
		if x != 0 && math.Abs(scaled.Data[i]) < leastNormal {
			return t, 0
		}
	}
	return scaled, exp
}

// lowRankDense returns a table as a CP tensor of at most maxRank terms that equals it. ok is false if none was found. It tries the closed
// forms first, which keep zeros and ones as they are: rankOne, and backgroundPlusOne for a constant plus one point or slab. mixture calls
// it again for slices, which are parts of the table with one leg fixed. depth is how often mixture may do so one within the other.
func lowRankDense(t *Dense, maxRank, depth int) (c *CP, ok bool) {
	if maxRank < 1 {
		return nil, false
	}
	if c := rankOne(t); c.equals(t) {
		return c, true
	}

	middle := len(t.Shape) / 2
	if _, ok := prefixSkeleton(t, middle, maxRank); !ok || maxRank < 2 {
		return nil, false // the rank of the first legs against the others is too large: most tables end here
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

// equals reports whether every entry of t is that of the table d, within exactTolerance of the largest entry and entryTolerance of itself.
func (t *CP) equals(d *Dense) bool {
	got, err := ToDense(t, len(d.Data))
	if err != nil {
		return false
	}
	limit := exactTolerance * maxAbs(d.Data)
	for i, want := range d.Data {
		if !(math.Abs(got.Data[i]-want) <= min(limit, entryTolerance*math.Abs(want))) { // so for NaN, too
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

// withoutZeros returns t without terms that have weight 0 or a vector of zeros. If no term is left, the result has one of weight 0.
func (t *CP) withoutZeros() *CP {
	var kept []int
	for i, w := range t.Weights {
		isZero := w == 0
		for leg, d := range t.Shape {
			isZero = isZero || maxAbs(t.vector(i, leg, d)) == 0
		}
		if !isZero {
			kept = append(kept, i)
		}
	}

	if len(kept) == len(t.Weights) && len(kept) > 0 {
		return t
	}

	var weights []float64
	var terms [][][]float64
	for _, i := range kept {
		term := make([][]float64, len(t.Shape))
		for leg, d := range t.Shape {
			term[leg] = t.vector(i, leg, d)
		}
		weights = append(weights, t.Weights[i])
		terms = append(terms, term)
	}

	if len(kept) == 0 {
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
