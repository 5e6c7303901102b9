package kernel

// The loops in Go, fused and rounded.

import "math"

// rowFused computes o[j] ← o[j] + Σ_k s[k·step]·v[vRows[k]+j], j < Columns: one row of a product by a panel of columns. Each product and
// addition is rounded once.
func rowFused(o *[Columns]float64, s []float64, step int, v []float64, vRows []int) {
	o0, o1, o2, o3, o4, o5, o6, o7 := o[0], o[1], o[2], o[3], o[4], o[5], o[6], o[7]
	for k, begin := range vRows {
		f, w := s[k*step], (*[Columns]float64)(v[begin:])
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

// rowRounded computes o[j] ← o[j] + Σ_k s[k·step]·v[vRows[k]+j], j < Columns, as rowFused does, but rounds every product and every
// addition.
func rowRounded(o *[Columns]float64, s []float64, step int, v []float64, vRows []int) {
	o0, o1, o2, o3, o4, o5, o6, o7 := o[0], o[1], o[2], o[3], o[4], o[5], o[6], o[7]
	for k, begin := range vRows {
		f, w := s[k*step], (*[Columns]float64)(v[begin:])
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

// setProduct computes out ← (f·a)·b + 0 entry by entry. out may be a or b. Adding 0 makes −0 to 0, as in a sum that begins with 0.
func setProduct(out []float64, f float64, a, b []float64) {
	a, b = a[:len(out)], b[:len(out)]
	for i := range out {
		out[i] = float64(float64(f*a[i])*b[i]) + 0
	}
}

// addProductFused computes out ← (f·a)·b + out entry by entry, the last product and the addition rounded once.
func addProductFused(out []float64, f float64, a, b []float64) {
	a, b = a[:len(out)], b[:len(out)]
	for i := range out {
		out[i] = math.FMA(float64(f*a[i]), b[i], out[i])
	}
}

// addProductRounded computes out ← (f·a)·b + out entry by entry, every operation rounded.
func addProductRounded(out []float64, f float64, a, b []float64) {
	a, b = a[:len(out)], b[:len(out)]
	for i := range out {
		out[i] += float64(float64(f*a[i]) * b[i])
	}
}
