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

func newFloat() *big.Float { return new(big.Float).SetPrec(precision) }

func fromFloat(x float64) *big.Float { return newFloat().SetFloat64(x) }

// Entry returns entry x of t, rounded to 160 bits.
func Entry(t tensor.Tensor, x []int) *big.Float { return Exact(t, x).Float() }

// Exact returns entry x of t from the definition of its form, without rounding.
func Exact(t tensor.Tensor, x []int) Number {
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
		return At(t.Values, countIndex(t.Levels, x))

	case *tensor.SymmetryCP:
		sum := Number{}
		for _, term := range t.Terms {
			v := FromFloat(term.Alpha, 0).Mul(At(term.S, countIndex(t.Levels, x)))
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

// cpEntry is Σ_t w_t Π_l v_l[t][x_l].
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

// At returns entry i of a list of scaled numbers.
func At(v scaled.Vector, i int) Number {
	if v.Exp == nil {
		return FromFloat(v.Mant[i], 0)
	}
	return FromFloat(v.Mant[i], v.Exp[i])
}

// countIndex is the place of x's count vector: counts of levels 1 to D−1, the last fastest, each
// from 0 to the number of positions that can be at that level.
func countIndex(l countspace.Levels, x []int) int {
	index := 0
	for a := 1; a < l.D; a++ {
		possible, count := 0, 0
		for pos, of := range l.Of {
			for _, level := range of {
				if int(level) == a {
					possible++
					break
				}
			}
			if int(of[x[pos]]) == a {
				count++
			}
		}
		index = index*(possible+1) + count
	}

	return index
}

// MaxStates bounds every enumeration of this package.
const MaxStates = 1 << 22

// states returns Π dims, and panics above MaxStates: a test that asks for more is wrong, not slow.
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

// Each calls f with every index of dims in row-major order, last index fastest. The slice is reused.
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

// Numbers returns all entries of t, row-major, without rounding.
func Numbers(t tensor.Tensor) (out []Number) {
	Each(t.Dims(), func(x []int) { out = append(out, Exact(t, x)) })
	return out
}
