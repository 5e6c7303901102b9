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

	largest float64 // sum of the largest logarithms of all tables and shifts, by size: the measure of rounding

	plan   *Plan
	minis  [][]weightedMini // by position in the order
	tables []table          // of the expression, then messages
}

// table is the logarithm of a table: entries with the last index of the scope fastest.
type table struct {
	scope []int
	ln    []float64
}

// weightedMini is what a run adds to a mini-bucket of the plan.
type weightedMini struct {
	weight  float64 // w in the inequality of Hölder
	shifts  []table // the tables that match has added to it, each over another set of indices
	message int     // the number of the table that it sends
}

// maximumWeight is the sum w of the weights of the mini-buckets of an index that is maximised over: (Σ_x f^{1/w})^w ≥ max f. Its logarithm
// is above that of the maximum by at most w · ln of the domain.
const maximumWeight = 0x1p-40

// slack bounds the effect of rounding on a bound, per table and per nat of Bound.largest.
const slack = 1e-13

// Run bounds an expression whose shape the plan is for. If below is 0 it returns a bound from above. Else it returns one from below, by the
// weights −below for all mini-buckets of an index but the first. Errors: fault.Unsupported for an entry below 0; the context's, which is
// looked at once per mini-bucket. Cost: Plan.Flops and Plan.Bytes.
func Run(ctx context.Context, e *sumproduct.Expression, p *Plan, below float64) (*Bound, error) {
	if e.Signed() {
		return nil, fault.New(fault.Unsupported, "minibuckets: an entry is below 0")
	}
	if err := e.Fits(); err != nil {
		return nil, err
	}
	b := &Bound{Ln: e.Scale.LogAbs(), plan: p, minis: make([][]weightedMini, len(p.Order))}
	b.largest = math.Abs(b.Ln)
	for _, t := range e.Tables {
		logs := table{scope: t.Scope, ln: make([]float64, len(t.Data))}
		largest := 0.0
		for k, x := range t.Data {
			if logs.ln[k] = floats.Ln(x); x > 0 {
				if t.Exp != nil {
					logs.ln[k] += float64(t.Exp[k]) * math.Ln2
				}
				largest = max(largest, math.Abs(logs.ln[k]))
			}
		}
		b.largest += largest
		b.tables = append(b.tables, logs)
		if len(t.Scope) == 0 {
			b.Ln += logs.ln[0]
		}
	}

	for k, i := range p.Order {
		minis, total := p.buckets[k], 1.0
		if p.Maximal != nil && p.Maximal[i] {
			total = maximumWeight
		}
		if len(minis) == 0 {
			b.Ln += total * math.Log(float64(p.dims[i]))
			continue
		}
		own := make([]weightedMini, len(minis))
		b.minis[k] = own
		products := make([][]float64, len(minis))
		for r := range minis {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			own[r].weight = total / float64(len(minis))
			if below > 0 {
				if own[r].weight = -below; r == 0 {
					own[r].weight = 1 + below*float64(len(minis)-1)
				}
			}
			products[r] = b.product(&minis[r])
		}
		if below == 0 {
			for range sweeps(p.moves[k]) {
				for _, m := range p.moves[k] {
					if err := ctx.Err(); err != nil {
						return nil, err
					}
					b.match(k, m, products)
				}
			}
		}
		for r := range minis {
			m := table{scope: minis[r].scope[:len(minis[r].scope)-1], ln: powerSums(products[r], p.dims[i], own[r].weight)}
			own[r].message = len(b.tables)
			b.tables = append(b.tables, m)
			if len(m.scope) == 0 {
				b.Ln += m.ln[0]
			}
		}
	}
	allowance := slack * (b.largest + math.Abs(b.Ln) + float64(len(b.tables)))
	if below > 0 {
		allowance = -allowance
	}
	if !math.IsInf(b.Ln, -1) {
		b.Ln += allowance
	}
	return b, nil
}

// maxInner bounds the entries of an inner block of walk.
const maxInner = 256

// product returns the logarithm of the product of a mini-bucket's tables, over its scope.
func (b *Bound) product(m *mini) []float64 {
	out := make([]float64, sumproduct.Size(b.plan.dims, m.scope))
	for _, t := range m.tables {
		ln := b.tables[t].ln
		walk(m.scope, b.tables[t].scope, b.plan.dims, func(at, offset int, offsets []int) {
			row, entries := out[at:at+len(offsets)], ln[offset:]
			for j, o := range offsets {
				row[j] += entries[o]
			}
		})
	}
	return out
}

// walk visits all entries of a table over scope in sequence, a block at a time, with their positions in a smaller table over subscope, some
// of its indices. Entry at+j of the table is at the position offset+offsets[j] of the smaller one. offsets is the same list for every
// block.
func walk(scope, subscope, dims []int, visit func(at, offset int, offsets []int)) {
	outer, inner := len(scope), 1 // the indices before outer are stepped through one by one
	for outer > 0 && inner*dims[scope[outer-1]] <= maxInner {
		outer--
		inner *= dims[scope[outer]]
	}
	n := sumproduct.Size(dims, scope)
	stride := sumproduct.Along(dims, subscope, scope)
	offsets := make([]int, 1, inner)
	for k, i := range scope[outer:] {
		offsets = sumproduct.Spread(offsets, dims[i], stride[outer+k])
	}
	w := sumproduct.NewWalk(dims, scope[:outer], subscope)
	for k := 0; k < n; k += inner {
		visit(k, w.At[0], offsets)
		w.Next()
	}
}

// match adds a function of the indices m.shared to each of the mini-buckets m.between of position k, so that their weighted marginals over
// these indices agree (moment matching). The functions add up to 0, so the bound stays one and becomes tighter. Where one mini-bucket is
// 0, all become 0: their product is 0 there. products are the logarithms of the mini-buckets' products, and are updated.
func (b *Bound) match(k int, m move, products [][]float64) {
	own, n := b.minis[k], sumproduct.Size(b.plan.dims, m.shared)
	mean, total := make([]float64, n), 0.0
	shifts := make([][]float64, len(m.between))
	for j, r := range m.between {
		shifts[j] = b.marginals(k, r, m.shared, products[r])
		for a, x := range shifts[j] {
			mean[a] += own[r].weight * x
		}
		total += own[r].weight
	}
	sumSoFar := make([]float64, n) // of the shifts of the mini-buckets before
	last := len(m.between) - 1
	for j, r := range m.between {
		largest := 0.0
		for a, x := range shifts[j] {
			switch {
			case math.IsInf(mean[a], -1):
				shifts[j][a] = mean[a]
				continue
			case j < last:
				shifts[j][a] = own[r].weight * (mean[a]/total - x)
			default: // so that the sum is 0 up to a rounding
				shifts[j][a] = -sumSoFar[a]
			}
			sumSoFar[a] += shifts[j][a]
			largest = max(largest, math.Abs(shifts[j][a]))
		}
		b.largest += largest
		b.add(k, r, table{m.shared, shifts[j]}, products[r])
		own[r].addShift(table{m.shared, shifts[j]})
	}
}

// addShift adds t to the mini-bucket's shift over the same indices or, if there is none, to the list of shifts.
func (m *weightedMini) addShift(t table) {
	for _, other := range m.shifts {
		if slices.Equal(other.scope, t.scope) {
			for a, x := range t.ln {
				other.ln[a] += x
			}
			return
		}
	}
	m.shifts = append(m.shifts, t)
}

// marginals returns, as a table over the shared indices, ln Σ f^{1/w}, summed over the other indices of mini-bucket r at position k. f is
// its product, in logarithms, and w its weight.
func (b *Bound) marginals(k, r int, shared []int, f []float64) []float64 {
	scope, dims := b.plan.buckets[k][r].scope, b.plan.dims
	n, w := sumproduct.Size(dims, shared), b.minis[k][r].weight
	top := make([]float64, n)
	for a := range top {
		top[a] = math.Inf(-1)
	}
	walk(scope, shared, dims, func(at, offset int, offsets []int) {
		row, to := f[at:at+len(offsets)], top[offset:]
		for j, o := range offsets {
			to[o] = max(to[o], row[j])
		}
	})
	sums := make([]float64, n)
	walk(scope, shared, dims, func(at, offset int, offsets []int) {
		row, to, base := f[at:at+len(offsets)], sums[offset:], top[offset:]
		for j, o := range offsets {
			if x := row[j]; !math.IsInf(x, -1) {
				to[o] += math.Exp((x - base[o]) / w)
			}
		}
	})
	for a, x := range sums {
		sums[a] = top[a]/w + floats.Ln(x)
	}
	return sums
}

// add adds a table to f, the product of mini-bucket r at position k, in logarithms.
func (b *Bound) add(k, r int, t table, f []float64) {
	walk(b.plan.buckets[k][r].scope, t.scope, b.plan.dims, func(at, offset int, offsets []int) {
		row, from := f[at:at+len(offsets)], t.ln[offset:]
		for j, o := range offsets {
			row[j] += from[o]
		}
	})
}

// powerSums returns w ln Σ_a f(·, a)^{1/w}. f has logarithms, and its last and fastest index a has d values.
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

// Draw draws a state from the distribution q of an upper bound, the mixture of the mini-buckets index by index in reverse order, and
// returns ln of its weight ψ/q, which is at most Ln. x has a value per index. Their mean is Z. Cost: the tables' entries at x, times
// the domains.
func (b *Bound) Draw(r *rand.Rand, x []int, e *sumproduct.Expression) (ln float64) {
	lnq := b.DrawLast(r, x, 0)
	return b.LnProduct(x, e) - lnq
}

// DrawLast draws, as Draw does, the values of the indices at the positions ≥ from of the order, and returns ln of their density in nats.
// The sum of ψ over all other indices is at most that density times the bound, since ψ is at most q times the bound everywhere. Cost:
// DrawWork.
func (b *Bound) DrawLast(r *rand.Rand, x []int, from int) (lnq float64) {
	dims := b.plan.dims
	p := make([]float64, 0, 8)
	for k := len(b.plan.Order) - 1; k >= from; k-- {
		i := b.plan.Order[k]
		p = b.conditional(k, x, p[:0])
		u := r.Float64()
		a := 0
		for v := range dims[i] {
			if p[v] > 0 {
				a = v
				if u -= p[v]; u < 0 {
					break
				}
			}
		}
		x[i] = a
		lnq += math.Log(p[a])
	}
	return lnq
}

// LnDensity returns ln q of a state, nats: the density that Draw draws from. Cost as of Draw.
func (b *Bound) LnDensity(x []int) (ln float64) { return b.LnDensityLast(x, 0) }

// LnDensityLast returns ln of the density, in nats, that DrawLast returns for the values of x.
func (b *Bound) LnDensityLast(x []int, from int) (ln float64) {
	p := make([]float64, 0, 8)
	for k := from; k < len(b.plan.Order); k++ {
		i := b.plan.Order[k]
		a := x[i]
		p = b.conditional(k, x, p[:0])
		x[i] = a
		ln += math.Log(p[a])
	}
	return ln
}

// Change returns by how much, in nats, the bound changes if the index at position k of the order gets its value in x, and all indices at
// later positions have theirs: the tables of its mini-buckets at x, less their messages. Cost: DrawWork of one position, per value.
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
		lambda := b.tables[m.message].ln[b.position(m.message, x)]
		for a := range p {
			x[i] = a
			f := -lambda
			for _, t := range b.plan.buckets[k][r].tables {
				f += b.tables[t].ln[b.position(t, x)]
			}
			for _, t := range m.shifts {
				f += t.ln[entry(t.scope, dims, x)]
			}
			if math.IsInf(lambda, -1) {
				f = 0 // no value is possible there: any will do, its weight is 0
			}
			q := m.weight * math.Exp(f/m.weight)
			p[a] += q
			total += q
		}
	}
	for a := range p {
		p[a] /= total
	}
	return p
}

// position returns the position of a state x in table t.
func (b *Bound) position(t int, x []int) int { return entry(b.tables[t].scope, b.plan.dims, x) }

// entry returns the position of a state x in a table over a scope.
func entry(scope, dims, x []int) (position int) {
	for _, i := range scope {
		position = position*dims[i] + x[i]
	}
	return position
}
