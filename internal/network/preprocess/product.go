package preprocess

// Products of tables.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// times returns a[x]·b[steps·x] over all x of a shape.
// ok is false when a product that is not 0 is tiny, or infinite.
func times(a, b []float64, shape, steps []int) (data []float64, ok bool) {
	data = make([]float64, len(a))
	last := len(shape) - 1
	x := make([]int, last+1)

	for row, start := 0, 0; row < len(a); { // of a and of b
		step := steps[last]
		for k := range shape[last] {
			f, g := a[row+k], b[start+k*step]
			p := float64(f * g)
			if (math.Abs(p) < tiny || p-p != 0) && f != 0 && g != 0 {
				return nil, false
			}
			data[row+k] = p
		}
		row += shape[last]
		for k := last - 1; k >= 0; k-- {
			start += steps[k]
			if x[k]++; x[k] < shape[k] {
				break
			}
			start -= x[k] * steps[k]
			x[k] = 0
		}
	}
	return data, true
}

// product returns the product of tables over the indices out,
// summed over the indices sum, which together are all theirs, as data and err of a table:
//
//	data[o] = Σ_s Π_k tables[k][o, s]
//
// signed says that entries may be below 0. ok is false when a product that is not 0, or a part of one,
// is tiny or infinite, and when terms of both signs cancel and were rounded.
func product(
	dims []int, tables []*table, out, sum []int, signed bool,
) (data []float64, err float64, ok bool) {
	scopes, factors := make([][]int, len(tables)), make([][]float64, len(tables))
	for k, t := range tables {
		scopes[k] = t.scope
		factors[k] = t.data
		err += t.err
	}

	walk := sumproduct.NewWalk(dims, append(slices.Clone(out), sum...), scopes...)
	inner := sumproduct.Size(dims, sum)
	data = make([]float64, sumproduct.Size(dims, out))
	errors := sumErrors{factors: err, roundings: float64(len(tables) - 1 + inner), signed: signed}
	for o := range data {
		terms := termSum{rounded: err > 0}
		total := 0.0
		for range inner {
			p, smallest := 1.0, 1.0
			for k, f := range factors {
				p = float64(p * f[walk.At[k]])
				smallest = min(smallest, math.Abs(p))
			}
			// also on the way: a factor may bring it up again, without its digits
			if (smallest < tiny || p-p != 0) && (p != 0 || !anyZero(factors, walk.At)) {
				return nil, 0, false
			}

			if signed {
				terms.add(factors, walk.At, total, p)
			}
			total += p
			walk.Next()
		}

		// Exact factors whose terms cancel are summed once more, rounded once.
		if err == 0 && terms.cancels(total) && len(factors) <= maxExactFactors {
			walk.Seek(o * inner)
			total = exactSum(walk, factors, inner)
			terms.size = math.Abs(total) // it is rounded once
			if total != 0 && terms.size < tiny {
				return nil, 0, false
			}
		}

		if data[o] = total; total-total != 0 || !errors.admit(&terms, total) {
			return nil, 0, false
		}
	}
	return data, errors.bound(), true
}

// anyZero reports whether one of the factors is 0 at its place.
func anyZero(factors [][]float64, places []int) bool {
	for k, f := range factors {
		if f[places[k]] == 0 {
			return true
		}
	}
	return false
}
