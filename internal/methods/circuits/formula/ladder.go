package formula

// Noisy-or, noisy-max and their kin: differences of products, written without them.

import "github.com/basetensor/basetensor/internal/network/unsigned"

// addIfLadder adds a CP tensor as a ladder (a noisy-or or noisy-max), if it is one, and reports whether it is. The level of the maximum of
// all parents is an auxiliary variable, over which, with the effect, the coefficients are a table.
func (b *builder) addIfLadder(c terms) bool {
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
		scope[0] = b.addInside(c, l)
	} else {
		scope[0] = b.addMaximum(c, l)
	}
	b.addNumbers(scope, dims, l.Coefficients)
	return true
}

// addInside adds the vectors of a ladder of two terms without noise (Crisp), and an auxiliary variable. The variable is 0 if each parent
// has a value at which the vector of the first term is not 0, and 1 otherwise. It returns the variable.
func (b *builder) addInside(c terms, l *unsigned.Ladder) int {
	low, high := l.Order[0], l.Order[1]
	z := b.addAuxiliary(2, true)
	someOutside := []Literal{b.is(z, 0)} // z = 0, or some parent has a value outside of the first term
	b.addVectors(c, l.Modes, high)
	for _, k := range l.Modes {
		v := c.scope[k]
		someOutside = append(someOutside, b.literalsOutside(v, c.vectors[k][low])...)
		for x, f := range c.vectors[k][low] {
			if f == 0 {
				b.addClause([]Literal{b.is(z, 1), b.not(v, x)})
			}
		}
	}
	b.addClause(someOutside)
	return z
}

// addMaximum adds a chain of auxiliary variables, one for each parent: the largest level among the parents so far. It returns the last one.
// The parents determine these variables only if their links are deterministic.
func (b *builder) addMaximum(c terms, l *unsigned.Ladder) int {
	states := len(l.Order)
	last, isFunctional := -1, true
	for _, k := range l.Modes {
		isFunctional = isFunctional && l.Deterministic(k)
		next := b.addAuxiliary(states, isFunctional)
		var data []float64
		statesBefore := states
		if last < 0 {
			statesBefore = 1 // level 0
		}
		for from := range statesBefore {
			for x := range c.dims[k] {
				for to := range states {
					data = append(data, l.Rise(k, x, from, to))
				}
			}
		}
		if last < 0 {
			b.addTable([]int{c.scope[k], next}, []int{c.dims[k], states}, data)
		} else {
			b.addTable([]int{last, c.scope[k], next}, []int{states, c.dims[k], states}, data)
		}
		if last = next; b.err != nil {
			break
		}
	}
	return last
}
