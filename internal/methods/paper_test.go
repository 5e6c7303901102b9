package methods_test

// The paper's bounds, which the tests of growth hold the counted operations against.

import (
	"math"
)

// shape is what the paper's bounds depend on.
type shape struct {
	Legs   int // n
	Links  int // k
	Widest int // n_max, the legs of the largest link
	Dim    int // d, of every leg
	Rank   int // r, 1 for one component
}

// paperCostCP is Lemma 2's r·k·d^n_max.
func (s shape) paperCostCP() float64 {
	return float64(s.Rank) * float64(s.Links) * math.Pow(float64(s.Dim), float64(s.Widest))
}

// paperCostSymmetryCP is Lemma 4's r·k·(d^n_max + c_1·c_2), for Rank 1 Lemma 3's,
// with c_1 = C(n_max+d−1, d−1) and c_2 = C(n−n_max+d−1, d−1).
func (s shape) paperCostSymmetryCP() float64 {
	c1, c2 := binomial(s.Widest+s.Dim-1, s.Dim-1), binomial(s.Legs-s.Widest+s.Dim-1, s.Dim-1)
	return float64(s.Rank) * float64(s.Links) * (math.Pow(float64(s.Dim),
		float64(s.Widest)) + c1*c2)
}

func binomial(n, k int) float64 {
	b := 1.0
	for i := 1; i <= k; i++ {
		b *= float64(n-k+i) / float64(i)
	}
	return b
}
