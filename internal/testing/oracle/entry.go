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

// fromVector returns entry i of v: Mant[i]·2^Exp[i].
func fromVector(v scaled.Vector, i int) *big.Float {
	f := fromFloat(v.Mant[i])
	if v.Exp != nil {
		f.SetMantExp(f, int(v.Exp[i]))
	}
	return f
}

// Entry returns entry x of t from the definition of its form.
func Entry(t tensor.Tensor, x []int) *big.Float {
	switch t := t.(type) {
	case *tensor.Dense:
		index := 0
		for mode := range t.Shape {
			index = index*t.Shape[mode] + x[mode]
		}
		return fromFloat(t.Data[index])
	case *tensor.CP:
		return exactCP(t, x)
	case *tensor.Symmetric:
		return fromVector(t.Values, boxIndex(t.Levels, x))
	case *tensor.SymmetryCP:
		sum, at := newFloat(), boxIndex(t.Levels, x)
		for _, term := range t.Terms {
			p := fromFloat(term.Alpha)
			p.Mul(p, fromVector(term.S, at))
			for mode, v := range term.R {
				if v != nil {
					p.Mul(p, fromFloat(v[x[mode]]))
				}
			}
			sum.Add(sum, p)
		}
		return sum
	}
	panic(fmt.Sprintf("oracle: unknown tensor form %T", t))
}

func exactCP(t *tensor.CP, x []int) *big.Float {
	sum := newFloat()
	for term, w := range t.Weights {
		p := fromFloat(w)
		for mode, v := range t.Vectors {
			switch {
			case v != nil:
				p.Mul(p, fromFloat(v[term*t.Shape[mode]+x[mode]]))
			case x[mode] != term:
				p.SetInt64(0)
			}
		}
		sum.Add(sum, p)
	}
	return sum
}

// boxIndex returns the index of x's count vector in the box of l, worked out from the documented layout: counts of the
// levels above 0, dimension 1 + the number of legs that have the level, last level fastest.
func boxIndex(l countspace.Levels, x []int) int {
	index := 0
	for level := 1; level < l.D; level++ {
		size, count := 1, 0
		for leg, of := range l.Of {
			for _, a := range of {
				if int(a) == level {
					size++
					break
				}
			}
			if int(of[x[leg]]) == level {
				count++
			}
		}
		index = index*size + count
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
	n := states(dims)
	x := make([]int, len(dims))
	for i := range n {
		rest := i
		for mode := len(dims) - 1; mode >= 0; mode-- {
			x[mode] = rest % dims[mode]
			rest /= dims[mode]
		}
		f(x)
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
