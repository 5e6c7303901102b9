package counts

// Products in one variable: a balanced tree over powers, forth and back, whole or in windows.

import (
	"context"

	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// window is z^first · p: some neighbouring coefficients of a polynomial.
type window struct {
	first int
	p     countspace.Poly
}

// end returns the exponent after the last coefficient.
func (w window) end() int { return w.first + w.p.Size() }

// span is a range of coefficients, from ≤ k < to.
type span struct{ from, to int }

// node is a node of a product tree. A leaf is base^power and has no children.
type node struct {
	base       countspace.Poly
	power      int
	wholePower countspace.Poly // of a leaf: base^power
	lowerPower countspace.Poly // of a leaf of power 2 and more: base^(power−1)
	left       *node
	right      *node
	leaf       int // number of a leaf

	degree  int
	windows []window   // its coefficients, those that matter; nil: not computed
	bounds  nodeBounds // of large products in windows
}

// line is a product of powers in one variable. If its arithmetic ended with the context, numbers are void.
type line struct {
	ctx    context.Context
	ops    *countspace.Ops
	leaves []*node
	root   *node
}

// newLine plans Π base_k^power_k over a balanced tree in the sequence of its leaves, the tree of
// countspace.Product. There is at least one leaf.
func newLine(ctx context.Context, bases []countspace.Poly, powers []int, ops *countspace.Ops) *line {
	l := &line{ctx: ctx, ops: ops}
	for k, p := range bases {
		degree := (p.Size() - 1) * powers[k]
		l.leaves = append(l.leaves, &node{base: p, power: powers[k], leaf: k, degree: degree})
	}
	l.root = balancedTree(l.leaves)
	return l
}

// balancedTree returns the root of a balanced tree over nodes, in their sequence.
func balancedTree(list []*node) *node {
	if len(list) == 1 {
		return list[0]
	}
	half := len(list) / 2
	n := &node{left: balancedTree(list[:half]), right: balancedTree(list[half:])}
	n.degree = n.left.degree + n.right.degree
	return n
}

// cost returns the multiply-adds of all products below a node without windows. A leaf without a closed form is squared again and again.
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

// bytes returns the memory of the coefficients of a node and of all nodes below it, without windows.
func (n *node) bytes() float64 {
	bytes := 2 * bytesPerCoefficient * (float64(n.degree) + 1)
	if n.left == nil {
		return bytes
	}
	return bytes + n.left.bytes() + n.right.bytes()
}

// computePowers computes the powers of a leaf, unless they are known.
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

// wholeSpan returns the span of all coefficients of a node.
func (n *node) wholeSpan() []span { return []span{{0, n.degree + 1}} }

// multiplyUp computes the coefficients of a node and of all nodes below it, as far as their bounds want them.
func (l *line) multiplyUp(n *node) error {
	if err := l.ctx.Err(); err != nil {
		return err
	}
	if n.windows != nil && !n.isLarge() {
		return nil // done when it was bounded
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
	wanted := n.bounds.wanted
	if wanted == nil {
		wanted = n.wholeSpan()
	}
	n.windows = l.multiply(n.left.windows, n.right.windows, wanted)
	return nil
}

// cutWindows returns the windows of a polynomial over some spans.
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

// multiply returns the coefficients of the product of a and b in the wanted spans.
func (l *line) multiply(a, b []window, wanted []span) []window {
	if len(a) == 1 && len(b) == 1 && len(wanted) == 1 &&
		wanted[0] == (span{a[0].first + b[0].first, a[0].end() + b[0].end() - 1}) {
		return []window{{first: wanted[0].from, p: a[0].p.Mul(b[0].p, l.ops)}}
	}
	var out []window
	for _, s := range wanted {
		sum := countspace.New([]int{s.to - s.from})
		for _, x := range a {
			for _, y := range b {
				shift := x.first + y.first
				if from, to := max(s.from, shift), min(s.to, x.end()+y.end()-1); from < to {
					addCoefficients(sum, from-s.from, countspace.MulRange(x.p, y.p, from-shift, to-shift, l.ops))
				}
			}
		}
		out = append(out, window{first: s.from, p: sum})
	}
	return out
}

// correlate returns h'[k] = Σ_j p[j] h[k+j] for the k in the wanted spans.
func (l *line) correlate(h, p []window, wanted []span) []window {
	if len(h) == 1 && len(p) == 1 && len(wanted) == 1 && h[0].first == 0 && p[0].first == 0 &&
		wanted[0] == (span{0, h[0].p.Size() - p[0].p.Size() + 1}) {
		return []window{{p: countspace.Correlate(h[0].p, p[0].p, l.ops)}}
	}
	var out []window
	for _, s := range wanted {
		sum := countspace.New([]int{s.to - s.from})
		for _, x := range h {
			for _, y := range p {
				shift := x.first - y.first // of k, where the two meet at their first coefficients
				if from, to := max(s.from, shift-y.p.Size()+1), min(s.to, shift+x.p.Size()); from < to {
					addCoefficients(sum, from-s.from, countspace.CorrelateRange(x.p, y.p, from-shift, to-shift, l.ops))
				}
			}
		}
		out = append(out, window{first: s.from, p: sum})
	}
	return out
}

// addCoefficients adds the coefficients of q to those of p from a place on.
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

// dot returns Σ_k a[k]·b[k].
func (l *line) dot(a, b []window) scaled.Number {
	var sum scaled.Number
	for _, x := range a {
		for _, y := range b {
			sum = sum.Add(countspace.DotShift(x.p, y.p, []int{y.first - x.first}, l.ops))
		}
	}
	return sum
}

// propagateDown carries the derivative h of a number by a node's coefficients down to the leaves. It calls visit for every wanted leaf,
// with the derivative by one of the bases of its power.
func (l *line) propagateDown(n *node, h []window, wanted func(leaf int) bool, visit func(int, countspace.Poly) error) error {
	if !n.hasWantedLeaf(wanted) {
		return nil
	}
	if err := l.ctx.Err(); err != nil {
		return err
	}
	if n.left == nil {
		return visit(n.leaf, l.derivativeOfOne(n, h))
	}

	n.windows = nil // nobody reads it again
	var right []window
	if n.right.hasWantedLeaf(wanted) {
		right = l.correlate(h, n.left.windows, n.right.wantedSpans())
	}
	if n.left.hasWantedLeaf(wanted) {
		left := l.correlate(h, n.right.windows, n.left.wantedSpans())
		if err := l.propagateDown(n.left, left, wanted, visit); err != nil {
			return err
		}
	}
	return l.propagateDown(n.right, right, wanted, visit)
}

// derivativeOfOne returns the derivative by one of the bases of a leaf's power, given the derivative h by the power.
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

// wantedSpans returns the spans of a node's coefficients that matter.
func (n *node) wantedSpans() []span {
	if n.bounds.wanted != nil {
		return n.bounds.wanted
	}
	return n.wholeSpan()
}

// hasWantedLeaf reports whether a leaf of a node is wanted.
func (n *node) hasWantedLeaf(wanted func(leaf int) bool) bool {
	if n.left == nil {
		return wanted(n.leaf)
	}
	return n.left.hasWantedLeaf(wanted) || n.right.hasWantedLeaf(wanted)
}
