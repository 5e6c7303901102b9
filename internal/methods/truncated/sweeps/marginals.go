package sweeps

// Marginals from a pass back.
//
// Let ψ_k be the state before step k and φ_k the linear form on it of the steps from k on: Z = ⟨φ_k, ψ_k⟩. φ_k is made of φ_{k+1} by the
// same operator, transposed, and compressed for itself. Then ⟨φ_k, ψ_k⟩ with index i held at v is the part of Z in which i is v. (Reverse
// differentiation with the projectors of the pass forward held fixed is not the same: projectors keep the directions of the state, and
// the part of it with i = v may point elsewhere, even where nothing was dropped.)
//
// φ is less compressible than ψ where a plan was chosen for ψ. Measured, largest change of a marginal against χ=128: CSP_11 χ=32 5e-3,
// χ=64 2e-4 (with f alone as the gauge 3e-2 and 4e-3), where ln Z is right to 7e-9 and 5e-12.

import (
	"context"
	"fmt"
	"slices"

	"github.com/basetensor/basetensor/internal/base/linalg"
	"github.com/basetensor/basetensor/internal/methods/truncated/legs"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// back sweeps back and returns the marginals; nil where nothing is left of the transposed state.
func (s *sweep) back(ctx context.Context) ([][]float64, error) {
	c := &chain{scale: scaled.One, place: s.p.Position, w: s.w, shared: true}
	var out [][]float64
	o := &overlap{w: s.w}
	if s.e != nil {
		var b [][]float64
		out = legs.UniformMarginals(s.h.Dims)
		s.gauge, b = backwardGauge(s.e, s.steps)
		o.weights = inverseProduct(s.f, b)
	}
	for k := len(s.steps) - 1; k >= 0; k-- {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		st := &s.steps[k]
		alive, err := s.backward(c, st)
		if err != nil {
			return nil, fmt.Errorf("sweeps: index %d, pass back: %w", st.index, err)
		}
		if !alive {
			return nil, nil
		}
		if st.last && s.e != nil {
			if out[st.index] = o.open(c.sites, s.states[k], st.index); !legs.Normalise(out[st.index]) {
				return nil, nil
			}
		}
		if slices.Contains(st.enter, st.index) {
			first, _ := c.find(s.p.Position[st.index])
			if alive, err = c.apply(first, passing(s.h.Dims[st.index]), []bool{true}, &s.lim); err != nil || !alive {
				return nil, err
			}
		}
	}
	s.lim.value.Flops += o.flops
	return out, nil
}

// backward applies a step transposed: its summed index enters, and the indices that entered, but for its own, are summed out. In a price
// an overlap counts as if it looked at the step's span and a site on either side of it, with bonds of the largest on the other chain.
func (s *sweep) backward(c *chain, st *step) (bool, error) {
	if st.last {
		c.insert(st.index, s.h.Dims[st.index])
	}
	first, last := s.span(c, st)
	extra := 0.0 // bytes of the products
	if b := s.lim.bond; s.e == nil {
		s.lim.value.Flops += 4 * b * b * min(b, s.lim.largest) * float64(s.h.Dims[st.index]*(last-first+3))
		extra = 32 * s.lim.largest
		for _, a := range c.sites {
			extra += 32 * a.r * s.lim.largest
		}
	}
	s.lim.held += extra
	alive, err := s.multiply(c, st, func(j int) bool { return j != st.index && slices.Contains(st.enter, j) })
	s.lim.held -= extra
	return alive, err
}

// inverseProduct returns 1/(f·b) by index, which undoes the gauges of two states in their overlap.
func inverseProduct(f, b [][]float64) [][]float64 {
	f, b = inverse(f), inverse(b)
	for j := range f {
		switch {
		case f[j] == nil:
			f[j] = b[j]
		case b[j] != nil:
			for x := range f[j] {
				f[j][x] *= b[j][x]
			}
			legs.Rescale(f[j])
		}
	}
	return f
}

// overlap multiplies two chains over the same indices.
type overlap struct {
	ends
	w       *linalg.Work
	weights [][]float64 // by index: weights of the sum over it, nil for ones
	flops   float64
}

// open returns Σ a·b over all indices but one, up to a common power of 2.
func (o *overlap) open(a, b []*site, index int) []float64 {
	at := slices.IndexFunc(a, func(s *site) bool { return s.index == index })
	left, right := o.reach(a, b, at, o.fromLeft, o.fromRight)
	x, y := a[at], o.weighted(b[at])
	l, d, r := x.sizes()
	ly, _, ry := y.sizes()
	// u = b·right and t = left·a over the bonds; the rest is a sum over both, for every value of the index.
	t, u := make([]float64, l*d*ry), make([]float64, l*d*ry)
	o.mul(u, x.data, right, l*d, r, ry)
	o.mul(t, left, y.data, l, ly, d*ry)
	out := make([]float64, d)
	for i := range l {
		for v := range d {
			row := (i*d + v) * ry
			for j := range ry {
				out[v] += t[row+j] * u[row+j]
			}
		}
	}
	return out
}

// weighted returns a site with the weights of its index.
func (o *overlap) weighted(s *site) *site {
	w := o.weights[s.index]
	if w == nil {
		return s
	}
	out := *s
	out.data = make([]float64, len(s.data))
	for k, v := range s.data {
		out.data[k] = v * w[k/int(s.r)%s.d]
	}
	return &out
}

// mul computes c = a·b, m × k by k × n, and counts its flops.
func (o *overlap) mul(c, a, b []float64, m, k, n int) {
	o.w.Mul(c, a, b, m, k, n)
	o.flops += 2 * float64(m) * float64(k) * float64(n)
}

// fromLeft takes a product past one more site on its right: out = aᵀ·(before·b).
func (o *overlap) fromLeft(out, before []float64, a, b *site) []float64 {
	l, d, r := a.sizes()
	ly, _, ry := b.sizes()
	t := make([]float64, l*d*ry)
	o.mul(t, before, o.weighted(b).data, l, ly, d*ry)
	out = resized(out, r*ry)
	o.w.MulTA(out, a.data, t, r, l*d, ry)
	o.flops += 2 * float64(len(out)) * float64(l*d)
	return out
}

// fromRight takes a product past one more site on its left: out = (a·before)·bᵀ.
func (o *overlap) fromRight(out, before []float64, a, b *site) []float64 {
	l, d, r := a.sizes()
	ly, _, ry := b.sizes()
	t := make([]float64, l*d*ry)
	o.mul(t, a.data, before, l*d, r, ry)
	out = resized(out, l*ly)
	o.w.MulTB(out, t, o.weighted(b).data, l, d*ry, ly)
	o.flops += 2 * float64(len(out)) * float64(d*ry)
	return out
}

// ends keeps the products of a pair of chains from either end, and uses them again as far as they hold for the next pair. Of a chain
// alone the second sites are nil.
type ends struct {
	left, right []end // left[k] is of sites 0 to k, right[k] of the last k+1 sites
}

// end is the contraction of an end of the chains, up to a power of 2.
type end struct {
	a, b *site // the innermost sites
	data []float64
}

var one = []float64{1}

// taking takes a product past one more pair of sites, in the room of out.
type taking func(out, before []float64, a, b *site) []float64

// reach returns the products on either side of a site.
func (o *ends) reach(a, b []*site, at int, fromLeft, fromRight taking) (left, right []float64) {
	n := len(a)
	pair := func(k int) (x, y *site) {
		if b != nil {
			y = b[k]
		}
		return a[k], y
	}
	o.left, left = extend(o.left, at, pair, fromLeft)
	o.right, right = extend(o.right, n-1-at, func(k int) (*site, *site) { return pair(n - 1 - k) }, fromRight)
	return left, right
}

// extend keeps the products that still hold, adds those up to n, and returns the last too.
func extend(list []end, n int, pair func(k int) (*site, *site), next taking) ([]end, []float64) {
	keep := 0
	for keep < min(n, len(list)) {
		if a, b := pair(keep); list[keep].a != a || list[keep].b != b {
			break
		}
		keep++
	}
	list = list[:keep]
	last := one
	if keep > 0 {
		last = list[keep-1].data
	}
	for k := keep; k < n; k++ {
		var room []float64
		if k < cap(list) {
			room = list[:k+1][k].data
		}
		a, b := pair(k)
		last = next(room, last, a, b)
		legs.Rescale(last)
		list = append(list, end{a: a, b: b, data: last})
	}
	return list, last
}

func resized(a []float64, n int) []float64 { return slices.Grow(a[:0], n)[:n] }
