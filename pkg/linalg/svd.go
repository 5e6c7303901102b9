package linalg

// Thin singular value decompositions.

import (
	"math"

	"gonum.org/v1/gonum/lapack"
)

// SVD computes a = u·diag(s)·vt for a of m × n, with k = min(m, n): u is m × k with orthonormal columns, s the singular
// values in descending order, vt is k × n with orthonormal rows. Singular values are accurate to about 1e-15·k relative
// to the largest, whatever the range of the entries. a is not changed; the results may not overlap it.
// Errors: ErrNotFinite, ErrConvergence.
func (w *Work) SVD(a []float64, m, n int, u, s, vt []float64) error {
	k := min(m, n)
	if k == 0 {
		return nil
	}
	top := largest(a[:m*n])
	if math.IsNaN(top) || math.IsInf(top, 0) {
		return ErrNotFinite
	}
	if top == 0 {
		clear(s[:k])
		identity(u, m, k)
		identity(vt, k, n)
		return nil
	}
	_, e := math.Frexp(top)
	f := room(&w.a, m*n)
	for i, x := range a[:m*n] {
		f[i] = math.Ldexp(x, -e)
	}
	if err := w.gesvd(f, m, n, u, s, vt); err != nil {
		return err
	}
	for i := range k {
		s[i] = math.Ldexp(s[i], e)
	}
	return nil
}

// gesvd is LAPACK's SVD; f is destroyed.
func (w *Work) gesvd(f []float64, m, n int, u, s, vt []float64) error {
	k := min(m, n)
	size := [1]float64{}
	impl.Dgesvd(lapack.SVDStore, lapack.SVDStore, m, n, f, n, s, u, k, vt, n, size[:], -1)
	work := room(&w.work, max(1, int(size[0])))
	if !impl.Dgesvd(lapack.SVDStore, lapack.SVDStore, m, n, f, n, s, u, k, vt, n, work, len(work)) {
		return ErrConvergence
	}
	return nil
}

// identity makes a the rows × cols matrix with ones on its diagonal.
func identity(a []float64, rows, cols int) {
	clear(a[:rows*cols])
	for i := range min(rows, cols) {
		a[i*cols+i] = 1
	}
}
