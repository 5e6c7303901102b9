package linalg

// Thin QR decompositions by Householder reflections.

import (
	"math"
)

// QR computes a = q·r for a of m × n, with k = min(m, n): q is m × k with orthonormal columns, r is k × n with zeros
// below its diagonal (whose signs are arbitrary). a is not changed; q and r may not overlap it. Columns of zeros, and
// zero matrices, are as good as others, and so is every range of entries. About 4·m·n·k flops.
// Errors: ErrNotFinite; ErrRange where a column's norm is beyond float64.
func (w *Work) QR(a []float64, m, n int, q, r []float64) error {
	if min(m, n) == 0 {
		return nil
	}
	e, err := exponent(a[:m*n])
	if err != nil {
		return err
	}
	f := room(&w.a, m*n)
	scale(f, a[:m*n], -e)
	w.qr(f, m, n, q, r)
	return raise(r[:min(m, n)*n], e)
}

// exponent is e for a largest entry in [2^(e−1), 2^e), 0 for zeros.
func exponent(a []float64) (int, error) {
	top := largest(a)
	if math.IsNaN(top) || math.IsInf(top, 0) {
		return 0, ErrNotFinite
	}
	_, e := math.Frexp(top)
	return e, nil
}

// qr is QR of f, which is scaled and is destroyed.
func (w *Work) qr(f []float64, m, n int, q, r []float64) {
	k := min(m, n)
	tau := room(&w.tau, k)
	work := w.query(func(work []float64, size int) {
		impl.Dgeqrf(m, n, f, n, tau, work, size)
		impl.Dorgqr(m, k, k, f, k, tau, work, size)
	})
	impl.Dgeqrf(m, n, f, n, tau, work, len(work))
	for i := range k {
		row := r[i*n : (i+1)*n]
		clear(row[:i])
		copy(row[i:], f[i*n+i:(i+1)*n])
	}
	for i := range m {
		copy(q[i*k:(i+1)*k], f[i*n:i*n+k])
	}
	impl.Dorgqr(m, k, k, q, k, tau, work, len(work))
}

// query asks LAPACK for its workspace: every call inside ask overwrites work[0].
func (w *Work) query(ask func(work []float64, size int)) []float64 {
	size := [1]float64{}
	ask(size[:], -1)
	return room(&w.work, max(1, int(size[0])))
}

// Upper computes only the factor r of a = q·r, k × n with k = min(m, n). It destroys a. Errors: as QR.
func (w *Work) Upper(a []float64, m, n int, r []float64) error {
	if min(m, n) == 0 {
		return nil
	}
	e, err := exponent(a[:m*n])
	if err != nil {
		return err
	}
	scale(a[:m*n], a[:m*n], -e)
	w.upper(a, m, n, r)
	return raise(r[:min(m, n)*n], e)
}

// upper is Upper of a, which is scaled.
func (w *Work) upper(a []float64, m, n int, r []float64) {
	k := min(m, n)
	tau := room(&w.tau, k)
	work := w.query(func(work []float64, size int) { impl.Dgeqrf(m, n, a, n, tau, work, size) })
	impl.Dgeqrf(m, n, a, n, tau, work, len(work))
	for i := range k {
		row := r[i*n : (i+1)*n]
		clear(row[:i])
		copy(row[i:], a[i*n+i:(i+1)*n])
	}
}

// LQ computes a = l·q for a of m × n, with k = min(m, n): l is m × k with zeros above its diagonal, q is k × n with
// orthonormal rows. a is not changed. Errors: as QR.
func (w *Work) LQ(a []float64, m, n int, l, q []float64) error {
	if min(m, n) == 0 {
		return nil
	}
	e, err := exponent(a[:m*n])
	if err != nil {
		return err
	}
	f := room(&w.a, m*n)
	scale(f, a[:m*n], -e)
	w.lq(f, m, n, l, q)
	return raise(l[:m*min(m, n)], e)
}

// lq is LQ of f, which is scaled and is destroyed.
func (w *Work) lq(f []float64, m, n int, l, q []float64) {
	k := min(m, n)
	tau := room(&w.tau, k)
	work := w.query(func(work []float64, size int) {
		impl.Dgelqf(m, n, f, n, tau, work, size)
		impl.Dorglq(k, n, k, f, n, tau, work, size)
	})
	impl.Dgelqf(m, n, f, n, tau, work, len(work))
	for i := range m {
		row := l[i*k : (i+1)*k]
		clear(row)
		copy(row[:min(i+1, k)], f[i*n:])
	}
	copy(q[:k*n], f[:k*n])
	impl.Dorglq(k, n, k, q, n, tau, work, len(work))
}
