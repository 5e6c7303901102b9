package sweeps

// What a plan costs, from shapes only: the sweep with tensors replaced by their sizes.

import (
	"cmp"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/contractionorder"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Cost is what a contraction takes at most:
// bonds are as large as dimensions, operators and Bond let them be.
type Cost struct {
	Flops     float64 // multiplications and additions; decompositions by their usual counts
	PeakBytes float64 // states and temporaries at once
	Log2Bond  float64 // log2 of the largest bond after compression
}

// hugeBond and hugeCost stand for what is larger:
// products of them with each other still fit float64.
const (
	hugeBond = 1e60
	hugeCost = 1e300
)

// entryBytes is the size of one entry of an operator's cores.
const entryBytes = 32

// Evaluate prices Contract along p with bonds of at most bond.
// Errors: ErrPlan, ErrOptions. Time: Σ over the steps of the sites they touch.
func Evaluate(h contractionorder.Hypergraph, p Plan, bond int) (Cost, error) {
	if bond < 1 {
		return Cost{}, fault.New(fault.BadInput, "%w: bond %d", ErrOptions, bond)
	}
	if err := p.check(h); err != nil {
		return Cost{}, err
	}
	return newPricer(h, float64(bond)).price(p, math.Inf(1)), nil
}

// EvaluateMarginals is Evaluate with Options.Marginals:
// the states of the sweep are kept for the one back.
func EvaluateMarginals(h contractionorder.Hypergraph, p Plan, bond int) (Cost, error) {
	if _, err := Evaluate(h, p, bond); err != nil {
		return Cost{}, err
	}
	return newPricer(h, float64(bond)).priceMarginals(p), nil
}

// spanShape is a span of the chain before a step:
// sites l[k] × d[k] × l[k+1], and the operator's bonds.
type spanShape struct {
	l       []float64 // bonds of the chain, one more than sites
	s       []float64 // bonds of the operator, likewise
	d       []float64 // dimensions of the sites
	gone    []bool    // sites that are summed out
	index   float64   // dimension of the step's index
	nonzero []float64 // entries of the cores; nil where they are not known
}

// spanCost is what a step takes, in the sequence of sweepRight and sweepLeft, with bonds of at most
// bond after it. It returns the bonds between the sites that stay, the outer ones included, in the
// room of after.
func (sh *spanShape) spanCost(bond float64, after []float64) (flops, bytes float64, _ []float64) {
	n := len(sh.d)
	lead, last := slices.Index(sh.gone, false), n-1
	for last >= 0 && sh.gone[last] {
		last--
	}

	if lead < 0 {
		lead, last = n, n
	}

	rows := make([]float64, n+1)
	rows[0] = sh.l[0]

	stored := 8 * rows[0] * rows[0] // bytes of the factors and the operator
	top := 0.0

	for k := range n {
		stored += entryBytes * sh.entries(k)
	}
	for k := 0; k < last; k++ {
		f, m, q := sh.advanceCost(k, rows[k], k >= lead)
		rows[k+1] = q
		flops += f
		stored += 8 * q * sh.s[k+1] * sh.l[k+1]
		top = max(top, stored+m)
	}

	after = append(after[:0], sh.l[n])
	if lead == n {
		return flops, top, append(after[:0], rows[n], sh.l[n])
	}

	cols := sh.l[n]
	kept := 0.0 // bytes of the sites that stay
	carried := cols * cols
	for k := n - 1; k >= lead; k-- {
		keep := sh.d[k]
		if sh.gone[k] {
			keep = 1
		}
		left := sh.s[k] * sh.l[k]
		flops += 2*sh.s[k+1]*sh.l[k]*sh.d[k]*sh.l[k+1]*cols + 2*sh.entries(k)*sh.l[k]*cols

		live := carried + left*keep*cols + sh.l[k]*sh.d[k]*cols
		if sh.gone[k] {
			carried = left * cols
			top = max(top, stored+kept+8*live)
			continue
		}

		width := keep * cols
		if k > 0 {
			flops += 2 * rows[k] * left * width
			live += rows[k] * width
		}

		if k == lead {
			kept += 8 * rows[k] * width
			after = append(after, rows[k])
			top = max(top, stored+kept+8*live)
			break
		}

		rank := min(rows[k], width, bond)
		flops += svdFlops(rows[k], width) + 2*left*width*rank
		small := min(rows[k], width)
		top = max(top, stored+kept+8*(live+small*(rows[k]+2*width)+rows[k]*width+left*rank))

		kept += 8 * rank * width
		carried = left * rank
		cols = rank
		after = append(after, rank)
	}

	slices.Reverse(after)
	return flops, top, after
}

// advanceCost is what advance takes at site k, and the rows of its factor.
func (sh *spanShape) advanceCost(k int, rows float64, reduce bool) (flops, bytes, next float64) {
	width := sh.d[k] * sh.l[k+1]
	keep := sh.d[k]
	if sh.gone[k] {
		keep = 1
	}

	flops = 2*rows*sh.s[k]*sh.l[k]*width + 2*rows*sh.entries(k)*sh.l[k+1]
	m := rows * keep
	cols := sh.s[k+1] * sh.l[k+1]
	bytes = 8 * (rows*sh.s[k]*width + m*cols)
	if reduce && m > cols {
		return flops + qrFlops(m, cols), bytes + 16*cols*cols, cols
	}
	return flops, bytes, m
}

// entries bounds those of the core at site k.
func (sh *spanShape) entries(k int) float64 {
	if sh.nonzero != nil {
		return sh.nonzero[k]
	}
	return sh.d[k] * max(sh.s[k], sh.s[k+1], sh.s[k]*sh.s[k+1]/sh.index)
}

// pricer prices plans of one hypergraph.
type pricer struct {
	h      contractionorder.Hypergraph
	bond   float64
	visits int64 // sites looked at by the last price
}

func newPricer(h contractionorder.Hypergraph, bond float64) *pricer {
	return &pricer{h: h, bond: bond}
}

// price walks the steps of p until they cost more than enough.
func (x *pricer) price(p Plan, enough float64) Cost {
	x.visits = int64(len(x.h.Edges))
	m := meter{tables: x.tables()}
	m.peak = m.tables
	steps := schedule(x.h, p)
	x.forward(p, steps, &m, enough)
	return m.cost()
}

// priceMarginals is price with the sweep back.
func (x *pricer) priceMarginals(p Plan) Cost {
	m := meter{tables: x.tables(), keep: true}
	m.peak = m.tables
	steps := schedule(x.h, p)
	x.forward(p, steps, &m, math.Inf(1))
	m.keep = false
	x.backward(p, steps, &m)
	return m.cost()
}

// tables is the bytes of the expression's tables.
func (x *pricer) tables() (bytes float64) {
	for _, e := range x.h.Edges {
		size := 8.0
		for _, i := range e {
			size *= float64(x.h.Dims[i])
		}
		bytes += size
	}
	return bytes
}

// meter adds up what steps take.
type meter struct {
	flops   float64
	peak    float64 // bytes
	tables  float64 // bytes of the expression
	kept    float64 // bytes of what is kept
	largest float64 // bond
	keep    bool    // what steps make is kept for the sweep back
}

// add counts a step: its flops, the bytes live in it, those of what it makes, and its largest bond.
func (m *meter) add(flops, bytes, made, largest float64) {
	m.flops = min(m.flops+flops, hugeCost)
	m.peak = min(max(m.peak, m.tables+m.kept+bytes), hugeCost)
	m.largest = max(m.largest, largest)
	if m.keep {
		m.kept = min(m.kept+made, hugeCost)
	}
}

func (m *meter) cost() Cost {
	return Cost{Flops: m.flops, PeakBytes: m.peak, Log2Bond: math.Log2(max(m.largest, 1))}
}

// forward walks the steps until they cost more than enough.
func (x *pricer) forward(p Plan, steps []step, m *meter, enough float64) {
	c := &shapeChain{x: x, p: p, bonds: []float64{1}}
	for _, st := range steps {
		before := c.bytes()
		c.enter(st.enter...)
		entered := c.bytes() - before
		flops, bytes, made := c.multiply(st.index, st.tables,
			func(j int) bool { return st.last && j == st.index })

		m.add(flops, bytes, made+max(entered, 0), c.largest)
		if m.flops > enough {
			return
		}
	}
}

// backward walks the steps from the last to the first, transposed: what they sum out enters, what
// enters is summed out. Overlaps count as if each looked at the step's span and a site on either
// side of it.
func (x *pricer) backward(p Plan, steps []step, m *meter) {
	c := &shapeChain{x: x, p: p, bonds: []float64{1}}
	for k := len(steps) - 1; k >= 0; k-- {
		st := &steps[k]
		if st.last {
			c.enter(st.index)
		}
		flops, bytes, _ := c.multiply(st.index, st.tables,
			func(j int) bool { return j != st.index && slices.Contains(st.enter, j) })

		b := x.bond
		flops += 4 * b * b * min(b, m.largest) * float64(x.h.Dims[st.index]*(len(c.shape.d)+2))
		m.add(flops, bytes+8*(2*c.overlapBytes(m.largest)), 0, c.largest)

		if slices.Contains(st.enter, st.index) {
			flops, bytes, _ := c.multiply(st.index, nil, func(j int) bool { return j == st.index })
			m.add(flops, bytes, 0, c.largest)
		}
	}
}

// overlapBytes bounds the entries of the products of
// this chain with another of bonds of at most bond.
func (c *shapeChain) overlapBytes(bond float64) (n float64) {
	for _, b := range c.bonds {
		n += 2 * b * bond
	}
	return n
}

// shapeChain is a chain of which only the sizes are known.
type shapeChain struct {
	x       *pricer
	p       Plan
	sites   []int     // their indices
	bonds   []float64 // bonds[k] is on the left of site k
	centre  int
	largest float64   // bond between sites after the last step
	shape   spanShape // of the last step
	after   []float64 // room for spanCost
}

// find returns where the site of an index of the given place is, or would be.
func (c *shapeChain) find(place int) int {
	k, _ := slices.BinarySearchFunc(c.sites, place,
		func(i, p int) int { return cmp.Compare(c.p.Position[i], p) })
	return k
}

func (c *shapeChain) dim(k int) float64 { return float64(c.x.h.Dims[c.sites[k]]) }

// bytes is the size of the sites.
func (c *shapeChain) bytes() float64 {
	n := 0.0
	for k := range c.sites {
		n += 8 * c.bonds[k] * c.dim(k) * c.bonds[k+1]
	}
	return n
}

// enter adds sites for indices on which the state does not depend yet.
func (c *shapeChain) enter(indices ...int) {
	for _, j := range indices {
		k := c.find(c.p.Position[j])
		c.sites = slices.Insert(c.sites, k, j)
		c.bonds = slices.Insert(c.bonds, k, c.bonds[k])
		if k <= c.centre && len(c.sites) > 1 {
			c.centre++
		}
	}
}

// multiply applies tables of an index to the chain and sums the indices out that gone names.
// It returns the flops, the bytes live in it, and those of the sites that it makes.
func (c *shapeChain) multiply(
	index int, tables []int, gone func(int) bool,
) (flops, bytes, made float64) {
	first, last := c.span(index, tables)

	flops, made = c.move(min(max(c.centre, first), last))
	c.fill(index, tables, gone, first, last)
	c.x.visits += int64(last-first+1) + int64(len(c.sites)/4)

	f, b, after := c.shape.spanCost(c.x.bond, c.after)
	flops += f

	bytes = b + c.bytes()
	c.after = after
	c.largest = 1
	for _, r := range after {
		c.largest = max(c.largest, r)
	}

	left := c.sites[:first]
	kept := 0
	for _, j := range slices.Clone(c.sites[first : last+1]) {
		if !gone(j) {
			left = append(left, j)
			kept++
		}
	}

	c.sites = append(left, c.sites[last+1:]...)
	if kept == 0 {
		// A matrix is left, which a neighbour takes: its bond becomes the other side's.
		after = after[:1]
		switch {
		case len(c.sites) == 0:
			after[0] = 1
		case first == 0:
			after[0] = c.shape.l[0]
		default:
			after[0] = c.shape.l[len(c.shape.l)-1]
		}
	}

	c.bonds = slices.Replace(c.bonds, first, last+2, after...)
	c.centre = min(first, max(len(c.sites)-1, 0))
	for k := max(first-1, 0); k < min(first+kept+1, len(c.sites)); k++ {
		made += 8 * c.bonds[k] * c.dim(k) * c.bonds[k+1]
	}
	return flops, bytes, made
}

// span returns the first and the last site that tables of an index touch.
func (c *shapeChain) span(index int, tables []int) (first, last int) {
	low := c.p.Position[index]
	high := low
	for _, t := range tables {
		for _, j := range c.x.h.Edges[t] {
			if c.x.h.Dims[j] > 1 {
				low = min(low, c.p.Position[j])
				high = max(high, c.p.Position[j])
			}
		}
	}
	return c.find(low), c.find(high)
}

// fill describes a span and the operator on it.
func (c *shapeChain) fill(index int, tables []int, gone func(int) bool, first, last int) {
	sh := &c.shape
	sh.l = sh.l[:0]
	sh.s = sh.s[:0]
	sh.d = sh.d[:0]
	sh.gone = sh.gone[:0]

	sh.index = float64(c.x.h.Dims[index])
	sh.s = append(sh.s, 1)
	wide := false
	for _, t := range tables {
		wide = wide || len(c.x.h.Edges[t]) > 2
	}

	for k := first; k <= last; k++ {
		sh.l = append(sh.l, c.bonds[k])
		sh.d = append(sh.d, c.dim(k))
		sh.gone = append(sh.gone, gone(c.sites[k]))
		s := min(sh.index, hugeBond)
		for _, t := range tables {
			if wide {
				s = min(s*crossing(c.x.h, c.p, t, index, c.p.Position[c.sites[k]]), hugeBond)
			}
		}
		sh.s = append(sh.s, s)
	}
	sh.s[len(sh.s)-1] = 1
	sh.l = append(sh.l, c.bonds[last+1])
}

// move makes site k the centre, and returns the flops and the bytes of the sites that it makes.
func (c *shapeChain) move(k int) (flops, made float64) {
	for ; c.centre < k; c.centre++ {
		l, d, r := c.bonds[c.centre], c.dim(c.centre), c.bonds[c.centre+1]
		next := 0.0
		m := min(l*d, r)
		if c.centre+2 < len(c.bonds) {
			next = c.dim(c.centre+1) * c.bonds[c.centre+2]
		}
		flops += 2*qrFlops(l*d, r) + 2*m*r*next
		c.bonds[c.centre+1] = m
		made += 8 * m * (l*d + next)
	}
	for ; c.centre > k; c.centre-- {
		l, d, r := c.bonds[c.centre], c.dim(c.centre), c.bonds[c.centre+1]
		m := min(l, d*r)
		next := c.bonds[c.centre-1] * c.dim(c.centre-1)
		flops += 2*qrFlops(l, d*r) + 2*m*l*next
		c.bonds[c.centre] = m
		made += 8 * m * (d*r + next)
	}
	return flops, made
}
