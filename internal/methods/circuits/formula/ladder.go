package formula

// Noisy-or, noisy-max and their kin: differences of products, written without them.

import "github.com/basetensor/basetensor/internal/network/unsigned"

// ladder adds a CP tensor that is a ladder, and reports whether t is one. The maximum so far is an auxiliary variable per parent; the
// parents determine it only where their links are deterministic.
func (b *builder) ladder(c terms) bool {
	l, ok := unsigned.New(c.dims, c.weights, c.vectors)
	if !ok || b.over(len(c.weights)*len(c.scope)) {
		return ok
	}
	scope, dims := []int{0}, []int{len(c.weights)}
	if l.Effect >= 0 {
		scope = append(scope, c.scope[l.Effect])
		dims = append(dims, c.dims[l.Effect])
	}
	if l.Crisp() {
		scope[0] = b.inside(c, l)
	} else {
		scope[0] = b.maximum(c, l)
	}
	b.numbers(scope, dims, l.Coefficients)
	return true
}

// inside returns an auxiliary variable that is 0 where every parent has a value of the first term, and 1 where one has not.
func (b *builder) inside(c terms, l *unsigned.Ladder) int {
	low, high := l.Order[0], l.Order[1]
	z := b.auxiliary(2, true)
	some := []Literal{b.is(z, 0)}
	b.unary(c, l.Modes, high)
	for _, k := range l.Modes {
		v := c.scope[k]
		some = append(some, b.outside(v, c.vectors[k][low])...)
		for x, f := range c.vectors[k][low] {
			if f == 0 {
				b.clause([]Literal{b.is(z, 1), b.not(v, x)})
			}
		}
	}
	b.clause(some)
	return z
}

// maximum returns an auxiliary variable for the maximum of all levels, the last of a chain.
func (b *builder) maximum(c terms, l *unsigned.Ladder) int {
	states := len(l.Order)
	last, functional := -1, true
	for _, k := range l.Modes {
		functional = functional && l.Deterministic(k)
		next := b.auxiliary(states, functional)
		var data []float64
		before := states
		if last < 0 {
			before = 1 // level 0
		}
		for from := range before {
			for x := range c.dims[k] {
				for to := range states {
					data = append(data, l.Rise(k, x, from, to))
				}
			}
		}
		if last < 0 {
			b.table([]int{c.scope[k], next}, []int{c.dims[k], states}, data)
		} else {
			b.table([]int{last, c.scope[k], next}, []int{states, c.dims[k], states}, data)
		}
		if last = next; b.err != nil {
			break
		}
	}
	return last
}
