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

func (x set) dot(a, b []float64) float64 {
	b = b[:len(a)]
	var s [sums]float64
	n := len(a) &^ (sums - 1)
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
	from := sums / 2
	for from >= len(a) && from > 1 {
		from /= 2 // the other half is zeros
	}
	for m := from; m > 0; m /= 2 {
		for i := range m {
			s[i] += s[i+m]
		}
	}
	return s[0]
}

// addProducts adds a product to every sum.
func (x set) addProducts(s, a, b []float64) {
	if x == rounded {
		addProductRounded(s, 1, a[:len(s)], b[:len(s)])
	} else {
		addProductFused(s, 1, a[:len(s)], b[:len(s)])
	}
}
