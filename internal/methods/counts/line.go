package counts

// Products in one variable: a balanced tree over powers, forth and back, whole or in windows.

import (
	"context"

	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// window is z^first · p: neighbouring coefficients of a polynomial in one variable z.
type window struct {
	first int             // exponent of the first coefficient
	p     countspace.Poly // coefficient k of p is that of z^(first+k)
}

// end returns the exponent after the last coefficient.
func (w window) end() int { return w.first + w.p.Size() }

// span is a range of coefficients, from ≤ k < to.
type span struct{ from, to int }

// node is a node of a product tree: the product of its children, or a leaf, base^power.
type node struct {
	base       countspace.Poly // of a leaf
	power      int             // of a leaf
	wholePower countspace.Poly // of a leaf: base^power
	lowerPower countspace.Poly // of a leaf of power 2 and more: base^(power−1)
	left       *node           // nil: a leaf
	right      *node
	leaf       int // number of a leaf

	degree  int        // of the product as a polynomial
	windows []window   // coefficients of the product that matter; nil: not computed
	bounds  nodeBounds // of large products in windows
}

// line is a product of powers of polynomials in one variable, as a tree. If the context ended, its numbers are void.
type line struct {
	ctx    context.Context
	ops    *countspace.Ops
	leaves []*node
	root   *node
}

// newLine returns the product Π_k base_k^power_k as a balanced tree over its leaves k, in their sequence. That is the tree of
// countspace.Product. No product is computed yet. There is at least one leaf.
func newLine(ctx context.Context, bases []countspace.Poly, powers []int, ops *countspace.Ops) *line {
	l := &line{ctx: ctx, ops: ops}
	for k, p := range bases {
		degree := (p.Size() - 1) * powers[k]
		l.leaves = append(l.leaves, &node{base: p, power: powers[k], leaf: k, degree: degree})
	}
	l.root = balancedTree(l.leaves)
	return l
}

// balancedTree returns the root of a balanced tree whose leaves are the given nodes, in their sequence.
func balancedTree(list []*node) *node {
	if len(list) == 1 {
		return list[0]
	}
	half := len(list) / 2
	n := &node{left: balancedTree(list[:half]), right: balancedTree(list[half:])}
	n.degree = n.left.degree + n.right.degree
	return n
}

// cost returns the multiply-adds of computing all coefficients of a node and of the nodes below it. The power of a leaf has a closed form
// for some bases, which takes closedSteps multiply-adds for each coefficient; it is computed for base^power and for base^(power−1). Others
// are squared repeatedly: the squarings take degree²/3 in all, the products with the base about degree times its coefficients.
func (n *node) cost() float64 {
	d := float64(n.degree)
	if n.left != nil {
		return n.left.cost() + n.right.cost() + (float64(n.left.degree)+1)*(float64(n.right.degree)+1)
	}
	switch {
	case n.power == 1:
		return 0
	case countspace.Closed(n.base):
		return 2 * closedSteps * d
	}
	return d*d/3 + d*float64(n.base.Size())
}

// closedSteps is the time of one term of a closed form, in multiply-adds. Measured:
// 100 ns against 1.2.
const closedSteps = 80

// bytes returns the memory of all coefficients of a node and of the nodes below it.
func (n *node) bytes() float64 {
	bytes := 2 * bytesPerCoefficient * (float64(n.degree) + 1)
	if n.left == nil {
		return bytes
	}
	return bytes + n.left.bytes() + n.right.bytes()
}

// computePowers computes base^power and base^(power−1) of a leaf, unless they are known. All coefficients of base^power are the leaf's only
// window. A base with a closed form gets both powers by it; otherwise base^power is the other power times the base.
func (n *node) computePowers(ops *countspace.Ops) {
	if n.wholePower.Shape != nil {
		return
	}
	n.wholePower = n.base
	if n.power > 1 {
		n.lowerPower = countspace.Power(n.base, n.power-1, ops)
		if countspace.Closed(n.base) {
			n.wholePower = countspace.Power(n.base, n.power, ops)
		} else {
			n.wholePower = n.lowerPower.Mul(n.base, ops)
		}
	}
	n.windows = []window{{p: n.wholePower}}
}

// wholeSpan returns one span with all coefficients of a node.
func (n *node) wholeSpan() []span { return []span{{0, n.degree + 1}} }

// multiplyUp computes the coefficients of a node of the product tree and of all nodes below it. If a node's bounds say which coefficients
// are wanted, it computes those only, as windows.
func (l *line) multiplyUp(n *node) error {
	if err := l.ctx.Err(); err != nil {
		return err
	}
	if n.windows != nil && !n.isLarge() {
		return nil // boundUp computed it, as it does with all small nodes
	}
	if n.left == nil {
		n.computePowers(l.ops)
		if n.bounds.wanted != nil {
			n.windows = cutWindows(n.wholePower, n.bounds.wanted)
		}
		return nil
	}
	if err := l.multiplyUp(n.left); err != nil {
		return err
	}
	if err := l.multiplyUp(n.right); err != nil {
		return err
	}
	spans := n.bounds.wanted
	if spans == nil {
		spans = n.wholeSpan()
	}
	n.windows = l.multiply(n.left.windows, n.right.windows, spans)
	return nil
}

// cutWindows returns the coefficients of a polynomial in some spans, ranges of exponents: a window for each.
func cutWindows(p countspace.Poly, spans []span) []window {
	var out []window
	for _, s := range spans {
		q := countspace.New([]int{s.to - s.from})
		copy(q.Coef.Mant, p.Coef.Mant[s.from:s.to])
		copy(q.Coef.Exp, p.Coef.Exp[s.from:s.to])
		out = append(out, window{first: s.from, p: q})
	}
	return out
}

// multiply returns the coefficients of the product of a and b in the wanted spans, ranges of exponents, as a window for each. a and b are
// polynomials as windows, of which a window has the coefficients at a range of exponents.
func (l *line) multiply(a, b []window, wanted []span) []window {
	// All coefficients of the product of two windows.
	if len(a) == 1 && len(b) == 1 && len(wanted) == 1 {
		wholeSpan := span{a[0].first + b[0].first, a[0].end() + b[0].end() - 1}
		if wanted[0] == wholeSpan {
			return []window{{first: wholeSpan.from, p: a[0].p.Mul(b[0].p, l.ops)}}
		}
	}

	// Otherwise, of each wanted span, the sum over the pairs of windows whose product reaches into it.
	var out []window
	for _, s := range wanted {
		sum := countspace.New([]int{s.to - s.from})
		for _, x := range a {
			for _, y := range b {
				shift := x.first + y.first // exponent of the first coefficient of their product
				if from, to := max(s.from, shift), min(s.to, x.end()+y.end()-1); from < to {
					addCoefficients(sum, from-s.from, countspace.MulRange(x.p, y.p, from-shift, to-shift, l.ops))
				}
			}
		}
		out = append(out, window{first: s.from, p: sum})
	}
	return out
}

// correlate returns h'[k] = Σ_j p[j] h[k+j] for the exponents k in the wanted spans, as a window for each. If h is the derivative of a
// number with respect to a product p·q, h' is its derivative with respect to q. h and p are polynomials as windows, each of which has the
// coefficients at a range of exponents.
func (l *line) correlate(h, p []window, wanted []span) []window {
	// All coefficients, of two polynomials that are whole.
	if len(h) == 1 && len(p) == 1 && len(wanted) == 1 && h[0].first == 0 && p[0].first == 0 {
		wholeSpan := span{0, h[0].p.Size() - p[0].p.Size() + 1}
		if wanted[0] == wholeSpan {
			return []window{{p: countspace.Correlate(h[0].p, p[0].p, l.ops)}}
		}
	}

	// Otherwise, of each wanted span, the sum over the pairs of windows that reach into it.
	var out []window
	for _, s := range wanted {
		sum := countspace.New([]int{s.to - s.from})
		for _, x := range h {
			for _, y := range p {
				shift := x.first - y.first // the k at which the first coefficients of both windows meet
				if from, to := max(s.from, shift-y.p.Size()+1), min(s.to, shift+x.p.Size()); from < to {
					addCoefficients(sum, from-s.from, countspace.CorrelateRange(x.p, y.p, from-shift, to-shift, l.ops))
				}
			}
		}
		out = append(out, window{first: s.from, p: sum})
	}
	return out
}

// addCoefficients adds the polynomial q times z^from to p: coefficient i of q is added to coefficient from+i of p.
func addCoefficients(p countspace.Poly, from int, q countspace.Poly) {
	for i := range q.Coef.Mant {
		x := q.Coef.At(i)
		if x.IsZero() {
			continue
		}
		if p.Coef.Mant[from+i] != 0 {
			x = p.Coef.At(from + i).Add(x)
		}
		p.Coef.Mant[from+i] = x.Mant
		p.Coef.Exp[from+i] = x.Exp
	}
}

// dot returns Σ_k a[k]·b[k] over the exponents k at which both polynomials have a coefficient. They are given as windows, each of which has
// the coefficients at a range of exponents.
func (l *line) dot(a, b []window) scaled.Number {
	var sum scaled.Number
	for _, x := range a {
		for _, y := range b {
			sum = sum.Add(countspace.DotShift(x.p, y.p, []int{y.first - x.first}, l.ops))
		}
	}
	return sum
}

// propagateDown carries the derivatives of a number, as Z, down a product tree. h is the derivative with respect to the coefficients of
// node n, as windows, each at a range of exponents. It calls visit for every wanted leaf, base^power, with the derivative with respect to
// the coefficients of one of these equal bases.
func (l *line) propagateDown(
	n *node, h []window, wanted func(leaf int) bool, visit func(leaf int, derivative countspace.Poly) error,
) error {
	if !n.hasWantedLeaf(wanted) {
		return nil
	}
	if err := l.ctx.Err(); err != nil {
		return err
	}
	if n.left == nil {
		return visit(n.leaf, l.derivativeOfOne(n, h))
	}

	n.windows = nil // the coefficients of n are not needed again, only those of its children
	var rightDerivative []window
	if n.right.hasWantedLeaf(wanted) { // before the left side drops its windows
		rightDerivative = l.correlate(h, n.left.windows, n.right.wantedSpans())
	}
	if n.left.hasWantedLeaf(wanted) {
		leftDerivative := l.correlate(h, n.right.windows, n.left.wantedSpans())
		if err := l.propagateDown(n.left, leftDerivative, wanted, visit); err != nil {
			return err
		}
	}
	return l.propagateDown(n.right, rightDerivative, wanted, visit)
}

// derivativeOfOne returns the derivative of a number with respect to the coefficients of one of the bases in a leaf's base^power. h is its
// derivative with respect to the coefficients of base^power. The other bases are fixed: with respect to coefficient i of one base it is Σ_j
// lowerPower[j] · h[i+j], where lowerPower is base^(power−1).
func (l *line) derivativeOfOne(n *node, h []window) countspace.Poly {
	if n.power > 1 {
		h = l.correlate(h, []window{{p: n.lowerPower}}, []span{{0, n.base.Size()}})
	}
	p := countspace.New([]int{n.base.Size()})
	for _, w := range h {
		addCoefficients(p, w.first, w.p)
	}
	return p
}

// wantedSpans returns the spans of a node's coefficients that matter: all of them if the node has no bounds.
func (n *node) wantedSpans() []span {
	if n.bounds.wanted != nil {
		return n.bounds.wanted
	}
	return n.wholeSpan()
}

// hasWantedLeaf reports whether the node, or a leaf below it, is a wanted leaf.
func (n *node) hasWantedLeaf(wanted func(leaf int) bool) bool {
	if n.left == nil {
		return wanted(n.leaf)
	}
	return n.left.hasWantedLeaf(wanted) || n.right.hasWantedLeaf(wanted)
}
