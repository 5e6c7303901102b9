package countspace

import (
	"slices"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// Inner products of polynomials, plain and shifted: the elements of a contraction in count space.

// Dot returns Σ_c a[c]·b[c] over the common box; coefficients outside either box count as 0. It is
// the last step of Lemmas 3 and 4, Z = Σ_c S_c [z^c] Π_j p_j(z), with a = S and b the product of
// the pieces.
// Cost: one multiply-add for every coefficient of the common box.
func Dot(a, b Poly, ops *Ops) scaled.Number {
	return DotShift(a, b, make([]int, len(a.Shape)), ops)
}

// DotShift returns Σ_c s[c+shift]·f[c] over all c where both exist. Shifts may be negative.
func DotShift(s, f Poly, shift []int, ops *Ops) scaled.Number {
	mustHaveVars(len(s.Shape), len(f.Shape))
	mustHaveVars(len(s.Shape), len(shift))
	return dotShift(canonical(s), canonical(f), shift, ops)
}

// dotShift is DotShift of canonical polynomials.
func dotShift(s, f Poly, shift []int, ops *Ops) scaled.Number {
	w := overlap{s: s, f: f, shift: shift, acc: newAccumulator()}
	w.rows(0, 0, 0)
	ops.Add(w.terms)
	return w.acc.value()
}

// overlap walks the rows (the last variable's runs) of the box where s, shifted, and f both exist.
type overlap struct {
	s, f  Poly
	shift []int
	acc   accumulator
	terms int // so far
}

// rows adds the products under the chosen indices of the variables before axis;
// is and jf are their partial places in s and f.
func (w *overlap) rows(axis, is, jf int) {
	if axis == len(w.shift) {
		w.run(is, jf, 1)
		return
	}

	// c runs where both exist: 0 ≤ c < nf and 0 ≤ c + k < ns.
	ns, nf := w.s.Shape[axis], w.f.Shape[axis]
	k := w.shift[axis]
	lo := max(0, -k)
	hi := min(nf, ns-k)
	if lo >= hi {
		return
	}
	if axis == len(w.shift)-1 {
		w.run(is*ns+lo+k, jf*nf+lo, hi-lo)
		return
	}
	for c := lo; c < hi; c++ {
		w.rows(axis+1, is*ns+c+k, jf*nf+c)
	}
}

// run adds n neighbouring products.
func (w *overlap) run(is, jf, n int) {
	s, f := w.s.Coef, w.f.Coef
	w.acc.dot(f.Mant[jf:jf+n], f.Exp[jf:jf+n], s.Mant[is:is+n], s.Exp[is:is+n])
	w.terms += n
}

// Correlate contracts S backwards with the polynomial of one piece,
//
//	h[k] = Σ_j p[j]·s[k+j]
//
// over the box shape(s) − shape(p) + 1, so that Dot(s, p·q) = Dot(Correlate(s, p), q) for every q
// that keeps p·q in the box of s. Where p is wider than s in some variable that side of the result
// is 1. Cost: at most Size(s)·Size(p) multiply-adds.
func Correlate(s, p Poly, ops *Ops) Poly {
	mustHaveVars(len(s.Shape), len(p.Shape))
	s, p = canonical(s), canonical(p)
	if isOneLeg(p) && s.Size() > 1 {
		ops.Add(2 * (s.Size() - 1))
		return correlateOneLeg(s, p)
	}

	shape := make([]int, len(s.Shape))
	for a := range shape {
		shape[a] = max(1, s.Shape[a]-p.Shape[a]+1)
	}

	if isThin(p) {
		return correlateThin(s, p, shape, ops)
	}

	h := New(shape)
	k := make([]int, len(shape))
	for i := range h.Coef.Mant {
		if ops.done() {
			break
		}
		h.put(i, dotShift(s, p, k, ops))
		next(k, shape)
	}
	return h
}

// CorrelateOn is Correlate over the box of places, at the coefficients of it that are not 0 alone; the others
// are 0. Cost: at most Size(p) multiply-adds for each of them.
func CorrelateOn(s, p, places Poly, ops *Ops) Poly {
	mustHaveVars(len(s.Shape), len(p.Shape))
	mustHaveVars(len(s.Shape), len(places.Shape))
	s, p = canonical(s), canonical(p)
	h := New(places.Shape)
	k := make([]int, len(h.Shape))
	for i := range h.Coef.Mant {
		if ops.done() {
			break
		}
		if places.Coef.Mant[i] != 0 {
			h.put(i, dotShift(s, p, k, ops))
		}
		next(k, h.Shape)
	}
	return h
}

// Hadamard returns the coefficient-wise product a[c]·b[c] over the common box.
func Hadamard(a, b Poly) Poly {
	mustHaveVars(len(a.Shape), len(b.Shape))
	shape := slices.Clone(a.Shape)
	for i := range shape {
		shape[i] = min(shape[i], b.Shape[i])
	}

	a, b = Crop(a, shape), Crop(b, shape)
	for i := range a.Coef.Mant {
		a.put(i, a.Coef.At(i).Mul(b.Coef.At(i)))
	}
	return a
}

// Crop returns a copy of p over another box: coefficients outside it are dropped, new ones are 0.
func Crop(p Poly, shape []int) Poly {
	mustHaveVars(len(p.Shape), len(shape))
	q := New(shape)
	c := make([]int, len(shape))
	for i := range q.Coef.Mant {
		if from, ok := p.index(c); ok {
			q.put(i, p.Coef.At(from))
		}
		next(c, shape)
	}
	return q
}
