// Decompositions of rank two and more by simultaneous diagonalisation.

package tensor

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/internal/base/linalg"
)

const (
	// draws is how often random slices are combined for one grouping of the legs; chosen.
	draws = 3
	// rotations is the number of rotations of the legs that are tried; chosen.
	rotations = 8
)

// diagonalise returns t as a CP tensor of at most maxRank terms, if it finds one by simultaneous diagonalisation.
//
// First t is compressed to a core, a part of t itself: every leg keeps only as many of its values as t has rank, read as a matrix with a
// row for each value of the leg. Legs that keep a single value drop out. A core of two legs is a matrix and is decomposed as it stands; one
// of more legs goes through Jennrich's algorithm. Source: Leurgans, Ross, Abel, A decomposition for three-way arrays (SIAM J. Matrix Anal.
// Appl. 14, 1993).
func diagonalise(t *Dense, maxRank int) (c *CP, ok bool) {
	core, expand, ok := compress(t, maxRank)
	if !ok {
		return nil, false
	}

	var legs, dims []int // of the core, without those of one value
	for leg, d := range core.Shape {
		if d > 1 {
			legs = append(legs, leg)
			dims = append(dims, d)
		}
	}

	core = &Dense{Shape: dims, Data: core.Data}
	for _, terms := range candidateTerms(core, maxRank) {
		for _, vectors := range [][][][]float64{cleaned(terms), terms} { // first with numbers near to 0 and ±1 taken as these
			c, ok := weightedTerms(core, vectors)
			if !ok {
				continue
			}
			if c = c.expanded(t.Shape, legs, expand); c.equals(t) {
				return c, true
			}
		}
	}
	return nil, false
}

// compress returns a core, which is t with only some of the values of every leg ℓ: the slices of t at these values are independent, and
// the slice at any other value is a linear combination of them. expand[ℓ] has the coefficients: t is the core, multiplied along every leg ℓ
// by expand[ℓ]. ok is false if a leg needs more than maxRank values, or if t is 0.
func compress(t *Dense, maxRank int) (core *Dense, expand [][]float64, ok bool) {
	core = t
	for leg := range t.Shape {
		unfolding := withLegFirst(core, leg) // read as a matrix: a row for each value of the leg
		d := unfolding.Shape[0]
		s, ok := newSkeleton(unfolding.Data, d, len(unfolding.Data)/d, maxRank)
		if !ok || len(s.Rows) == 0 {
			return nil, nil, false
		}

		core = restrict(core, leg, s.Rows)
		expand = append(expand, s.X)
	}
	return core, expand, true
}

// withLegFirst returns the table with one leg moved to the front.
func withLegFirst(t *Dense, leg int) *Dense {
	order := []int{leg}
	for m := range t.Shape {
		if m != leg {
			order = append(order, m)
		}
	}
	moved, _ := t.permute(order) // no error: order is a permutation
	return moved
}

// restrict returns the table that has only the given values of a leg, in their order.
func restrict(t *Dense, leg int, values []int) *Dense {
	shape := slices.Clone(t.Shape)
	shape[leg] = len(values)
	restricted := &Dense{Shape: shape}
	stride := strides(t.Shape)[leg]
	d := t.Shape[leg]
	for block := 0; block < len(t.Data); block += d * stride { // one combination of values of the legs before
		for _, x := range values {
			restricted.Data = append(restricted.Data, t.Data[block+x*stride:][:stride]...)
		}
	}
	return restricted
}

// prefixSkeleton returns the skeleton of t as a matrix, with the first k legs as rows and the others as columns. ok is false if its rank is
// above maxRank.
func prefixSkeleton(t *Dense, k, maxRank int) (s skeleton, ok bool) {
	rows := boxSize(t.Shape[:k])
	return newSkeleton(t.Data, rows, len(t.Data)/rows, maxRank)
}

// candidateTerms returns lists of at most maxRank rank-one terms that may span t. A term has a vector for each leg.
func candidateTerms(t *Dense, maxRank int) (candidates [][][][]float64) {
	switch len(t.Shape) {
	case 0:
		return [][][][]float64{{{}}} // one candidate: a single term, without vectors, as there are no legs
	case 2:
		return [][][][]float64{matrixTerms(t)}
	}

	// Rotate the legs until Jennrich's algorithm finds terms. Each draw of one rotation may give a candidate.
	rng := rand.New(rand.NewPCG(1, 2)) // a fixed sequence: the same table, the same decomposition
	for first := range min(len(t.Shape), rotations) {
		order := make([]int, len(t.Shape))
		for i := range order {
			order[i] = (first + i) % len(order)
		}
		rotated, _ := t.permute(order) // no error: order is a permutation
		leftEnd, rightBegin, rank := groupLegs(rotated, maxRank)
		if rank == 0 { // these legs have no grouping
			continue
		}

		for range draws {
			terms, ok := jennrich(rotated, leftEnd, rightBegin, rank, rng)
			if !ok {
				continue
			}
			rotateBack(terms, order)
			candidates = append(candidates, terms)
		}
		if len(candidates) > 0 {
			break
		}
	}
	return candidates
}

// rotateBack puts the vectors of each term into the order of the original legs. Its mode m is leg order[m].
func rotateBack(terms [][][]float64, order []int) {
	for i, term := range terms {
		byLeg := make([][]float64, len(order))
		for m, leg := range order {
			byLeg[leg] = term[m]
		}
		terms[i] = byLeg
	}
}

// matrixTerms writes a matrix as Σ_i e_i ⊗ row_i.
func matrixTerms(t *Dense) (terms [][][]float64) {
	rows, cols := t.Shape[0], t.Shape[1]
	for i := range rows {
		e := make([]float64, rows)
		e[i] = 1
		terms = append(terms, [][]float64{e, slices.Clone(t.Data[i*cols : (i+1)*cols])})
	}
	return terms
}

// groupLegs cuts the legs in three groups: those before leftEnd, those from rightBegin on, and at least one between. The first and the
// last group each have the same rank against all other legs, the largest that a cut has. A cut is into the first k legs and the others, and
// its rank is that of t as a matrix with them as rows and columns. rank is 0 if only one cut has the largest rank, which leaves no leg
// between, or if a rank is above maxRank.
func groupLegs(t *Dense, maxRank int) (leftEnd, rightBegin, rank int) {
	for k := 1; k < len(t.Shape); k++ {
		s, ok := prefixSkeleton(t, k, maxRank)
		if !ok {
			return 0, 0, 0
		}
		if len(s.Rows) > rank {
			leftEnd = k
			rank = len(s.Rows)
		}
		if len(s.Rows) == rank {
			rightBegin = k
		}
	}

	if leftEnd == rightBegin {
		return 0, 0, 0
	}
	return leftEnd, rightBegin, rank
}

// jennrich returns rank-one terms of t = Σ_i F_i ⊗ G_i, where F_i is over the legs before leftEnd and G_i over the others. B_i is the
// part of G_i over the legs from rightBegin on. T[·, m, ·] is t at index m of the legs between leftEnd and rightBegin, as a matrix. For
// random u,
//
//	K_u = Σ_m u_m T[·, m, ·] = F diag(d_u) Bᵀ,
//
// where F and B have the columns F_i and B_i. So K_u K_v⁻¹ = F diag(d_u/d_v) F⁻¹, and its eigenvectors are the columns of F. K is computed
// on rank rows and rank columns only, those of two skeletons, on which it has full rank. ok is false if the eigenvectors are not real, or
// if a system is singular.
func jennrich(t *Dense, leftEnd, rightBegin, rank int, rng *rand.Rand) (terms [][][]float64, ok bool) {
	rows := boxSize(t.Shape[:leftEnd])
	cols := boxSize(t.Shape[rightBegin:])
	between := len(t.Data) / rows / cols
	left, isLeftOK := newSkeleton(t.Data, rows, between*cols, rank)
	right, isRightOK := newSkeleton(transposed(t.Data, rows*between, cols), cols, rows*between, rank)
	if !isLeftOK || !isRightOK || len(left.Rows) != rank || len(right.Rows) != rank {
		return nil, false
	}
	ku, kv := randomCombinations(t.Data, left.Rows, right.Rows, between, cols, rng)
	f, ok := commonEigenvectors(ku, kv, rank) // F on the rows of the skeleton
	if !ok {
		return nil, false
	}

	// G from F on these rows: F[Rows,:] G = t[Rows,:].
	width := between * cols
	chosenRows := make([]float64, 0, rank*width)
	for _, r := range left.Rows {
		chosenRows = append(chosenRows, t.Data[r*width:(r+1)*width]...)
	}
	g, err := linalg.Solve(f, rank, rank, chosenRows, width)
	if err != nil {
		return nil, false
	}

	// F on all rows, and the vectors of the rank-one tables F_i and G_i, whose product approximates the table. It is not checked here how
	// well.
	var w linalg.Work
	fullF := make([]float64, rows*rank)
	w.Mul(fullF, left.X, f, rows, rank, rank)
	fullF = transposed(fullF, rows, rank)
	terms = make([][][]float64, rank)
	for i := range terms {
		// Without the weights, which weightedTerms finds.
		_, vectorsF := cross(fullF[i*rows:(i+1)*rows], t.Shape[:leftEnd])
		_, vectorsG := cross(g[i*width:(i+1)*width], t.Shape[leftEnd:])
		terms[i] = append(vectorsF, vectorsG...)
	}
	return terms, true
}

// randomCombinations returns Σ_m u_m T[·, m, ·] and the same for v, on the given rows and columns of T, with normal random u and v. data
// has between · cols entries for each row of T.
func randomCombinations(data []float64, rows, columns []int, between, cols int, rng *rand.Rand) (ku, kv []float64) {
	ku = make([]float64, len(rows)*len(columns))
	kv = make([]float64, len(rows)*len(columns))
	for m := range between {
		u := rng.NormFloat64()
		v := rng.NormFloat64()
		for i, r := range rows {
			for j, c := range columns {
				x := data[(r*between+m)*cols+c]
				ku[i*len(columns)+j] += u * x
				kv[i*len(columns)+j] += v * x
			}
		}
	}
	return ku, kv
}

// commonEigenvectors returns the eigenvectors of ku·kv⁻¹ as columns. ok is false if they are not real, or if kv is singular.
func commonEigenvectors(ku, kv []float64, rank int) (vectors []float64, ok bool) {
	// kvᵀ·quotientᵀ = kuᵀ
	quotient, err := linalg.Solve(transposed(kv, rank, rank), rank, rank,
		transposed(ku, rank, rank), rank)
	if err != nil {
		return nil, false
	}

	values, vectors, err := linalg.Eigenvectors(transposed(quotient, rank, rank), rank) // quotient is the transpose
	if err != nil {
		return nil, false
	}

	for _, value := range values {
		isReal := math.Abs(imag(value)) <= 1e-8*math.Hypot(real(value), imag(value)) // 1e-8 as in realRoots
		if !isReal {
			return nil, false
		}
	}
	return vectors, true
}

// transposed returns the transpose of a rows × cols matrix.
func transposed(a []float64, rows, cols int) []float64 {
	result := make([]float64, len(a))
	for i := range rows {
		for j := range cols {
			result[j*rows+i] = a[i*cols+j]
		}
	}
	return result
}
