package learned

// The plain objective ‖B − Σ_i α_i Q^(i)‖² = ‖B‖² + αᵀGα − 2αᵀb: scalar products in count space, and components whose G, b and α are
// always consistent.

import (
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// space is the base tensor with the levels and the maps under which components are seen. Its cores
// never change: learned maps enter through the leg weights.
type space struct {
	dims      []int // by leg
	cores     []btn.Core
	levels    countspace.Levels
	shape     []int       // box of the levels
	order     []int       // all legs, core after core
	rot       [][]float64 // by leg: the learned map O, entry (x, y) at x*d+y; nil: the identity
	ops       *countspace.Ops
	cancelled float64 // C of fit.Rounding
	mapped    float64 // rounding of the maps (btn.MapRounding) relative to ‖B‖
}

// levelsOf returns the levels of components, as fine as the work of learning allows, in multiply-adds. There are three choices: a level per
// value, as in the paper; two levels, value 0 and all other values; or one level, which counts nothing, so that components have rank one.
func levelsOf(net *btn.Network, work float64) countspace.Levels {
	const (
		firstPart   = 64      // multiply-adds to learn a first part at two levels, per leg and coefficient of the count space
		identityBox = 100_000 // coefficients
		identitySum = 1e7     // legs times values times coefficients
	)
	n := float64(len(net.Dims))
	// One level: even two take too much work. Their count space has n+1 coefficients.
	if firstPart*n*(n+1) > work {
		return countspace.Levels{D: 1, Of: zeroLevels(net.Dims)}
	}

	two := countspace.TwoLevels(net.Dims)
	// Two: there are no legs, or the legs have maps "bp". Value 0 of such a leg is the message, and its other values are a basis, whose
	// vectors mean nothing one by one.
	if len(net.Dims) == 0 || slices.ContainsFunc(net.Maps, func(m btn.Map) bool { return m.Kind == query.MapBP }) {
		return two
	}
	// Two: with a level per value the count space would be too large.
	box := math.Pow(n+1, float64(net.Dims[0]-1))
	if box > identityBox || box*n*float64(net.Dims[0]) > identitySum {
		return two
	}
	// A level per value, if all dimensions are equal, otherwise two.
	identity, err := countspace.Identity(net.Dims)
	if err != nil {
		return two
	}
	return identity
}

// newSpace returns the base tensor of a network with given levels of the components and without learned maps. It returns an error if the
// cores do not cover the legs, if the levels do not fit the legs' dimensions, or if a polynomial over the levels is too large.
func newSpace(net *btn.Network, levels countspace.Levels) (*space, error) {
	if err := net.ValidateCores(); err != nil {
		return nil, fmt.Errorf("learned: %w", err)
	}
	if err := levels.Validate(net.Dims); err != nil {
		return nil, fmt.Errorf("learned: %w", err)
	}
	if _, err := levels.Size(); err != nil {
		return nil, fmt.Errorf("learned: %w", err)
	}
	sp := &space{
		dims:      net.Dims,
		cores:     net.Cores,
		levels:    levels,
		shape:     levels.Shape(),
		rot:       make([][]float64, len(net.Dims)),
		ops:       &countspace.Ops{},
		cancelled: 1,
	}
	for _, core := range net.Cores {
		sp.order = append(sp.order, core.Legs...) // all legs, core after core
	}
	return sp, nil
}

// weights returns the weight of each value x of a leg at each level a, for a vector v in learned coordinates: W[x, a] is the sum of O[x, y]
// v[y] over the coordinates y of level a, at x*levels+a. O is the leg's learned map.
func (sp *space) weights(leg int, v []float64) tensor.LegWeights {
	d := sp.levels.D
	w := make(tensor.LegWeights, len(v)*d)
	o := sp.rot[leg]
	for y, vy := range v {
		level := int(sp.levels.Of[leg][y])
		if o == nil {
			w[y*d+level] = vy
			continue
		}
		for x := range v {
			w[x*d+level] += o[x*len(v)+y] * vy
		}
	}
	return w
}

// levelSums returns, by level of a leg, the sum of u[y] w[y] over the coordinates y of the level.
func (sp *space) levelSums(leg int, u, w []float64) []float64 {
	sums := make([]float64, sp.levels.D)
	for y := range u {
		sums[sp.levels.Of[leg][y]] += u[y] * w[y]
	}
	return sums
}

// corePoly returns the count polynomial of core c with its legs weighted by the vectors r, which are by leg.
func (sp *space) corePoly(c int, r [][]float64) (countspace.Poly, error) {
	p, err := tensor.CountPoly(sp.cores[c].T, sp.coreWeights(c, r), sp.levels.D, sp.ops)
	if err != nil {
		return p, fmt.Errorf("learned: core %d: %w", c, err)
	}
	return p, nil
}

// coreWeights returns the weights, as weights does, of all legs of core c for the vectors r.
func (sp *space) coreWeights(c int, r [][]float64) []tensor.LegWeights {
	legs := sp.cores[c].Legs
	w := make([]tensor.LegWeights, len(legs))
	for mode, leg := range legs {
		w[mode] = sp.weights(leg, r[leg])
	}
	return w
}

// basePoly returns the count polynomial of the base tensor with its legs weighted by the vectors r: the product of those of all cores.
func (sp *space) basePoly(r [][]float64) (countspace.Poly, error) {
	ps := make([]countspace.Poly, len(sp.cores))
	for c := range sp.cores {
		p, err := sp.corePoly(c, r)
		if err != nil {
			return countspace.Poly{}, err
		}
		ps[c] = p
	}
	return countspace.Product(sp.levels.D-1, ps, sp.ops), nil
}

// pairPoly returns the count polynomial of the scalar product of two rank-one tensors with vectors u and w: Π_ℓ Σ_y u_ℓ[y] w_ℓ[y]
// z^{level(y)}.
func (sp *space) pairPoly(u, w [][]float64) countspace.Poly {
	ps := make([]countspace.Poly, len(sp.order))
	for j, leg := range sp.order {
		ps[j] = countspace.Linear(sp.levelSums(leg, u[leg], w[leg]))
	}
	return countspace.Product(sp.levels.D-1, ps, sp.ops)
}

// normSq returns ‖B‖² = Π_c ‖B^(c)‖².
func (sp *space) normSq() (scaled.Number, error) {
	n := scaled.One
	for c, core := range sp.cores {
		x, err := tensor.NormSq(core.T)
		if err != nil {
			return n, fmt.Errorf("learned: core %d: %w", c, err)
		}
		n = n.Mul(x)
	}
	if !n.IsFinite() || n.Sign() < 0 {
		return n, fmt.Errorf("%w: ‖B‖²", ErrNotFinite)
	}
	return n, nil
}

// setRounding sets what bounds of roundings need: cancelled = ‖B′‖/‖B‖, for B′ with all numbers of the cores made positive, and mapped, the
// rounding of the maps. It returns ‖B‖².
func (sp *space) setRounding(net *btn.Network) (scaled.Number, error) {
	norm2, err := sp.normSq()
	if err != nil || norm2.IsZero() {
		return norm2, err
	}
	ratio := scaled.One.Div(norm2) // becomes ‖B′‖²/‖B‖², where ‖B′‖² is the product of the squared norms of the cores
	for c, core := range sp.cores {
		x, err := tensor.NormSq(contraction.Absolute(core.T))
		if err != nil {
			return norm2, fmt.Errorf("learned: core %d: %w", c, err)
		}
		ratio = ratio.Mul(x)
	}
	sp.cancelled = max(1, ratio.Sqrt().Float64())
	sp.mapped = btn.MapRounding(net) * sp.cancelled
	return norm2, nil
}

// NormSq returns ‖B‖², the product of the squared norms of the cores, whose legs are disjoint. It returns an error if the cores of the
// network do not cover its legs, or if a core has no finite norm. Cost: tensor.NormSq of every core.
func NormSq(net *btn.Network) (scaled.Number, error) {
	sp, err := newSpace(net, countspace.TwoLevels(net.Dims))
	if err != nil {
		return scaled.Number{}, err
	}
	return sp.normSq()
}

// coreLevels returns the levels of the legs of one core, by mode.
func (sp *space) coreLevels(legs []int) countspace.Levels {
	levels := countspace.Levels{D: sp.levels.D, Of: make([][]uint8, len(legs))}
	for mode, leg := range legs {
		levels.Of[mode] = sp.levels.Of[leg]
	}
	return levels
}

// coreBox returns the box of count vectors of core c's legs.
func (sp *space) coreBox(c int) []int { return sp.coreLevels(sp.cores[c].Legs).Shape() }

// shiftedProducts returns, for each value x of a leg of a core and each level a, Σ_j polys[x][j] t[j+e_a]. That is the scalar product of B
// with the leg at x, and of a component whose leg has weight 1 at level a. polys[x] is the core's polynomial with the leg fixed at x and
// left out of the counts. t is the core's environment, the component and all other cores. A value at level a > 0 counts once in count
// variable a, hence the shift by the unit vector e_a.
func (sp *space) shiftedProducts(polys []countspace.Poly, t countspace.Poly) [][]scaled.Number {
	d := sp.levels.D
	out := make([][]scaled.Number, len(polys))
	shift := make([]int, d-1)
	for x, poly := range polys {
		out[x] = make([]scaled.Number, d)
		for level := range d {
			if level > 0 {
				shift[level-1] = 1 // e_level, set back below
			}
			out[x][level] = countspace.DotShift(t, poly, shift, sp.ops)
			if level > 0 {
				shift[level-1] = 0
			}
		}
	}
	return out
}

// legProducts returns, for each learned coordinate y of a leg, the scalar product of B with a component whose vector on the leg is 1 at y
// and 0 elsewhere: Σ_x O[x, y] m[x][level(y)] for the result m of shiftedProducts and the leg's map O. polys are the core's polynomials by
// value x of the leg, and t is the core's environment: the component and all other cores. Levels divide the values of a leg: those of level
// 0 are not counted, those of level a > 0 count in variable a.
func (sp *space) legProducts(leg int, polys []countspace.Poly, t countspace.Poly) []scaled.Number {
	products := sp.shiftedProducts(polys, t)
	d := len(polys)
	out := make([]scaled.Number, d)
	o := sp.rot[leg]
	for y := range out {
		level := sp.levels.Of[leg][y]
		if o == nil {
			out[y] = products[y][level]
			continue
		}
		for x := range d {
			out[y] = out[y].Add(products[x][level].Mul(scaled.FromFloat(o[x*d+y])))
		}
	}
	return out
}

// legPolys returns the count polynomials of core c with one of its legs fixed, by the leg's value x: the leg is at x and not counted, and
// all other legs are weighted by the vectors r. mode is the position of the leg among the core's.
func (sp *space) legPolys(c, mode int, r [][]float64) ([]countspace.Poly, error) {
	core, d := sp.cores[c], sp.levels.D
	w := sp.coreWeights(c, r)
	n := sp.dims[core.Legs[mode]]
	if len(core.Legs) <= n { // tensor.LegPolys computes the polynomials of all legs at once
		polys, err := tensor.LegPolys(core.T, w, d, sp.ops)
		if err != nil {
			return nil, fmt.Errorf("learned: core %d: %w", c, err)
		}
		return polys[mode], nil
	}

	// The core has more legs than this leg has values: n calls of CountPoly cost less than one of tensor.LegPolys.
	out := make([]countspace.Poly, n)
	for x := range out {
		w[mode] = make(tensor.LegWeights, n*d) // entry x·d + a: the weight of value x at level a
		w[mode][x*d] = 1                       // only value x, at level 0, which is not counted
		p, err := tensor.CountPoly(core.T, w, d, sp.ops)
		if err != nil {
			return nil, fmt.Errorf("learned: core %d: %w", c, err)
		}
		out[x] = p
	}

	return out, nil
}

// part is a component S ∘ R being learned. It is replaced, never changed.
type part struct {
	s countspace.Poly
	r [][]float64 // unit vectors, by leg
}

// model is B̃ = Σ_i fit.Alpha[i] parts[i] with G and b of its parts.
type model struct {
	sp    *space
	norm2 scaled.Number // ‖B‖²
	parts []*part
	g     [][]scaled.Number // scalar products of the parts
	b     []scaled.Number   // scalar products of the parts with B
	fit   fit
}

// snapshot returns a copy of the model that later changes of m do not affect.
func (m *model) snapshot() *model {
	out := *m
	out.parts = append([]*part(nil), m.parts...)
	out.b = append([]scaled.Number(nil), m.b...)
	out.g = zeroMatrix(len(m.g))
	for i := range m.g {
		copy(out.g[i], m.g[i])
	}
	sp := *m.sp
	sp.rot = append([][]float64(nil), m.sp.rot...) // the list alone: a learned map is replaced, never changed
	out.sp = &sp
	return &out
}

// refit fits all weights to G and b.
func (m *model) refit() error {
	fit, err := fitWeights(m.g, m.b, m.norm2, len(m.sp.dims))
	if err == nil {
		fit.setRounding(len(m.sp.dims), m.sp.cancelled)
		m.fit = fit
	}
	return err
}

// products are count polynomials of a component under its present R: with the base tensor, with itself (N), and with every other component.
// They determine its S and its rows of G and b.
type products struct {
	base, self countspace.Poly
	others     []countspace.Poly // by component; unused at the component itself
}

// products returns the count polynomials of part i under its present vectors: with the base tensor, with itself, and with each other part.
// They are computed anew, by product trees. A part is one component S∘R of the model: S weighs counts, and R has a vector for each leg.
func (m *model) products(i int) (products, error) {
	p := m.parts[i]
	base, err := m.sp.basePoly(p.r)
	if err != nil {
		return products{}, err
	}
	out := products{base: base, self: m.sp.pairPoly(p.r, p.r), others: make([]countspace.Poly, len(m.parts))}
	for k, partK := range m.parts {
		if k != i {
			out.others[k] = m.sp.pairPoly(p.r, partK.r)
		}
	}
	return out, nil
}

// fitNewPart fits S of the new part i to the residual of the others under its vectors, sets its row and column of G and its entry of b, and
// refits all weights.
func (m *model) fitNewPart(i int) error {
	products, err := m.products(i)
	if err != nil {
		return err
	}
	return m.replacePart(i, &part{s: m.symmetricStep(i, products), r: m.parts[i].r}, products)
}

// replacePart makes p part i and refits the weights of all parts. A part is S∘R: a polynomial S of weights by counts, and vectors R. q has
// the count polynomials of p's vectors with the base tensor, with themselves and with the vectors of the other parts. Their scalar products
// with the S of both parts are b_i and row and column i of G. If the explained fraction falls, which only rounding can cause, m is
// restored and there is no error. After an error m is not usable.
func (m *model) replacePart(i int, p *part, q products) error {
	previous := m.snapshot()
	m.parts[i] = p
	m.b[i] = countspace.Dot(p.s, q.base, m.sp.ops)
	for k, factor := range m.parts { // p itself at i
		product := q.self
		if k != i {
			product = q.others[k]
		}
		m.g[i][k] = countspace.Dot(countspace.Hadamard(p.s, factor.s), product, m.sp.ops)
		m.g[k][i] = m.g[i][k]
	}

	if err := m.refit(); err != nil {
		return err
	}
	if m.fit.Explained.Cmp(previous.fit.Explained) < 0 {
		*m = *previous
	}
	return nil
}

// appendPart appends a part of norm 0 to the model, with weight 0, and returns its number. A part is one component S∘R of the model: S
// weighs counts, and R has a vector for each leg.
func (m *model) appendPart(p *part) int {
	i := len(m.parts)
	m.parts = append(m.parts, p)
	m.b = append(m.b, scaled.Number{})
	g := zeroMatrix(i + 1)
	for k := range m.g {
		copy(g[k], m.g[k])
	}
	m.g = g
	m.fit.Alpha = append(m.fit.Alpha, scaled.Number{})
	return i
}

// zeroMatrix returns an n×n matrix of zeros.
func zeroMatrix(n int) [][]scaled.Number {
	g := make([][]scaled.Number, n)
	for i := range g {
		g[i] = make([]scaled.Number, n)
	}
	return g
}
