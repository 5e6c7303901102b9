package bp

// The messages of an index to its tables: products of all others that reach it, without division.

import (
	"math"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// carefulDegree is the number of messages above which their products are computed with exponents at
// once.
const carefulDegree = 24

// toTables computes v_{i→t} ∝ Π_{s≠t} m_{s→i} for all tables of index i, normalised as messages are,
// in O(degree · dimension). It returns false when one of them, or the product of all messages, is 0.
func (c *kernel) toTables(i int) bool {
	if c.g.end[i]-c.g.begin[i] <= carefulDegree && c.plainProducts(i) {
		return true
	}
	return c.scaledProducts(i)
}

// plainProducts returns false when a product left the range in which float64 is safe.
func (c *kernel) plainProducts(i int) bool {
	begin, d := c.g.begin[i], c.g.e.Dims[i]
	degree := int(c.g.end[i] - begin)
	prefix := c.grow((degree + 1) * d)
	for a := range d {
		prefix[a] = 1
	}

	for n := range degree {
		m, now, next := c.g.message(c.m, begin+int32(n)), prefix[n*d:(n+1)*d], prefix[(n+1)*d:(n+2)*d]
		for a, x := range m {
			next[a] = now[a] * x
		}
	}

	if total := sumAbs(prefix[degree*d:]); !(total > tiny && total < huge) {
		return false
	}
	suffix := c.out[:d]
	for a := range suffix {
		suffix[a] = 1
	}

	for n := degree - 1; n >= 0; n-- {
		k := begin + int32(n)
		m, v := c.g.message(c.m, k), c.g.message(c.v, k)
		for a := range v {
			v[a] = prefix[n*d+a] * suffix[a]
			suffix[a] *= m[a]
		}
		if total := normalise(v); !(total > tiny && total < huge) {
			return false
		}
	}

	return true
}

// scaledProducts is plainProducts with an exponent per entry.
func (c *kernel) scaledProducts(i int) bool {
	begin, d := c.g.begin[i], c.g.e.Dims[i]
	degree := int(c.g.end[i] - begin)
	prefix := c.grow((degree + 1) * d)
	if cap(c.exponents) < len(prefix) {
		c.exponents = make([]int64, len(prefix))
	}
	exps := c.exponents[:len(prefix)]
	for a := range d {
		prefix[a], exps[a] = 1, 0
	}

	for n := range degree {
		for a, x := range c.g.message(c.m, begin+int32(n)) {
			prefix[(n+1)*d+a], exps[(n+1)*d+a] = times(prefix[n*d+a], exps[n*d+a], x)
		}
	}

	ok := sumAbs(prefix[degree*d:]) > 0
	suffix, suffixExps := c.out[:d], make([]int64, d)
	for a := range suffix {
		suffix[a] = 1
	}
	for n := degree - 1; n >= 0; n-- {
		k := begin + int32(n)
		m, v := c.g.message(c.m, k), c.g.message(c.v, k)
		top, any := int64(math.MinInt64), false
		for a := range v {
			v[a], exps[n*d+a] = times(prefix[n*d+a], exps[n*d+a]+suffixExps[a], suffix[a])
			if v[a] != 0 {
				top, any = max(top, exps[n*d+a]), true
			}
			suffix[a], suffixExps[a] = times(suffix[a], suffixExps[a], m[a])
		}

		if !any {
			ok = false
			continue
		}
		for a := range v {
			v[a] = math.Ldexp(v[a], int(max(exps[n*d+a]-top, -4000)))
		}
		normalise(v)
	}

	return ok
}

// times returns mant·2^exp·x with a mantissa in ±[½, 1), or 0.
func times(mant float64, exp int64, x float64) (float64, int64) {
	f, e := math.Frexp(x)
	mant, by := math.Frexp(mant * f)
	return mant, exp + int64(e) + int64(by)
}

// sumAbs returns Σ_x |x|.
func sumAbs(x []float64) float64 {
	total := 0.0
	for _, a := range x {
		total += math.Abs(a)
	}
	return total
}

func (c *kernel) grow(n int) []float64 {
	if cap(c.products) < n {
		c.products = make([]float64, n)
	}
	return c.products[:n]
}

// product returns Π_t m_{t→i}, entry by entry.
func (c *kernel) product(i int) []scaled.Number {
	out := make([]scaled.Number, c.g.e.Dims[i])
	for a := range out {
		mant, exp := 1.0, int64(0)
		for k := c.g.begin[i]; k < c.g.end[i]; k++ {
			mant, exp = times(mant, exp, c.g.message(c.m, k)[a])
		}
		out[a] = scaled.Make(mant, exp)
	}
	return out
}

// inner product of two messages, with exponents where float64 loses it.
func dot(m, v []float64) scaled.Number {
	sum := 0.0
	for a := range m {
		sum += m[a] * v[a]
	}
	if math.Abs(sum) > tiny {
		return scaled.FromFloat(sum)
	}
	a, b := scaled.FromFloats(m), scaled.FromFloats(v)
	return scaled.SumProducts(a.Numbers(), b.Numbers())
}
