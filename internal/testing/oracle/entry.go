// Package oracle answers by brute force, for tests only: it enumerates every assignment in math/big and shares no
// arithmetic with the packages it judges. It reads their types and calls none of their functions.
package oracle

import (
	"fmt"
	"math/big"

	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// precision of every intermediate, in bits: sums of 2^20 terms keep more than 30 decimal digits.
const precision = 160

// newFloat returns 0 with the precision of this package.
func newFloat() *big.Float { return new(big.Float).SetPrec(precision) }

// fromFloat returns x with the precision of this package.
func fromFloat(x float64) *big.Float { return newFloat().SetFloat64(x) }

// Entry returns entry x of t, rounded to 160 bits.
func Entry(t tensor.Tensor, x []int) *big.Float { return ExactEntry(t, x).Float() }

// ExactEntry returns entry x = (x_0, x_1, …) of t without rounding, by the definition of its form: a lookup in a row-major array (dense), a
// sum of products of vectors (CP), a value per vector of counts (symmetric), or a sum of products of both (symmetry CP).
func ExactEntry(t tensor.Tensor, x []int) Number {
	switch t := t.(type) {
	case *tensor.Dense:
		i := 0
		for pos, v := range x {
			i = i*t.Shape[pos] + v
		}
		return FromFloat(t.Data[i], 0)

	case *tensor.CP:
		return cpEntry(t, x)

	case *tensor.Symmetric:
		return VectorEntry(t.Values, countIndex(t.Levels, x))

	case *tensor.SymmetryCP:
		sum := Number{}
		for _, term := range t.Terms {
			v := FromFloat(term.Alpha, 0).Mul(VectorEntry(term.S, countIndex(t.Levels, x)))
			for pos, a := range x {
				if term.R != nil && term.R[pos] != nil {
					v = v.Mul(FromFloat(term.R[pos][a], 0))
				}
			}
			sum = sum.Add(v)
		}
		return sum
	}

	panic(fmt.Sprintf("oracle: a tensor of type %T", t))
}

// cpEntry returns entry x of a CP tensor, Σ_term w_term Π_pos v_pos[term][x_pos]. Nil vectors are the identity: 1 if term = x_pos, else 0.
func cpEntry(t *tensor.CP, x []int) Number {
	sum := Number{}
	for term, w := range t.Weights {
		v := FromFloat(w, 0)
		for pos, a := range x {
			switch vectors := t.Vectors[pos]; {
			case vectors != nil:
				v = v.Mul(FromFloat(vectors[term*t.Shape[pos]+a], 0))
			case term != a:
				v = Number{}
			}
		}
		sum = sum.Add(v)
	}
	return sum
}

// VectorEntry returns entry i of a list of scaled numbers, mantissa · 2^exponent, without rounding.
func VectorEntry(v scaled.Vector, i int) Number {
	if v.Exp == nil {
		return FromFloat(v.Mant[i], 0)
	}
	return FromFloat(v.Mant[i], v.Exp[i])
}

// countIndex returns the index at which a symmetric tensor stores its entry for x. The entry depends on the counts (c_1, …, c_{D−1}) only,
// where c_a is the number of positions whose value has level a. Counts are stored row-major; c_a is from 0 to the number of positions
// that have a value of level a.
func countIndex(l countspace.Levels, x []int) int {
	index := 0
	for a := 1; a < l.D; a++ {
		possible, count := 0, 0
		for pos, levels := range l.Of {
			for _, level := range levels {
				if int(level) == a {
					possible++
					break
				}
			}
			if int(levels[x[pos]]) == a {
				count++
			}
		}
		index = index*(possible+1) + count
	}

	return index
}

// MaxStates bounds every enumeration of this package.
const MaxStates = 1 << 22

// states returns the product of dims, the number of assignments. It panics above MaxStates: a test that asks for more is wrong, not slow.
func states(dims []int) int {
	n := 1
	for _, d := range dims {
		if d < 1 || n > MaxStates/d {
			panic(fmt.Sprintf("oracle: dimensions %v have more than %d assignments (or none)", dims, MaxStates))
		}
		n *= d
	}
	return n
}

// Each calls f with every assignment x, 0 ≤ x[i] < dims[i], in row-major order: the last entry of x changes fastest. It reuses the slice x.
func Each(dims []int, f func(x []int)) {
	x := make([]int, len(dims))
	for range states(dims) {
		f(x)
		for mode := len(dims) - 1; mode >= 0; mode-- {
			if x[mode]++; x[mode] < dims[mode] {
				break
			}
			x[mode] = 0
		}
	}
}

// Table returns all entries of t as float64, row-major.
func Table(t tensor.Tensor) []float64 {
	var out []float64
	Each(t.Dims(), func(x []int) {
		f, _ := Entry(t, x).Float64()
		out = append(out, f)
	})
	return out
}

// ExactEntries returns all entries of t, row-major, without rounding.
func ExactEntries(t tensor.Tensor) (out []Number) {
	Each(t.Dims(), func(x []int) { out = append(out, ExactEntry(t, x)) })
	return out
}
