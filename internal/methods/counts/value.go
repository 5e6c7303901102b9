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

// Value returns Z of a network in count space, and all marginals if they are wanted. The network has symmetric cores, whose entry S_c
// depends only on the counts c of their legs' values. The pieces are the connected parts of the network without these cores. Each piece is
// a polynomial in the count variables z, and Z is the sum over all c of S_c times the coefficient of z^c in the product of the pieces. A
// kind is a class of equal pieces: it has one polynomial, and the number of its pieces as the power.
//
// Numbers carry exponents of their own, so that none overflows. The rounding of a coefficient is relative to the terms that are added up
// for it, not to the other coefficients. If no number is below 0, large products may be cut to windows of coefficients: the dropped terms
// are below 2^-60 of Z, and of every marginal that is not below 2^-1000 of Z. Errors: fault.OverBudget with the bytes; the context's.
func (f *Form) Value(ctx context.Context, marginals bool) (Answer, error) {
	e := &evaluation{Form: f, ctx: ctx, ops: newOps(ctx)}
	if err := f.checkMemory(marginals); err != nil {
		return Answer{}, err
	}
	if err := f.computePolys(ctx, e.ops); err != nil {
		return Answer{}, err
	}

	// Z, and with marginals the derivatives by the polynomials of the kinds that have a variable.
	var wanted func(kind int) bool
	var a Answer
	if marginals {
		wanted = func(k int) bool {
			return slices.ContainsFunc(f.kinds[k].links, func(link int) bool { return f.variableOf[link] >= 0 })
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

// newOps returns polynomial arithmetic that stops when the context ends. Its results are void then, so a user looks at the context
// afterwards.
func newOps(ctx context.Context) *countspace.Ops {
	return &countspace.Ops{Stop: func() bool { return ctx.Err() != nil }}
}

// evaluation is one pass over a form.
type evaluation struct {
	*Form
	ctx context.Context
	ops *countspace.Ops
}

// sumProduct returns Σ_c S_c [z^c] Π_k polys[k]^powers[k], where [z^c] is the coefficient of z^c. For every wanted k it calls visit with
// the derivative of the sum with respect to one of the powers[k] factors polys[k]. If wanted is nil, there are none. With one count
// variable the product is a tree, with several a chain.
func (e *evaluation) sumProduct(
	polys []countspace.Poly, powers []int, wanted func(k int) bool, visit func(k int, derivative countspace.Poly) error,
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
	z := countspace.Dot(s, c.partials[len(c.partials)-1], e.ops) // the last partial product is that of all factors
	if wanted == nil {
		return z, nil
	}
	return z, c.visitDerivatives(s, wanted, visit)
}

// sumInWindows returns Σ_c s_c [z^c] Π, for the product Π of the line. It calls visit for every wanted leaf with the derivative with
// respect to one of its factors. A leaf is a polynomial to a power, a product of equal factors. It takes all coefficients if that is little
// work or if terms have both signs. Otherwise it takes windows, ranges of the coefficients that matter, and wider ones if the dropped terms
// may change a digit of the derivatives. If wanted is nil, it calls visit for none.
func (l *line) sumInWindows(
	s countspace.Poly, isSigned bool, wanted func(leaf int) bool, visit func(leaf int, derivative countspace.Poly) error,
) (scaled.Number, error) {
	if isSigned || !l.root.isLarge() || l.root.cost() <= policy.WindowFrom {
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

		derivatives, areRight, err := w.derivativesWithin(dropped, wanted)
		if err != nil {
			return scaled.Number{}, err
		}
		if !areRight && width != lastWindow { // a wider window may make them right; the last one is taken as it is
			continue
		}
		for _, leaf := range l.leaves {
			if h, ok := derivatives[leaf.leaf]; ok {
				if err := visit(leaf.leaf, h); err != nil {
					return scaled.Number{}, err
				}
			}
		}
		return z, nil
	}
	return scaled.Number{}, fault.New(fault.Internal, "counts: no window was the last one")
}

// derivativesWithin returns, by leaf, the derivatives with respect to one of the factors of each wanted leaf, within the windows of
// sumWithin. areRight reports whether the dropped terms, together below 2^dropped, change no digit of them.
func (w *windowedLine) derivativesWithin(
	dropped int64, wanted func(leaf int) bool,
) (derivatives map[int]countspace.Poly, areRight bool, err error) {
	areRight = true
	derivatives = map[int]countspace.Poly{}
	err = w.propagateDown(w.root, cutWindows(w.s, w.root.bounds.wanted), wanted, func(leaf int, h countspace.Poly) error {
		derivatives[leaf] = h
		areRight = areRight && standAbove(w.leaves[leaf].base, h, dropped)
		return nil
	})
	return derivatives, areRight, err
}

// The windows in bits: the distance of dropped terms below the total. The second goes as far down as
// a float64 beside Z.
const (
	firstWindow = 192
	lastWindow  = 1200
	// margin is the required distance of dropped terms below a correct number: more than its digits.
	margin = 60
)

// standAbove reports whether every nonzero coefficient of p, times its derivative h, is at least 2^margin above 2^dropped, so that dropped
// terms of that size change no digit of the product.
func standAbove(p, h countspace.Poly, dropped int64) bool {
	for i := range p.Coef.Mant {
		term := p.Coef.At(i).Mul(h.Coef.At(i))
		if p.Coef.Mant[i] != 0 && (term.IsZero() || term.Exp < dropped+margin) {
			return false
		}
	}
	return true
}

// sumWhole returns Σ_c s_c [z^c] Π for the product Π of the line, and calls visit for every wanted leaf, base^power, with the derivative by
// one of its factors base. If wanted is nil, it visits none. Unlike sumInWindows it computes all coefficients of all products.
func (l *line) sumWhole(
	s countspace.Poly, wanted func(leaf int) bool, visit func(leaf int, derivative countspace.Poly) error,
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
	s countspace.Poly // what the root's coefficients are multiplied by, as many of them
}

// newWindowedLine bounds the coefficients of all large nodes of a product tree, from the leaves up, and what each is multiplied by in Σ_c
// s_c [z^c] Π, from the root down.
func (l *line) newWindowedLine(s countspace.Poly) (*windowedLine, error) {
	w := &windowedLine{line: l, s: countspace.Crop(s, []int{l.root.degree + 1})}
	if err := l.boundUp(l.root); err != nil {
		return nil, err
	}
	l.root.bounds.multipliers = blockBounds(w.s.Coef.Mant, w.s.Coef.Exp)
	return w, l.root.boundDown(l.ctx)
}

// sumWithin computes the total z from windows of the coefficients that matter. It keeps terms whose bound is at least 2^minExponent. All
// dropped terms together are below 2^dropped, which is about 2^-width of z. It begins with minExponent below a bound of z, and lowers it
// until z is known to stand above the dropped terms: by more at each step while z is 0, and otherwise to width below z.
func (w *windowedLine) sumWithin(width int64) (z scaled.Number, dropped int64, err error) {
	minExponent := w.root.totalBound() - width
	for decrement := int64(1 << 12); ; decrement *= 2 { // more than the exponents that float64 spans
		droppedCoefficients := w.root.chooseWindows(minExponent)
		if err := w.line.multiplyUp(w.root); err != nil {
			return z, 0, err
		}
		z = w.dot(cutWindows(w.s, w.root.bounds.wanted), w.root.windows)
		dropped = minExponent + log2(droppedCoefficients+1)         // each dropped term is below 2^minExponent
		standsAbove := !z.IsZero() && z.Exp >= dropped+width-margin // z is 2^(width−margin) times the dropped terms, or more
		switch {
		case droppedCoefficients == 0 || standsAbove:
			return z, dropped, nil
		case z.IsZero(): // nothing is known of its size
			minExponent -= decrement
		default:
			minExponent = z.Exp - width
		}
	}
}

// WindowedFlops returns the flops of Value if only windows of its products are computed, ranges of the coefficients that matter, or those
// of Cost if Value computes all coefficients or if that is less. It computes the polynomials of all pieces and the bounds of all
// coefficients, no products.
func (f *Form) WindowedFlops(ctx context.Context, marginals bool) (flops float64, err error) {
	wholeFlops := f.Cost(marginals).Flops
	if f.countVariables != 1 || f.isSigned {
		return wholeFlops, nil
	}
	ops := newOps(ctx)
	if err := f.computePolys(ctx, ops); err != nil {
		return 0, err
	}
	l := newLine(ctx, f.polys, f.powers(), ops)
	if !l.root.isLarge() || l.root.cost() <= policy.WindowFrom { // Value takes all coefficients, too
		return wholeFlops, nil
	}
	w, err := l.newWindowedLine(f.spacePoly())
	if err != nil {
		return 0, err
	}
	l.root.chooseWindows(l.root.totalBound() - firstWindow) // sets the windows; how much they drop does not matter here
	flops = 2 * w.root.windowedCost()                       // 2 flops a multiply-add
	if marginals {
		flops *= 3 // each product has two derivatives, of about the same cost
	}
	return math.Min(wholeFlops, flops), ctx.Err()
}

// linkVariables returns, by link, the variable whose weights the link has, or −1.
func linkVariables(net *btn.Network) []int {
	out := slices.Repeat([]int{-1}, len(net.Links))
	for v, variable := range net.Variables {
		out[variable.Link] = v
	}
	return out
}

// spreadMarginals returns the marginals of all variables, one value after the other, given the derivatives of Z by the polynomials of the
// kinds. A kind is a class of equal pieces, connected parts of the network, and these have equal marginals.
func (e *evaluation) spreadMarginals(derivatives []countspace.Poly) ([]scaled.Number, error) {
	rows := make([][][]scaled.Number, len(e.kinds)) // by kind, link of the piece and term
	for k, h := range derivatives {
		if h.Shape == nil { // the kind has no variable
			continue
		}
		var err error
		if rows[k], err = e.linkMarginals(k, h); err != nil {
			return nil, err
		}
	}

	firstValue := make([]int, len(e.net.Variables))
	valueCount := 0
	for v, variable := range e.net.Variables {
		firstValue[v] = valueCount
		valueCount += variable.Domain
	}
	marginals := make([]scaled.Number, valueCount)
	for t, p := range e.pieces {
		for i, link := range p.links {
			if v := e.variableOf[link]; v >= 0 && rows[e.kindOf[t]] != nil {
				copy(marginals[firstValue[v]:], rows[e.kindOf[t]][i])
			}
		}
	}
	return marginals, nil
}

// linkMarginals returns the marginals of the links of a piece of kind k, by link and term, given the derivative h by the kind's polynomial.
func (e *evaluation) linkMarginals(k int, h countspace.Poly) ([][]scaled.Number, error) {
	kind := &e.kinds[k]
	h = h.Scale(e.scale) // of the rank-one cores
	if kind.tables == nil {
		return [][]scaled.Number{e.termMarginals(kind.links[0], h)}, nil
	}
	r := &tableRun{layout: e.layout, netPlan: kind.tables, ctx: e.ctx, ops: e.ops}
	if _, err := r.fillTables(); err != nil { // termMarginals reads the tables, not the polynomial
		return nil, err
	}
	return r.termMarginals(h)
}

// termMarginals returns the marginal of the variable of a link that is in no table. Its value x is term x of the link, with the marginal
//
//	M(x) = w(x) Σ_c h_c [z^c] Π_ℓ Σ_y A_ℓ[x, y] w_ℓ(y) z^{level(y)}
//
// over the legs ℓ, where h is the derivative by the link's polynomial. It returns nil if the link is not in CP form.
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
