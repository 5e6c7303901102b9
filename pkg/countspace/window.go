package countspace

// Products and correlations in one variable, restricted to the wanted coefficients.

// MulRange returns the coefficients first ≤ k < end of p·q, in one variable; coefficient k is at k − first.
// They have the bits of Mul, except if a factor is the polynomial of one leg.
// Cost: at most (end − first)·min(Size(p), Size(q)) multiply-adds.
func MulRange(p, q Poly, first, end int, ops *Ops) Poly {
	mustHaveVars(1, len(p.Shape))
	mustHaveVars(1, len(q.Shape))
	p, q = canonical(p), reversed(canonical(q))
	r := New([]int{max(1, end-first)})
	shift := make([]int, 1)
	for k := first; k < end && !ops.done(); k++ {
		shift[0] = q.Shape[0] - 1 - k // [z^k] p·q = Σ_i p[i]·q[i+shift], q reversed
		r.put(k-first, dotShift(q, p, shift, ops))
	}
	return r
}

// CorrelateRange returns h[k] = Σ_j p[j]·s[k+j] for first ≤ k < end, in one variable; h[k] is at k − first. k may be below 0: coefficients
// that s does not have count as 0. Cost: at most (end − first)·min(Size(s), Size(p)) multiply-adds.
func CorrelateRange(s, p Poly, first, end int, ops *Ops) Poly {
	mustHaveVars(1, len(s.Shape))
	mustHaveVars(1, len(p.Shape))
	s, p = canonical(s), canonical(p)
	h := New([]int{max(1, end-first)})
	shift := make([]int, 1)
	for k := first; k < end && !ops.done(); k++ {
		shift[0] = k
		h.put(k-first, dotShift(s, p, shift, ops))
	}
	return h
}
