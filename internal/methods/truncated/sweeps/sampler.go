package sweeps

// Draws from the states of a sweep.
//
// The state ψ_k before the first step of index i is about the sum over all indices that were summed out before, over i and the rest of
// the frontier. Where the indices that are summed out later have values already, ψ_k times the tables that the steps of i multiply in is
// the distribution of i given them, but for truncation. So states are drawn in the reverse of the order, and the density of a draw is
// known exactly whatever truncation did, because every conditional distribution is normalised by itself.

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Sampler is the density of states that a sweep suggests. It does not change and may be used by several goroutines.
type Sampler struct {
	dims  []int
	draws []conditional // in the sequence of the draws
	flops float64
}

// conditional is the distribution of an index given those drawn before.
type conditional struct {
	index  int
	sites  []*site
	at     int       // of the index among them
	undo   []float64 // by value: the gauge that is divided out; nil for ones
	tables []logTable
}

// logTable is the logarithm of a table, with the strides of its scope.
type logTable struct {
	ln            []float64
	scope, stride []int
	own           int // stride of the index itself
}

// NewSampler sweeps an expression whose entries are at least 0 along a plan and keeps the states. Options.Marginals is without meaning.
// Errors: as Contract; unsupported for entries below 0, and where nothing is left of the state. Cost: as Contract, and memory as for
// marginals.
func NewSampler(ctx context.Context, e *sumproduct.Expression, p Plan, o Options) (*Sampler, error) {
	if e.Signed() {
		return nil, fault.New(fault.Unsupported, "sweeps: an entry is below 0, and densities are not")
	}
	o.Marginals = true // the states are kept
	s, err := newSweep(ctx, e, p, o)
	if err != nil {
		return nil, err
	}
	_, zero, err := s.ahead(ctx)
	if err != nil {
		return nil, err
	}
	if zero {
		return nil, fault.New(fault.Unsupported, "sweeps: nothing is left of the state: there is nothing to draw from")
	}
	out := &Sampler{dims: e.Dims}
	undo := inverse(s.f)
	var draw *conditional
	for k := range s.steps {
		st := &s.steps[k]
		if k == 0 || s.steps[k-1].index != st.index {
			c := conditional{index: st.index, sites: s.states[k]}
			c.at = slices.IndexFunc(c.sites, func(a *site) bool { return a.index == st.index })
			if !slices.Contains(st.enter, st.index) {
				c.undo = undo[st.index]
			}
			out.draws = append(out.draws, c)
			draw = &out.draws[len(out.draws)-1]
		}
		for _, t := range st.tables {
			draw.tables = append(draw.tables, newLogTable(e, t, st.index))
		}
	}
	slices.Reverse(out.draws)
	out.count()
	return out, nil
}

func newLogTable(e *sumproduct.Expression, t, index int) (l logTable) {
	step := 1
	for _, i := range slices.Backward(e.Tables[t].Scope) {
		if i == index {
			l.own = step
		} else if e.Dims[i] > 1 {
			l.scope, l.stride = append(l.scope, i), append(l.stride, step)
		}
		step *= e.Dims[i]
	}
	for _, v := range e.Tables[t].Data {
		l.ln = append(l.ln, floats.Ln(v))
	}
	return l
}

// Measured work of a draw in flops of Flops: a multiplication and addition of a site, and a value of a table. CPU time over counts on
// grids of bonds 4 to 32, dense models and 3-regular ones.
const (
	siteWork  = 6
	entryWork = 30
	indexWork = 150
)

// count sums the cost of a draw: the sites whose products are not known from the draw before.
func (s *Sampler) count() {
	var o ends
	n := 0.0
	counting := func(_, _ []float64, a, _ *site) []float64 {
		n += a.l * a.r
		return nil
	}
	for _, c := range s.draws {
		n = 0
		o.reach(c.sites, nil, c.at, counting, counting)
		own := c.sites[c.at]
		n += float64(len(own.data))
		s.flops += siteWork*n + entryWork*float64(own.d*len(c.tables)) + indexWork*float64(own.d)
	}
}

// Flops is about the time of a draw.
func (s *Sampler) Flops() float64 { return s.flops }

// Drawer draws from a sampler, one state after the other; it is for one goroutine.
type Drawer struct {
	ends        // at the values drawn
	s           *Sampler
	floor       float64
	p, possible []float64 // by value: probabilities, ln of the tables' product
	x           []int
}

// NewDrawer returns a drawer that draws values which truncation may have lost: a possible value has the largest probability times lost
// over the number of indices at least, so that about a share lost of the draws is spent on it. It takes two vectors of a bond for every
// site of the longest state.
func (s *Sampler) NewDrawer(lost float64) *Drawer {
	most := slices.Max(append(slices.Clone(s.dims), 1))
	return &Drawer{
		s: s, floor: lost / float64(max(1, len(s.draws))), p: make([]float64, most), possible: make([]float64, most),
	}
}

// Draw draws a state x, a value per index, and returns ln of its density, nats. Cost: Flops.
func (d *Drawer) Draw(r *rand.Rand, x []int) float64 {
	clear(x)
	return d.walk(r, x)
}

// LnDensity returns ln of the density of a state, nats; −Inf where a table is 0 there. Cost: Flops.
func (d *Drawer) LnDensity(x []int) float64 { return d.walk(nil, x) }

// walk goes through the conditional distributions, drawing from them with r, else at x.
func (d *Drawer) walk(r *rand.Rand, x []int) (ln float64) {
	d.left, d.right, d.x = d.left[:0], d.right[:0], x
	for k := range d.s.draws {
		c := &d.s.draws[k]
		p, total := d.conditional(c)
		if r != nil {
			u := r.Float64() * total
			a := -1
			for v, q := range p {
				if q > 0 {
					a = v
					if u -= q; u < 0 {
						break
					}
				}
			}
			x[c.index] = a
		}
		ln += math.Log(p[x[c.index]] / total)
	}
	return ln
}

// conditional is the distribution of an index at the values drawn so far, and its sum.
func (d *Drawer) conditional(c *conditional) (p []float64, total float64) {
	left, right := d.reach(c.sites, nil, c.at, d.fromLeft, d.fromRight)
	a := c.sites[c.at]
	p = d.p[:a.d]
	clear(p)
	n := int(a.r)
	for i, w := range left {
		for v := range p {
			p[v] += w * dot(a.data[(i*a.d+v)*n:][:n], right)
		}
	}
	for v, u := range c.undo {
		p[v] *= u
	}
	if top := slices.Max(p); !(top > 0) || math.IsInf(top, 1) {
		copy(p, ones(a.d))
	}
	possible := d.possible[:a.d]
	clear(possible)
	for t := range c.tables {
		own := &c.tables[t]
		at := 0
		for k, j := range own.scope {
			at += own.stride[k] * d.x[j]
		}
		for v := range p {
			possible[v] += own.ln[at+v*own.own]
		}
	}
	// Truncation may have made anything of a value that is possible, which is no reason not to draw it: those are as large as the floor.
	top := math.Inf(-1)
	for v := range p {
		p[v] = math.Log(max(p[v], 0)) + possible[v]
		top = max(top, p[v])
	}
	for v := range p {
		switch {
		case math.IsInf(slices.Max(possible), -1):
			p[v] = 1 // no value is possible: any will do, the weight is 0
		case math.IsInf(possible[v], -1):
			p[v] = 0
		case math.IsInf(top, -1):
			p[v] = 1
		default:
			p[v] = max(math.Exp(p[v]-top), d.floor)
		}
		total += p[v]
	}
	return p, total
}

// fromLeft takes a vector past one more site on its right, at its value.
func (d *Drawer) fromLeft(out, before []float64, a, _ *site) []float64 {
	n := int(a.r)
	out = resized(out, n)
	clear(out)
	for i, w := range before {
		addScaled(out, a.data[(i*a.d+d.x[a.index])*n:][:n], w)
	}
	return out
}

// fromRight takes a vector past one more site on its left, at its value.
func (d *Drawer) fromRight(out, before []float64, a, _ *site) []float64 {
	n := int(a.r)
	out = resized(out, int(a.l))
	for i := range out {
		out[i] = dot(a.data[(i*a.d+d.x[a.index])*n:][:n], before)
	}
	return out
}

// dot is Σ a·b.
func dot(a, b []float64) (sum float64) {
	b = b[:len(a)]
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}
