package bp

// The messages of an index to its tables: each is the product of the messages from the other tables. They are computed without division.

import (
	"math"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// carefulDegree is the number of messages to an index above which their products are computed with exponents without trying float64 first.
const carefulDegree = 24

// updateToTables computes the messages of index i to all its tables, v_{i→t} ∝ Π_{s≠t} m_{s→i}, normalised. It returns false if one of
// them, or the product of all messages to i, is 0 for every value. Cost: O(degree · dimension).
func (c *kernel) updateToTables(i int) bool {
	if c.g.end[i]-c.g.begin[i] <= carefulDegree && c.multiplyPlain(i) {
		return true
	}
	return c.multiplyScaled(i)
}

// multiplyPlain is updateToTables in float64. It returns false if a product is not between tiny and huge. The message to table number n of
// the index is the product of the messages before n (prefix) and of those after n (suffix).
func (c *kernel) multiplyPlain(i int) bool {
	begin, d := c.g.begin[i], c.g.e.Dims[i]
	degree := int(c.g.end[i] - begin)
	prefix := c.productBuffer((degree + 1) * d)
	for a := range d {
		prefix[a] = 1
	}

	for n := range degree {
		m, before, next := c.g.message(c.m, begin+int32(n)), prefix[n*d:(n+1)*d], prefix[(n+1)*d:(n+2)*d]
		for a, x := range m {
			next[a] = before[a] * x
		}
	}

	if total := sumAbs(prefix[degree*d:]); !(total > tiny && total < huge) {
		return false
	}
	suffix := c.buffer[:d]
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

// multiplyScaled is updateToTables with an exponent per entry. It also multiplies prefix and suffix.
func (c *kernel) multiplyScaled(i int) bool {
	begin, d := c.g.begin[i], c.g.e.Dims[i]
	degree := int(c.g.end[i] - begin)
	prefix, exponents := c.scaledPrefixes(i)

	isNonzero := sumAbs(prefix[degree*d:]) > 0
	suffix, suffixExponents := c.buffer[:d], make([]int64, d)
	for a := range suffix {
		suffix[a] = 1
	}
	for n := degree - 1; n >= 0; n-- {
		k := begin + int32(n)
		m, v := c.g.message(c.m, k), c.g.message(c.v, k)
		exponentsOfV := exponents[n*d : (n+1)*d]
		for a := range v {
			v[a], exponentsOfV[a] = times(prefix[n*d+a], exponentsOfV[a]+suffixExponents[a], suffix[a])
			suffix[a], suffixExponents[a] = times(suffix[a], suffixExponents[a], m[a])
		}
		if !divideByLargestPower(v, exponentsOfV) {
			isNonzero = false
			continue
		}
		normalise(v)
	}

	return isNonzero
}

// scaledPrefixes returns the products of the first n messages to index i, for n from 0 to their number, value by value: entry n·d + a is
// prefix[n·d + a]·2^exponents[n·d + a], where d is the dimension of i. Both lists are scratch memory.
func (c *kernel) scaledPrefixes(i int) (prefix []float64, exponents []int64) {
	begin, d := c.g.begin[i], c.g.e.Dims[i]
	degree := int(c.g.end[i] - begin)
	prefix = c.productBuffer((degree + 1) * d)
	if cap(c.exponents) < len(prefix) {
		c.exponents = make([]int64, len(prefix))
	}
	exponents = c.exponents[:len(prefix)]
	for a := range d {
		prefix[a], exponents[a] = 1, 0
	}
	for n := range degree {
		for a, x := range c.g.message(c.m, begin+int32(n)) {
			prefix[(n+1)*d+a], exponents[(n+1)*d+a] = times(prefix[n*d+a], exponents[n*d+a], x)
		}
	}
	return prefix, exponents
}

// divideByLargestPower replaces v[a] by v[a]·2^exponents[a], divided by the largest of these powers of two. Entries far below it
// become 0. It returns false if all entries are 0.
func divideByLargestPower(v []float64, exponents []int64) (isNonzero bool) {
	largest := int64(math.MinInt64)
	for a, x := range v {
		if x != 0 {
			largest, isNonzero = max(largest, exponents[a]), true
		}
	}
	if !isNonzero {
		return false
	}
	for a := range v {
		v[a] = math.Ldexp(v[a], int(max(exponents[a]-largest, -4000)))
	}
	return true
}

// times returns mant·2^exp·x as a mantissa in ±[½, 1), or 0, and an exponent.
func times(mant float64, exp int64, x float64) (float64, int64) {
	fraction, e := math.Frexp(x)
	mant, shift := math.Frexp(mant * fraction)
	return mant, exp + int64(e) + int64(shift)
}

// sumAbs returns Σ_x |x|.
func sumAbs(x []float64) float64 {
	total := 0.0
	for _, a := range x {
		total += math.Abs(a)
	}
	return total
}

// productBuffer returns scratch memory for n products, with any content.
func (c *kernel) productBuffer(n int) []float64 {
	if cap(c.products) < n {
		c.products = make([]float64, n)
	}
	return c.products[:n]
}

// productOfMessages returns Π_t m_{t→i}, by value of index i.
func (c *kernel) productOfMessages(i int) []scaled.Number {
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

// scalarProductNumber returns Σ_x m[x] v[x], with exponents if float64 might lose it.
func scalarProductNumber(m, v []float64) scaled.Number {
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
