package linalg

// Thin QR decompositions by Householder reflections.

// QR computes a = q·r for a of m × n, with k = min(m, n): q is m × k with orthonormal columns, r is k × n with zeros
// below its diagonal (whose signs are arbitrary). a is not changed; q and r may not overlap it. Columns of zeros, and
// zero matrices, are as good as others; entries must be finite. About 4·m·n·k flops.
func (w *Work) QR(a []float64, m, n int, q, r []float64) {
	k := min(m, n)
	if k == 0 {
		return
	}
	f := room(&w.a, m*n)
	copy(f, a[:m*n])
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

// Upper computes only the factor r of a = q·r, k × n with k = min(m, n). It destroys a.
func (w *Work) Upper(a []float64, m, n int, r []float64) {
	k := min(m, n)
	if k == 0 {
		return
	}
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
// orthonormal rows. a is not changed.
func (w *Work) LQ(a []float64, m, n int, l, q []float64) {
	k := min(m, n)
	if k == 0 {
		return
	}
	f := room(&w.a, m*n)
	copy(f, a[:m*n])
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
