// Decompositions of rank two and more by simultaneous diagonalisation.

package tensor

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/internal/base/linalg"
)

const (
	// draws is how often random slices are combined before a grouping of the legs is given up.
	draws = 3
	// rotations is the number of groupings of the legs tried.
	rotations = 8
)

// diagonalise takes t apart leg by leg: every leg keeps as many of its values as its unfolding has
// rank (skeleton), which leaves a core that is a part of t itself. Legs of one value drop out. A
// core of two legs is a matrix and is decomposed as it stands; one of more legs goes through
// Jennrich's algorithm. Source: Leurgans, Ross, Abel, A decomposition for three-way arrays (SIAM J.
// Matrix Anal. Appl. 14, 1993).
func diagonalise(t *Dense, maxRank int) (*CP, bool) {
	core, expand, ok := compress(t, maxRank)
	if !ok {
		return nil, false
	}

	var legs, dims []int
	for leg, d := range core.Shape {
		if d > 1 {
			legs = append(legs, leg)
			dims = append(dims, d)
		}
	}

	inner := &Dense{Shape: dims, Data: core.Data}
	for _, terms := range candidateTerms(inner, maxRank) {
		for _, clean := range []bool{true, false} {
			c, ok := finish(inner, terms, clean)
			if ok {
				if c = c.expanded(t.Shape, legs, expand); c.equals(t) {
					return c, true
				}
			}
		}
	}
	return nil, false
}

// compress restricts every leg to the rows of its skeleton: t = core ×_ℓ expand[ℓ].
func compress(t *Dense, maxRank int) (core *Dense, expand [][]float64, ok bool) {
	core = t
	for leg := range t.Shape {
		moved := front(core, leg)
		d := moved.Shape[0]
		s, ok := newSkeleton(moved.Data, d, len(moved.Data)/d, maxRank)
		if !ok || len(s.Rows) == 0 {
			return nil, nil, false
		}

		core = restrict(core, leg, s.Rows)
		expand = append(expand, s.X)
	}
	return core, expand, true
}

// front moves a leg to the front.
func front(t *Dense, leg int) *Dense {
	order := []int{leg}
	for m := range t.Shape {
		if m != leg {
			order = append(order, m)
		}
	}
	moved, _ := t.permute(order) // order is a permutation
	return moved
}

// restrict keeps the given values of a leg, in that order.
func restrict(t *Dense, leg int, values []int) *Dense {
	shape := slices.Clone(t.Shape)
	shape[leg] = len(values)
	out := &Dense{Shape: shape}
	step := strides(t.Shape)[leg]
	d := t.Shape[leg]
	for block := 0; block < len(t.Data); block += d * step {
		for _, x := range values {
			out.Data = append(out.Data, t.Data[block+x*step:][:step]...)
		}
	}
	return out
}

// prefixSkeleton is the skeleton of t as a matrix: the first k legs by the others.
func prefixSkeleton(t *Dense, k, maxRank int) (skeleton, bool) {
	rows := boxSize(t.Shape[:k])
	return newSkeleton(t.Data, rows, len(t.Data)/rows, maxRank)
}

// candidateTerms returns lists of rank-one terms (a vector per leg)
// that may span t, at most maxRank each.
func candidateTerms(t *Dense, maxRank int) [][][][]float64 {
	switch len(t.Shape) {
	case 0:
		return [][][][]float64{{{}}}
	case 2:
		return [][][][]float64{matrixTerms(t)}
	}

	var out [][][][]float64
	rng := rand.New(rand.NewPCG(1, 2)) // a fixed sequence: the same table, the same decomposition
	for first := range min(len(t.Shape), rotations) {
		order := make([]int, len(t.Shape))
		for i := range order {
			order[i] = (first + i) % len(order)
		}

		moved, _ := t.permute(order)
		a, b, rank := groups(moved, maxRank)
		if rank == 0 {
			continue
		}

		for range draws {
			terms, ok := jennrich(moved, a, b, rank, rng)
			if !ok {
				continue
			}

			for i, term := range terms {
				back := make([][]float64, len(order))
				for m, leg := range order {
					back[leg] = term[m]
				}
				terms[i] = back
			}
			out = append(out, terms)
		}

		if len(out) > 0 {
			break
		}
	}
	return out
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

// groups cuts the legs in three: the first a, which have full rank against the rest,
// the last from b on, likewise, and at least one leg between. rank is 0 if there is no such cut.
func groups(t *Dense, maxRank int) (a, b, rank int) {
	for k := 1; k < len(t.Shape); k++ {
		s, ok := prefixSkeleton(t, k, maxRank)
		if !ok {
			return 0, 0, 0
		}
		if len(s.Rows) > rank {
			a = k
			rank = len(s.Rows)
		}
		if len(s.Rows) == rank {
			b = k
		}
	}

	if a == b {
		return 0, 0, 0
	}
	return a, b, rank
}

// jennrich finds F with t = Σ_i F_i ⊗ G_i, F_i over the first a legs:
// for random combinations of the slices along the legs between,
//
//	K_u = Σ_m u_m T[·, m, ·] = F diag(·) Bᵀ,
//
// the eigenvectors of K_u K_v⁻¹ are the columns of F (rows restricted to a skeleton).
func jennrich(t *Dense, a, b, rank int, rng *rand.Rand) ([][][]float64, bool) {
	rows := boxSize(t.Shape[:a])
	cols := boxSize(t.Shape[b:])
	between := len(t.Data) / rows / cols
	left, ok1 := newSkeleton(t.Data, rows, between*cols, rank)
	right, ok2 := newSkeleton(transposed(t.Data, rows*between, cols), cols, rows*between, rank)
	if !ok1 || !ok2 || len(left.Rows) != rank || len(right.Rows) != rank {
		return nil, false
	}

	ku := make([]float64, rank*rank)
	kv := make([]float64, rank*rank)

	for m := range between {
		u := rng.NormFloat64()
		v := rng.NormFloat64()
		for i, r := range left.Rows {
			for j, c := range right.Rows {
				x := t.Data[(r*between+m)*cols+c]
				ku[i*rank+j] += u * x
				kv[i*rank+j] += v * x
			}
		}
	}

	f, ok := commonEigenvectors(ku, kv, rank)
	if !ok {
		return nil, false
	}

	// G from F on the rows of the skeleton: F[Rows,:] G = t[Rows,:].
	width := between * cols
	rest := make([]float64, 0, rank*width)
	for _, r := range left.Rows {
		rest = append(rest, t.Data[r*width:(r+1)*width]...)
	}

	g, err := linalg.Solve(f, rank, rank, rest, width)
	if err != nil {
		return nil, false
	}

	var w linalg.Work
	heads := make([]float64, rows*rank)
	w.Mul(heads, left.X, f, rows, rank, rank)
	heads = transposed(heads, rows, rank)

	terms := make([][][]float64, rank)
	for i := range terms {
		_, head := cross(heads[i*rows:(i+1)*rows], t.Shape[:a])
		_, tail := cross(g[i*width:(i+1)*width], t.Shape[a:])
		terms[i] = append(head, tail...)
	}
	return terms, true
}

// commonEigenvectors returns the eigenvectors of ku·kv⁻¹ as columns; false if they are not real.
func commonEigenvectors(ku, kv []float64, rank int) ([]float64, bool) {
	// kvᵀ·quotientᵀ = kuᵀ
	quotient, err := linalg.Solve(transposed(kv, rank, rank), rank, rank,
		transposed(ku, rank, rank), rank)
	if err != nil {
		return nil, false
	}

	values, vectors, err := linalg.Eigenvectors(transposed(quotient, rank, rank), rank)
	if err != nil {
		return nil, false
	}

	for _, value := range values {
		if math.Abs(imag(value)) > 1e-8*math.Hypot(real(value), imag(value)) {
			return nil, false
		}
	}
	return vectors, true
}

// transposed returns the transpose of a rows × cols matrix.
func transposed(a []float64, rows, cols int) []float64 {
	out := make([]float64, len(a))
	for i := range rows {
		for j := range cols {
			out[j*rows+i] = a[i*cols+j]
		}
	}
	return out
}
