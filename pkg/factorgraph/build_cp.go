// Factors in CP form, in common terms: noisy-or, clause, parity, equality. Rank 2 (equality: d), for any
// number of variables.

package factorgraph

import (
	"math"

	"github.com/basetensor/basetensor/pkg/tensor"
)

// Table returns the dense factor with these values over a scope of these domains, last variable fastest.
// It returns ErrModel if the number of values is not Π dims or a value is not finite.
func Table(dims []int, values []float64) (*tensor.Dense, error) {
	t := &tensor.Dense{Shape: dims, Data: values}
	if err := tensor.Validate(t); err != nil {
		return nil, modelError("%w", err)
	}
	return t, nil
}

// NoisyOr returns P(effect | causes) over the scope (cause_0, …, cause_{n−1}, effect), all binary:
//
//	P(effect = 0 | x) = (1 − leak) · Π_i (1 − activate[i])^{x_i}
//
// as a CP tensor of rank 2: 1 ⊗ e_1 + (1−leak) ⊗_i [1, 1−activate[i]] ⊗ (e_0 − e_1). Its size is linear in n, a table's
// is 2^{n+1}. It returns ErrModel for a probability outside [0, 1].
func NoisyOr(leak float64, activate ...float64) (*tensor.CP, error) {
	if !isProbability(leak) {
		return nil, modelError("noisy-or: leak %v is not in [0, 1]", leak)
	}
	n := len(activate)
	t := &tensor.CP{Shape: binary(n + 1), Weights: []float64{1, 1 - leak}, Vectors: make([][]float64, n+1)}
	for i, p := range activate {
		if !isProbability(p) {
			return nil, modelError("noisy-or: probability %v of cause %d is not in [0, 1]", p, i)
		}
		t.Vectors[i] = []float64{1, 1, 1, 1 - p}
	}
	t.Vectors[n] = []float64{0, 1, 1, -1}
	return t, nil
}

// Clause returns the factor that is 1 where at least one literal holds and 0 elsewhere, over binary
// variables. Literal i is x_i where positive[i], ¬x_i where not. CP rank 2: all ones less the one assignment
// that falsifies every literal. The empty clause is the order-zero factor 0.
func Clause(positive ...bool) *tensor.CP {
	t := &tensor.CP{Shape: binary(len(positive)), Weights: []float64{1, -1}, Vectors: make([][]float64, len(positive))}
	for i, p := range positive {
		if p {
			t.Vectors[i] = []float64{1, 1, 1, 0}
		} else {
			t.Vectors[i] = []float64{1, 1, 0, 1}
		}
	}
	return t
}

// Parity returns the factor that is 1 where the number of ones among n binary variables is odd (or, with odd false,
// even) and 0 elsewhere. CP rank 2: ½(⊗[1, 1] ± ⊗[1, −1]), exact in floating point. It returns ErrModel for n < 0.
func Parity(n int, odd bool) (*tensor.CP, error) {
	if n < 0 {
		return nil, modelError("parity of %d variables", n)
	}
	t := &tensor.CP{Shape: binary(n), Weights: []float64{0.5, 0.5}, Vectors: make([][]float64, n)}
	if odd {
		t.Weights[1] = -0.5
	}
	for i := range t.Vectors {
		t.Vectors[i] = []float64{1, 1, 1, -1}
	}
	return t, nil
}

// Equality returns the factor that is 1 where all n variables of domain d have the same value: CP rank d with identity
// vectors. It returns ErrModel for n < 1 or d < 1.
func Equality(n, d int) (*tensor.CP, error) {
	if n < 1 || d < 1 {
		return nil, modelError("equality of %d variables of domain %d, at least 1 of each is needed", n, d)
	}
	t := &tensor.CP{Shape: make([]int, n), Weights: make([]float64, d), Vectors: make([][]float64, n)}
	for i := range t.Shape {
		t.Shape[i] = d
	}
	for x := range t.Weights {
		t.Weights[x] = 1
	}
	return t, nil
}

func isProbability(p float64) bool { return !math.IsNaN(p) && p >= 0 && p <= 1 }

// binary returns the dimensions of n binary variables.
func binary(n int) []int {
	dims := make([]int, n)
	for i := range dims {
		dims[i] = 2
	}
	return dims
}
