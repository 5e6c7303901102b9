package preprocess

// Products of tables.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// multiplyEntries returns the product of table a with a table b over some of its indices: a[x]·b[x] for all x, the values of the indices of
// a in row-major order. shape has the dimensions of a, and strides[k] is the stride in b of the k-th index of a, 0 if b does not have it.
// ok is false if a product that is not 0 is tiny or infinite.
func multiplyEntries(a, b []float64, shape, strides []int) (data []float64, ok bool) {
	data = make([]float64, len(a))
	last := len(shape) - 1
	x := make([]int, last+1)

	// Row by row of a: the last index varies within a row.
	for rowA, rowB := 0, 0; rowA < len(a); {
		stride := strides[last]
		for k := range shape[last] {
			f, g := a[rowA+k], b[rowB+k*stride]
			p := float64(f * g)
			isOutOfRange := math.Abs(p) < tiny || p-p != 0 // p−p is NaN for an infinite p
			if isOutOfRange && f != 0 && g != 0 {          // a product with 0 is 0, exactly
				return nil, false
			}
			data[rowA+k] = p
		}

		// Advance the other indices, the last of them first.
		rowA += shape[last]
		for k := last - 1; k >= 0; k-- {
			rowB += strides[k]
			if x[k]++; x[k] < shape[k] {
				break
			}
			rowB -= x[k] * strides[k] // back to value 0 of index k, and on to the index before it
			x[k] = 0
		}
	}
	return data, true
}

// sumProduct returns the product of tables, summed over the indices sum, as a table over the indices out in row-major order:
//
//	data[o] = Σ_s Π_k tables[k][o, s]
//
// out and sum together are all indices of the tables. isSigned tells that entries may be below 0. err bounds the relative error of the
// result, in units of 2^-53. ok is false in two cases: a product that is not 0 is tiny (below 2^-1000) or infinite, or the product of its
// first factors is; or terms of both signs cancel, although they were rounded, so that the error bound becomes too large.
func sumProduct(
	dims []int, tables []*table, out, sum []int, isSigned bool,
) (data []float64, err float64, ok bool) {
	scopes, factors := make([][]int, len(tables)), make([][]float64, len(tables))
	for k, t := range tables {
		scopes[k] = t.scope
		factors[k] = t.data
		err += t.err
	}

	// The walk goes over all values of out and sum, the last index fastest. walk.Position[k] is the position of the entry in factors[k].
	walk := sumproduct.NewWalk(dims, append(slices.Clone(out), sum...), scopes...)
	termCount := sumproduct.Size(dims, sum) // of each entry of the result
	data = make([]float64, sumproduct.Size(dims, out))
	roundings := len(tables) - 1 + termCount // of an entry: one for each multiplication of a term and one for each term added
	errors := sumErrors{factorErr: err, roundings: float64(roundings), isSigned: isSigned}
	for o := range data {
		terms := termSum{isRounded: err > 0}
		total, isInRange := sumTerms(walk, factors, termCount, isSigned, &terms)
		if !isInRange {
			return nil, 0, false
		}

		// Exact factors whose terms cancel are summed once more, rounded once.
		if err == 0 && terms.hasCancelled(total) && len(factors) <= maxExactFactors {
			walk.Seek(o * termCount) // back to the first term of this entry
			total = exactSum(walk, factors, termCount)
			terms.absoluteSum = math.Abs(total) // no cancellation: the sum is rounded once
			if total != 0 && terms.absoluteSum < tiny {
				return nil, 0, false
			}
		}

		data[o] = total
		isFinite := total-total == 0 // the difference is NaN for an infinite total
		if !isFinite || !errors.addSum(&terms, total) {
			return nil, 0, false
		}
	}
	return data, errors.errorBound(), true
}

// sumTerms returns the sum of the products of the factors at the next termCount positions of walk. If isSigned, it records in terms what is
// lost by rounding and cancellation. isInRange is false if a product is out of range (multiplyFactors).
func sumTerms(walk *sumproduct.Walk, factors [][]float64, termCount int, isSigned bool, terms *termSum) (total float64, isInRange bool) {
	for range termCount {
		term, isInRange := multiplyFactors(factors, walk.Position)
		if !isInRange {
			return 0, false
		}
		if isSigned {
			terms.addTerm(factors, walk.Position, total, term)
		}
		total += term
		walk.Next()
	}
	return total, true
}

// multiplyFactors returns the product of factors[k][positions[k]] over all k, from the first to the last. isInRange is false if the product
// or that of the first few factors is tiny or infinite; but a product that is 0 because a factor is 0 is exact, and in range.
func multiplyFactors(factors [][]float64, positions []int) (product float64, isInRange bool) {
	product, smallest := 1.0, 1.0 // smallest is the least absolute value that product has had
	for k, f := range factors {
		product = float64(product * f[positions[k]])
		smallest = min(smallest, math.Abs(product))
	}
	isInfinite := product-product != 0 // infinite or NaN: the difference is NaN
	if smallest < tiny || isInfinite {
		return product, product == 0 && hasZeroFactor(factors, positions)
	}
	return product, true
}

// hasZeroFactor reports whether factors[k][positions[k]] is 0 for some k.
func hasZeroFactor(factors [][]float64, positions []int) bool {
	for k, f := range factors {
		if f[positions[k]] == 0 {
			return true
		}
	}
	return false
}
