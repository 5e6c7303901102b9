// Package countspace holds tensors and sums that depend on assignments only through counts:
// levels, and count polynomials whose coefficients are indexed by the number of legs at each level.
//
// A leg ℓ with values [d_ℓ] has a map λ_ℓ from its values to D levels. A count vector c = (c_1 …
// c_{D−1}) counts the legs at each level above 0. Tensors that are functions of c, and the
// generating polynomials Σ_x L_x Π u_ℓ[x_ℓ] z^count(x), are stored as coefficients over the box Π_a
// [N_a + 1], where N_a is the number of legs that can be at level a: at most (D−1)! times the
// number of feasible count vectors.
package countspace

import (
	"fmt"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// Levels maps the values of every leg to D levels. Level 0 is the one that is not counted. For a
// paper-symmetric tensor D = d and the map is the identity; two levels {0, the rest} fit mixed
// domains.
type Levels struct {
	D  int       // number of levels, ≥ 1
	Of [][]uint8 // Of[ℓ][x] is the level of value x of leg ℓ, < D
}

// Poly is a polynomial in D−1 variables z_1 … z_{D−1} with coefficients of any range. Coefficient c
// has index Σ_a c_a·stride_a, the last variable fastest; Shape[a] is one more than the degree in
// z_{a+1}. A polynomial in no variables (D = 1) has an empty Shape and one coefficient.
type Poly struct {
	Shape []int
	Coef  scaled.Vector
}

// Identity returns levels in which every value is its own level: D = d, λ the identity. All dims must be equal.
func Identity(dims []int) (Levels, error) {
	l := Levels{D: 1, Of: make([][]uint8, len(dims))}
	if len(dims) > 0 {
		l.D = dims[0]
	}
	if l.D > 255 { // a level is a byte
		return Levels{}, fmt.Errorf("countspace: %d levels, at most 255", l.D)
	}

	id := make([]uint8, l.D)
	for x := range id {
		id[x] = uint8(x)
	}

	for i, d := range dims {
		if d != l.D {
			return Levels{}, fmt.Errorf("countspace: leg %d has dimension %d, leg 0 has %d; "+
				"identity levels need one dimension", i, d, l.D)
		}
		l.Of[i] = id
	}
	return l, nil
}

// TwoLevels returns D = 2 with value 0 at level 0 and every other value at level 1,
// for any mix of dimensions.
func TwoLevels(dims []int) Levels {
	l := Levels{D: 2, Of: make([][]uint8, len(dims))}
	shared := map[int][]uint8{} // by dimension: the levels of its values
	for i, d := range dims {
		levels, ok := shared[d]
		if !ok {
			levels = make([]uint8, d)
			for x := 1; x < d; x++ {
				levels[x] = 1
			}
			shared[d] = levels
		}
		l.Of[i] = levels
	}
	return l
}

// Shape returns the box of count vectors: side a is 1 + the number of legs that can be at level a+1.
func (l Levels) Shape() []int {
	shape := make([]int, l.D-1)
	for a := range shape {
		shape[a] = 1
	}
	for _, levels := range l.Of {
		var isCounted [256]bool // by level
		for _, a := range levels {
			if a > 0 && !isCounted[a] {
				isCounted[a] = true
				shape[a-1]++
			}
		}
	}
	return shape
}
