package bp

// The messages of an index to its tables: each is the product of the messages from the other tables. They are computed without division.

import (
	"math"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// carefulDegree is the number of messages to an index above which their products are computed with exponents without trying float64 first.
const carefulDegree = 24

// updateToTables computes the messages v from index i to all its tables: each is the product of the messages m to i from the other tables,
// v_{i→t} ∝ Π_{s≠t} m_{s→i}, normalised. It returns false if one of them, or the product of all messages to i, is 0 for every value. Cost:
// O(degree · dimension).
func (c *kernel) updateToTables(i int) bool {
	if c.graph.endIncidence[i]-c.graph.firstIncidence[i] <= carefulDegree && c.multiplyInFloat64(i) {
		return true
	}
	return c.multiplyWithExponents(i)
}

// multiplyInFloat64 computes the messages from index i to all its tables in float64. It returns false if a product is not in the safe
// range, between tiny (2^−400) and huge (2^900); then the messages are not usable. The message to table number n of the index is the
// product of prefix, the messages m from tables before n, and of suffix, those from tables after n. Every list has an entry for each of the
// d values of i.
func (c *kernel) multiplyInFloat64(i int) bool {
	begin, d := c.graph.firstIncidence[i], c.graph.expression.Dims[i]
	degree := int(c.graph.endIncidence[i] - begin)
	prefix := c.floatPrefixes(i) // entry n·d + a is the product of the first n messages for value a
	if total := sumAbs(prefix[degree*d:]); !(total > tiny && total < huge) {
		return false
	}

	// From the last table to the first.
	suffix := c.buffer[:d]
	for a := range suffix {
		suffix[a] = 1
	}
	for n := degree - 1; n >= 0; n-- {
		k := begin + int32(n)
		m, v := c.graph.messageOf(c.toIndex, k), c.graph.messageOf(c.toTable, k)
		for a := range v {
			v[a] = prefix[n*d+a] * suffix[a]
			suffix[a] *= m[a]
		}
		if total := normalise(v); !(total > tiny && total < huge) { // total is Σ|v| before v is divided by it
			return false
		}
	}

	return true
}

// floatPrefixes returns the products of the first n messages to index i, for n from 0 to their number: if i has d values, the product for
// value a is prefix[n·d + a]. The list is memory of c and valid until the next call.
func (c *kernel) floatPrefixes(i int) (prefix []float64) {
	begin, d := c.graph.firstIncidence[i], c.graph.expression.Dims[i]
	degree := int(c.graph.endIncidence[i] - begin)
	prefix = c.productBuffer((degree + 1) * d)
	for a := range d {
		prefix[a] = 1
	}
	for n := range degree {
		product, nextProduct := prefix[n*d:(n+1)*d], prefix[(n+1)*d:(n+2)*d]
		for a, x := range c.graph.messageOf(c.toIndex, begin+int32(n)) {
			nextProduct[a] = product[a] * x
		}
	}
	return prefix
}

// multiplyWithExponents computes the messages from index i to all its tables, like multiplyInFloat64, but with a binary exponent for every
// entry of a product. The message to table number n of the index is the product of prefix, the messages from tables before n, and of
// suffix, those from tables after n. It returns false if a message, or the product of all messages to i, is 0 for every value.
func (c *kernel) multiplyWithExponents(i int) bool {
	begin, d := c.graph.firstIncidence[i], c.graph.expression.Dims[i]
	degree := int(c.graph.endIncidence[i] - begin)
	prefix, exponents := c.scaledPrefixes(i) // entry n·d + a is the product of the first n messages for value a

	isNonzero := sumAbs(prefix[degree*d:]) > 0
	suffix, suffixExponents := c.buffer[:d], make([]int64, d)
	for a := range suffix {
		suffix[a] = 1
	}
	for n := degree - 1; n >= 0; n-- {
		k := begin + int32(n)
		m, v := c.graph.messageOf(c.toIndex, k), c.graph.messageOf(c.toTable, k)
		vExponents := exponents[n*d : (n+1)*d] // of the prefix, then of v
		for a := range v {
			v[a], vExponents[a] = multiplyMantissa(prefix[n*d+a], vExponents[a]+suffixExponents[a], suffix[a])
			suffix[a], suffixExponents[a] = multiplyMantissa(suffix[a], suffixExponents[a], m[a])
		}
		if !divideByLargestPower(v, vExponents) {
			isNonzero = false
			continue
		}
		normalise(v)
	}

	return isNonzero
}

// scaledPrefixes returns the products of the first n messages to index i, for n from 0 to their number. An entry is written as a float64
// times a power of two: if i has d values, the product for value a is prefix[n·d + a]·2^exponents[n·d + a]. Both lists are memory of c and
// valid until the next call.
func (c *kernel) scaledPrefixes(i int) (prefix []float64, exponents []int64) {
	begin, d := c.graph.firstIncidence[i], c.graph.expression.Dims[i]
	degree := int(c.graph.endIncidence[i] - begin)
	prefix = c.productBuffer((degree + 1) * d)
	if cap(c.exponents) < len(prefix) {
		c.exponents = make([]int64, len(prefix))
	}
	exponents = c.exponents[:len(prefix)]
	for a := range d {
		prefix[a], exponents[a] = 1, 0
	}
	for n := range degree {
		for a, x := range c.graph.messageOf(c.toIndex, begin+int32(n)) {
			prefix[(n+1)*d+a], exponents[(n+1)*d+a] = multiplyMantissa(prefix[n*d+a], exponents[n*d+a], x)
		}
	}
	return prefix, exponents
}

// divideByLargestPower replaces v[a] by v[a]·2^(exponents[a] − e), where e is the largest exponent of an entry that is not 0. Entries far
// below the largest become 0. It returns false, and changes nothing, if all entries are 0.
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
		v[a] = math.Ldexp(v[a], int(max(exponents[a]-largest, -4000))) // 0 long before −4000
	}
	return true
}

// multiplyMantissa returns mant·2^exp·x as a product·2^newExp, where product is in ±[½, 1), or 0.
func multiplyMantissa(mant float64, exp int64, x float64) (product float64, newExp int64) {
	mantX, expX := math.Frexp(x)
	product, shift := math.Frexp(mant * mantX)
	return product, exp + int64(expX) + int64(shift)
}

// sumAbs returns the sum of the absolute values of all entries.
func sumAbs(entries []float64) float64 {
	total := 0.0
	for _, x := range entries {
		total += math.Abs(x)
	}
	return total
}

// productBuffer returns scratch memory for n products. It may have any content.
func (c *kernel) productBuffer(n int) []float64 {
	if cap(c.products) < n {
		c.products = make([]float64, n)
	}
	return c.products[:n]
}

// productOfMessages returns Π_t m_{t→i}[x] for every value x of index i, where m_{t→i} is the message from table t to i.
func (c *kernel) productOfMessages(i int) []scaled.Number {
	products := make([]scaled.Number, c.graph.expression.Dims[i])
	for x := range products {
		mant, exp := 1.0, int64(0)
		for k := c.graph.firstIncidence[i]; k < c.graph.endIncidence[i]; k++ {
			mant, exp = multiplyMantissa(mant, exp, c.graph.messageOf(c.toIndex, k)[x])
		}
		products[x] = scaled.Make(mant, exp)
	}
	return products
}

// scalarProductNumber returns Σ_x m[x] v[x] as a number with an exponent of any size. It computes in float64, or with exponents if that
// sum is at most tiny (2^−400) in absolute value, so that products may have been lost.
func scalarProductNumber(m, v []float64) scaled.Number {
	sum := 0.0
	for x := range m {
		sum += m[x] * v[x]
	}
	if math.Abs(sum) > tiny {
		return scaled.FromFloat(sum)
	}
	scaledM, scaledV := scaled.FromFloats(m), scaled.FromFloats(v)
	return scaled.SumProducts(scaledM.Numbers(), scaledV.Numbers())
}
