package counts

// The value of a network in count space, with all marginals or a joint one.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Answer is the value of a network, without its scale.
type Answer struct {
	Z scaled.Number
	// Marginals are w_v(x) ∂Z/∂w_v(x) of every variable and value, variable after variable.
	Marginals []scaled.Number
	Joint     []scaled.Number // of the cells of a set, the last variable fastest
	MulAdds   int64
}

// Value returns Z, and all marginals if they are wanted. What equal pieces have in common is computed once. Numbers carry exponents, and a
// coefficient is summed with the rounding of its own terms. In windows, which need numbers of at least 0, the dropped terms are below 2^-60
// of Z and of every marginal that is not below 2^-1000 of Z. Errors: fault.OverBudget with the bytes; the context's.
func (f *Form) Value(ctx context.Context, marginals bool) (Answer, error) {
	e := &evaluation{Form: f, ctx: ctx, ops: newOps(ctx)}
	if err := f.checkMemory(marginals); err != nil {
		return Answer{}, err
	}
	if err := f.computePolys(ctx, e.ops); err != nil {
		return Answer{}, err
	}

	var wanted func(int) bool
	var a Answer
	if marginals {
		variable := f.variableOf
		wanted = func(k int) bool {
			return slices.ContainsFunc(f.kinds[k].links, func(link int) bool { return variable[link] >= 0 })
		}
	}
	derivatives := make([]countspace.Poly, len(f.kinds))
	z, err := e.sumProduct(f.polys, f.powers(), wanted, func(k int, h countspace.Poly) error {
		derivatives[k] = h
		return nil
	})
	if err != nil {
		return Answer{}, err
	}
	a.Z = z.Mul(f.scale)
	if marginals {
		if a.Marginals, err = e.spreadMarginals(derivatives); err != nil {
			return Answer{}, err
		}
	}
	a.MulAdds = e.ops.MulAdds
	return a, ctx.Err() // results computed after its end are void
}

// newOps returns arithmetic that ends with a context. A user of its results looks at the context afterwards.
func newOps(ctx context.Context) *countspace.Ops {
	return &countspace.Ops{Stop: func() bool { return ctx.Err() != nil }}
}

// evaluation is one pass over a form.
type evaluation struct {
	*Form
	ctx context.Context
	ops *countspace.Ops
}

// sumProduct returns Σ_c S_c [z^c] Π_k polys[k]^powers[k], and calls visit for every k that is wanted, with the derivative by one of its
// factors. If wanted is nil it calls visit for none. With one count variable the product is a tree, with several a chain.
func (e *evaluation) sumProduct(
	polys []countspace.Poly, powers []int, wanted func(int) bool, visit func(int, countspace.Poly) error,
) (scaled.Number, error) {
	s := e.spacePoly()
	if e.countVariables == 1 {
		l := newLine(e.ctx, polys, powers, e.ops)
		return l.sumInWindows(s, e.isSigned, wanted, visit)
	}

	c, err := e.newChain(e.ctx, polys, powers, e.ops)
	if err != nil {
		return scaled.Number{}, err
	}
	z := countspace.Dot(s, c.partials[len(c.partials)-1], e.ops)
	if wanted == nil {
		return z, nil
	}
	return z, c.visitDerivatives(s, wanted, visit)
}

// sumInWindows returns Σ_c s_c [z^c] Π and calls visit for every wanted leaf, with the derivative by one of its factors. It takes the whole
// products if that is little work or if terms have both signs. Otherwise it takes windows, and wider ones until the dropped terms are known
// to change no digit.
func (l *line) sumInWindows(
	s countspace.Poly, signed bool, wanted func(int) bool, visit func(int, countspace.Poly) error,
) (scaled.Number, error) {
	if signed || !l.root.isLarge() || l.root.cost() <= policy.WindowFrom {
		return l.sumWhole(s, wanted, visit)
	}
	w, err := l.newWindowedLine(s)
	if err != nil {
		return scaled.Number{}, err
	}
	for _, width := range []int64{firstWindow, lastWindow} {
		z, dropped, err := w.sumWithin(width)
		if err != nil || wanted == nil || z.IsZero() {
			return z, err
		}
		right := true // every derivative is
		found := map[int]countspace.Poly{}
		err = l.propagateDown(l.root, cutWindows(w.s, l.root.bounds.wanted), wanted, func(leaf int, h countspace.Poly) error {
			found[leaf] = h
			right = right && standAbove(l.leaves[leaf].base, h, dropped)
			return nil
		})
		if err != nil {
			return scaled.Number{}, err
		}
		if !right && width != lastWindow {
			continue
		}
		for _, leaf := range l.leaves {
			if h, ok := found[leaf.leaf]; ok {
				if err := visit(leaf.leaf, h); err != nil {
					return scaled.Number{}, err
				}
			}
		}
		return z, nil
	}
	return scaled.Number{}, fault.New(fault.Internal, "counts: no window was the last one")
}

// The windows in bits: the distance of dropped terms below the total. The second goes as far down as
// a float64 beside Z.
const (
	firstWindow = 192
	lastWindow  = 1200
	// margin is the required distance of dropped terms below a correct number: more than its digits.
	margin = 60
)

// standAbove reports whether all terms p_e · h_e lie so far above 2^dropped that the dropped ones change no digit of them.
func standAbove(p, h countspace.Poly, dropped int64) bool {
	for i := range p.Coef.Mant {
		x := p.Coef.At(i).Mul(h.Coef.At(i))
		if p.Coef.Mant[i] != 0 && (x.IsZero() || x.Exp < dropped+margin) {
			return false
		}
	}
	return true
}

// sumWhole is sumInWindows without windows.
func (l *line) sumWhole(
	s countspace.Poly, wanted func(int) bool, visit func(int, countspace.Poly) error,
) (scaled.Number, error) {
	if err := l.multiplyUp(l.root); err != nil {
		return scaled.Number{}, err
	}
	z := l.dot([]window{{p: s}}, l.root.windows)
	if wanted == nil {
		return z, nil
	}
	return z, l.propagateDown(l.root, []window{{p: countspace.Crop(s, []int{l.root.degree + 1})}}, wanted, visit)
}

// windowedLine is a line with bounds of its coefficients.
type windowedLine struct {
	*line
	s countspace.Poly // over the box of the root
}

// newWindowedLine computes the bounds of a line.
func (l *line) newWindowedLine(s countspace.Poly) (*windowedLine, error) {
	w := &windowedLine{line: l, s: countspace.Crop(s, []int{l.root.degree + 1})}
	if err := l.boundUp(l.root); err != nil {
		return nil, err
	}
	l.root.bounds.multipliers = blockBounds(w.s.Coef.Mant, w.s.Coef.Exp)
	return w, l.root.boundDown(l.ctx)
}

// sumWithin computes the total z in windows that are so wide that the dropped terms together are below 2^dropped, which is about 2^-width
// of z.
func (w *windowedLine) sumWithin(width int64) (z scaled.Number, dropped int64, err error) {
	least := w.root.totalBound() - width
	for further := int64(1 << 12); ; further *= 2 {
		n := w.root.chooseWindows(least)
		if err := w.line.multiplyUp(w.root); err != nil {
			return z, 0, err
		}
		z = w.dot(cutWindows(w.s, w.root.bounds.wanted), w.root.windows)
		dropped = least + log2(n+1)
		switch {
		case n == 0 || !z.IsZero() && z.Exp >= dropped+width-margin:
			return z, dropped, nil
		case z.IsZero():
			least -= further
		default:
			least = z.Exp - width
		}
	}
}

// Windowed returns the flops of the value if products are cut to windows, by bounds of all coefficients. It returns those of Cost if they
// are not cut. It computes all pieces.
func (f *Form) Windowed(ctx context.Context, marginals bool) (flops float64, err error) {
	whole := f.Cost(marginals).Flops
	if f.countVariables != 1 || f.isSigned {
		return whole, nil
	}
	ops := newOps(ctx)
	if err := f.computePolys(ctx, ops); err != nil {
		return 0, err
	}
	l := newLine(ctx, f.polys, f.powers(), ops)
	if !l.root.isLarge() || l.root.cost() <= policy.WindowFrom {
		return whole, nil
	}
	w, err := l.newWindowedLine(f.spacePoly())
	if err != nil {
		return 0, err
	}
	l.root.chooseWindows(l.root.totalBound() - firstWindow)
	flops = 2 * w.root.windowedCost()
	if marginals {
		flops *= 3
	}
	return math.Min(whole, flops), ctx.Err()
}

// linkVariables returns, by link, the variable whose weights the link has, and −1 for none.
func linkVariables(net *btn.Network) []int {
	out := slices.Repeat([]int{-1}, len(net.Links))
	for v, place := range net.Variables {
		out[place.Link] = v
	}
	return out
}

// spreadMarginals returns the marginals of all variables, given the derivatives by the polynomials of the kinds.
func (e *evaluation) spreadMarginals(derivatives []countspace.Poly) ([]scaled.Number, error) {
	// By kind and link: a number for every term.
	rows := make([][][]scaled.Number, len(e.kinds))
	for k, h := range derivatives {
		if h.Shape == nil {
			continue
		}
		var err error
		if rows[k], err = e.linkMarginals(k, h); err != nil {
			return nil, err
		}
	}

	offset := make([]int, len(e.net.Variables))
	total := 0
	for v, place := range e.net.Variables {
		offset[v] = total
		total += place.Domain
	}
	out := make([]scaled.Number, total)
	variable := e.variableOf
	for t, p := range e.pieces {
		for i, link := range p.links {
			if v := variable[link]; v >= 0 && rows[e.kindOf[t]] != nil {
				copy(out[offset[v]:], rows[e.kindOf[t]][i])
			}
		}
	}
	return out, nil
}

// linkMarginals returns the marginals of the links of kind k, given the derivative h by its polynomial.
func (e *evaluation) linkMarginals(k int, h countspace.Poly) ([][]scaled.Number, error) {
	kind := &e.kinds[k]
	h = h.Scale(e.scale)
	if kind.tables == nil {
		return [][]scaled.Number{e.termMarginals(kind.links[0], h)}, nil
	}
	r := &tableRun{layout: e.layout, netPlan: kind.tables, ctx: e.ctx, ops: e.ops}
	if _, err := r.fillTables(); err != nil {
		return nil, err
	}
	return r.termMarginals(h)
}

// plainRow returns the marginal of a link that meets no table: value x is term x,
//
//	M(x) = w(x) Σ_c h_c [z^c] Π_ℓ Σ_y A_ℓ[x, y] w_ℓ(y) z^{level(y)}
func (e *evaluation) termMarginals(link int, h countspace.Poly) []scaled.Number {
	cp, ok := e.net.Links[link].T.(*tensor.CP)
	if !ok {
		return nil
	}
	row := make([]scaled.Number, len(cp.Weights))
	for x, w := range cp.Weights {
		if w != 0 {
			row[x] = scaled.FromFloat(w).Mul(countspace.Dot(h, e.termPoly(link, x, e.ops), e.ops))
		}
	}
	return row
}
