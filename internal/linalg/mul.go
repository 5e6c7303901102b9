package linalg

// Products of small matrices.

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

var blasImpl gonum.Implementation

// Mul computes c = a·b for a of m × k and b of k × n.
func (w *Work) Mul(c, a, b []float64, m, k, n int) {
	gemm(blas.NoTrans, blas.NoTrans, c, a, b, m, k, n, k, n)
}

// MulTA computes c = aᵀ·b for a of k × m and b of k × n.
func (w *Work) MulTA(c, a, b []float64, m, k, n int) {
	gemm(blas.Trans, blas.NoTrans, c, a, b, m, k, n, m, n)
}

// MulTB computes c = a·bᵀ for a of m × k and b of n × k.
func (w *Work) MulTB(c, a, b []float64, m, k, n int) {
	gemm(blas.NoTrans, blas.Trans, c, a, b, m, k, n, k, k)
}

func gemm(ta, tb blas.Transpose, c, a, b []float64, m, k, n, lda, ldb int) {
	if m == 0 || n == 0 {
		return
	}
	clear(c[:m*n])
	if k == 0 {
		return
	}
	blasImpl.Dgemm(ta, tb, m, n, k, 1, a, lda, b, ldb, 0, c, n)
}
