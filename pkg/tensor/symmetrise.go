// Recognising symmetric tables.

package tensor

import (
	"math"

	"github.com/basetensor/basetensor/pkg/countspace"
)

// symmetryTolerance is the relative difference that two entries of one count class may have: some 45 roundings.
const symmetryTolerance = 1e-14

// wasteful is how many times larger than the table a count box may be before a symmetric form is no use.
const wasteful = 16

// Symmetrise returns t as a symmetric tensor with levels a = value (the paper's D = d), if its legs have one dimension
// and its entries are invariant under all permutations of the legs, up to rounding. A class takes the value of its first entry.
// It returns false otherwise, and where the box of count vectors is over 16 times the table. Cost O(n·entries).
func Symmetrise(t *Dense) (*Symmetric, bool) {
	for _, d := range t.Shape {
		if d != t.Shape[0] {
			return nil, false
		}
	}
	levels, err := countspace.Identity(t.Shape)
	if err != nil {
		return nil, false
	}
	if _, err := sizeWithin(levels.Shape(), wasteful*len(t.Data)); err != nil {
		return nil, false
	}
	s := countspace.New(levels.Shape())
	step := levelSteps(levels)
	first := filled(s.Size(), -1)
	x := make([]int, len(t.Shape))
	for i, v := range t.Data {
		c := 0
		for _, value := range x {
			c += step[value]
		}
		if first[c] < 0 {
			first[c] = i
			s.Coef.Mant[c] = v
		}
		if f := s.Coef.Mant[c]; math.Abs(v-f) > symmetryTolerance*max(math.Abs(v), math.Abs(f)) {
			return nil, false
		}
		advance(x, t.Shape)
	}
	return &Symmetric{Shape: t.Shape, Levels: levels, Values: s.Coef}, true
}
