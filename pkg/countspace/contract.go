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

// DotShift returns Σ_c s[c+shift]·f[c] over all c at which both coefficients exist. Shifts may be negative.
func DotShift(s, f Poly, shift []int, ops *Ops) scaled.Number {
	mustHaveVars(len(s.Shape), len(f.Shape))
	mustHaveVars(len(s.Shape), len(shift))
	return dotShift(canonical(s), canonical(f), shift, ops)
}

// dotShift returns Σ_c s[c+shift]·f[c] for canonical polynomials, over all c at which both coefficients exist.
func dotShift(s, f Poly, shift []int, ops *Ops) scaled.Number {
	w := overlap{s: s, f: f, shift: shift, acc: newAccumulator()}
	w.addProducts(0, 0, 0)
	ops.Add(w.terms)
	return w.acc.value()
}

// overlap adds up the products s[c+shift]·f[c] of two polynomials. It goes through the counts c in runs of the last variable.
type overlap struct {
	s, f  Poly
	shift []int       // by variable
	acc   accumulator // the sum so far
	terms int         // the number of products so far
}

// addProducts adds the products s[c+shift]·f[c] for all counts c at which both exist and which begin with the counts chosen for the
// variables before axis. indexS and indexF are the row-major indices of c + shift in s and of c in f over the variables before axis.
func (w *overlap) addProducts(axis, indexS, indexF int) {
	if axis == len(w.shift) {
		w.addRun(indexS, indexF, 1) // no variables at all: one product
		return
	}

	// The counts c at which both exist: 0 ≤ c < sideF and 0 ≤ c + k < sideS.
	sideS, sideF := w.s.Shape[axis], w.f.Shape[axis]
	k := w.shift[axis]
	first := max(0, -k)
	end := min(sideF, sideS-k)
	if first >= end {
		return
	}
	isLastAxis := axis == len(w.shift)-1
	if isLastAxis {
		w.addRun(indexS*sideS+first+k, indexF*sideF+first, end-first)
		return
	}
	for c := first; c < end; c++ {
		w.addProducts(axis+1, indexS*sideS+c+k, indexF*sideF+c)
	}
}

// addRun adds the products of n neighbouring coefficients, from indexS in s and from indexF in f on.
func (w *overlap) addRun(indexS, indexF, n int) {
	s, f := w.s.Coef, w.f.Coef
	w.acc.dot(f.Mant[indexF:indexF+n], f.Exp[indexF:indexF+n], s.Mant[indexS:indexS+n], s.Exp[indexS:indexS+n])
	w.terms += n
}

// Correlate returns the correlation of s with p,
//
//	h[k] = Σ_j p[j]·s[k+j]
//
// over the box shape(s) − shape(p) + 1, so that Dot(s, p·q) = Dot(Correlate(s, p), q) for every q
// that keeps p·q in the box of s. If s has the values by the counts of all legs, and p is the count polynomial of some of them, h has the
// values by the counts of the other legs, with those summed out. If p is wider than s in a variable, that side of the result is 1. Cost: at
// most Size(s)·Size(p) multiply-adds.
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

// CorrelateOn returns h[k] = Σ_j p[j]·s[k+j], as Correlate does, but only for the k at which places has a coefficient other than 0. h has
// the shape of places, and its other coefficients are 0. Cost: at most Size(p) multiply-adds for each such k.
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

// Hadamard returns the coefficient-wise product a[c]·b[c], for the c at which both have a coefficient.
func Hadamard(a, b Poly) Poly {
	mustHaveVars(len(a.Shape), len(b.Shape))
	shape := slices.Clone(a.Shape)
	for i := range shape {
		shape[i] = min(shape[i], b.Shape[i])
	}

	a, b = Crop(a, shape), Crop(b, shape) // copies: the caller's a stays as it is
	for i := range a.Coef.Mant {
		a.put(i, a.Coef.At(i).Mul(b.Coef.At(i)))
	}
	return a
}

// Crop returns a copy of p with this shape, the number of coefficients along each variable. Coefficients of p outside of the shape are
// dropped, and those that p does not have are 0.
func Crop(p Poly, shape []int) Poly {
	mustHaveVars(len(p.Shape), len(shape))
	q := New(shape)
	c := make([]int, len(shape))
	for i := range q.Coef.Mant {
		if index, ok := p.index(c); ok {
			q.put(i, p.Coef.At(index))
		}
		next(c, shape)
	}
	return q
}
