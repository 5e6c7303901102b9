package minibuckets

// The bounds themselves: messages in logarithms, one mini-bucket after the other.

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Bound is a bound of a sum, with its mini-buckets.
type Bound struct {
	Ln float64 // ln of the bound, in nats. It includes an allowance for rounding, so that it is a bound for certain

	magnitude float64 // Σ over all tables and shifts of the size of the largest logarithm, by which rounding is bounded

	plan   *Plan
	minis  [][]weightedMini // by position in the order, then by mini-bucket
	tables []table          // the tables of the expression, then the messages
}

// table has the logarithms of a table's entries, with the last index of the scope fastest.
type table struct {
	scope []int // its indices
	ln    []float64
}

// weightedMini is what a run adds to a mini-bucket of the plan.
type weightedMini struct {
	weight  float64 // w in the inequality of Hölder
	shifts  []table // the functions that match has added to it, each over another set of indices
	message int     // the number of its message in Bound.tables: its product with the index summed out
}

// maximumWeight is the sum w of the weights of the mini-buckets of an index that is maximised over: (Σ_x f^{1/w})^w ≥ max f. Its logarithm
// is above that of the maximum by at most w · ln of the domain.
const maximumWeight = 0x1p-40

// slack bounds the effect of rounding on a bound, per table and per nat of Bound.magnitude.
const slack = 1e-13

// Run bounds an expression whose shape the plan is for. If below is 0 it returns a bound from above. Else it returns one from below, by the
// weights −below for all mini-buckets of an index but the first. Errors: fault.Unsupported for an entry below 0; the context's, which is
// looked at once per mini-bucket. Cost: Plan.Flops and Plan.Bytes. A mini-bucket is some of the tables of an index, which are multiplied.
func Run(ctx context.Context, e *sumproduct.Expression, p *Plan, below float64) (*Bound, error) {
	if e.Signed() {
		return nil, fault.New(fault.Unsupported, "minibuckets: an entry is below 0")
	}
	if err := e.CheckFit(); err != nil {
		return nil, err
	}
	b := &Bound{Ln: e.Scale.LogAbs(), plan: p, minis: make([][]weightedMini, len(p.Order))}
	b.magnitude = math.Abs(b.Ln)
	b.loadTables(e)
	for k := range p.Order {
		if err := b.eliminate(ctx, k, below); err != nil {
			return nil, err
		}
	}

	// Move the bound outwards by what rounding may have changed.
	allowance := slack * (b.magnitude + math.Abs(b.Ln) + float64(len(b.tables)))
	if below > 0 {
		allowance = -allowance
	}
	if !math.IsInf(b.Ln, -1) {
		b.Ln += allowance
	}
	return b, nil
}

// loadTables appends the logarithms of an expression's tables to b.tables, and adds those of tables without indices to b.Ln. It adds the
// size of the largest logarithm of each table to b.magnitude, by which rounding is bounded.
func (b *Bound) loadTables(e *sumproduct.Expression) {
	for _, t := range e.Tables {
		logs := table{scope: t.Scope, ln: make([]float64, len(t.Data))}
		largest := 0.0 // the size of the largest logarithm of an entry that is not 0
		for k, x := range t.Data {
			if logs.ln[k] = floats.Ln(x); x > 0 {
				if t.Exp != nil {
					logs.ln[k] += float64(t.Exp[k]) * math.Ln2
				}
				largest = max(largest, math.Abs(logs.ln[k]))
			}
		}
		b.magnitude += largest
		b.tables = append(b.tables, logs)
		if len(t.Scope) == 0 {
			b.Ln += logs.ln[0]
		}
	}
}

// eliminate sums the index at position k of the order out of the products of its mini-buckets, each with its weight in Hölder's inequality,
// and appends the messages that come out to b.tables. Messages without indices are added to b.Ln. below is 0 for a bound from above. For a
// bound from below, all mini-buckets but the first have the weight −below. A mini-bucket is some of the tables of an index, which are
// multiplied.
func (b *Bound) eliminate(ctx context.Context, k int, below float64) error {
	p, i := b.plan, b.plan.Order[k]
	minis, totalWeight := p.buckets[k], 1.0 // 1: a sum; near 0: (Σ f^{1/w})^w is near the maximum
	if p.Maximal != nil && p.Maximal[i] {
		totalWeight = maximumWeight
	}
	if len(minis) == 0 { // no table has the index: the sum of 1 over its values
		b.Ln += totalWeight * math.Log(float64(p.dims[i]))
		return nil
	}

	weighted := make([]weightedMini, len(minis))
	b.minis[k] = weighted
	products := make([][]float64, len(minis)) // in logarithms
	for r := range minis {
		if err := ctx.Err(); err != nil {
			return err
		}
		weighted[r].weight = hoelderWeight(r, len(minis), totalWeight, below)
		products[r] = b.product(&minis[r])
	}
	if below == 0 {
		if err := b.matchMoments(ctx, k, products); err != nil {
			return err
		}
	}

	// Messages. The index is the last one of each mini-bucket.
	for r := range minis {
		message := table{scope: minis[r].scope[:len(minis[r].scope)-1], ln: powerSums(products[r], p.dims[i], weighted[r].weight)}
		weighted[r].message = len(b.tables)
		b.tables = append(b.tables, message)
		if len(message.scope) == 0 {
			b.Ln += message.ln[0]
		}
	}
	return nil
}

// hoelderWeight returns the weight of mini-bucket r of n. For a bound from above (below = 0) all have equal weights, which add up to total.
// For one from below, the first has the weight 1 + (n−1)·below and all others −below, which add up to 1. A mini-bucket is some of the
// tables of an index, which are multiplied.
func hoelderWeight(r, n int, total, below float64) float64 {
	switch {
	case below > 0 && r == 0:
		return 1 + below*float64(n-1)
	case below > 0:
		return -below
	}
	return total / float64(n)
}

// matchMoments moves factors between the products at position k of the order (match), which tightens a bound from above.
func (b *Bound) matchMoments(ctx context.Context, k int, products [][]float64) error {
	for range sweeps(b.plan.moves[k]) { // twice, or once for a single move
		for _, m := range b.plan.moves[k] {
			if err := ctx.Err(); err != nil {
				return err
			}
			b.match(k, m, products)
		}
	}
	return nil
}

// maxInner is the largest number of entries in a block of walkBlocks.
const maxInner = 256

// product returns the logarithm of the product of a mini-bucket's tables, over its scope.
func (b *Bound) product(m *mini) []float64 {
	product := make([]float64, sumproduct.Size(b.plan.dims, m.scope))
	for _, t := range m.tables {
		addLogs(product, m.scope, b.tables[t], b.plan.dims)
	}
	return product
}

// addLogs adds the logarithms of t, whose indices are some of scope, to those of a product over scope.
func addLogs(product []float64, scope []int, t table, dims []int) {
	walkBlocks(scope, t.scope, dims, func(first, base int, offsets []int) {
		block, entries := product[first:first+len(offsets)], t.ln[base:]
		for j, offset := range offsets {
			block[j] += entries[offset]
		}
	})
}

// walkBlocks visits all entries of a table over scope in sequence, a block at a time, with their positions in a smaller table over
// subscope, which has some of the indices. Entry first+j of the table has the position base+offsets[j] in the smaller one. offsets is the
// same list for every block.
func walkBlocks(scope, subscope, dims []int, visit func(first, base int, offsets []int)) {
	outer, inner := len(scope), 1 // a block has the indices from outer on, and inner entries
	for outer > 0 && inner*dims[scope[outer-1]] <= maxInner {
		outer--
		inner *= dims[scope[outer]]
	}
	entries := sumproduct.Size(dims, scope)
	stride := sumproduct.AxisStrides(dims, subscope, scope)
	offsets := make([]int, 1, inner)
	for k, i := range scope[outer:] {
		offsets = sumproduct.ExpandOffsets(offsets, dims[i], stride[outer+k])
	}
	w := sumproduct.NewWalk(dims, scope[:outer], subscope)
	for first := 0; first < entries; first += inner {
		visit(first, w.Position[0], offsets)
		w.Next()
	}
}

// match makes the weighted marginals of the mini-buckets m.between agree over the indices m.shared (moment matching): it adds a function of
// these indices, a shift, to each mini-bucket at position k. The shifts add up to 0, so the bound stays one and becomes tighter. If a
// mini-bucket is 0 for some values, all become 0 there, as their product is. products has the logarithms of the mini-buckets' products, and
// is updated.
func (b *Bound) match(k int, m move, products [][]float64) {
	// The marginals, and their weighted sum.
	minis, n := b.minis[k], sumproduct.Size(b.plan.dims, m.shared)
	weightedSum, totalWeight := make([]float64, n), 0.0
	marginals := make([][]float64, len(m.between))
	for j, r := range m.between {
		marginals[j] = b.weightedMarginals(k, r, m.shared, products[r])
		for a, x := range marginals[j] {
			weightedSum[a] += minis[r].weight * x
		}
		totalWeight += minis[r].weight
	}

	// The shift of mini-bucket r is weight_r · (mean − marginal_r), in the memory of the marginal.
	shifts := marginals
	shiftSum := make([]float64, n) // of the mini-buckets before
	last := len(m.between) - 1
	for j, r := range m.between {
		largest := 0.0
		for a, marginal := range shifts[j] {
			switch {
			case math.IsInf(weightedSum[a], -1):
				shifts[j][a] = weightedSum[a]
				continue
			case j < last:
				shifts[j][a] = minis[r].weight * (weightedSum[a]/totalWeight - marginal)
			default: // so that the sum is 0 up to a rounding
				shifts[j][a] = -shiftSum[a]
			}
			shiftSum[a] += shifts[j][a]
			largest = max(largest, math.Abs(shifts[j][a]))
		}
		b.magnitude += largest
		shift := table{m.shared, shifts[j]}
		addLogs(products[r], b.plan.buckets[k][r].scope, shift, b.plan.dims)
		minis[r].addShift(shift)
	}
}

// addShift adds t to the mini-bucket's shift over the same indices or, if there is none, to the list of shifts. A shift is a function that
// moves a factor from one mini-bucket, some of the tables of an index, to another.
func (m *weightedMini) addShift(t table) {
	for _, shift := range m.shifts {
		if slices.Equal(shift.scope, t.scope) {
			for a, x := range t.ln {
				shift.ln[a] += x
			}
			return
		}
	}
	m.shifts = append(m.shifts, t)
}

// weightedMarginals returns ln Σ f^{1/w} as a table over the shared indices, where the sum is over the other indices of mini-bucket r at
// position k. product has the logarithms of its product f, and w is its weight. A mini-bucket is some of the tables of an index, which are
// multiplied.
func (b *Bound) weightedMarginals(k, r int, shared []int, product []float64) []float64 {
	scope, dims := b.plan.buckets[k][r].scope, b.plan.dims
	n, w := sumproduct.Size(dims, shared), b.minis[k][r].weight

	// The largest logarithm of each sum, relative to which the exponentials are taken.
	top := make([]float64, n)
	for a := range top {
		top[a] = math.Inf(-1)
	}
	walkBlocks(scope, shared, dims, func(first, base int, offsets []int) {
		block, tops := product[first:first+len(offsets)], top[base:]
		for j, offset := range offsets {
			tops[offset] = max(tops[offset], block[j])
		}
	})

	sums := make([]float64, n)
	walkBlocks(scope, shared, dims, func(first, base int, offsets []int) {
		block, totals, tops := product[first:first+len(offsets)], sums[base:], top[base:]
		for j, offset := range offsets {
			if x := block[j]; !math.IsInf(x, -1) {
				totals[offset] += math.Exp((x - tops[offset]) / w)
			}
		}
	})
	for a, x := range sums {
		sums[a] = top[a]/w + floats.Ln(x)
	}
	return sums
}

// powerSums returns w ln Σ_a f(·, a)^{1/w}, the message of a mini-bucket with the product f and the weight w. f has logarithms, and its
// last and fastest index a has d values. A mini-bucket is some of the tables of an index; f is their product.
func powerSums(f []float64, d int, w float64) []float64 {
	out := make([]float64, len(f)/d)
	for k := range out {
		row := f[k*d : (k+1)*d]
		top := math.Inf(-1)
		for _, x := range row {
			top = max(top, x/w)
		}
		if math.IsInf(top, 0) {
			out[k] = w * top
			continue
		}
		sum := 0.0
		for _, x := range row {
			sum += math.Exp(x/w - top)
		}
		out[k] = w * (top + math.Log(sum))
	}
	return out
}

// Draw draws a state x with the density q of an upper bound, and returns ln of its weight ψ(x)/q(x). The weight is at most the bound, and
// its mean is Z. q is the mixture of the mini-buckets, index by index in reverse order of the elimination. Cost: the tables' entries at x,
// times the domains.
func (b *Bound) Draw(r *rand.Rand, x []int, e *sumproduct.Expression) (ln float64) {
	lnq := b.DrawLast(r, x, 0)
	return b.LnProduct(x, e) - lnq
}

// DrawLast draws only the indices at positions of the order from first on, as Draw does, and sets their values in x. It returns ln q(x),
// the logarithm of the density of these values. With all other indices summed out, ψ(x) ≤ q(x) · bound, since the same holds at every
// state. Cost: DrawWork.
func (b *Bound) DrawLast(r *rand.Rand, x []int, first int) (lnq float64) {
	dims := b.plan.dims
	p := make([]float64, 0, 8) // the memory of the distributions
	for k := len(b.plan.Order) - 1; k >= first; k-- {
		i := b.plan.Order[k]
		p = b.conditional(k, x, p[:0])
		threshold := r.Float64()
		value := 0 // the first whose probabilities up to it exceed the threshold; by rounding it may be the last possible one
		for a := range dims[i] {
			if p[a] > 0 {
				value = a
				if threshold -= p[a]; threshold < 0 {
					break
				}
			}
		}
		x[i] = value
		lnq += math.Log(p[value])
	}
	return lnq
}

// LnDensity returns ln q(x) in nats, where q is the density that Draw draws from. Cost as of Draw.
func (b *Bound) LnDensity(x []int) (ln float64) { return b.LnDensityLast(x, 0) }

// LnDensityLast returns ln of the density, in nats, that DrawLast returns for the values of x.
func (b *Bound) LnDensityLast(x []int, first int) (ln float64) {
	p := make([]float64, 0, 8)
	for k := first; k < len(b.plan.Order); k++ {
		i := b.plan.Order[k]
		a := x[i]
		p = b.conditional(k, x, p[:0])
		x[i] = a // conditional has overwritten it
		ln += math.Log(p[a])
	}
	return ln
}

// Change returns by how much, in nats, the bound changes if the index at position k of the order is fixed to its value in x. All indices at
// later positions have their values in x. The change is Σ over the mini-buckets of the index of ln of their tables at x, less ln of their
// messages. Cost: DrawWork of one position, per value. A mini-bucket is some of the tables of an index, which are multiplied.
func (b *Bound) Change(k int, x []int) (ln float64) {
	for r, m := range b.minis[k] {
		for _, t := range b.plan.buckets[k][r].tables {
			ln += b.tables[t].ln[b.position(t, x)]
		}
		ln -= b.tables[m.message].ln[b.position(m.message, x)]
	}
	return ln
}

// LnProduct returns ln ψ of a state x: ln of the product of the expression's tables and its scale.
func (b *Bound) LnProduct(x []int, e *sumproduct.Expression) float64 {
	ln := e.Scale.LogAbs()
	for t := range e.Tables {
		ln += b.tables[t].ln[b.position(t, x)]
	}
	return ln
}

// conditional returns the distribution q of the index at position k, given the values in x of the indices at later positions. It uses the
// memory of p, and overwrites the value of the index in x.
//
// q is a mixture over the mini-buckets r, with their weights in Hölder's inequality: q(a) = Σ_r w_r (f_r(a)/λ_r)^{1/w_r}, where f_r is the
// product of the mini-bucket's tables and shifts, and λ_r its message. A mini-bucket is some of the tables of an index, which are
// multiplied.
func (b *Bound) conditional(k int, x []int, p []float64) []float64 {
	i := b.plan.Order[k]
	dims := b.plan.dims
	d := dims[i]
	p = slices.Grow(p, d)[:d]
	clear(p)
	if len(b.minis[k]) == 0 {
		for a := range p {
			p[a] = 1 / float64(d)
		}
		return p
	}
	total := 0.0
	for r, m := range b.minis[k] {
		lnMessage := b.tables[m.message].ln[b.position(m.message, x)]
		for a := range p {
			x[i] = a
			lnRatio := -lnMessage
			for _, t := range b.plan.buckets[k][r].tables {
				lnRatio += b.tables[t].ln[b.position(t, x)]
			}
			for _, t := range m.shifts {
				lnRatio += t.ln[positionIn(t.scope, dims, x)]
			}
			if math.IsInf(lnMessage, -1) {
				lnRatio = 0 // ∞ − ∞: the state has weight 0, so that any distribution will do
			}
			q := m.weight * math.Exp(lnRatio/m.weight)
			p[a] += q
			total += q
		}
	}
	for a := range p {
		p[a] /= total
	}
	return p
}

// position returns the position of the entry for the state x in table t.
func (b *Bound) position(t int, x []int) int { return positionIn(b.tables[t].scope, b.plan.dims, x) }

// positionIn returns the position of the entry for the state x in a table over scope, whose last index varies fastest.
func positionIn(scope, dims, x []int) (position int) {
	for _, i := range scope {
		position = position*dims[i] + x[i]
	}
	return position
}
