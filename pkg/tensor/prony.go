// Low-rank decompositions of symmetric tensors of two levels, in count space.

package tensor

import (
	"math"
	"math/bits"
	"slices"

	"github.com/basetensor/basetensor/internal/base/linalg"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// node is a term a^{n−c} b^c of the values of a symmetric tensor,
// c of n legs being at level 1; max(|a|, |b|) = 1.
type node struct{ a, b float64 }

// lowRank decomposes every term's values (Prony) and joins its vectors to the nodes. Only two levels. off is as in LowRank.
func (t *SymmetryCP) lowRank(maxRank int) (c *CP, off float64, ok bool) {
	if t.Levels.D > 2 {
		return nil, 0, false
	}

	free, offset := freeLegs(t.Levels)
	var weights []float64
	var terms [][][]float64
	for _, term := range t.Terms {
		s := valuesFrom(term.S, offset, free)
		nodes, w, shift, apart, ok := prony(s, maxRank-len(weights))
		if !ok {
			return nil, 0, false
		}

		off = max(off, apart)
		for i, node := range nodes {
			node.b = math.Ldexp(node.b, shift)
			vectors, ok := t.nodeVectors(term, node)
			weight := w[i] * term.Alpha
			if !ok || weight == 0 && term.Alpha != 0 {
				return nil, 0, false
			}
			weights = append(weights, weight)
			terms = append(terms, vectors)
		}
	}

	if len(weights) == 0 {
		weights = []float64{0}
		terms = [][][]float64{ones(t.Shape)}
	}
	c = newCP(t.Shape, weights, terms)

	// Vectors were rounded once, weights too, and the values that were compared:
	// powers of nodes, and their sums.
	rounded := len(t.Shape) + len(weights) + 2*bits.Len(uint(len(t.Shape))) + 2
	off = math.Ldexp(off, 53) + float64(rounded)
	return c, off, c.validate() == nil
}

// freeLegs returns the numbers of legs with values at both levels, and of legs always at level 1.
func freeLegs(l countspace.Levels) (free, always int) {
	for _, of := range l.Of {
		switch {
		case slices.Contains(of, 0) && slices.Contains(of, 1):
			free++
		case slices.Contains(of, 1):
			always++
		}
	}
	return free, always
}

// valuesFrom returns S at the counts that indices have: offset … offset+free.
func valuesFrom(s scaled.Vector, offset, free int) []scaled.Number {
	out := make([]scaled.Number, free+1)
	for c := range out {
		out[c] = s.At(offset + c)
	}
	return out
}

// nodeVectors returns the vectors of one node: a or b by level on free legs,
// one on the others, times R. False if a product is too small for a float64.
func (t *SymmetryCP) nodeVectors(term SymmetryRankOne, n node) (out [][]float64, ok bool) {
	out = make([][]float64, len(t.Shape))
	for leg, of := range t.Levels.Of {
		v := slices.Repeat([]float64{1}, len(of))
		if slices.Contains(of, 0) && slices.Contains(of, 1) {
			for x, level := range of {
				v[x] = [2]float64{n.a, n.b}[level]
			}
		}
		for x, r := range term.vector(leg) {
			if f := v[x]; f != 0 && r != 0 && math.Abs(f*r) < tinyProduct {
				return nil, false
			}
			v[x] *= r
		}
		out[leg] = v
	}
	return out, true
}

// prony writes s_c = Σ_i w_i a_i^{n−c} (2^shift b_i)^c with at most maxRank real nodes, or returns
// false. A recurrence Σ_j q_j s_{c+j} = 0 holds exactly when the nodes b/a are the roots of q; a
// root at infinity (a = 0) is a vanishing leading coefficient. off is the largest difference of a
// value to its terms, relative to their absolute values. The values are first multiplied by
// 2^(−shift·c), which takes a geometric growth out of them.
func prony(
	values []scaled.Number, maxRank int,
) (nodes []node, weights []float64, shift int, off float64, ok bool) {
	s, shift, e, ok := tilted(values)
	if !ok {
		return nil, nil, 0, 0, false
	}
	if maxAbs(s) == 0 {
		return nil, nil, 0, 0, true
	}
	n := len(s) - 1

	for r := 1; r <= min(maxRank, n); r++ {
		nodes, ok := recurrenceNodes(s, r)
		if !ok {
			continue
		}
		weights, ok := nodeWeights(s, nodes)
		if !ok {
			continue
		}

		// Where the roots have lost digits, a least squares fit may find them again.
		if off, ok = agrees(s, nodes, weights); !ok {
			if nodes, ok = polished(s, nodes, weights); ok {
				weights, ok = nodeWeights(s, nodes)
			}
			if ok {
				off, ok = agrees(s, nodes, weights)
			}
		}

		if ok {
			for i := range weights {
				weights[i] = math.Ldexp(weights[i], e)
			}
			return nodes, weights, shift, off, true
		}
	}

	if n == 0 && maxRank > 0 {
		return []node{{1, 1}}, []float64{math.Ldexp(s[0], e)}, shift, 0, true
	}
	return nil, nil, 0, 0, false
}

// tilted returns values_c·2^(−shift·c−e) as float64,
// shift taken from the first and last value that are not 0.
func tilted(values []scaled.Number) (s []float64, shift, e int, ok bool) {
	first, last := -1, 0
	for c, v := range values {
		if !v.IsZero() {
			if first < 0 {
				first = c
			}
			last = c
		}
	}

	s = make([]float64, len(values))
	if first < 0 {
		return s, 0, 0, true
	}

	slope := int64(0)
	if last > first {
		slope = (values[last].Exp - values[first].Exp) / int64(last-first)
	}
	base := values[first].Exp - slope*int64(first)

	for c, v := range values {
		v.Exp -= base + slope*int64(c)
		s[c] = v.Float64()
		size := math.Abs(s[c])
		if size > hugeProduct || s[c] != 0 && size < tinyProduct || (s[c] == 0) != v.IsZero() {
			return nil, 0, 0, false
		}
	}
	return s, int(slope), int(base), math.Abs(float64(slope)) < 1000 &&
		math.Abs(float64(base)) < 1000
}

// recurrenceNodes returns the roots of the recurrence of order r,
// false unless they are real and different.
func recurrenceNodes(s []float64, r int) ([]node, bool) {
	rows := max(len(s)-r, r+1) // zero rows at the end give all right singular vectors

	// The Hankel matrix s_{c+j}, whose null vector is q.
	h := make([]float64, rows*(r+1))
	for c := range len(s) - r {
		copy(h[c*(r+1):], s[c:c+r+1])
	}

	var w linalg.Work
	vt := make([]float64, (r+1)*(r+1))
	if err := w.RightSVD(h, rows, r+1, make([]float64, r+1), vt); err != nil {
		return nil, false
	}

	q := vt[r*(r+1):]
	size := maxAbs(q)
	for j := range q {
		if q[j] /= size; math.Abs(q[j]) < snapTolerance {
			q[j] = 0
		}
	}

	var nodes []node
	degree := r
	for degree > 0 && q[degree] == 0 {
		nodes = append(nodes, node{0, 1})
		degree--
	}

	roots, ok := realRoots(q[:degree+1])
	if !ok || len(nodes) > 1 {
		return nil, false
	}

	for _, x := range roots {
		if x = snapped(x); math.Abs(x) <= 1 {
			nodes = append(nodes, node{1, x})
		} else {
			nodes = append(nodes, node{1 / x, 1})
		}
	}
	return nodes, true
}

// realRoots returns the roots of Σ_j q[j] x^j,
// in increasing order, as eigenvalues of the companion matrix.
func realRoots(q []float64) ([]float64, bool) {
	n := len(q) - 1
	if n == 0 {
		return nil, true
	}

	companion := make([]float64, n*n)
	for i := range n {
		companion[i*n+n-1] = -q[i] / q[n]
		if i > 0 {
			companion[i*n+i-1] = 1
		}
	}

	values, err := linalg.Eigenvalues(companion, n)
	if err != nil {
		return nil, false
	}

	var roots []float64
	for _, x := range values {
		if math.Abs(imag(x)) > 1e-8*math.Hypot(real(x), imag(x)) {
			return nil, false
		}
		roots = append(roots, real(x))
	}
	slices.Sort(roots)
	return roots, true
}

// value returns a^{n−c} b^c; 0 for an exponent below 0.
func (n node) value(legs, c int) float64 { return n.number(legs, c).Float64() }

// number is value with an exponent of its own.
func (n node) number(legs, c int) scaled.Number {
	if c < 0 || c > legs {
		return scaled.Number{}
	}
	return power([]float64{n.a}, 0, legs-c).Mul(power([]float64{n.b}, 0, c))
}

// nodeWeights solves for the weights at as many counts as there are nodes, chosen by elimination.
func nodeWeights(s []float64, nodes []node) ([]float64, bool) {
	n := len(s) - 1
	r := len(nodes)
	rows := make([]float64, 0, len(s)*r)
	for c := range s {
		for _, node := range nodes {
			rows = append(rows, node.value(n, c))
		}
	}

	chosen, ok := newSkeleton(rows, len(s), r, r)
	if !ok || len(chosen.Rows) < r {
		return nil, false
	}

	a := make([]float64, 0, r*r)
	b := make([]float64, 0, r)
	for _, c := range chosen.Rows {
		a = append(a, rows[c*r:(c+1)*r]...)
		b = append(b, s[c])
	}

	w, err := linalg.Solve(a, r, r, b, 1)
	return w, err == nil
}

// agrees compares every value with the nodes' sum, with the tolerances of tables, and returns the
// largest difference relative to the absolute values of the terms. Terms of a value of 0 that no
// float64 holds are none.
func agrees(s []float64, nodes []node, weights []float64) (off float64, ok bool) {
	n := len(s) - 1
	limit := exactTolerance * maxAbs(s)
	for c, want := range s {
		got := 0.0
		size := 0.0
		for i, node := range nodes {
			v := node.number(n, c)
			term := float64(weights[i] * v.Float64())
			if term == 0 && want == 0 && weights[i] != 0 && !v.IsZero() {
				return 0, false
			}
			got += term
			size += math.Abs(term)
		}

		if !(math.Abs(got-want) <= min(limit, entryTolerance*math.Abs(want))) {
			return 0, false
		}
		if size > 0 {
			off = max(off, math.Abs(got-want)/size)
		}
	}
	return off, true
}
