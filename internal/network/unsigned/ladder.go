// Package unsigned recognises CP tensors with terms of both signs that are sums of products without signs: clauses,
// parities, noisy-or, noisy-max.
package unsigned

// Differences of products in an order in which no vector falls.

import (
	"math/big"
	"slices"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// mostTerms bounds the terms that are put in order.
const mostTerms = 64

// Ladder is a CP tensor Σ_t c_t(y) Π_k F_k(t|x_k) whose terms are in an order in which no F_k falls. Only the coefficients
// c_t, which may depend on one variable, have both signs. With f_k(m|x) = F_k(m|x) − F_k(m−1|x) ≥ 0 the products are the
// distribution of a maximum of independent levels:
//
//	Π_k F_k(t|x_k) = Σ_{m ≤ t} Σ_{max_k m_k = m} Π_k f_k(m_k|x_k)
//
// so the tensor is Σ_m g_m(x) C_m(y) with C_m(y) = Σ_{t ≥ m} c_t(y), and no number is below 0 where no C_m is.
// Source for noisy-max: F. J. Díez and S. F. Galán, Efficient computation for the noisy MAX (2003).
type Ladder struct {
	Order        []int           // of the terms
	Effect       int             // the mode of y; −1 for none
	Modes        []int           // the others
	Coefficients []scaled.Number // C_m(y), y the faster

	dims    []int
	weights []float64
	vectors [][][]float64
}

// New returns the ladder of terms weights[t] Π_k vectors[k][t][x_k], x_k < dims[k], and false where they are none.
// Cost: the square of the number of terms, at most 64, times their entries.
func New(dims []int, weights []float64, vectors [][][]float64) (*Ladder, bool) {
	if len(weights) > mostTerms || len(weights) < 2 {
		return nil, false
	}
	l := &Ladder{Effect: -1, dims: dims, weights: weights, vectors: vectors}
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

	for t := range weights {
		at := slices.IndexFunc(l.Order, func(u int) bool { return l.nowhereAbove(t, u) })
		if at < 0 {
			at = len(l.Order)
		}
		l.Order = slices.Insert(l.Order, at, t)
	}
	for i := range l.Order[1:] {
		if !l.nowhereAbove(l.Order[i], l.Order[i+1]) {
			return nil, false
		}
	}
	return l, l.sum()
}

// hasNegative reports whether an entry is below 0.
func hasNegative(v []float64) bool {
	return slices.ContainsFunc(v, func(x float64) bool { return x < 0 })
}

// nowhereAbove reports whether no vector of term t is anywhere above term u's.
func (l *Ladder) nowhereAbove(t, u int) bool {
	for _, k := range l.Modes {
		for x, f := range l.vectors[k][t] {
			if f > l.vectors[k][u][x] {
				return false
			}
		}
	}
	return true
}

// sum writes the coefficients, exactly and then rounded once; false where one is below 0.
func (l *Ladder) sum() bool {
	d := 1
	if l.Effect >= 0 {
		d = l.dims[l.Effect]
	}
	l.Coefficients = make([]scaled.Number, len(l.Order)*d)
	for y := range d {
		tail := new(big.Rat)
		for m := len(l.Order) - 1; m >= 0; m-- {
			c := rational(l.weights[l.Order[m]])
			if l.Effect >= 0 {
				c.Mul(c, rational(l.vectors[l.Effect][l.Order[m]][y]))
			}
			if tail.Add(tail, c).Sign() < 0 {
				return false
			}
			l.Coefficients[m*d+y] = scaled.FromBig(new(big.Float).SetPrec(64).SetRat(tail))
		}
	}
	return true
}

// rational is x without rounding.
func rational(x float64) *big.Rat { return new(big.Rat).SetFloat64(x) }

// Crisp reports whether every entry of the first of two terms is the second's or 0.
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

// Rise is the weight with which value x of mode k takes the maximum of levels from one to another.
func (l *Ladder) Rise(k, x, from, to int) float64 {
	f := func(m int) float64 { return l.vectors[k][l.Order[m]][x] }
	switch {
	case to < from:
		return 0
	case to == from:
		return f(to)
	}
	return f(to) - f(to-1)
}

// Deterministic reports whether every value of mode k has one level.
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
