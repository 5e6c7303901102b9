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

// node is a term a^{n−c} b^c of the values of a symmetric tensor over n legs, c of which are at level 1. The larger of |a| and |b| is 1.
type node struct{ a, b float64 }

// lowRank returns t as a CP tensor of at most maxRank terms, and its error as LowRank does. It writes the values of each term of t as a sum
// over nodes (Prony's method), each of which is a rank-one term. A level is the class of a value: an entry of t depends on its index by the
// number of legs at each level. ok is false if t has more than two levels, or if there is no such sum.
func (t *SymmetryCP) lowRank(maxRank int) (c *CP, relativeError float64, ok bool) {
	if t.Levels.D > 2 {
		return nil, 0, false
	}

	// offset legs are at level 1 in every index, and free of the others are at level 1 or 0 by the index.
	free, offset := countLegs(t.Levels)
	var weights []float64
	var terms [][][]float64
	for _, term := range t.Terms {
		// The values at the counts that an index can have.
		values := make([]scaled.Number, free+1)
		for c := range values {
			values[c] = term.S.At(offset + c)
		}
		fit, ok := prony(values, maxRank-len(weights))
		if !ok {
			return nil, 0, false
		}

		relativeError = max(relativeError, fit.relativeError)
		for i, node := range fit.nodes {
			node.b = math.Ldexp(node.b, fit.shift) // undoes the scaling of the values by 2^(−shift·c)
			vectors, ok := t.nodeVectors(term, node)
			weight := fit.weights[i] * term.Alpha
			isLost := weight == 0 && term.Alpha != 0 // by underflow
			if !ok || isLost {
				return nil, 0, false
			}
			weights = append(weights, weight)
			terms = append(terms, vectors)
		}
	}

	if len(weights) == 0 { // t is 0: a CP tensor has at least one term
		weights = []float64{0}
		terms = [][][]float64{ones(t.Shape)}
	}
	c = newCP(t.Shape, weights, terms)

	// In units of 2^−53: an entry of c is a product of a vector for each leg and a weight, each rounded once (len(Shape) + 1), the
	// values were rounded (1), and what they were compared with has rounded powers, two of at most len(Shape) by repeated squaring, and
	// a sum of len(weights) terms.
	roundings := len(t.Shape) + len(weights) + 2*bits.Len(uint(len(t.Shape))) + 2
	relativeError = math.Ldexp(relativeError, 53) + float64(roundings)
	return c, relativeError, c.validate() == nil
}

// countLegs returns the number of legs that have values at both of two levels (free), and of legs whose values are all at level 1 (fixed).
func countLegs(l countspace.Levels) (free, fixed int) {
	for _, levels := range l.Of {
		switch {
		case slices.Contains(levels, 0) && slices.Contains(levels, 1):
			free++
		case slices.Contains(levels, 1):
			fixed++
		}
	}
	return free, fixed
}

// nodeVectors returns a vector for each leg, whose outer product is what the node (a, b) contributes to a term. On a leg with values at
// both levels the entry of a value is a if the value is at level 0 and b if it is at level 1; on all other legs it is 1. The entry is
// multiplied by that of the term's own vector. ok is false if a product is too small for a float64.
func (t *SymmetryCP) nodeVectors(term SymmetryRankOne, n node) (vectors [][]float64, ok bool) {
	vectors = make([][]float64, len(t.Shape))
	for leg, levels := range t.Levels.Of {
		v := slices.Repeat([]float64{1}, len(levels)) // by value of the leg
		if slices.Contains(levels, 0) && slices.Contains(levels, 1) {
			for x, level := range levels {
				v[x] = [2]float64{n.a, n.b}[level]
			}
		}
		for x, r := range term.vector(leg) {
			if f := v[x]; f != 0 && r != 0 && math.Abs(f*r) < tinyProduct {
				return nil, false
			}
			v[x] *= r
		}
		vectors[leg] = v
	}
	return vectors, true
}

// pronyFit writes values as s_c = Σ_i weights_i a_i^{n−c} (2^shift b_i)^c, with c from 0 to n and the nodes (a_i, b_i).
type pronyFit struct {
	nodes         []node
	weights       []float64
	shift         int
	relativeError float64 // the largest difference of a value to the sum, relative to the sum of absolute terms
}

// prony returns a fit of values_c by Σ_i weights_i a_i^{n−c} b_i^c, with at most maxRank real nodes (a_i, b_i), the fewest that are enough.
// ok is false if there is none.
//
// A recurrence Σ_j q_j s_{c+j} = 0 holds exactly when the ratios b/a of the nodes are the roots of q; a root at infinity (a = 0) is a
// vanishing leading coefficient. The values are first multiplied by 2^(−shift·c−exp), which brings a geometric sequence near to 1. A fit
// has at most as many nodes as values less one, and is enough if compareWithNodes accepts it.
func prony(values []scaled.Number, maxRank int) (fit pronyFit, ok bool) {
	s, shift, exp, ok := withoutGrowth(values)
	if !ok {
		return pronyFit{}, false
	}
	if maxAbs(s) == 0 {
		return pronyFit{}, true // no nodes are needed
	}
	n := len(s) - 1

	for rank := 1; rank <= min(maxRank, n); rank++ {
		nodes, ok := recurrenceNodes(s, rank)
		if !ok {
			continue
		}
		weights, ok := nodeWeights(s, nodes)
		if !ok {
			continue
		}

		// If the roots have lost digits, a least squares fit may find them again.
		relativeError, ok := compareWithNodes(s, nodes, weights)
		if !ok { // this ok is set by each step below, and the next one runs only if it is true
			if nodes, ok = polish(s, nodes, weights); ok {
				weights, ok = nodeWeights(s, nodes)
			}
			if ok {
				relativeError, ok = compareWithNodes(s, nodes, weights)
			}
		}

		if ok {
			for i := range weights {
				weights[i] = math.Ldexp(weights[i], exp)
			}
			return pronyFit{nodes, weights, shift, relativeError}, true
		}
	}

	if n == 0 && maxRank > 0 { // a single value is a constant
		return pronyFit{nodes: []node{{1, 1}}, weights: []float64{math.Ldexp(s[0], exp)}, shift: shift}, true
	}
	return pronyFit{}, false
}

// withoutGrowth returns s_c = values_c·2^(−shift·c−exp) as float64s. shift is the growth per step, in bits, between the first and the last
// value that are not 0. ok is false if a value other than 0 is then outside [tinyProduct, hugeProduct], so that sums of products of values
// could leave float64, or if an exponent is too large for one.
func withoutGrowth(values []scaled.Number) (s []float64, shift, exp int, ok bool) {
	first, last := -1, 0 // the first and the last value that are not 0
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

	// The exponent of values_c is about base + slope·c.
	slope := int64(0)
	if last > first {
		slope = (values[last].Exp - values[first].Exp) / int64(last-first)
	}
	base := values[first].Exp - slope*int64(first) // slope is returned as shift, and base as exp

	for c, v := range values {
		v.Exp -= base + slope*int64(c)
		s[c] = v.Float64()
		size := math.Abs(s[c])
		isTiny := s[c] != 0 && size < tinyProduct || (s[c] == 0) != v.IsZero() // or it is 0 by underflow
		if size > hugeProduct || isTiny {
			return nil, 0, 0, false
		}
	}
	fits := math.Abs(float64(slope)) < 1000 && math.Abs(float64(base)) < 1000 // float64s reach from 2^−1022 to 2^1023
	return s, int(slope), int(base), fits
}

// recurrenceNodes returns the nodes of the recurrence Σ_j q_j s_{c+j} = 0 of order r that fits the values best. A node (a, b) is a solution
// s_c = a^{n−c} b^c. ok is false unless all nodes are real and at most one has a = 0.
func recurrenceNodes(s []float64, r int) (nodes []node, ok bool) {
	q, ok := recurrence(s, r)
	if !ok {
		return nil, false
	}

	// Vanishing leading coefficients are roots at infinity. More than one would be a multiple root, which is no sum of nodes.
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

// recurrence returns the coefficients q_0 … q_r of the recurrence Σ_j q_j s_{c+j} = 0 that fits the values best, the largest of them 1.
// ok is false if the singular value decomposition fails.
func recurrence(s []float64, r int) (q []float64, ok bool) {
	// The Hankel matrix s_{c+j}, whose null vector is q. Rows of 0 at the end make it at least square, since the decomposition has all
	// right singular vectors only then.
	rows := max(len(s)-r, r+1)
	hankel := make([]float64, rows*(r+1))
	for c := range len(s) - r {
		copy(hankel[c*(r+1):], s[c:c+r+1])
	}

	var w linalg.Work
	vt := make([]float64, (r+1)*(r+1))
	if err := w.RightSVD(hankel, rows, r+1, make([]float64, r+1), vt); err != nil {
		return nil, false
	}

	// q is the vector of the smallest singular value, the last one.
	q = vt[r*(r+1):]
	size := maxAbs(q)
	for j := range q {
		if q[j] /= size; math.Abs(q[j]) < snapTolerance {
			q[j] = 0
		}
	}
	return q, true
}

// realRoots returns the roots of Σ_j q[j] x^j in increasing order, as eigenvalues of the companion matrix. ok is false if one is not real.
func realRoots(q []float64) (roots []float64, ok bool) {
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

	for _, x := range values {
		isReal := math.Abs(imag(x)) <= 1e-8*math.Hypot(real(x), imag(x)) // 1e-8 is about the root of a float64's rounding; chosen
		if !isReal {
			return nil, false
		}
		roots = append(roots, real(x))
	}
	slices.Sort(roots)
	return roots, true
}

// value returns a^{legs−c} b^c as a float64, 0 if an exponent is below 0.
func (n node) value(legs, c int) float64 { return n.number(legs, c).Float64() }

// number returns a^{legs−c} b^c with an exponent of its own, 0 if an exponent is below 0.
func (n node) number(legs, c int) scaled.Number {
	if c < 0 || c > legs {
		return scaled.Number{}
	}
	return power([]float64{n.a}, 0, legs-c).Mul(power([]float64{n.b}, 0, c))
}

// nodeWeights returns the weights w with s_c = Σ_i w_i a_i^{n−c} b_i^c at as many counts c as there are nodes (a_i, b_i). The counts are
// the pivots of an elimination. ok is false if the nodes are not independent.
func nodeWeights(s []float64, nodes []node) (weights []float64, ok bool) {
	n := len(s) - 1
	rank := len(nodes)
	values := make([]float64, 0, len(s)*rank) // of each node at each count, a row for each count
	for c := range s {
		for _, node := range nodes {
			values = append(values, node.value(n, c))
		}
	}

	chosen, ok := newSkeleton(values, len(s), rank, rank) // as many rows as the rank: the pivots of the elimination
	if !ok || len(chosen.Rows) < rank {
		return nil, false
	}

	a := make([]float64, 0, rank*rank)
	b := make([]float64, 0, rank)
	for _, c := range chosen.Rows {
		a = append(a, values[c*rank:(c+1)*rank]...)
		b = append(b, s[c])
	}

	weights, err := linalg.Solve(a, rank, rank, b, 1)
	return weights, err == nil
}

// compareWithNodes compares every value s_c with Σ_i weights_i a_i^{n−c} b_i^c. ok is false if one differs by more than exactTolerance of
// the largest value or entryTolerance of itself. relativeError is the largest difference, relative to the sum of the absolute terms.
// Terms of a value of 0 must be 0 themselves, not by underflow.
func compareWithNodes(s []float64, nodes []node, weights []float64) (relativeError float64, ok bool) {
	n := len(s) - 1
	limit := exactTolerance * maxAbs(s)
	for c, want := range s {
		got := 0.0
		size := 0.0 // the sum of the absolute terms
		for i, node := range nodes {
			v := node.number(n, c)
			term := float64(weights[i] * v.Float64())
			isUnderflow := term == 0 && weights[i] != 0 && !v.IsZero()
			if want == 0 && isUnderflow {
				return 0, false
			}
			got += term
			size += math.Abs(term)
		}

		if !(math.Abs(got-want) <= min(limit, entryTolerance*math.Abs(want))) { // or got is NaN
			return 0, false
		}
		if size > 0 {
			relativeError = max(relativeError, math.Abs(got-want)/size)
		}
	}
	return relativeError, true
}
