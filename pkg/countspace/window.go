package countspace

// Products and correlations in one variable, restricted to the wanted coefficients.

// MulRange returns coefficients from ≤ k < to of p·q, in one variable; coefficient k is at k − from.
// They have the bits of Mul, but for a factor of one leg.
// Cost: (to − from)·min(Size(p), Size(q)) multiply-adds at most.
func MulRange(p, q Poly, from, to int, ops *Ops) Poly {
	mustHaveVars(1, len(p.Shape))
	mustHaveVars(1, len(q.Shape))
	p, q = canonical(p), reversed(canonical(q))
	r := New([]int{max(1, to-from)})
	shift := make([]int, 1)
	for k := from; k < to && !ops.done(); k++ {
		shift[0] = q.Shape[0] - 1 - k
		r.put(k-from, dotShift(q, p, shift, ops))
	}
	return r
}

// CorrelateRange returns h[k] = Σ_j p[j]·s[k+j] for from ≤ k < to, in one variable; h[k] is at k − from.
// k may be below 0: coefficients that are none count as 0.
// Cost: (to − from)·min(Size(s), Size(p)) multiply-adds at most.
func CorrelateRange(s, p Poly, from, to int, ops *Ops) Poly {
	mustHaveVars(1, len(s.Shape))
	mustHaveVars(1, len(p.Shape))
	s, p = canonical(s), canonical(p)
	h := New([]int{max(1, to-from)})
	shift := make([]int, 1)
	for k := from; k < to && !ops.done(); k++ {
		shift[0] = k
		h.put(k-from, dotShift(s, p, shift, ops))
	}
	return h
}
