package countspace

import (
	"slices"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// Sums, multiples, products and the product tree of count polynomials.

// Add returns p+q over the smallest box that holds both. Every coefficient is rounded once.
func (p Poly) Add(q Poly) Poly {
	return p.combine(q, scaled.Number.Add)
}

// Sub returns p−q over the smallest box that holds both. Every coefficient is rounded once.
func (p Poly) Sub(q Poly) Poly {
	return p.combine(q, scaled.Number.Sub)
}

// combine returns op(p[c], q[c]), with 0 for a coefficient that p does not have. Where q has no coefficient, that of p stays as it is. The
// result has the larger of the two sides along each variable.
func (p Poly) combine(q Poly, op func(a, b scaled.Number) scaled.Number) Poly {
	mustHaveVars(len(p.Shape), len(q.Shape))
	shape := slices.Clone(p.Shape)
	for a := range shape {
		shape[a] = max(shape[a], q.Shape[a])
	}

	r := Crop(p, shape)
	c := make([]int, len(shape))
	for j := range q.Coef.Mant {
		i, _ := r.index(c) // it is there, as r is at least as wide as q
		r.put(i, op(r.Coef.At(i), q.Coef.At(j)))
		next(c, q.Shape)
	}
	return r
}

// Scale returns x·p. Every coefficient is rounded once.
func (p Poly) Scale(x scaled.Number) Poly {
	r := New(p.Shape)
	for i := range r.Coef.Mant {
		r.put(i, p.Coef.At(i).Mul(x))
	}
	return r
}

// Mul returns p·q, [z^k] p·q = Σ_i p[i]·q[k−i], of the shape shape(p) + shape(q) − 1. Every
// coefficient is summed with the rounding of its own largest terms, so small ones keep all their
// relative precision when nothing cancels. ops counts the operations, and may stop the product, whose
// result is then of no use; nil counts none. Cost: Size(p)·Size(q) multiply-adds; if most
// coefficients of a polynomial in several variables are 0, only its other ones count. Source: the paper's
// convolution of count vectors (proof of Lemma 3).
func (p Poly) Mul(q Poly, ops *Ops) Poly {
	mustHaveVars(len(p.Shape), len(q.Shape))
	p, q = canonical(p), canonical(q)
	if isOneLeg(p) {
		p, q = q, p
	}
	if isOneLeg(q) {
		ops.Add(2 * p.Size()) // each of its two coefficients times all of p
		return mulOneLeg(p, q)
	}

	shape := make([]int, len(p.Shape))
	for a := range shape {
		shape[a] = p.Shape[a] + q.Shape[a] - 1
	}
	if isThin(q) { // most of its coefficients are 0: only the others count
		return mulThin(p, q, shape, ops)
	}
	if isThin(p) {
		return mulThin(q, p, shape, ops)
	}

	// With q reversed, both lists are read in one direction: [z^k] p·q = Σ_i p[i]·reversed[i + shape(q)−1−k].
	q = reversed(q)
	shift := make([]int, len(p.Shape))
	r := New(shape)
	k := make([]int, len(shape)) // the exponents of coefficient i of r
	for i := range r.Coef.Mant {
		if ops.done() {
			break
		}
		for a := range shift {
			shift[a] = q.Shape[a] - 1 - k[a]
		}
		r.put(i, dotShift(q, p, shift, ops))
		next(k, shape)
	}
	return r
}

// Product returns Π ps in vars variables, 1 for an empty list, by a balanced tree of products in
// list order. For n polynomials of two coefficients (legs of two levels) it takes about n²/2
// multiply-adds: a pair of coefficients meets once, at the lowest product above both.
func Product(vars int, ps []Poly, ops *Ops) Poly {
	if len(ps) == 0 {
		return Constant(vars, scaled.One)
	}
	p, constant, isConstant := product(vars, ps, ops)
	if isConstant {
		return Constant(vars, constant)
	}
	return p
}

// product returns Π ps in vars variables, along a balanced tree, for a list that is not empty. If all of them are constants, so is the
// product: it is returned as the number constant, and p may be empty. Of many polynomials of legs most are often constants, because all
// values of the leg have level 0. Such numbers are multiplied without making a Poly, with its slices, for every product of the tree.
func product(vars int, ps []Poly, ops *Ops) (p Poly, constant scaled.Number, isConstant bool) {
	if len(ps) == 1 {
		mustHaveVars(vars, len(ps[0].Shape))
		p = canonical(ps[0])
		return p, p.Coef.At(0), p.Size() == 1
	}
	half := len(ps) / 2
	left, leftConstant, isLeftConstant := product(vars, ps[:half], ops)
	right, rightConstant, isRightConstant := product(vars, ps[half:], ops)
	if isLeftConstant && isRightConstant {
		if vars < 2 || !rightConstant.IsZero() { // as Mul counts: in several variables it passes over coefficients of 0
			ops.Add(1)
		}
		return Poly{}, leftConstant.Mul(rightConstant), true
	}
	if isLeftConstant {
		left = Constant(vars, leftConstant)
	}
	if isRightConstant {
		right = Constant(vars, rightConstant)
	}
	return left.Mul(right, ops), scaled.Number{}, false
}
