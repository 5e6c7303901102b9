package unsigned

import "slices"

// Parity is w Π_k a_k[x_k] (1 ± Π_k s_k(x_k)), s_k being ±1: twice w Π_k a_k where an even (or odd) number of the s_k is −1,
// and 0 elsewhere.
type Parity struct {
	Plain int      // the term of w and the a_k
	Odd   bool     // an odd number
	Flips [][]bool // by mode and value: s_k is −1
}

// NewParity returns the parity that two terms weights[t] Π_k vectors[k][t][x_k] are, and false where they are none.
func NewParity(weights []float64, vectors [][][]float64) (*Parity, bool) {
	if len(weights) != 2 || (weights[0] != weights[1] && weights[0] != -weights[1]) {
		return nil, false
	}
	above := func(t int) bool {
		return weights[t] >= 0 && !slices.ContainsFunc(vectors, func(v [][]float64) bool { return hasNegative(v[t]) })
	}
	p := &Parity{Flips: make([][]bool, len(vectors))}
	if !above(0) {
		p.Plain = 1
	}
	if !above(p.Plain) {
		return nil, false
	}
	p.Odd = weights[1-p.Plain] < 0
	for k, v := range vectors {
		p.Flips[k] = make([]bool, len(v[0]))
		for x, a := range v[p.Plain] {
			switch o := v[1-p.Plain][x]; {
			case o == a:
			case o == -a:
				p.Flips[k][x] = true
			default:
				return nil, false
			}
		}
	}
	return p, true
}
