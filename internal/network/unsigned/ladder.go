// Package unsigned recognises CP tensors with terms of both signs that are sums of products without signs: clauses,
// parities, noisy-or, noisy-max.
package unsigned

// Ladders: differences of products whose terms can be put in an order in which no vector decreases.

import (
	"math/big"
	"slices"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// maxTerms is the largest number of terms of a ladder.
const maxTerms = 64

// Ladder is a CP tensor Σ_t c_t(y) Π_k F_k(t|x_k) whose terms t are in an order in which F_k(t|x) never decreases, for any k and x. Only
// the coefficients c_t, which may depend on one variable y, may have both signs. With f_k(m|x) = F_k(m|x) − F_k(m−1|x) ≥ 0 the products
// are the distribution of a maximum of independent levels m_k:
//
//	Π_k F_k(t|x_k) = Σ_{m ≤ t} g_m(x),   g_m(x) = Σ_{max_k m_k = m} Π_k f_k(m_k|x_k)
//
// So the tensor is Σ_m g_m(x) C_m(y) with C_m(y) = Σ_{t ≥ m} c_t(y). If no C_m is below 0, this form has no negative number.
// Source for noisy-max: F. J. Díez and S. F. Galán, Efficient computation for the noisy MAX (2003).
type Ladder struct {
	Order        []int           // the terms in that order
	Effect       int             // the mode of y; −1 if the coefficients depend on no variable
	Modes        []int           // the modes of the x_k
	Coefficients []scaled.Number // C_m(y), y the faster

	dims    []int         // by mode
	weights []float64     // by term
	vectors [][][]float64 // by mode, term and value
}

// NewLadder returns the tensor Σ_t weights[t] Π_k vectors[k][t][x_k] as a ladder: its terms t in an order in which the entries of no
// vector decrease. dims[k] is the number of values of x_k. Vectors with entries below 0 are allowed on one mode, the effect, whose entries
// are taken as coefficients and need no order. ok is false if there is no such order, if a coefficient of the ladder is below 0, if there
// is no mode but the effect, or if there are fewer than 2 or more than maxTerms terms. Cost: the square of the number of terms, times their
// entries.
func NewLadder(dims []int, weights []float64, vectors [][][]float64) (l *Ladder, ok bool) {
	if len(weights) > maxTerms || len(weights) < 2 {
		return nil, false
	}

	// Find the effect.
	l = &Ladder{Effect: -1, dims: dims, weights: weights, vectors: vectors}
	for k, vectorsOfMode := range vectors {
		if !slices.ContainsFunc(vectorsOfMode, hasNegative) {
			l.Modes = append(l.Modes, k)
			continue
		}
		if l.Effect >= 0 { // a second mode with negative entries
			return nil, false
		}
		l.Effect = k
	}
	if len(l.Modes) == 0 {
		return nil, false
	}

	if hasOrder := l.sortTerms(); !hasOrder {
		return nil, false
	}
	return l, l.sumCoefficients() // it sets the coefficients, and returns false if one is below 0
}

// sortTerms sets Order to the terms in an order in which the entries of no vector decrease. It returns false if there is none.
func (l *Ladder) sortTerms() (hasOrder bool) {
	// Insertion sort: t goes before the first term that is nowhere smaller. Two terms may be in neither order, so the result is checked.
	for t := range l.weights {
		position := slices.IndexFunc(l.Order, func(u int) bool { return l.isNeverAbove(t, u) })
		if position < 0 {
			position = len(l.Order)
		}
		l.Order = slices.Insert(l.Order, position, t)
	}
	for i := range l.Order[1:] {
		if !l.isNeverAbove(l.Order[i], l.Order[i+1]) {
			return false
		}
	}
	return true
}

// hasNegative reports whether an entry of v is below 0.
func hasNegative(v []float64) bool {
	return slices.ContainsFunc(v, func(x float64) bool { return x < 0 })
}

// isNeverAbove reports whether no entry of the vectors of term t is above the same entry of term u, on all modes but the effect.
func (l *Ladder) isNeverAbove(t, u int) bool {
	for _, k := range l.Modes {
		for x, f := range l.vectors[k][t] {
			if f > l.vectors[k][u][x] {
				return false
			}
		}
	}
	return true
}

// sumCoefficients sets Coefficients to the sums C_m(y) = Σ_{t ≥ m} c_t(y) over the terms in l.Order, computed exactly and then rounded.
// c_t(y) is the weight of term t times its entry for value y of the effect. Without an effect y is 0, and c_t is the weight. ok is false
// if one of the sums is below 0.
func (l *Ladder) sumCoefficients() (ok bool) {
	d := 1
	if l.Effect >= 0 {
		d = l.dims[l.Effect]
	}
	l.Coefficients = make([]scaled.Number, len(l.Order)*d)
	for y := range d {
		sum := new(big.Rat) // C_m(y)
		for m := len(l.Order) - 1; m >= 0; m-- {
			term := l.Order[m]
			coefficient := exactRational(l.weights[term])
			if l.Effect >= 0 {
				coefficient.Mul(coefficient, exactRational(l.vectors[l.Effect][term][y]))
			}
			if sum.Add(sum, coefficient).Sign() < 0 {
				return false
			}
			l.Coefficients[m*d+y] = scaled.FromBig(new(big.Float).SetPrec(64).SetRat(sum))
		}
	}
	return true
}

// exactRational returns x as a rational number, without rounding.
func exactRational(x float64) *big.Rat { return new(big.Rat).SetFloat64(x) }

// IsCrisp reports whether the ladder has two terms, and each entry of the vectors of the first term is 0 or equal to the same entry of the
// second. Then the product of the first term's entries is either 0 or that of the second term's.
func (l *Ladder) IsCrisp() bool {
	if len(l.Order) != 2 {
		return false
	}
	first, second := l.Order[0], l.Order[1]
	for _, k := range l.Modes {
		for x, entry := range l.vectors[k][first] {
			if entry != 0 && entry != l.vectors[k][second][x] {
				return false
			}
		}
	}
	return true
}

// StepWeight returns the weight with which value x of mode k changes the maximum of the levels from one level to another. A level is the
// number of a term in l.Order; F_k(m|x) is the entry of term m, the weight of all levels up to m. A maximum cannot fall: the weight is 0
// if to < from. If to = from, any level up to the maximum may follow: it is F_k(to|x). If to > from, the level must be to: it is F_k(to|x)
// − F_k(to−1|x).
func (l *Ladder) StepWeight(k, x, from, to int) float64 {
	cumulative := func(m int) float64 { return l.vectors[k][l.Order[m]][x] }
	switch {
	case to < from:
		return 0
	case to == from:
		return cumulative(to)
	}
	return cumulative(to) - cumulative(to-1)
}

// Deterministic reports whether every value x of mode k has at most one level m with a weight f_k(m|x) other than 0: then the value
// decides the level. A level is a position in l.Order. A step from the lowest level has just this weight, since the maximum of the lowest
// level and m is m.
func (l *Ladder) Deterministic(k int) bool {
	for x := range l.dims[k] {
		levelCount := 0
		for m := range l.Order {
			const lowest = 0
			if l.StepWeight(k, x, lowest, m) != 0 {
				levelCount++
			}
		}
		if levelCount > 1 {
			return false
		}
	}
	return true
}
