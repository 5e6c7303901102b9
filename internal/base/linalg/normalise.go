package linalg

import (
	"math"
)

// BinaryNormalised returns v·2^−e with its largest entry in [1, 2), and e; ok is false where an entry is not finite.
// A vector of zeros, and one whose smaller entries would leave the range of float64 beside the largest, come back as
// they are with e = 0: the result times 2^e is v exactly. Cost: linear.
func BinaryNormalised(v []float64) (out []float64, e int64, ok bool) {
	most := 0.0
	for _, x := range v {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, 0, false
		}
		most = max(most, math.Abs(x))
	}

	out = make([]float64, len(v))
	if most == 0 {
		return out, 0, true
	}

	shift := math.Ilogb(most)
	for i, x := range v {
		out[i] = math.Ldexp(x, -shift)
		if math.Ldexp(out[i], shift) != x {
			return append(out[:0], v...), 0, true
		}
	}
	return out, int64(shift), true
}
