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

// Bound is a bound and its mini-buckets.
type Bound struct {
	Ln float64 // of the bound, nats: rounding is on its side

	largest float64 // of the summands, for rounding

	plan   *Plan
	minis  [][]weighed // by position in the order
	tables []table     // of the expression, and messages
}

// table is the logarithm of a table: entries with the last index of the scope fastest.
type table struct {
	scope []int
	ln    []float64
}

// weighed is a mini-bucket with its weight.
type weighed struct {
	weight  float64
	shifts  []table // tables added to it, each over indices of its own
	message int     // table
}

// thin is the sum of the weights of the mini-buckets of a maximum, (Σ_x f^{1/w})^w ≥ max f: above it by the part w of ln of the domain.
const thin = 0x1p-40

// slack bounds the effect of rounding on a bound, for every table and nat.
const slack = 1e-13

// Run bounds an expression whose shape the plan is for: from above where below is 0, and from below with weights −below for all
// mini-buckets of an index but the first. Errors: unsupported where an entry is below 0; the context's, which is looked at once per
// mini-bucket. Cost: Plan.Flops and Plan.Bytes.
func Run(ctx context.Context, e *sumproduct.Expression, p *Plan, below float64) (*Bound, error) {
	if e.Signed() {
		return nil, fault.New(fault.Unsupported, "minibuckets: an entry is below 0")
	}
	if err := e.Fits(); err != nil {
		return nil, err
	}
	b := &Bound{Ln: e.Scale.LogAbs(), plan: p, minis: make([][]weighed, len(p.Order))}
	b.largest = math.Abs(b.Ln)
	for _, t := range e.Tables {
		own := table{scope: t.Scope, ln: make([]float64, len(t.Data))}
		most := 0.0
		for k, x := range t.Data {
			if own.ln[k] = floats.Ln(x); x > 0 {
				if t.Exp != nil {
					own.ln[k] += float64(t.Exp[k]) * math.Ln2
				}
				most = max(most, math.Abs(own.ln[k]))
			}
		}
		b.largest += most
		b.tables = append(b.tables, own)
		if len(t.Scope) == 0 {
			b.Ln += own.ln[0]
		}
	}

	for k, i := range p.Order {
		minis, total := p.buckets[k], 1.0
		if p.Maximal != nil && p.Maximal[i] {
			total = thin
		}
		if len(minis) == 0 {
			b.Ln += total * math.Log(float64(p.dims[i]))
			continue
		}
		own := make([]weighed, len(minis))
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
	off := slack * (b.largest + math.Abs(b.Ln) + float64(len(b.tables)))
	if below > 0 {
		off = -off
	}
	if !math.IsInf(b.Ln, -1) {
		b.Ln += off
	}
	return b, nil
}

// within bounds the entries of a product's inner block, whose offsets are the same everywhere.
const within = 256

// product is the logarithm of the product of a mini-bucket's tables, over its scope.
func (b *Bound) product(m *mini) []float64 {
	out := make([]float64, sumproduct.Size(b.plan.dims, m.scope))
	for _, t := range m.tables {
		own := b.tables[t].ln
		walk(m.scope, b.tables[t].scope, b.plan.dims, func(at, offset int, offsets []int) {
			row, entries := out[at:at+len(offsets)], own[offset:]
			for j, o := range offsets {
				row[j] += entries[o]
			}
		})
	}
	return out
}

// walk calls visit for the entries of a table over a scope, some neighbours at a time, the last index fastest: from which entry on, and
// where these are in a table over some of its indices, offsets from one entry of that.
func walk(scope, own, dims []int, visit func(at, offset int, offsets []int)) {
	outer, inner := len(scope), 1 // the indices before outer are stepped through one by one
	for outer > 0 && inner*dims[scope[outer-1]] <= within {
		outer--
		inner *= dims[scope[outer]]
	}
	n := sumproduct.Size(dims, scope)
	stride := sumproduct.Along(dims, own, scope)
	offsets := make([]int, 1, inner)
	for k, i := range scope[outer:] {
		offsets = sumproduct.Spread(offsets, dims[i], stride[outer+k])
	}
	at := sumproduct.NewWalk(dims, scope[:outer], own)
	for k := 0; k < n; k += inner {
		visit(k, at.At[0], offsets)
		at.Next()
	}
}

// match moves functions of the indices that some mini-buckets of an index share between them, whose sum is 0, so that their weighted
// marginals agree (moment matching), which makes the bound tighter and keeps it one. A zero of one of them is made so in all: their
// product is 0 there.
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
	moved := make([]float64, n) // by all before
	last := len(m.between) - 1
	for j, r := range m.between {
		most := 0.0
		for a, x := range shifts[j] {
			switch {
			case math.IsInf(mean[a], -1):
				shifts[j][a] = mean[a]
				continue
			case j < last:
				shifts[j][a] = own[r].weight * (mean[a]/total - x)
			default: // so that the sum is 0 up to a rounding
				shifts[j][a] = -moved[a]
			}
			moved[a] += shifts[j][a]
			most = max(most, math.Abs(shifts[j][a]))
		}
		b.largest += most
		b.add(k, r, table{m.shared, shifts[j]}, products[r])
		own[r].move(table{m.shared, shifts[j]})
	}
}

// move adds a table to a mini-bucket's, to the one over the same indices if there is one.
func (m *weighed) move(t table) {
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

// marginals are ln Σ f^{1/w} of a mini-bucket over all but some of its indices.
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

// add adds a table to the product of a mini-bucket.
func (b *Bound) add(k, r int, t table, f []float64) {
	walk(b.plan.buckets[k][r].scope, t.scope, b.plan.dims, func(at, offset int, offsets []int) {
		row, from := f[at:at+len(offsets)], t.ln[offset:]
		for j, o := range offsets {
			row[j] += from[o]
		}
	})
}

// powerSums is w ln Σ_a f(·, a)^{1/w} of the logarithms of f, a fastest.
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

// DrawLast draws the values of the indices that the order has from a position on, as Draw does, and returns ln of their density, nats. The
// sum of ψ over all others is at most that density times the bound, since ψ is at most q times the bound everywhere. Cost: DrawWork.
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

// LnDensityLast is ln of the density of the values of the indices that the order has from a position on, nats, as DrawLast returns
// it.
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

// Change is the difference, nats, that the value of the index at a position of the order makes to the bound where all later ones have
// values: the tables of its mini-buckets at x, less their messages. Cost: DrawWork of one position, per value.
func (b *Bound) Change(k int, x []int) (ln float64) {
	for r, m := range b.minis[k] {
		for _, t := range b.plan.buckets[k][r].tables {
			ln += b.tables[t].ln[b.at(t, x)]
		}
		ln -= b.tables[m.message].ln[b.at(m.message, x)]
	}
	return ln
}

// LnProduct is ln ψ of a state: of the product of the expression's tables and its scale.
func (b *Bound) LnProduct(x []int, e *sumproduct.Expression) float64 {
	ln := e.Scale.LogAbs()
	for t := range e.Tables {
		ln += b.tables[t].ln[b.at(t, x)]
	}
	return ln
}

// conditional is q of an index given those eliminated after it, in the room of p; it changes the index's own value.
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
		lambda := b.tables[m.message].ln[b.at(m.message, x)]
		for a := range p {
			x[i] = a
			f := -lambda
			for _, t := range b.plan.buckets[k][r].tables {
				f += b.tables[t].ln[b.at(t, x)]
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

// at is the entry of a table at a state.
func (b *Bound) at(t int, x []int) int { return entry(b.tables[t].scope, b.plan.dims, x) }

// entry is where a state is in a table over a scope.
func entry(scope, dims, x []int) (at int) {
	for _, i := range scope {
		at = at*dims[i] + x[i]
	}
	return at
}
