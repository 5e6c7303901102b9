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

// decompose computes a = u·diag(s)·vt as SVD does; without u if that is nil.
func (w *Work) decompose(a []float64, m, n int, u, s, vt []float64) error {
	k := min(m, n)
	if k == 0 {
		return nil
	}
	exp, err := exponent(a[:m*n])
	if err != nil {
		return err
	}
	if largest(a[:m*n]) == 0 { // any orthonormal vectors will do
		clear(s[:k])
		if u != nil {
			identity(u, m, k)
		}
		identity(vt, k, n)
		return nil
	}
	scaledA := buffer(&w.b, m*n)
	scale(scaledA, a[:m*n], -exp)
	if err := w.decomposeScaled(scaledA, m, n, u, s, vt); err != nil {
		return err
	}
	return scaleBack(s[:k], exp)
}

// oblong is the ratio of a matrix's sides above which its triangular factor is decomposed in its place.
const oblong = 1.2

// decomposeScaled computes a = u·diag(s)·vt as SVD does, for a matrix whose largest entry is near 1; without u if that is nil. If one side
// is much longer, it decomposes the square factor of a = q·r or a = l·q, and multiplies q with the vectors. It destroys a.
func (w *Work) decomposeScaled(a []float64, m, n int, u, s, vt []float64) error {
	switch {
	case float64(m) > oblong*float64(n): // many rows: a = q·r
		r := buffer(&w.small, n*n)
		if u == nil {
			w.upperScaled(a, m, n, r)
			return w.decomposeBidiagonal(r, n, n, nil, s, vt)
		}
		q, uOfR := buffer(&w.long, m*n), buffer(&w.inner, n*n)
		w.qrScaled(a, m, n, q, r)
		if err := w.decomposeBidiagonal(r, n, n, uOfR, s, vt); err != nil {
			return err
		}
		w.Mul(u, q, uOfR, m, n, n)
		return nil
	case float64(n) > oblong*float64(m): // many columns: a = l·q
		l, q, vtOfL := buffer(&w.small, m*m), buffer(&w.long, m*n), buffer(&w.inner, m*m)
		w.lqScaled(a, m, n, l, q)
		if err := w.decomposeBidiagonal(l, m, m, u, s, vtOfL); err != nil {
			return err
		}
		w.Mul(vt, vtOfL, q, m, m, n)
		return nil
	default:
		return w.decomposeBidiagonal(a, m, n, u, s, vt)
	}
}

// decomposeBidiagonal computes a = u·diag(s)·vt by way of a bidiagonal matrix; without u if that is nil. It destroys a. The error is
// ErrConvergence.
//
// Rotations are applied to rows, of vt and of the transpose of u: LAPACK's driver applies them to columns of u, against the grain of
// row-major storage.
func (w *Work) decomposeBidiagonal(a []float64, m, n int, u, s, vt []float64) error {
	k := min(m, n)
	vectors := buffer(&w.tau, 3*k) // for offDiagonal, tauQ and tauP
	b := bidiagonal{m: m, n: n, k: k, diagonal: s, offDiagonal: vectors[:k-1], tauQ: vectors[k : 2*k], tauP: vectors[2*k:]}
	b.work = buffer(&w.work, b.workspace(a, vt))

	b.reduce(a) // a has the reflections from here on
	copy(vt[:k*n], a)
	b.makeP(vt)
	var ut []float64 // the transpose of q, at the end of u
	columns := 0     // of ut
	if u != nil {
		columns = m
		b.makeQ(a)
		ut = buffer(&w.transposed, k*m)
		for i := range m {
			for j, x := range a[i*n : i*n+k] {
				ut[j*m+i] = x
			}
		}
	}

	// The singular values of b, and the rotations on vt and on ut. ut is the argument C of Dbdsqr; there is no U (0 rows, nil).
	uplo := blas.Upper // the side of the diagonal on which the other diagonal of b is
	if m < n {
		uplo = blas.Lower
	}
	if !impl.Dbdsqr(uplo, k, n, 0, columns, s, b.offDiagonal, vt, n, nil, 1, ut, max(1, columns), b.work) {
		return ErrConvergence
	}
	if u == nil {
		return nil
	}
	for j := range k {
		for i, x := range ut[j*m : (j+1)*m] {
			u[i*k+j] = x
		}
	}
	return nil
}

// bidiagonal is a decomposition a = q·b·p of an m × n matrix, with k = min(m, n) and a matrix b that has two diagonals. LAPACK keeps q and
// p as Householder reflections, whose vectors are in a and whose factors are tauQ and tauP.
type bidiagonal struct {
	m, n, k               int
	diagonal, offDiagonal []float64 // of b
	tauQ, tauP            []float64
	work                  []float64 // of LAPACK
}

// workspace returns the length of work that suffices for all steps. It changes nothing.
func (b bidiagonal) workspace(a, vt []float64) int {
	var size [1]float64
	b.work = size[:]
	most := 4 * b.k // for Dbdsqr
	for _, query := range []func(){
		func() { impl.Dgebrd(b.m, b.n, a, b.n, b.diagonal, b.offDiagonal, b.tauQ, b.tauP, b.work, sizeQuery) },
		func() { impl.Dorgbr(lapack.GeneratePT, b.k, b.n, b.m, vt, b.n, b.tauP, b.work, sizeQuery) },
		func() { impl.Dorgbr(lapack.GenerateQ, b.m, b.k, b.n, a, b.n, b.tauQ, b.work, sizeQuery) },
	} {
		query()
		most = max(most, int(size[0]))
	}
	return most
}

// sizeQuery is the length of a workspace with which LAPACK only writes the length it would like to the first entry.
const sizeQuery = -1

// reduce computes b.
func (b *bidiagonal) reduce(a []float64) {
	impl.Dgebrd(b.m, b.n, a, b.n, b.diagonal, b.offDiagonal, b.tauQ, b.tauP, b.work, len(b.work))
}

// makeP replaces a copy of the reflections in a by p.
func (b *bidiagonal) makeP(vt []float64) {
	impl.Dorgbr(lapack.GeneratePT, b.k, b.n, b.m, vt, b.n, b.tauP, b.work, len(b.work))
}

// makeQ replaces the reflections in a by q, in the first k columns.
func (b *bidiagonal) makeQ(a []float64) {
	impl.Dorgbr(lapack.GenerateQ, b.m, b.k, b.n, a, b.n, b.tauQ, b.work, len(b.work))
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
