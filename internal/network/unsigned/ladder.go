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

// New returns the terms weights[t] Π_k vectors[k][t][x_k], x_k < dims[k], as a ladder. ok is false if they are no ladder without negative
// coefficients, or have more than 64 terms. Cost: the square of the number of terms, times their entries.
func New(dims []int, weights []float64, vectors [][][]float64) (l *Ladder, ok bool) {
	if len(weights) > maxTerms || len(weights) < 2 {
		return nil, false
	}
	l = &Ladder{Effect: -1, dims: dims, weights: weights, vectors: vectors}
	for k, v := range vectors {
		if !slices.ContainsFunc(v, hasNegative) {
			l.Modes = append(l.Modes, k)
			continue
		}
		if l.Effect >= 0 {
			return nil, false
		}
		l.Effect = k
	}
	if len(l.Modes) == 0 {
		return nil, false
	}

	for t := range weights { // insertion sort by a partial order, which the loop after this one checks
		position := slices.IndexFunc(l.Order, func(u int) bool { return l.isNowhereAbove(t, u) })
		if position < 0 {
			position = len(l.Order)
		}
		l.Order = slices.Insert(l.Order, position, t)
	}
	for i := range l.Order[1:] {
		if !l.isNowhereAbove(l.Order[i], l.Order[i+1]) {
			return nil, false
		}
	}
	return l, l.sumCoefficients()
}

// hasNegative reports whether an entry is below 0.
func hasNegative(v []float64) bool {
	return slices.ContainsFunc(v, func(x float64) bool { return x < 0 })
}

// isNowhereAbove reports whether no entry of a vector of term t is above the same entry of term u.
func (l *Ladder) isNowhereAbove(t, u int) bool {
	for _, k := range l.Modes {
		for x, f := range l.vectors[k][t] {
			if f > l.vectors[k][u][x] {
				return false
			}
		}
	}
	return true
}

// sumCoefficients sets Coefficients to the sums C_m(y), computed exactly and rounded once. ok is false if one of them is below 0.
func (l *Ladder) sumCoefficients() (ok bool) {
	d := 1
	if l.Effect >= 0 {
		d = l.dims[l.Effect]
	}
	l.Coefficients = make([]scaled.Number, len(l.Order)*d)
	for y := range d {
		sum := new(big.Rat) // C_m(y): the terms from m on
		for m := len(l.Order) - 1; m >= 0; m-- {
			c := rational(l.weights[l.Order[m]])
			if l.Effect >= 0 {
				c.Mul(c, rational(l.vectors[l.Effect][l.Order[m]][y]))
			}
			if sum.Add(sum, c).Sign() < 0 {
				return false
			}
			l.Coefficients[m*d+y] = scaled.FromBig(new(big.Float).SetPrec(64).SetRat(sum))
		}
	}
	return true
}

// rational returns x without rounding.
func rational(x float64) *big.Rat { return new(big.Rat).SetFloat64(x) }

// Crisp reports whether the ladder has two terms, and each entry of a vector of the first one is 0 or that of the second.
func (l *Ladder) Crisp() bool {
	if len(l.Order) != 2 {
		return false
	}
	for _, k := range l.Modes {
		for x, f := range l.vectors[k][l.Order[0]] {
			if f != 0 && f != l.vectors[k][l.Order[1]][x] {
				return false
			}
		}
	}
	return true
}

// Rise returns the weight with which value x of mode k changes the maximum of the levels from one level to another: F_k(to|x) if the level
// of x is at most the maximum and leaves it as it is (to = from), f_k(to|x) if it is above (to > from), 0 if to < from.
func (l *Ladder) Rise(k, x, from, to int) float64 {
	cumulative := func(m int) float64 { return l.vectors[k][l.Order[m]][x] }
	switch {
	case to < from:
		return 0
	case to == from:
		return cumulative(to)
	}
	return cumulative(to) - cumulative(to-1)
}

// Deterministic reports whether every value of mode k has at most one level of weight above 0.
func (l *Ladder) Deterministic(k int) bool {
	for x := range l.dims[k] {
		levels := 0
		for m := range l.Order {
			if l.Rise(k, x, 0, m) != 0 {
				levels++
			}
		}
		if levels > 1 {
			return false
		}
	}
	return true
}
