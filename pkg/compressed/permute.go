package compressed

// Copies between layouts: any axes, strides added where an axis runs along a diagonal, 0 where it repeats.

// axis is one loop of a copy.
type axis struct{ dim, to, from int }

// walk calls f(to, from, n, ts, fs) for the innermost runs of a nest of loops, the last axis innermost.
func walk(axes []axis, f func(to, from, n, ts, fs int)) {
	axes = fuse(axes)
	if len(axes) == 0 {
		f(0, 0, 1, 1, 1)
		return
	}
	last := axes[len(axes)-1]
	outer := axes[:len(axes)-1]
	digits := make([]int, len(outer))
	to, from := 0, 0
	for {
		f(to, from, last.dim, last.to, last.from)
		i := len(outer) - 1
		for ; i >= 0; i-- {
			digits[i]++
			to += outer[i].to
			from += outer[i].from
			if digits[i] < outer[i].dim {
				break
			}
			to -= outer[i].dim * outer[i].to
			from -= outer[i].dim * outer[i].from
			digits[i] = 0
		}
		if i < 0 {
			return
		}
	}
}

// fuse drops axes of dimension 1 and joins axes that run through both layouts together.
func fuse(axes []axis) []axis {
	out := make([]axis, 0, len(axes))
	for _, x := range axes {
		if x.dim == 1 {
			continue
		}
		if l := len(out) - 1; l >= 0 && out[l].to == x.dim*x.to && out[l].from == x.dim*x.from {
			out[l] = axis{out[l].dim * x.dim, x.to, x.from}
			continue
		}
		out = append(out, x)
	}
	return out
}

// spread copies from one layout into another.
func spread(to, from []float64, axes []axis) {
	walk(axes, func(t, f, n, ts, fs int) {
		if ts == 1 && fs == 1 {
			copy(to[t:t+n], from[f:f+n])
			return
		}
		for range n {
			to[t] = from[f]
			t += ts
			f += fs
		}
	})
}

// contiguous says whether the copy would change nothing.
func contiguous(axes []axis) bool {
	f := fuse(axes)
	return len(f) == 0 || len(f) == 1 && f[0].to == 1 && f[0].from == 1
}

// array is entries with a label per axis, row-major.
type array struct {
	data   []float64
	labels []int32
}

// strides returns by label the distance of its entries in a, the sum over the axes with that label.
func (a array) strides(dims []int, out []int) []int {
	out = append(out[:0], make([]int, len(dims))...)
	s := 1
	for i := len(a.labels) - 1; i >= 0; i-- {
		out[a.labels[i]] += s
		s *= dims[a.labels[i]]
	}
	return out
}

func volume(dims []int, labels []int32) int {
	v := 1
	for _, l := range labels {
		v *= dims[l]
	}
	return v
}
