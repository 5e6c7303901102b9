//go:build goexperiment.simd && amd64

package pairwise

// The innermost loops with AVX-512, where the processor has it: built with GOEXPERIMENT=simd.
// Products are fused into additions and the sums of a panel run over k in sequence, so results
// differ from the portable ones by the rounding of n terms, at most n·2^−53 relative to the sum of
// their absolute values.

import (
	"simd/archsimd"
)

// Nanoseconds per multiplication and addition.
const (
	perPanel = 0.06
	perBlend = 0.12
	perInner = 0.10
)

var vector = archsimd.X86.AVX512()

// Vector names the vector instructions in use, "" for none.
func Vector() string {
	if vector {
		return "AVX-512"
	}
	return ""
}

type lanes = archsimd.Float64x8

// addPanel is panelPortable 16 entries of four rows at a time.
func addPanel(out []float64, stride, rows, n int, s, v []float64, at []int, first bool) {
	if !vector {
		panelPortable(out, stride, rows, n, s, v, at, first)
		return
	}
	depth := len(at)
	for j := 0; j < n; j += 16 {
		m := min(16, n-j)
		r := 0
		for ; r+4 <= rows; r += 4 {
			o, c := out[r*stride+j:], s[r*depth:]
			if m == 16 {
				fourRows(o[:16], o[stride:][:16], o[2*stride:][:16], o[3*stride:][:16],
					c[:depth], c[depth:][:depth], c[2*depth:][:depth], c[3*depth:][:depth],
					v[j:], at, first)
				continue
			}
			for i := range 4 {
				partOfRow(o[i*stride:][:m], c[i*depth:][:depth], v[j:], at, first)
			}
		}
		for ; r < rows; r++ {
			if m == 16 {
				oneRow(out[r*stride+j:][:16], s[r*depth:][:depth], v[j:], at, first)
			} else {
				partOfRow(out[r*stride+j:][:m], s[r*depth:][:depth], v[j:], at, first)
			}
		}
	}
}

// fourRows computes 16 entries of four rows.
func fourRows(o0, o1, o2, o3, s0, s1, s2, s3, v []float64, at []int, first bool) {
	var a0, b0, a1, b1, a2, b2, a3, b3 lanes
	if !first {
		a0, b0 = archsimd.LoadFloat64x8Slice(o0), archsimd.LoadFloat64x8Slice(o0[8:])
		a1, b1 = archsimd.LoadFloat64x8Slice(o1), archsimd.LoadFloat64x8Slice(o1[8:])
		a2, b2 = archsimd.LoadFloat64x8Slice(o2), archsimd.LoadFloat64x8Slice(o2[8:])
		a3, b3 = archsimd.LoadFloat64x8Slice(o3), archsimd.LoadFloat64x8Slice(o3[8:])
	}
	n := len(at)
	s0, s1, s2, s3 = s0[:n], s1[:n], s2[:n], s3[:n]
	for k, p := range at {
		w := v[p:][:16]
		x := archsimd.LoadFloat64x8((*[8]float64)(w))
		y := archsimd.LoadFloat64x8((*[8]float64)(w[8:]))
		f := archsimd.BroadcastFloat64x8(s0[k])
		a0, b0 = f.MulAdd(x, a0), f.MulAdd(y, b0)
		f = archsimd.BroadcastFloat64x8(s1[k])
		a1, b1 = f.MulAdd(x, a1), f.MulAdd(y, b1)
		f = archsimd.BroadcastFloat64x8(s2[k])
		a2, b2 = f.MulAdd(x, a2), f.MulAdd(y, b2)
		f = archsimd.BroadcastFloat64x8(s3[k])
		a3, b3 = f.MulAdd(x, a3), f.MulAdd(y, b3)
	}
	a0.StoreSlice(o0)
	b0.StoreSlice(o0[8:])
	a1.StoreSlice(o1)
	b1.StoreSlice(o1[8:])
	a2.StoreSlice(o2)
	b2.StoreSlice(o2[8:])
	a3.StoreSlice(o3)
	b3.StoreSlice(o3[8:])
}

// oneRow computes 16 entries of a row.
func oneRow(out, s, v []float64, at []int, first bool) {
	var a, b lanes
	if !first {
		a, b = archsimd.LoadFloat64x8Slice(out), archsimd.LoadFloat64x8Slice(out[8:])
	}
	s = s[:len(at)]
	for k, p := range at {
		w := v[p:][:16]
		f := archsimd.BroadcastFloat64x8(s[k])
		a = f.MulAdd(archsimd.LoadFloat64x8((*[8]float64)(w)), a)
		b = f.MulAdd(archsimd.LoadFloat64x8((*[8]float64)(w[8:])), b)
	}
	a.StoreSlice(out)
	b.StoreSlice(out[8:])
}

// partOfRow computes fewer than 16 entries of a row.
func partOfRow(out, s, v []float64, at []int, first bool) {
	for len(out) > 0 {
		m := min(8, len(out))
		var a lanes
		if !first {
			a = archsimd.LoadFloat64x8SlicePart(out[:m])
		}
		for k, p := range at {
			part := archsimd.LoadFloat64x8SlicePart(v[p:][:m])
			a = archsimd.BroadcastFloat64x8(s[k]).MulAdd(part, a)
		}
		a.StoreSlicePart(out[:m])
		if m == len(out) {
			return
		}
		out, v = out[m:], v[m:]
	}
}

// blendRun is blendPortable 8 entries at a time.
func blendRun(out, a, b []float64, first bool) {
	n := len(out) &^ 7
	if !vector || n == 0 {
		blendPortable(out, a, b, first)
		return
	}
	o, p, q := out[:n], a[:n], b[:n]
	for len(o) >= 8 && len(p) >= 8 && len(q) >= 8 {
		x, y := archsimd.LoadFloat64x8((*[8]float64)(p)), archsimd.LoadFloat64x8((*[8]float64)(q))
		if first {
			x.Mul(y).Store((*[8]float64)(o))
		} else {
			x.MulAdd(y, archsimd.LoadFloat64x8((*[8]float64)(o))).Store((*[8]float64)(o))
		}
		o, p, q = o[8:], p[8:], q[8:]
	}
	if n < len(out) {
		blendPortable(out[n:], a[n:], b[n:], first)
	}
}

// blendTwoRuns is blendTwoPortable 8 entries at a time.
func blendTwoRuns(out, a, b, c, d []float64, first bool) {
	n := len(out) &^ 7
	if !vector || n == 0 {
		blendTwoPortable(out, a, b, c, d, first)
		return
	}
	o, p, q, r, s := out[:n], a[:n], b[:n], c[:n], d[:n]
	for len(o) >= 8 && len(p) >= 8 && len(q) >= 8 && len(r) >= 8 && len(s) >= 8 {
		w, x := archsimd.LoadFloat64x8((*[8]float64)(p)), archsimd.LoadFloat64x8((*[8]float64)(q))
		y, z := archsimd.LoadFloat64x8((*[8]float64)(r)), archsimd.LoadFloat64x8((*[8]float64)(s))
		t := y.MulAdd(z, w.Mul(x))
		if !first {
			t = t.Add(archsimd.LoadFloat64x8((*[8]float64)(o)))
		}
		t.Store((*[8]float64)(o))
		o, p, q, r, s = o[8:], p[8:], q[8:], r[8:], s[8:]
	}
	if n < len(out) {
		blendTwoPortable(out[n:], a[n:], b[n:], c[n:], d[n:], first)
	}
}

// dot returns Σ a·b, 16 sums at a time.
func dot(a, b []float64) float64 {
	b = b[:len(a)]
	if !vector || len(a) < 32 {
		return dotPortable(a, b)
	}
	var s0, s1 lanes
	for len(a) >= 16 && len(b) >= 16 {
		x0, y0 := archsimd.LoadFloat64x8((*[8]float64)(a)), archsimd.LoadFloat64x8((*[8]float64)(b))
		x1 := archsimd.LoadFloat64x8((*[8]float64)(a[8:]))
		y1 := archsimd.LoadFloat64x8((*[8]float64)(b[8:]))
		s0 = x0.MulAdd(y0, s0)
		s1 = x1.MulAdd(y1, s1)
		a, b = a[16:], b[16:]
	}
	var t [8]float64
	s0.Add(s1).Store(&t)
	return ((t[0] + t[1]) + (t[2] + t[3])) + ((t[4] + t[5]) + (t[6] + t[7])) + dotPortable(a, b)
}
