package formula

// Noisy-or, noisy-max and what is like them: differences of products, written without them.

import (
	"math/big"
	"slices"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// ladder is a CP tensor Σ_t c_t(y) Π_k F_k(t|x_k) whose terms are in an order in which no F_k falls. Only the coefficients c_t, which
// may depend on one variable, have both signs.
type ladder struct {
	terms
	order        []int // of the terms
	effect       int   // the mode of y; −1 for none
	modes        []int // the others
	coefficients []scaled.Number
}

// ladder adds a CP tensor that is a ladder, and reports whether t is one. With f_k(m|x) = F_k(m|x) − F_k(m−1|x) ≥ 0 the products are
// what a maximum of independent levels gives:
//
//	Π_k F_k(t|x_k) = Σ_{m ≤ t} Σ_{max_k m_k = m} Π_k f_k(m_k|x_k)
//
// so the tensor is Σ_m g_m(x) C_m(y) with C_m(y) = Σ_{t ≥ m} c_t(y), and no number is below 0 where no C_m is. The maximum so far is an
// auxiliary variable per parent; the parents determine it only where their links are deterministic.
// Source for noisy-max: F. J. Díez and S. F. Galán, Efficient computation for the noisy MAX (2003).
func (b *builder) ladder(c terms) bool {
	l, ok := c.ladder()
	if !ok || b.over(len(c.weights)*len(c.scope)) {
		return ok
	}
	scope, dims := []int{0}, []int{len(c.weights)}
	if l.effect >= 0 {
		scope = append(scope, c.scope[l.effect])
		dims = append(dims, c.dims[l.effect])
	}
	if len(c.weights) == 2 && l.crisp() {
		scope[0] = b.inside(l)
	} else {
		scope[0] = b.maximum(l)
	}
	b.numbers(scope, dims, l.coefficients)
	return true
}

// ladder orders the terms.
func (c terms) ladder() (*ladder, bool) {
	if len(c.weights) > mostTerms || len(c.weights) < 2 {
		return nil, false
	}
	l := &ladder{terms: c, effect: -1}
	for k, v := range c.vectors {
		if !slices.ContainsFunc(v, func(w []float64) bool { return slices.ContainsFunc(w, func(x float64) bool { return x < 0 }) }) {
			l.modes = append(l.modes, k)
			continue
		}
		if l.effect >= 0 {
			return nil, false
		}
		l.effect = k
	}
	if len(l.modes) == 0 {
		return nil, false
	}

	for t := range c.weights {
		at := slices.IndexFunc(l.order, func(u int) bool { return l.below(t, u) })
		if at < 0 {
			at = len(l.order)
		}
		l.order = slices.Insert(l.order, at, t)
	}
	for i := range l.order[1:] {
		if !l.below(l.order[i], l.order[i+1]) {
			return nil, false
		}
	}
	return l, l.sum()
}

// below reports whether no vector of term t is anywhere above that of term u.
func (l *ladder) below(t, u int) bool {
	for _, k := range l.modes {
		for x, f := range l.vectors[k][t] {
			if f > l.vectors[k][u][x] {
				return false
			}
		}
	}
	return true
}

// sum writes the coefficients C_m(y), exactly and then rounded once; false where one is below 0.
func (l *ladder) sum() bool {
	d := 1
	if l.effect >= 0 {
		d = l.dims[l.effect]
	}
	l.coefficients = make([]scaled.Number, len(l.order)*d)
	for y := range d {
		tail := new(big.Rat)
		for m := len(l.order) - 1; m >= 0; m-- {
			c := rational(l.weights[l.order[m]])
			if l.effect >= 0 {
				c.Mul(c, rational(l.vectors[l.effect][l.order[m]][y]))
			}
			if tail.Add(tail, c).Sign() < 0 {
				return false
			}
			l.coefficients[m*d+y] = number(tail)
		}
	}
	return true
}

// crisp reports whether the first term has what the second has, or 0.
func (l *ladder) crisp() bool {
	for _, k := range l.modes {
		for x, f := range l.vectors[k][l.order[0]] {
			if f != 0 && f != l.vectors[k][l.order[1]][x] {
				return false
			}
		}
	}
	return true
}

// inside returns an auxiliary variable that is 0 where every parent has a value of the first term, and 1 where one has not.
func (b *builder) inside(l *ladder) int {
	low, high := l.order[0], l.order[1]
	z := b.auxiliary(2, true)
	some := []Literal{b.is(z, 0)}
	b.unary(l.terms, l.modes, high)
	for _, k := range l.modes {
		v := l.scope[k]
		some = append(some, b.outside(v, l.vectors[k][low])...)
		for x, f := range l.vectors[k][low] {
			if f == 0 {
				b.clause([]Literal{b.is(z, 1), b.not(v, x)})
			}
		}
	}
	b.clause(some)
	return z
}

// maximum returns an auxiliary variable for the maximum of all levels, the last of a chain.
func (b *builder) maximum(l *ladder) int {
	states := len(l.order)
	last, functional := -1, true
	for _, k := range l.modes {
		functional = functional && l.deterministic(k)
		next := b.auxiliary(states, functional)
		var data []float64
		before := states
		if last < 0 {
			before = 1 // level 0
		}
		for from := range before {
			for x := range l.dims[k] {
				for to := range states {
					data = append(data, l.rise(k, x, from, to))
				}
			}
		}
		if last < 0 {
			b.table([]int{l.scope[k], next}, []int{l.dims[k], states}, data)
		} else {
			b.table([]int{last, l.scope[k], next}, []int{states, l.dims[k], states}, data)
		}
		if last = next; b.err != nil {
			break
		}
	}
	return last
}

// rise is the weight with which a parent of value x takes the maximum from one level to another.
func (l *ladder) rise(k, x, from, to int) float64 {
	f := func(m int) float64 { return l.vectors[k][l.order[m]][x] }
	switch {
	case to < from:
		return 0
	case to == from:
		return f(to)
	}
	return f(to) - f(to-1)
}

// deterministic reports whether every value of a parent has one level.
func (l *ladder) deterministic(k int) bool {
	for x := range l.dims[k] {
		levels := 0
		for m := range l.order {
			if l.rise(k, x, 0, m) != 0 {
				levels++
			}
		}
		if levels > 1 {
			return false
		}
	}
	return true
}
