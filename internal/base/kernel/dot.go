package kernel

// Scalar products.

const sums = 32 // chains of a scalar product

// dotArgs is a call of the assembly. The generator knows where the fields are.
type dotArgs struct {
	a      *float64
	b      *float64
	blocks int // of 32 entries
	sums   *float64
}

// Dot returns Σ a_i·b_i, i < len(a).
func Dot(a, b []float64) float64 { return active.dot(a, b) }

// dot computes Dot with the loops of the set x, in Go or in assembly. It makes 32 sums, sum l over the entries l, l + 32, l + 64 and so on.
// Then it adds the upper half of the sums to the lower half, until one is left.
func (x loopSet) dot(a, b []float64) float64 {
	b = b[:len(a)]
	var s [sums]float64
	n := len(a) &^ (sums - 1) // entries in whole blocks of 32
	switch {
	case n == 0:
	case x == rounded || x == fused:
		for i := 0; i < n; i += sums {
			x.addProducts(s[:], a[i:], b[i:])
		}
	default:
		x.dotVector(&dotArgs{a: &a[0], b: &b[0], blocks: n / sums, sums: &s[0]})
	}
	x.addProducts(s[:len(a)-n], a[n:], b[n:])

	half := sums / 2
	for half >= len(a) && half > 1 {
		half /= 2 // of a short list: the sums from len(a) on are 0
	}
	for ; half > 0; half /= 2 {
		for i := range half {
			s[i] += s[i+half]
		}
	}
	return s[0]
}

// addProducts computes s_i ← s_i + a_i·b_i for every sum s_i.
func (x loopSet) addProducts(s, a, b []float64) {
	if x == rounded {
		addProductRounded(s, 1, a[:len(s)], b[:len(s)])
	} else {
		addProductFused(s, 1, a[:len(s)], b[:len(s)])
	}
}
