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

// sweepBack goes back over the steps with a second chain and returns the marginals by index. Before step k the chain is the linear form
// φ_k: Z = ⟨φ_k, ψ_k⟩ with the state ψ_k of the forward sweep. The product with one index held at a value is the part of Z with that value.
// It returns nil if φ or a marginal has become 0 or is not finite, and in a dry run.
func (s *sweep) sweepBack(ctx context.Context) ([][]float64, error) {
	// isShared: every step makes new sites and leaves the old ones unchanged, also in a dry run.
	c := &chain{scale: scaled.One, position: s.plan.Position, work: s.work, isShared: true}
	var marginals [][]float64
	product := &overlap{work: s.work} // of both chains
	if !s.isDryRun() {
		var backwardWeights [][]float64
		marginals = legs.UniformMarginals(s.hypergraph.Dims)
		s.gauge, backwardWeights = backwardGauge(s.expression, s.steps)
		product.weights = ungaugingWeights(s.forwardWeights, backwardWeights)
	}

	for k := range slices.Backward(s.steps) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		st := &s.steps[k]
		isNonzero, err := s.stepBack(c, st)
		if err != nil {
			return nil, fmt.Errorf("sweeps: index %d, pass back: %w", st.index, err)
		}
		if !isNonzero { // φ has become 0
			return nil, nil
		}

		// The last step of an index gives its marginal.
		if st.isLast && !s.isDryRun() {
			marginals[st.index] = product.marginal(c.sites, s.states[k], st.index)
			if !legs.Normalise(marginals[st.index]) {
				return nil, nil
			}
		}

		// Before the first step of an index the forward chain has no site for it: sum it out.
		if slices.Contains(st.enter, st.index) {
			isNonzero, err = s.sumOut(c, st.index)
			if err != nil || !isNonzero {
				return nil, err
			}
		}
	}
	s.account.value.Flops += product.flops
	return marginals, nil
}

// sumOut sums an index out of a chain that has it. isNonzero is false if the chain becomes 0.
func (s *sweep) sumOut(c *chain, index int) (isNonzero bool, err error) {
	site, _ := c.find(s.plan.Position[index]) // the chain has the index
	isSummed := []bool{true}                  // the only site of the operator
	return c.applyOperator(site, identityOperator(s.hypergraph.Dims[index]), isSummed, &s.account)
}

// stepBack applies the transpose of a step. If the step sums its index out, the index enters; other indices that enter at the step are
// summed out. isNonzero is false if the state becomes 0. A step of the forward sweep multiplies tables into the chain, with indices that
// enter the chain before, and sums one index out.
func (s *sweep) stepBack(c *chain, st *step) (isNonzero bool, err error) {
	if st.isLast {
		c.insert(st.index, s.hypergraph.Dims[st.index])
	}
	overlapBytes := 0.0
	if s.isDryRun() {
		overlapBytes = s.priceOverlap(c, st)
	}
	s.account.held += overlapBytes // while the step is counted
	isNonzero, err = s.applyTables(c, st, func(j int) bool { return j != st.index && slices.Contains(st.enter, j) })
	s.account.held -= overlapBytes
	return isNonzero, err
}

// priceOverlap adds the flops of the product of both chains at a step, and returns its bytes. It assumes that the product looks at the
// step's span (the sites of its tables' indices) and at a site on each side of it. The bonds of the other chain are taken to be as large as
// the largest bond of the forward sweep. A chain is the product of its sites, tensors with one index each.
func (s *sweep) priceOverlap(c *chain, st *step) (bytes float64) {
	first, last := s.tableSpan(c, st)
	bond, largest := s.account.bond, s.account.largestBond
	// The product looks at last−first+1 sites of the span and one on each side. Each takes two multiplications of matrices, at 2 flops for
	// each product of numbers.
	s.account.value.Flops += 4 * bond * bond * min(bond, largest) * float64(s.hypergraph.Dims[st.index]*(last-first+3))
	bytes = 32 * largest // for each bond an upper bound of the bytes of the products from the left and from the right
	for _, a := range c.sites {
		bytes += 32 * a.right * largest
	}
	return bytes
}

// ungaugingWeights returns 1/(f·b) by index and value, up to a factor for each index. In the product of a forward and a backward chain it
// undoes their gauges f and b. The weights of an index are nil if all are 1.
func ungaugingWeights(f, b [][]float64) [][]float64 {
	weights, inverseB := reciprocals(f), reciprocals(b)
	for j := range weights {
		switch {
		case weights[j] == nil:
			weights[j] = inverseB[j]
		case inverseB[j] != nil:
			for x := range weights[j] {
				weights[j][x] *= inverseB[j][x]
			}
			legs.Rescale(weights[j]) // weights count up to a factor only
		}
	}
	return weights
}

// overlap computes the sum over all indices of the product of two chains with the same indices.
type overlap struct {
	endCache
	work    *linalg.Work
	weights [][]float64 // by index and value: weights of the sum over the index; nil for ones
	flops   float64
}

// marginal returns, for each value of index, the product of the chains a and b summed over all other indices, up to a common power of 2. A
// chain is a product of sites, one for each index.
func (o *overlap) marginal(a, b []*site, index int) []float64 {
	k := slices.IndexFunc(a, func(s *site) bool { return s.index == index })
	left, right := o.productsAround(a, b, k, o.extendRight, o.extendLeft) // of all sites left and right of the index
	siteA, siteB := a[k], o.withWeights(b[k])
	leftA, dim, rightA := siteA.sizes()
	leftB, _, rightB := siteB.sizes()

	// t = left·siteB and u = siteA·right, both over (left bond of a, value, right bond of b). The result is t·u, summed over both bonds.
	t, u := make([]float64, leftA*dim*rightB), make([]float64, leftA*dim*rightB)
	o.mul(u, siteA.data, right, leftA*dim, rightA, rightB)
	o.mul(t, left, siteB.data, leftA, leftB, dim*rightB)
	sums := make([]float64, dim)
	for i := range leftA {
		for v := range dim {
			row := (i*dim + v) * rightB
			for j := range rightB {
				sums[v] += t[row+j] * u[row+j]
			}
		}
	}
	return sums
}

// withWeights returns a site multiplied by the weights of the values of its index. It returns s itself if these are all 1. A chain is the
// product of its sites, tensors with one index each.
func (o *overlap) withWeights(s *site) *site {
	weights := o.weights[s.index]
	if weights == nil {
		return s
	}
	weighted := *s
	weighted.data = make([]float64, len(s.data))
	for k, v := range s.data {
		weighted.data[k] = v * weights[k/int(s.right)%s.dim]
	}
	return &weighted
}

// mul computes c = a·b for matrices of m × k and k × n, and counts its flops.
func (o *overlap) mul(c, a, b []float64, m, k, n int) {
	o.work.Mul(c, a, b, m, k, n)
	o.flops += 2 * float64(m) * float64(k) * float64(n)
}

// extendRight extends the product of the left ends of two chains by the next pair of sites, a and b, to its right. With the weights w of
// their index it returns, over the right bonds r of a and s of b,
//
//	out[r, s] = Σ_{i, j, x} product[i, j] · a[i, x, r] · w[x]·b[j, x, s]
//
// The result is in memory, if that is large enough.
func (o *overlap) extendRight(memory, product []float64, a, b *site) []float64 {
	leftA, dim, rightA := a.sizes()
	leftB, _, rightB := b.sizes()
	t := make([]float64, leftA*dim*rightB) // product·w·b
	o.mul(t, product, o.withWeights(b).data, leftA, leftB, dim*rightB)
	out := resized(memory, rightA*rightB)
	o.work.MulTA(out, a.data, t, rightA, leftA*dim, rightB)
	o.flops += 2 * float64(len(out)) * float64(leftA*dim)
	return out
}

// extendLeft extends the product of the right ends of two chains by the next pair of sites, a and b, to its left. With the weights w of
// their index it returns, over the left bonds i of a and j of b,
//
//	out[i, j] = Σ_{x, r, s} a[i, x, r] · product[r, s] · w[x]·b[j, x, s]
//
// The result is in memory, if that is large enough.
func (o *overlap) extendLeft(memory, product []float64, a, b *site) []float64 {
	leftA, dim, rightA := a.sizes()
	leftB, _, rightB := b.sizes()
	t := make([]float64, leftA*dim*rightB) // a·product
	o.mul(t, a.data, product, leftA*dim, rightA, rightB)
	out := resized(memory, leftA*leftB)
	o.work.MulTB(out, t, o.withWeights(b).data, leftA, dim*rightB, leftB)
	o.flops += 2 * float64(len(out)) * float64(dim*rightB)
	return out
}

// endCache keeps the products of the ends of a pair of chains, up to each site. For the next pair of chains it uses them again as far as
// the sites are the same. For a single chain the sites of the second one are nil.
type endCache struct {
	left, right []endProduct // left[k] is of the sites 0 to k, right[k] of the last k+1 sites
}

// endProduct is the product of an end of two chains, summed over the indices of the end, up to a power of 2.
type endProduct struct {
	a, b *site // the innermost sites of the end
	data []float64
}

// emptyProduct is the product of no sites.
var emptyProduct = []float64{1}

// extension returns the product of an end of two chains, extended by the next pair of sites a and b. It may use memory for the result.
type extension func(memory, product []float64, a, b *site) []float64

// productsAround returns the product of the ends of chains a and b left of site k, and that right of it. extendRight and extendLeft compute
// the products that are not in the cache. b is nil for a single chain. A chain is a product of sites, one for each index.
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

// updateProducts returns the list of the products of the first 1, 2 … n pairs of sites, each up to a power of 2, and the last product of
// the list. pair(k) is the k-th pair. Products at the beginning of list whose pairs are the same are kept, and extend computes the others,
// each from the one before. list is changed. A chain is the product of its sites, tensors with one index each.
func updateProducts(
	list []endProduct, n int, pair func(k int) (*site, *site), extend extension,
) (updated []endProduct, last []float64) {
	valid := 0 // number of products of the same pairs
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
		if k < cap(list) { // use the memory of the product that was here before
			memory = list[:k+1][k].data
		}
		a, b := pair(k)
		last = extend(memory, last, a, b)
		legs.Rescale(last) // the power of 2 does not matter
		list = append(list, endProduct{a: a, b: b, data: last})
	}
	return list, last
}

// resized returns a slice of n numbers with any content, in the memory of a if that is large enough.
func resized(a []float64, n int) []float64 { return slices.Grow(a[:0], n)[:n] }
