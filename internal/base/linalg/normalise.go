package linalg

import (
	"math"
)

// BinaryNormalised returns v·2^−exp with its largest entry in [1, 2), and exp. If v is 0, or if an entry would lose digits, it returns a
// copy of v and exp = 0. So the result times 2^exp is always exactly v. ok is false if an entry is not finite. Cost: linear.
func BinaryNormalised(v []float64) (normalised []float64, exp int64, ok bool) {
	largest := 0.0
	for _, x := range v {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, 0, false
		}
		largest = max(largest, math.Abs(x))
	}

	normalised = make([]float64, len(v))
	if largest == 0 {
		return normalised, 0, true
	}

	shift := math.Ilogb(largest)
	for i, x := range v {
		normalised[i] = math.Ldexp(x, -shift)
		if math.Ldexp(normalised[i], shift) != x {
			return append(normalised[:0], v...), 0, true // digits would be lost: a copy of v
		}
	}
	return normalised, int64(shift), true
}
