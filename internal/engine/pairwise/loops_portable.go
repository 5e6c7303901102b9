package pairwise

// The innermost loops in plain Go.

// panelPortable adds S·V to out, or sets it: row r of the result begins at out[r·stride], row k of
// V at v[at[k]], and S[r, k] is s[r·len(at)+k]. Two rows and four values of the sum at a time; the
// sequence of the additions does not depend on how rows are shared out.
func panelPortable(out []float64, stride, rows, n int, s, v []float64, at []int, first bool) {
	depth := len(at)
	k := 0
	if first {
		for r := range rows {
			setRow(out[r*stride:][:n], s[r*depth:][:depth], v, at)
		}
		k = min(depth, 4)
	}

	for ; k+4 <= depth; k += 4 {
		v0, v1, v2, v3 := v[at[k]:][:n], v[at[k+1]:][:n], v[at[k+2]:][:n], v[at[k+3]:][:n]
		r := 0
		for ; r+2 <= rows; r += 2 {
			a, b := s[r*depth+k:][:4], s[(r+1)*depth+k:][:4]
			addTwoRows(out[r*stride:][:n], out[(r+1)*stride:][:n], v0, v1, v2, v3,
				a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3])
		}
		if r < rows {
			a := s[r*depth+k:][:4]
			addRow(out[r*stride:][:n], v0, v1, v2, v3, a[0], a[1], a[2], a[3])
		}
	}

	for ; k < depth; k++ {
		for r := range rows {
			axpy(out[r*stride:][:n], s[r*depth+k], v[at[k]:])
		}
	}
}

// setRow sets a row to the first values of the sum, at most four.
func setRow(out, s, v []float64, at []int) {
	n := len(out)
	x := v[at[0]:][:n]
	switch a := s[0]; min(len(at), 4) {
	case 1:
		for i := range out {
			out[i] = a * x[i]
		}
	case 2:
		y, b := v[at[1]:][:n], s[1]
		for i := range out {
			out[i] = a*x[i] + b*y[i]
		}
	case 3:
		y, b := v[at[1]:][:n], s[1]
		z, c := v[at[2]:][:n], s[2]
		for i := range out {
			out[i] = a*x[i] + b*y[i] + c*z[i]
		}
	default:
		y, b := v[at[1]:][:n], s[1]
		z, c := v[at[2]:][:n], s[2]
		w, d := v[at[3]:][:n], s[3]
		for i := range out {
			out[i] = (a*x[i] + b*y[i]) + (c*z[i] + d*w[i])
		}
	}
}

// addTwoRows adds four rows of V to two rows of the result, with the weights a and b.
func addTwoRows(o0, o1, v0, v1, v2, v3 []float64, a0, a1, a2, a3, b0, b1, b2, b3 float64) {
	n := len(o0)
	o1, v0, v1, v2, v3 = o1[:n], v0[:n], v1[:n], v2[:n], v3[:n]
	for i := range o0 {
		x0, x1, x2, x3 := v0[i], v1[i], v2[i], v3[i]
		o0[i] = o0[i] + ((a0*x0 + a1*x1) + (a2*x2 + a3*x3))
		o1[i] = o1[i] + ((b0*x0 + b1*x1) + (b2*x2 + b3*x3))
	}
}

// addRow adds four rows of V to one row of the result.
func addRow(o, v0, v1, v2, v3 []float64, a0, a1, a2, a3 float64) {
	n := len(o)
	v0, v1, v2, v3 = v0[:n], v1[:n], v2[:n], v3[:n]
	for i := range o {
		o[i] = o[i] + ((a0*v0[i] + a1*v1[i]) + (a2*v2[i] + a3*v3[i]))
	}
}

// axpy adds a·x to out.
func axpy(out []float64, a float64, x []float64) {
	x = x[:len(out)]
	for i := range out {
		out[i] += a * x[i]
	}
}

// blendPortable adds the product of two runs to out, or sets it.
func blendPortable(out, a, b []float64, first bool) {
	n := len(out)
	a, b = a[:n], b[:n]
	if first {
		for i := range out {
			out[i] = a[i] * b[i]
		}
		return
	}
	for i := range out {
		out[i] += a[i] * b[i]
	}
}

// blendTwoPortable adds the products of two pairs of runs to out, or sets it.
func blendTwoPortable(out, a, b, c, d []float64, first bool) {
	n := len(out)
	a, b, c, d = a[:n], b[:n], c[:n], d[:n]
	if first {
		for i := range out {
			out[i] = a[i]*b[i] + c[i]*d[i]
		}
		return
	}
	for i := range out {
		out[i] += a[i]*b[i] + c[i]*d[i]
	}
}

// dotPortable returns Σ a·b, four sums at a time.
func dotPortable(a, b []float64) float64 {
	b = b[:len(a)]
	var s0, s1, s2, s3 float64
	for len(a) >= 4 && len(b) >= 4 {
		s0 += a[0] * b[0]
		s1 += a[1] * b[1]
		s2 += a[2] * b[2]
		s3 += a[3] * b[3]
		a, b = a[4:], b[4:]
	}
	for i := range a {
		s0 += a[i] * b[i]
	}
	return (s0 + s1) + (s2 + s3)
}
