package linalg

// Thin singular value decompositions.

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/lapack"
)

// SVD computes a = u·diag(s)·vt for a of m × n, with k = min(m, n): u is m × k with orthonormal columns, s the singular
// values in descending order, vt is k × n with orthonormal rows. Singular values are accurate to about 1e-15·k relative
// to the largest, for entries of any range. a is not changed; the results may not overlap it. Errors: ErrNotFinite,
// ErrConvergence.
func (w *Work) SVD(a []float64, m, n int, u, s, vt []float64) error {
	return w.decompose(a, m, n, u, s, vt)
}

// RightSVD is SVD without u, in about half its time.
func (w *Work) RightSVD(a []float64, m, n int, s, vt []float64) error {
	return w.decompose(a, m, n, nil, s, vt)
}

func (w *Work) decompose(a []float64, m, n int, u, s, vt []float64) error {
	k := min(m, n)
	if k == 0 {
		return nil
	}
	e, err := exponent(a[:m*n])
	if err != nil {
		return err
	}
	if largest(a[:m*n]) == 0 {
		clear(s[:k])
		if u != nil {
			identity(u, m, k)
		}
		identity(vt, k, n)
		return nil
	}
	f := room(&w.b, m*n)
	scale(f, a[:m*n], -e)
	if err := w.shape(f, m, n, u, s, vt); err != nil {
		return err
	}
	return raise(s[:k], e)
}

// oblong is the ratio of a matrix's sides from which on a triangular factor is made of it first.
const oblong = 1.2

// shape takes the long side off an oblong matrix; f is destroyed.
func (w *Work) shape(f []float64, m, n int, u, s, vt []float64) error {
	switch {
	case float64(m) > oblong*float64(n):
		r := room(&w.small, n*n)
		if u == nil {
			w.upper(f, m, n, r)
			return w.bidiagonal(r, n, n, nil, s, vt)
		}
		q, v := room(&w.long, m*n), room(&w.inner, n*n)
		w.qr(f, m, n, q, r)
		if err := w.bidiagonal(r, n, n, v, s, vt); err != nil {
			return err
		}
		w.Mul(u, q, v, m, n, n)
		return nil
	case float64(n) > oblong*float64(m):
		l, q, v := room(&w.small, m*m), room(&w.long, m*n), room(&w.inner, m*m)
		w.lq(f, m, n, l, q)
		if err := w.bidiagonal(l, m, m, u, s, v); err != nil {
			return err
		}
		w.Mul(vt, v, q, m, m, n)
		return nil
	default:
		return w.bidiagonal(f, m, n, u, s, vt)
	}
}

// bidiagonal is the decomposition by way of a bidiagonal matrix. Rotations are applied to rows, of vt and of
// the transpose of u: LAPACK's driver applies them to columns of u, against the grain of row-major storage. f
// is destroyed.
func (w *Work) bidiagonal(f []float64, m, n int, u, s, vt []float64) error {
	k := min(m, n)
	vectors := room(&w.tau, 3*k)
	off, tauQ, tauP := vectors[:k], vectors[k:2*k], vectors[2*k:]
	var ask [1]float64
	size := 4 * k
	impl.Dgebrd(m, n, f, n, s, off[:k-1], tauQ, tauP, ask[:], -1)
	size = max(size, int(ask[0]))
	impl.Dorgbr(lapack.GeneratePT, k, n, m, vt, n, tauP, ask[:], -1)
	size = max(size, int(ask[0]))
	impl.Dorgbr(lapack.GenerateQ, m, k, n, f, n, tauQ, ask[:], -1)
	work := room(&w.work, max(size, int(ask[0])))
	impl.Dgebrd(m, n, f, n, s, off[:k-1], tauQ, tauP, work, len(work))
	copy(vt[:k*n], f)
	impl.Dorgbr(lapack.GeneratePT, k, n, m, vt, n, tauP, work, len(work))
	uplo := blas.Upper
	if m < n {
		uplo = blas.Lower
	}
	var ut []float64
	columns := 0
	if u != nil {
		columns = m
		impl.Dorgbr(lapack.GenerateQ, m, k, n, f, n, tauQ, work, len(work))
		ut = room(&w.transposed, k*m)
		for i := range m {
			for j, x := range f[i*n : i*n+k] {
				ut[j*m+i] = x
			}
		}
	}
	if !impl.Dbdsqr(uplo, k, n, 0, columns, s, off[:k-1], vt, n, nil, 1, ut, max(1, columns), work) {
		return ErrConvergence
	}
	for j := range k {
		if u == nil {
			break
		}
		for i, x := range ut[j*m : (j+1)*m] {
			u[i*k+j] = x
		}
	}
	return nil
}

// scale computes out = a·2^e.
func scale(out, a []float64, e int) {
	if e < -1000 || e > 1000 { // 2^e is not a normal number
		for i, x := range a {
			out[i] = math.Ldexp(x, e)
		}
		return
	}
	f := math.Ldexp(1, e)
	for i, x := range a {
		out[i] = x * f
	}
}

// identity makes a the rows × cols matrix with ones on its diagonal.
func identity(a []float64, rows, cols int) {
	clear(a[:rows*cols])
	for i := range min(rows, cols) {
		a[i*cols+i] = 1
	}
}
