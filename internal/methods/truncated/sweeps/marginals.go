package sweeps

// Marginals from a sweep back.
//
// Let ψ_k be the state before step k and φ_k the linear form on it of the steps from k on: Z = ⟨φ_k, ψ_k⟩. φ_k is made of φ_{k+1} by the
// same operator, transposed, and compressed for itself. Then ⟨φ_k, ψ_k⟩ with index i held at v is the part of Z in which i is v. (Reverse
// differentiation with the projectors of the forward sweep held fixed is not the same: projectors keep the directions of the state, and
// the part of it with i = v may point elsewhere, even if nothing was dropped.)
//
// φ is less compressible than ψ if the plan was chosen for ψ. Measured, largest change of a marginal against χ=128: CSP_11 χ=32 5e-3,
// χ=64 2e-4 (with f alone as the gauge 3e-2 and 4e-3), where ln Z is right to 7e-9 and 5e-12.

import (
	"context"
	"fmt"
	"slices"

	"github.com/basetensor/basetensor/internal/base/linalg"
	"github.com/basetensor/basetensor/internal/methods/truncated/legs"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// sweepBack goes back over the steps with the chain of φ and returns the marginals by index. It returns nil if φ or a marginal has become 0
// or is not finite, and in a price.
func (s *sweep) sweepBack(ctx context.Context) ([][]float64, error) {
	c := &chain{scale: scaled.One, position: s.p.Position, work: s.work, isShared: true}
	var marginals [][]float64
	o := &overlap{work: s.work}
	if !s.isPrice() {
		var b [][]float64
		marginals = legs.UniformMarginals(s.h.Dims)
		s.gauge, b = backwardGauge(s.e, s.steps)
		o.weights = ungaugingWeights(s.forwardWeights, b)
	}
	for k := len(s.steps) - 1; k >= 0; k-- {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		st := &s.steps[k]
		isNonzero, err := s.stepBack(c, st)
		if err != nil {
			return nil, fmt.Errorf("sweeps: index %d, pass back: %w", st.index, err)
		}
		if !isNonzero {
			return nil, nil
		}
		if st.isLast && !s.isPrice() {
			if marginals[st.index] = o.marginal(c.sites, s.states[k], st.index); !legs.Normalise(marginals[st.index]) {
				return nil, nil
			}
		}
		if slices.Contains(st.enter, st.index) { // the first step of the index: before it, the chain has no site for it
			first, _ := c.find(s.p.Position[st.index])
			isNonzero, err = c.apply(first, identityOperator(s.h.Dims[st.index]), []bool{true}, &s.account)
			if err != nil || !isNonzero {
				return nil, err
			}
		}
	}
	s.account.value.Flops += o.flops
	return marginals, nil
}

// stepBack applies a step transposed. If the step sums its index out, the index enters. Other indices that entered at the step are summed
// out. It returns false if φ is 0.
func (s *sweep) stepBack(c *chain, st *step) (isNonzero bool, err error) {
	if st.isLast {
		c.insert(st.index, s.h.Dims[st.index])
	}
	overlapBytes := 0.0
	if s.isPrice() {
		overlapBytes = s.priceOverlap(c, st)
	}
	s.account.held += overlapBytes
	isNonzero, err = s.applyTables(c, st, func(j int) bool { return j != st.index && slices.Contains(st.enter, j) })
	s.account.held -= overlapBytes
	return isNonzero, err
}

// priceOverlap counts the flops of the overlap at a step, and returns its bytes. It takes the overlap to look at the step's span and a site
// on each side of it, and the bonds of the other chain to be as large as the largest of the forward sweep.
func (s *sweep) priceOverlap(c *chain, st *step) (bytes float64) {
	first, last := s.span(c, st)
	bond, largest := s.account.bond, s.account.largestBond
	s.account.value.Flops += 4 * bond * bond * min(bond, largest) * float64(s.h.Dims[st.index]*(last-first+3))
	bytes = 32 * largest
	for _, a := range c.sites {
		bytes += 32 * a.right * largest
	}
	return bytes
}

// ungaugingWeights returns 1/(f·b) by index, up to a factor for each index. In the overlap of two states it undoes their gauges f and b. It
// is nil for ones.
func ungaugingWeights(f, b [][]float64) [][]float64 {
	out, b := reciprocals(f), reciprocals(b)
	for j := range out {
		switch {
		case out[j] == nil:
			out[j] = b[j]
		case b[j] != nil:
			for x := range out[j] {
				out[j][x] *= b[j][x]
			}
			legs.Rescale(out[j])
		}
	}
	return out
}

// overlap computes the sum over all indices of the product of two chains with the same indices.
type overlap struct {
	endCache
	work    *linalg.Work
	weights [][]float64 // by index and value: weights of the sum over the index; nil for ones
	flops   float64
}

// marginal returns, for each value of index, Σ a·b over all other indices, up to a common power of 2.
func (o *overlap) marginal(a, b []*site, index int) []float64 {
	k := slices.IndexFunc(a, func(s *site) bool { return s.index == index })
	left, right := o.productsAround(a, b, k, o.extendRight, o.extendLeft)
	x, y := a[k], o.withWeights(b[k])
	l, d, r := x.sizes()
	ly, _, ry := y.sizes()
	// t = left·y and u = x·right, both over (left bond of x, value, right bond of y). The result is their product, summed over both bonds.
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

// withWeights returns a site times the weights of its index: a copy, or s if the weights are ones.
func (o *overlap) withWeights(s *site) *site {
	w := o.weights[s.index]
	if w == nil {
		return s
	}
	out := *s
	out.data = make([]float64, len(s.data))
	for k, v := range s.data {
		out.data[k] = v * w[k/int(s.right)%s.dim]
	}
	return &out
}

// mul computes c = a·b, m × k by k × n, and counts its flops.
func (o *overlap) mul(c, a, b []float64, m, k, n int) {
	o.work.Mul(c, a, b, m, k, n)
	o.flops += 2 * float64(m) * float64(k) * float64(n)
}

// extendRight extends the product of the left ends of two chains by the next pair of sites, a and b, to its right. With the weights w of
// their index it returns, over the right bonds r of a and s of b,
//
//	out[r, s] = Σ_{i, j, x} product[i, j] · a[i, x, r] · w[x]·b[j, x, s]
//
// in memory, if that is large enough.
func (o *overlap) extendRight(memory, product []float64, a, b *site) []float64 {
	l, d, r := a.sizes()
	ly, _, ry := b.sizes()
	t := make([]float64, l*d*ry)
	o.mul(t, product, o.withWeights(b).data, l, ly, d*ry)
	out := resized(memory, r*ry)
	o.work.MulTA(out, a.data, t, r, l*d, ry)
	o.flops += 2 * float64(len(out)) * float64(l*d)
	return out
}

// extendLeft extends the product of the right ends of two chains by the next pair of sites, a and b, to its left. With the weights w of
// their index it returns, over the left bonds i of a and j of b,
//
//	out[i, j] = Σ_{x, r, s} a[i, x, r] · product[r, s] · w[x]·b[j, x, s]
//
// in memory, if that is large enough.
func (o *overlap) extendLeft(memory, product []float64, a, b *site) []float64 {
	l, d, r := a.sizes()
	ly, _, ry := b.sizes()
	t := make([]float64, l*d*ry)
	o.mul(t, a.data, product, l*d, r, ry)
	out := resized(memory, l*ly)
	o.work.MulTB(out, t, o.withWeights(b).data, l, d*ry, ly)
	o.flops += 2 * float64(len(out)) * float64(d*ry)
	return out
}

// endCache keeps the products of the ends of a pair of chains. For the next pair it uses them again as far as the sites are the same. For
// single chains the second sites are nil.
type endCache struct {
	left, right []endProduct // left[k] is of the sites 0 to k, right[k] of the last k+1 sites
}

// endProduct is the contraction of an end of two chains, up to a power of 2.
type endProduct struct {
	a, b *site // the innermost sites
	data []float64
}

// emptyProduct is the product of no sites.
var emptyProduct = []float64{1}

// extension returns product extended by one more pair of sites. It may use memory for the result.
type extension func(memory, product []float64, a, b *site) []float64

// productsAround returns the products of all sites left of site k and of all sites right of it. extendRight and extendLeft compute those
// that are not in the cache. b is nil for a single chain.
func (o *endCache) productsAround(a, b []*site, k int, extendRight, extendLeft extension) (left, right []float64) {
	last := len(a) - 1
	pair := func(k int) (x, y *site) {
		if b != nil {
			y = b[k]
		}
		return a[k], y
	}
	o.left, left = updateProducts(o.left, k, pair, extendRight)
	o.right, right = updateProducts(o.right, last-k, func(k int) (*site, *site) { return pair(last - k) }, extendLeft)
	return left, right
}

// updateProducts makes the list of the products of the first 1 to n pairs of sites, and returns it with the last product. It keeps the
// products at the beginning of list whose pairs are the same, and computes the others by extend.
func updateProducts(
	list []endProduct, n int, pair func(k int) (*site, *site), extend extension,
) (updated []endProduct, last []float64) {
	valid := 0 // products that hold
	for valid < min(n, len(list)) {
		if a, b := pair(valid); list[valid].a != a || list[valid].b != b {
			break
		}
		valid++
	}
	list = list[:valid]
	last = emptyProduct
	if valid > 0 {
		last = list[valid-1].data
	}
	for k := valid; k < n; k++ {
		var memory []float64
		if k < cap(list) { // of the product that was here before
			memory = list[:k+1][k].data
		}
		a, b := pair(k)
		last = extend(memory, last, a, b)
		legs.Rescale(last)
		list = append(list, endProduct{a: a, b: b, data: last})
	}
	return list, last
}

// resized returns n numbers of any value, in the memory of a if that is large enough.
func resized(a []float64, n int) []float64 { return slices.Grow(a[:0], n)[:n] }
