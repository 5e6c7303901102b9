package sweeps

// Draws from the states of a sweep.
//
// The state ψ_k before the first step of index i is about the sum over all indices that were summed out before, over i and the other
// indices of the frontier. If the indices that are summed out later have values already, ψ_k times the tables that the steps of i multiply
// in is the distribution of i given these values, but for truncation. So states are drawn in the reverse of the order. The density of a
// draw is known exactly whatever truncation did, because every conditional distribution is normalised by itself.

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Sampler is a distribution of states that follows from a sweep. It does not change and may be used by several goroutines.
type Sampler struct {
	dims         []int
	conditionals []conditional // in the sequence of the draws
	flops        float64       // see Flops
}

// conditional is the distribution of an index given those drawn before: the entries of a chain at their values, times tables.
type conditional struct {
	index   int
	sites   []*site    // the chain before the first step of the index, with a site for it
	place   int        // of the index in sites
	ungauge []float64  // by value: weights that undo the gauge of the index; nil if all are 1
	tables  []logTable // those that the steps of the index multiply in
}

// logTable has the logarithms of a table's entries, with the strides of its indices.
type logTable struct {
	ln            []float64
	scope, stride []int // the indices drawn before, of dimension above 1, and their strides
	indexStride   int   // stride of the index that is drawn
}

// NewSampler sweeps an expression whose entries are at least 0 along a plan, keeps the states, and returns a sampler from them.
// Options.Marginals has no effect. Errors: as Contract; unsupported for entries below 0, and if the state has become 0. Cost: as Contract,
// and memory as for marginals.
func NewSampler(ctx context.Context, e *sumproduct.Expression, p Plan, o Options) (*Sampler, error) {
	if e.Signed() {
		return nil, fault.New(fault.Unsupported, "sweeps: an entry is below 0, and densities are not")
	}
	o.Marginals = true // so that the states are kept
	s, err := newSweep(ctx, e, p, o)
	if err != nil {
		return nil, err
	}
	_, isZero, err := s.sweepForward(ctx)
	if err != nil {
		return nil, err
	}
	if isZero {
		return nil, fault.New(fault.Unsupported, "sweeps: nothing is left of the state: there is nothing to draw from")
	}
	sampler := &Sampler{dims: e.Dims, conditionals: newConditionals(s)}
	sampler.countFlops()
	return sampler, nil
}

// newConditionals returns the conditional distributions of all indices in the reverse of the order in which s has summed them out. Each has
// the chain before the first step of its index, and the tables that the steps of the index multiply in. An index has one step or more, one
// after the other. The sweep has multiplied the values of an index by weights, its gauge, as the index entered; ungauge undoes that.
func newConditionals(s *sweep) (conditionals []conditional) {
	ungauge := reciprocals(s.forwardWeights)
	for k := range s.steps {
		st := &s.steps[k]
		isFirstStep := k == 0 || s.steps[k-1].index != st.index
		if isFirstStep {
			c := conditional{index: st.index, sites: s.states[k]}
			c.place = slices.IndexFunc(c.sites, func(a *site) bool { return a.index == st.index })
			if !slices.Contains(st.enter, st.index) { // an index that enters only now has no gauge yet
				c.ungauge = ungauge[st.index]
			}
			conditionals = append(conditionals, c)
		}
		c := &conditionals[len(conditionals)-1]
		for _, t := range st.tables {
			c.tables = append(c.tables, newLogTable(s.expression, t, st.index))
		}
	}
	slices.Reverse(conditionals)
	return conditionals
}

// newLogTable returns the logarithms of table t of e, for the draw of an index that is in its scope. The entry for value v of the index is
// ln[v·indexStride + Σ_k stride[k]·x[scope[k]]].
func newLogTable(e *sumproduct.Expression, t, index int) (l logTable) {
	stride := 1
	for _, i := range slices.Backward(e.Tables[t].Scope) {
		if i == index {
			l.indexStride = stride
		} else if e.Dims[i] > 1 {
			l.scope, l.stride = append(l.scope, i), append(l.stride, stride)
		}
		stride *= e.Dims[i]
	}
	for _, v := range e.Tables[t].Data {
		l.ln = append(l.ln, floats.Ln(v))
	}
	return l
}

// Measured work of a draw in flops of Flops: a multiplication and addition of a site, a value of a table, and a value of an index. CPU time
// over counts on grids of bonds 4 to 32, dense models and 3-regular ones.
const (
	siteWork  = 6
	entryWork = 30
	indexWork = 150
)

// countFlops sets s.flops, the work of a draw. Of each chain it counts the site of the index, and the sites whose products are not in the
// cache from the index before. A chain is the product of its sites, tensors with one index each.
func (s *Sampler) countFlops() {
	var cache endCache
	multiplications := 0.0
	count := func(_, _ []float64, a, _ *site) []float64 { // an extension that only counts
		multiplications += a.left * a.right
		return nil
	}
	for _, c := range s.conditionals {
		multiplications = 0
		cache.productsAround(c.sites, nil, c.place, count, count) // nil: no second chain; it calls count for products not in the cache
		a := c.sites[c.place]                                     // that of the index which is drawn
		multiplications += float64(len(a.data))
		s.flops += siteWork*multiplications + entryWork*float64(a.dim*len(c.tables)) + indexWork*float64(a.dim)
	}
}

// Flops returns about the time of a draw in flops, at 3e9 a second.
func (s *Sampler) Flops() float64 { return s.flops }

// Drawer draws from a sampler, one state after the other. It is for one goroutine.
type Drawer struct {
	endCache          // products of the ends of a chain at the values of the state, which are vectors
	sampler           *Sampler
	floor             float64   // smallest probability of a possible value, relative to the largest
	probabilityBuffer []float64 // by value: memory for probabilities
	lnBuffer          []float64 // by value: memory for ln of the tables' product
	state             []int     // by index: its value, if it is drawn
}

// NewDrawer returns a drawer that also draws values which truncation may have lost. A value that the tables allow has at least lostShare/n
// of the largest probability of its index, where n is the number of indices. So about a share lostShare of all draws, from 0 to 1, has such
// a value. Drawing allocates two vectors of a bond for every site of the longest chain.
func (s *Sampler) NewDrawer(lostShare float64) *Drawer {
	largestDim := slices.Max(append(slices.Clone(s.dims), 1)) // 1 if there is no index
	return &Drawer{
		sampler: s, floor: lostShare / float64(max(1, len(s.conditionals))),
		probabilityBuffer: make([]float64, largestDim), lnBuffer: make([]float64, largestDim),
	}
}

// Draw draws a state into x, a value per index, and returns ln of its density, nats. Cost: Flops.
func (d *Drawer) Draw(r *rand.Rand, x []int) float64 {
	clear(x)
	return d.drawOrWeigh(r, x)
}

// LnDensity returns ln of the density of a state, nats. It is −Inf if a table is 0 there. Cost: Flops.
func (d *Drawer) LnDensity(x []int) float64 { return d.drawOrWeigh(nil, x) }

// drawOrWeigh returns ln of the density of state x: the sum of the logarithms of its conditional probabilities. If r is not nil, it draws
// each value of x first.
func (d *Drawer) drawOrWeigh(r *rand.Rand, x []int) (lnDensity float64) {
	d.left, d.right, d.state = d.left[:0], d.right[:0], x // products in the cache are those of an earlier state
	for k := range d.sampler.conditionals {
		c := &d.sampler.conditionals[k]
		p, total := d.probabilities(c)
		if r != nil {
			x[c.index] = drawValue(p, r.Float64()*total)
		}
		lnDensity += math.Log(p[x[c.index]] / total)
	}
	return lnDensity
}

// drawValue returns the first value v at which p[0] + … + p[v] exceeds threshold. If none does by rounding, it is the last value with p
// above 0, or −1 if there is none.
func drawValue(p []float64, threshold float64) int {
	value := -1
	for v, q := range p {
		if q > 0 {
			value = v
			if threshold -= q; threshold < 0 {
				break
			}
		}
	}
	return value
}

// probabilities returns the probabilities p of the values of an index given the values drawn so far, not normalised, and their sum. A value
// that the tables exclude has probability 0. Any other has at least d.floor of the largest, since truncation may have lost its weight. p
// is valid until the next call.
func (d *Drawer) probabilities(c *conditional) (p []float64, total float64) {
	p = d.stateWeights(c)
	ln := d.lnTables(c)
	largest, isImpossible := math.Inf(-1), math.IsInf(slices.Max(ln), -1) // isImpossible: the tables exclude all values
	for v := range p {
		p[v] = math.Log(max(p[v], 0)) + ln[v]
		largest = max(largest, p[v])
	}
	for v := range p {
		switch {
		case isImpossible:
			p[v] = 1 // any value will do, since the weight of the draw is 0
		case math.IsInf(ln[v], -1):
			p[v] = 0
		case math.IsInf(largest, -1): // truncation has lost all values that are possible
			p[v] = 1
		default:
			p[v] = max(math.Exp(p[v]-largest), d.floor)
		}
		total += p[v]
	}
	return p, total
}

// stateWeights returns a weight for each value of an index: the entry of its chain (c.sites) at that value and at the values of the other
// indices drawn so far. Truncation may leave entries that are not above 0, so if the largest weight is not a positive finite number, all
// weights are 1. A chain is the product of its sites, tensors with one index each.
func (d *Drawer) stateWeights(c *conditional) []float64 {
	// The entry is left·(site at the value)·right, with the vectors of the chain's ends at the values drawn.
	left, right := d.productsAround(c.sites, nil, c.place, d.extendRight, d.extendLeft) // nil: there is no second chain
	a := c.sites[c.place]
	p := d.probabilityBuffer[:a.dim]
	clear(p)
	n := int(a.right)
	for i, w := range left {
		for v := range p {
			p[v] += w * dot(a.data[(i*a.dim+v)*n:][:n], right)
		}
	}
	for v, u := range c.ungauge { // the sweep multiplied the entries of value v by a weight, the gauge: undo that
		p[v] *= u
	}
	if largest := slices.Max(p); !(largest > 0) || math.IsInf(largest, 1) {
		copy(p, ones(a.dim))
	}
	return p
}

// lnTables returns, for each value of an index, ln of the product of its tables at the values drawn so far.
func (d *Drawer) lnTables(c *conditional) []float64 {
	ln := d.lnBuffer[:c.sites[c.place].dim]
	clear(ln)
	for t := range c.tables {
		table := &c.tables[t]
		offset := 0
		for k, j := range table.scope {
			offset += table.stride[k] * d.state[j]
		}
		for v := range ln {
			ln[v] += table.ln[offset+v*table.indexStride]
		}
	}
	return ln
}

// extendRight extends the vector of the left end of a chain by the next site a, at the value of its index in the state:
// out[r] = Σ_i product[i] · a[i, value, r]. The result is in memory, if that is large enough.
func (d *Drawer) extendRight(memory, product []float64, a, _ *site) []float64 {
	n := int(a.right)
	out := resized(memory, n)
	clear(out)
	for i, w := range product {
		addScaled(out, a.data[(i*a.dim+d.state[a.index])*n:][:n], w)
	}
	return out
}

// extendLeft extends the vector of the right end of a chain by the site a before it, at the value of its index in the state:
// out[i] = Σ_r a[i, value, r] · product[r]. The result is in memory, if that is large enough.
func (d *Drawer) extendLeft(memory, product []float64, a, _ *site) []float64 {
	n := int(a.right)
	out := resized(memory, int(a.left))
	for i := range out {
		out[i] = dot(a.data[(i*a.dim+d.state[a.index])*n:][:n], product)
	}
	return out
}

// dot returns Σ a·b.
func dot(a, b []float64) (sum float64) {
	b = b[:len(a)]
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}
