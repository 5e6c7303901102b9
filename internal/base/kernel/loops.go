package kernel

// The loops in Go, fused and rounded.

import "math"

// rowFused adds to a panel's row of the result: Σ_k s[k·step]·v[at[k]+j].
func rowFused(o *[Columns]float64, s []float64, step int, v []float64, at []int) {
	o0, o1, o2, o3, o4, o5, o6, o7 := o[0], o[1], o[2], o[3], o[4], o[5], o[6], o[7]
	for k, from := range at {
		f, w := s[k*step], (*[Columns]float64)(v[from:])
		o0 = math.FMA(f, w[0], o0)
		o1 = math.FMA(f, w[1], o1)
		o2 = math.FMA(f, w[2], o2)
		o3 = math.FMA(f, w[3], o3)
		o4 = math.FMA(f, w[4], o4)
		o5 = math.FMA(f, w[5], o5)
		o6 = math.FMA(f, w[6], o6)
		o7 = math.FMA(f, w[7], o7)
	}
	*o = [Columns]float64{o0, o1, o2, o3, o4, o5, o6, o7}
}

// rowRounded is rowFused with every operation rounded.
func rowRounded(o *[Columns]float64, s []float64, step int, v []float64, at []int) {
	o0, o1, o2, o3, o4, o5, o6, o7 := o[0], o[1], o[2], o[3], o[4], o[5], o[6], o[7]
	for k, from := range at {
		f, w := s[k*step], (*[Columns]float64)(v[from:])
		o0 += float64(f * w[0])
		o1 += float64(f * w[1])
		o2 += float64(f * w[2])
		o3 += float64(f * w[3])
		o4 += float64(f * w[4])
		o5 += float64(f * w[5])
		o6 += float64(f * w[6])
		o7 += float64(f * w[7])
	}
	*o = [Columns]float64{o0, o1, o2, o3, o4, o5, o6, o7}
}

// setProduct is out ← (f·a)·b + 0, where out may be a or b: a chain begins with 0, so −0 becomes 0.
func setProduct(out []float64, f float64, a, b []float64) {
	a, b = a[:len(out)], b[:len(out)]
	for i := range out {
		out[i] = float64(float64(f*a[i])*b[i]) + 0
	}
}

// addProductFused is out ← (f·a)·b + out.
func addProductFused(out []float64, f float64, a, b []float64) {
	a, b = a[:len(out)], b[:len(out)]
	for i := range out {
		out[i] = math.FMA(float64(f*a[i]), b[i], out[i])
	}
}

// addProductRounded is out ← (f·a)·b + out, every operation rounded.
func addProductRounded(out []float64, f float64, a, b []float64) {
	a, b = a[:len(out)], b[:len(out)]
	for i := range out {
		out[i] += float64(float64(f*a[i]) * b[i])
	}
}
