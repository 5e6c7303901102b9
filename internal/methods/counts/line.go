package counts

// Products in one variable: a balanced tree over powers, forth and back, whole or in windows.

import (
	"context"

	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// window is z^at · p: some neighbouring coefficients of a polynomial.
type window struct {
	at int
	p  countspace.Poly
}

func (w window) end() int { return w.at + w.p.Size() }

// span is a range of coefficients, from ≤ k < to.
type span struct{ from, to int }

// node is a node of a product tree. A leaf is base^power; it has no children.
type node struct {
	base  countspace.Poly
	power int
	whole countspace.Poly // of a leaf: base^power
	below countspace.Poly // of a leaf of power 2 and more: base^(power−1)
	left  *node
	right *node
	leaf  int // number of a leaf

	degree int
	parts  []window // its coefficients, those that count
	bounds bounds   // of large products in windows
}

// line is a product of powers in one variable. Where its arithmetic ended with the context, numbers are void.
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
	l.root = balanced(l.leaves)
	return l
}

func balanced(list []*node) *node {
	if len(list) == 1 {
		return list[0]
	}
	half := len(list) / 2
	n := &node{left: balanced(list[:half]), right: balanced(list[half:])}
	n.degree = n.left.degree + n.right.degree
	return n
}

// cost is the multiply-adds of all products below a node, whole: a leaf that has no closed form is
// squared.
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

// bytes is the memory of all nodes' coefficients, whole.
func (n *node) bytes() float64 {
	own := 2 * bytesPerCoefficient * (float64(n.degree) + 1)
	if n.left == nil {
		return own
	}
	return own + n.left.bytes() + n.right.bytes()
}

// grow computes the leaf's powers.
func (n *node) grow(ops *countspace.Ops) {
	if n.whole.Shape != nil {
		return
	}
	n.whole = n.base
	if n.power > 1 {
		n.below = countspace.Power(n.base, n.power-1, ops)
		if countspace.Closed(n.base) {
			n.whole = countspace.Power(n.base, n.power, ops)
		} else {
			n.whole = n.below.Mul(n.base, ops)
		}
	}
	n.parts = []window{{p: n.whole}}
}

// all is the span of a node's coefficients.
func (n *node) all() []span { return []span{{0, n.degree + 1}} }

// forth fills the coefficients of every node that are wanted of it.
func (l *line) forth(n *node) error {
	if err := l.ctx.Err(); err != nil {
		return err
	}
	if n.parts != nil && !n.isLarge() {
		return nil // done when it was bounded
	}
	if n.left == nil {
		n.grow(l.ops)
		if n.bounds.wanted != nil {
			n.parts = cut(n.whole, n.bounds.wanted)
		}
		return nil
	}
	if err := l.forth(n.left); err != nil {
		return err
	}
	if err := l.forth(n.right); err != nil {
		return err
	}
	wanted := n.bounds.wanted
	if wanted == nil {
		wanted = n.all()
	}
	n.parts = l.multiply(n.left.parts, n.right.parts, wanted)
	return nil
}

// cut returns the windows of a polynomial over some spans.
func cut(p countspace.Poly, spans []span) []window {
	var out []window
	for _, s := range spans {
		q := countspace.New([]int{s.to - s.from})
		copy(q.Coef.Mant, p.Coef.Mant[s.from:s.to])
		copy(q.Coef.Exp, p.Coef.Exp[s.from:s.to])
		out = append(out, window{at: s.from, p: q})
	}
	return out
}

// multiply returns the coefficients of a product that are wanted.
func (l *line) multiply(a, b []window, wanted []span) []window {
	if len(a) == 1 && len(b) == 1 && len(wanted) == 1 &&
		wanted[0] == (span{a[0].at + b[0].at, a[0].end() + b[0].end() - 1}) {
		return []window{{at: wanted[0].from, p: a[0].p.Mul(b[0].p, l.ops)}}
	}
	var out []window
	for _, s := range wanted {
		sum := countspace.New([]int{s.to - s.from})
		for _, x := range a {
			for _, y := range b {
				at := x.at + y.at
				if from, to := max(s.from, at), min(s.to, x.end()+y.end()-1); from < to {
					addAt(sum, from-s.from, countspace.MulRange(x.p, y.p, from-at, to-at, l.ops))
				}
			}
		}
		out = append(out, window{at: s.from, p: sum})
	}
	return out
}

// correlate returns h'[k] = Σ_j p[j] h[k+j] for the k that are wanted.
func (l *line) correlate(h, p []window, wanted []span) []window {
	if len(h) == 1 && len(p) == 1 && len(wanted) == 1 && h[0].at == 0 && p[0].at == 0 &&
		wanted[0] == (span{0, h[0].p.Size() - p[0].p.Size() + 1}) {
		return []window{{p: countspace.Correlate(h[0].p, p[0].p, l.ops)}}
	}
	var out []window
	for _, s := range wanted {
		sum := countspace.New([]int{s.to - s.from})
		for _, x := range h {
			for _, y := range p {
				at := x.at - y.at // of k, where the two meet at their first coefficients
				if from, to := max(s.from, at-y.p.Size()+1), min(s.to, at+x.p.Size()); from < to {
					addAt(sum, from-s.from, countspace.CorrelateRange(x.p, y.p, from-at, to-at, l.ops))
				}
			}
		}
		out = append(out, window{at: s.from, p: sum})
	}
	return out
}

// addAt adds q's coefficients to p's from a place on.
func addAt(p countspace.Poly, at int, q countspace.Poly) {
	for i := range q.Coef.Mant {
		x := q.Coef.At(i)
		if x.IsZero() {
			continue
		}
		if p.Coef.Mant[at+i] != 0 {
			x = p.Coef.At(at + i).Add(x)
		}
		p.Coef.Mant[at+i] = x.Mant
		p.Coef.Exp[at+i] = x.Exp
	}
}

// dot returns Σ_k a[k]·b[k].
func (l *line) dot(a, b []window) scaled.Number {
	var sum scaled.Number
	for _, x := range a {
		for _, y := range b {
			sum = sum.Add(countspace.DotShift(x.p, y.p, []int{y.at - x.at}, l.ops))
		}
	}
	return sum
}

// back carries h, a function on a node's coefficients, down to the leaves: visit takes, for one of
// the power factors of every leaf that is wanted, the derivative by the base of Σ_k h[k] [z^k] Π.
func (l *line) back(n *node, h []window, wanted func(leaf int) bool, visit func(int, countspace.Poly) error) error {
	if !n.anyWanted(wanted) {
		return nil
	}
	if err := l.ctx.Err(); err != nil {
		return err
	}
	if n.left == nil {
		return visit(n.leaf, l.one(n, h))
	}

	n.parts = nil // nobody reads it again
	var right []window
	if n.right.anyWanted(wanted) {
		right = l.correlate(h, n.left.parts, n.right.spans())
	}
	if n.left.anyWanted(wanted) {
		left := l.correlate(h, n.right.parts, n.left.spans())
		if err := l.back(n.left, left, wanted, visit); err != nil {
			return err
		}
	}
	return l.back(n.right, right, wanted, visit)
}

// one is the derivative by one of a leaf's factors, h being that by the power.
func (l *line) one(n *node, h []window) countspace.Poly {
	if n.power > 1 {
		h = l.correlate(h, []window{{p: n.below}}, []span{{0, n.base.Size()}})
	}
	p := countspace.New([]int{n.base.Size()})
	for _, w := range h {
		addAt(p, w.at, w.p)
	}
	return p
}

// spans are the coefficients of a node that count.
func (n *node) spans() []span {
	if n.bounds.wanted != nil {
		return n.bounds.wanted
	}
	return n.all()
}

func (n *node) anyWanted(wanted func(leaf int) bool) bool {
	if n.left == nil {
		return wanted(n.leaf)
	}
	return n.left.anyWanted(wanted) || n.right.anyWanted(wanted)
}
