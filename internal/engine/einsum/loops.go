package einsum

// The innermost loops, over contiguous runs of equal length. b and d nil stand for ones.

func multiply(out, a, b []float64) {
	a, b = a[:len(out)], b[:len(out)]
	for i := range out {
		out[i] = a[i] * b[i]
	}
}

func set(out []float64, f float64, a, b []float64) {
	a = a[:len(out)]
	if b == nil {
		for i := range out {
			out[i] = f * a[i]
		}
		return
	}
	b = b[:len(out)]
	for i := range out {
		out[i] = f * a[i] * b[i]
	}
}

func add(out []float64, f float64, a, b []float64) {
	a = a[:len(out)]
	if b == nil {
		for i := range out {
			out[i] += f * a[i]
		}
		return
	}
	b = b[:len(out)]
	for i := range out {
		out[i] += f * a[i] * b[i]
	}
}

func setTwo(out []float64, f float64, a, b []float64, g float64, c, d []float64) {
	a, c = a[:len(out)], c[:len(out)]
	if b == nil {
		for i := range out {
			out[i] = f*a[i] + g*c[i]
		}
		return
	}
	b, d = b[:len(out)], d[:len(out)]
	if f == 1 && g == 1 {
		for i := range out {
			out[i] = a[i]*b[i] + c[i]*d[i]
		}
		return
	}
	for i := range out {
		out[i] = f*a[i]*b[i] + g*c[i]*d[i]
	}
}

func addTwo(out []float64, f float64, a, b []float64, g float64, c, d []float64) {
	a, c = a[:len(out)], c[:len(out)]
	if b == nil {
		for i := range out {
			out[i] += f*a[i] + g*c[i]
		}
		return
	}
	b, d = b[:len(out)], d[:len(out)]
	if f == 1 && g == 1 {
		for i := range out {
			out[i] += a[i]*b[i] + c[i]*d[i]
		}
		return
	}
	for i := range out {
		out[i] += f*a[i]*b[i] + g*c[i]*d[i]
	}
}
