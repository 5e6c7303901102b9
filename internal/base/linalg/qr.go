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
	exp, err := exponent(a[:m*n])
	if err != nil {
		return err
	}
	scaledA := buffer(&w.a, m*n)
	scale(scaledA, a[:m*n], -exp)
	w.qrScaled(scaledA, m, n, q, r)
	return scaleBack(r[:min(m, n)*n], exp)
}

// exponent returns e for a matrix whose largest entry is in [2^(e−1), 2^e), 0 for zeros. The error is ErrNotFinite.
func exponent(a []float64) (int, error) {
	top := largest(a)
	if math.IsNaN(top) || math.IsInf(top, 0) {
		return 0, ErrNotFinite
	}
	_, e := math.Frexp(top)
	return e, nil
}

// qrScaled computes a = q·r as QR does, for a matrix whose largest entry is near 1. It destroys a.
func (w *Work) qrScaled(a []float64, m, n int, q, r []float64) {
	k := min(m, n)
	tau := buffer(&w.tau, k)
	work := w.workspace(func(work []float64, size int) { // as long as both calls below need
		impl.Dgeqrf(m, n, a, n, tau, work, size)
		impl.Dorgqr(m, k, k, a, k, tau, work, size)
	})

	// LAPACK leaves r above the diagonal of a, and the reflections that make q below it.
	impl.Dgeqrf(m, n, a, n, tau, work, len(work))
	copyUpper(r, a, k, n)
	for i := range m {
		copy(q[i*k:(i+1)*k], a[i*n:i*n+k])
	}
	impl.Dorgqr(m, k, k, q, k, tau, work, len(work))
}

// copyUpper sets r, of k × n, to the first k rows of a on and above the diagonal, and to 0 below it.
func copyUpper(r, a []float64, k, n int) {
	for i := range k {
		row := r[i*n : (i+1)*n]
		clear(row[:i])
		copy(row[i:], a[i*n+i:(i+1)*n])
	}
}

// workspace returns a buffer of the size that LAPACK asks for. ask calls LAPACK with size −1, for which it only writes the size that it
// wants to work[0]; the last call counts.
func (w *Work) workspace(ask func(work []float64, size int)) []float64 {
	size := [1]float64{}
	ask(size[:], -1)
	return buffer(&w.work, max(1, int(size[0])))
}

// Upper computes only the factor r of a = q·r, k × n with k = min(m, n). It destroys a. Errors: as QR.
func (w *Work) Upper(a []float64, m, n int, r []float64) error {
	if min(m, n) == 0 {
		return nil
	}
	exp, err := exponent(a[:m*n])
	if err != nil {
		return err
	}
	scale(a[:m*n], a[:m*n], -exp)
	w.upperScaled(a, m, n, r)
	return scaleBack(r[:min(m, n)*n], exp)
}

// upperScaled computes the factor r of a = q·r as Upper does, for a matrix whose largest entry is near 1. It destroys a.
func (w *Work) upperScaled(a []float64, m, n int, r []float64) {
	k := min(m, n)
	tau := buffer(&w.tau, k)
	work := w.workspace(func(work []float64, size int) { impl.Dgeqrf(m, n, a, n, tau, work, size) })
	impl.Dgeqrf(m, n, a, n, tau, work, len(work))
	copyUpper(r, a, k, n)
}

// LQ computes a = l·q for a of m × n, with k = min(m, n): l is m × k with zeros above its diagonal, q is k × n with
// orthonormal rows. a is not changed. Errors: as QR.
func (w *Work) LQ(a []float64, m, n int, l, q []float64) error {
	if min(m, n) == 0 {
		return nil
	}
	exp, err := exponent(a[:m*n])
	if err != nil {
		return err
	}
	scaledA := buffer(&w.a, m*n)
	scale(scaledA, a[:m*n], -exp)
	w.lqScaled(scaledA, m, n, l, q)
	return scaleBack(l[:m*min(m, n)], exp)
}

// lqScaled computes a = l·q as LQ does, for a matrix whose largest entry is near 1. It destroys a.
func (w *Work) lqScaled(a []float64, m, n int, l, q []float64) {
	k := min(m, n)
	tau := buffer(&w.tau, k)
	work := w.workspace(func(work []float64, size int) { // as long as both calls below need
		impl.Dgelqf(m, n, a, n, tau, work, size)
		impl.Dorglq(k, n, k, a, n, tau, work, size)
	})

	// LAPACK leaves l below the diagonal of a, and the reflections that make q above it.
	impl.Dgelqf(m, n, a, n, tau, work, len(work))
	for i := range m {
		row := l[i*k : (i+1)*k]
		clear(row)
		copy(row[:min(i+1, k)], a[i*n:])
	}
	copy(q[:k*n], a[:k*n])
	impl.Dorglq(k, n, k, q, n, tau, work, len(work))
}
