package unsigned

import "slices"

// Parity is a tensor of two terms, w Π_k a_k[x_k] (1 ± Π_k s_k(x_k)) with w, a_k ≥ 0 and every s_k(x) = ±1. With the sign + it is
// 2w Π_k a_k[x_k] if an even number of the s_k is −1, else 0. With − it is 2w Π_k a_k[x_k] if an odd number is −1, else 0.
type Parity struct {
	Plain int      // the term without the s_k
	Odd   bool     // the sign is −
	Flips [][]bool // by mode and value: s_k is −1
}

// NewParity returns the tensor of the terms weights[t] Π_k vectors[k][t][x_k] as a parity: w Π_k a_k[x_k] (1 ± Π_k s_k(x_k)), where every
// s_k(x) is 1 or −1. One of its two terms, the plain one, is w Π_k a_k[x_k] and has no number below 0. The other is equal to it up to
// signs: Odd is the sign ±, and Flips[k][x] tells that s_k(x) is −1. ok is false if the terms are no parity.
func NewParity(weights []float64, vectors [][][]float64) (p *Parity, ok bool) {
	if len(weights) != 2 || (weights[0] != weights[1] && weights[0] != -weights[1]) {
		return nil, false
	}

	// Find the plain term.
	hasNoNegative := func(t int) bool {
		return weights[t] >= 0 && !slices.ContainsFunc(vectors, func(v [][]float64) bool { return hasNegative(v[t]) })
	}
	p = &Parity{Flips: make([][]bool, len(vectors))}
	if !hasNoNegative(0) {
		p.Plain = 1
	}
	if !hasNoNegative(p.Plain) {
		return nil, false
	}

	// Compare the signed term with it.
	signedTerm := 1 - p.Plain
	p.Odd = weights[signedTerm] < 0
	for k, v := range vectors {
		p.Flips[k] = make([]bool, len(v[0]))
		for x, plain := range v[p.Plain] {
			switch signed := v[signedTerm][x]; {
			case signed == plain:
			case signed == -plain:
				p.Flips[k][x] = true
			default:
				return nil, false
			}
		}
	}
	return p, true
}
