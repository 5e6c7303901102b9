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

// conditional is the distribution of an index given those drawn before.
type conditional struct {
	index   int
	sites   []*site    // the chain before the first step of the index, with a site for it
	place   int        // of the index in sites
	ungauge []float64  // by value: undoes the gauge of the index; nil for ones
	tables  []logTable // those that the steps of the index multiply in
}

// logTable is the logarithm of a table, with the strides of its scope.
type logTable struct {
	ln            []float64
	scope, stride []int // its other indices of dimension above 1, and their strides
	indexStride   int   // stride of the index that is drawn
}

// NewSampler sweeps an expression whose entries are at least 0 along a plan and keeps the states. Options.Marginals has no effect.
// Errors: as Contract; unsupported for entries below 0, and if the state has become 0. Cost: as Contract, and memory as for marginals.
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
	out := &Sampler{dims: e.Dims, conditionals: newConditionals(s)}
	out.countFlops()
	return out, nil
}

// newConditionals returns the conditional distributions of all indices in the reverse of the order in which s has summed them out.
func newConditionals(s *sweep) (list []conditional) {
	ungauge := reciprocals(s.forwardWeights)
	for k := range s.steps {
		st := &s.steps[k]
		if isFirst := k == 0 || s.steps[k-1].index != st.index; isFirst {
			c := conditional{index: st.index, sites: s.states[k]}
			c.place = slices.IndexFunc(c.sites, func(a *site) bool { return a.index == st.index })
			if !slices.Contains(st.enter, st.index) { // an index that enters only now has no gauge yet
				c.ungauge = ungauge[st.index]
			}
			list = append(list, c)
		}
		c := &list[len(list)-1]
		for _, t := range st.tables {
			c.tables = append(c.tables, newLogTable(s.e, t, st.index))
		}
	}
	slices.Reverse(list)
	return list
}

// newLogTable returns table t of e for the draw of an index in its scope.
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

// countFlops sets flops. Of a chain it counts the site of the index, and the sites whose products are not known from the draw before.
func (s *Sampler) countFlops() {
	var o endCache
	n := 0.0
	count := func(_, _ []float64, a, _ *site) []float64 {
		n += a.left * a.right
		return nil
	}
	for _, c := range s.conditionals {
		n = 0
		o.productsAround(c.sites, nil, c.place, count, count)
		drawn := c.sites[c.place]
		n += float64(len(drawn.data))
		s.flops += siteWork*n + entryWork*float64(drawn.dim*len(c.tables)) + indexWork*float64(drawn.dim)
	}
}

// Flops returns about the time of a draw.
func (s *Sampler) Flops() float64 { return s.flops }

// Drawer draws from a sampler, one state after the other. It is for one goroutine.
type Drawer struct {
	endCache // vectors: the ends of the chain at the values drawn
	s        *Sampler
	floor    float64   // smallest probability of a possible value, relative to the largest
	p        []float64 // by value: memory for probabilities
	ln       []float64 // by value: memory for ln of the tables' product
	x        []int     // the state so far
}

// NewDrawer returns a drawer that also draws values which truncation may have lost. Let n be the number of indices, each with a
// conditional distribution. A value that the tables allow has at least lost/n times the largest probability of its conditional. So about a
// share lost of all draws, of 0 to 1, goes to values that truncation may have lost. Drawing allocates two vectors of a bond for every site
// of the longest chain.
func (s *Sampler) NewDrawer(lost float64) *Drawer {
	largestDim := slices.Max(append(slices.Clone(s.dims), 1)) // 1 if there is no index
	return &Drawer{
		s: s, floor: lost / float64(max(1, len(s.conditionals))), p: make([]float64, largestDim), ln: make([]float64, largestDim),
	}
}

// Draw draws a state into x, a value per index, and returns ln of its density, nats. Cost: Flops.
func (d *Drawer) Draw(r *rand.Rand, x []int) float64 {
	clear(x)
	return d.walk(r, x)
}

// LnDensity returns ln of the density of a state, nats. It is −Inf if a table is 0 there. Cost: Flops.
func (d *Drawer) LnDensity(x []int) float64 { return d.walk(nil, x) }

// walk goes through the conditional distributions and returns ln of the density of x. With r it draws the values of x, otherwise it takes
// them from x.
func (d *Drawer) walk(r *rand.Rand, x []int) (lnDensity float64) {
	d.left, d.right, d.x = d.left[:0], d.right[:0], x
	for k := range d.s.conditionals {
		c := &d.s.conditionals[k]
		p, total := d.probabilities(c)
		if r != nil {
			x[c.index] = drawValue(p, r.Float64()*total)
		}
		lnDensity += math.Log(p[x[c.index]] / total)
	}
	return lnDensity
}

// drawValue returns the first possible value at which the sum of p exceeds u, or the last possible value if none does by rounding. A value
// is possible if its p is above 0; −1 if none is.
func drawValue(p []float64, u float64) int {
	value := -1
	for v, q := range p {
		if q > 0 {
			value = v
			if u -= q; u < 0 {
				break
			}
		}
	}
	return value
}

// probabilities returns the distribution of an index at the values drawn so far, not normalised, and its sum. It is valid until the next
// call.
func (d *Drawer) probabilities(c *conditional) (p []float64, total float64) {
	p = d.stateWeights(c)
	ln := d.lnTables(c)
	// Truncation may have made anything of a value that is possible, even a weight ≤ 0. That is no reason not to draw it, so a possible
	// value has at least the floor.
	largest, isImpossible := math.Inf(-1), math.IsInf(slices.Max(ln), -1)
	for v := range p {
		p[v] = math.Log(max(p[v], 0)) + ln[v]
		largest = max(largest, p[v])
	}
	for v := range p {
		switch {
		case isImpossible:
			p[v] = 1 // no value is possible: any will do, since the weight of the draw is 0
		case math.IsInf(ln[v], -1):
			p[v] = 0
		case math.IsInf(largest, -1):
			p[v] = 1
		default:
			p[v] = max(math.Exp(p[v]-largest), d.floor)
		}
		total += p[v]
	}
	return p, total
}

// stateWeights returns, for each value of an index, the entry of its chain at the values drawn so far. It returns ones if none is a
// positive finite number.
func (d *Drawer) stateWeights(c *conditional) []float64 {
	left, right := d.productsAround(c.sites, nil, c.place, d.extendRight, d.extendLeft)
	a := c.sites[c.place]
	p := d.p[:a.dim]
	clear(p)
	n := int(a.right)
	for i, w := range left {
		for v := range p {
			p[v] += w * dot(a.data[(i*a.dim+v)*n:][:n], right)
		}
	}
	for v, u := range c.ungauge {
		p[v] *= u
	}
	if largest := slices.Max(p); !(largest > 0) || math.IsInf(largest, 1) {
		copy(p, ones(a.dim))
	}
	return p
}

// lnTables returns, for each value of an index, ln of the product of its tables at the values drawn so far.
func (d *Drawer) lnTables(c *conditional) []float64 {
	ln := d.ln[:c.sites[c.place].dim]
	clear(ln)
	for t := range c.tables {
		table := &c.tables[t]
		offset := 0
		for k, j := range table.scope {
			offset += table.stride[k] * d.x[j]
		}
		for v := range ln {
			ln[v] += table.ln[offset+v*table.indexStride]
		}
	}
	return ln
}

// extendRight is an extension of the vector of the left end of a chain by the next site, at the value of its index.
func (d *Drawer) extendRight(memory, product []float64, a, _ *site) []float64 {
	n := int(a.right)
	out := resized(memory, n)
	clear(out)
	for i, w := range product {
		addScaled(out, a.data[(i*a.dim+d.x[a.index])*n:][:n], w)
	}
	return out
}

// extendLeft is an extension of the vector of the right end of a chain by the site before, at the value of its index.
func (d *Drawer) extendLeft(memory, product []float64, a, _ *site) []float64 {
	n := int(a.right)
	out := resized(memory, int(a.left))
	for i := range out {
		out[i] = dot(a.data[(i*a.dim+d.x[a.index])*n:][:n], product)
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
