package formula

// Noisy-or, noisy-max and their kin: differences of products, written without them.

import "github.com/basetensor/basetensor/internal/network/unsigned"

// addIfLadder adds a CP tensor as a ladder (a noisy-or or noisy-max), if it is one, and reports whether it is. Every parent has a level,
// and the largest level of all parents becomes an auxiliary variable. The coefficients of the ladder are a table over that variable and
// the effect, the ladder's result, if it has one (l.Effect, else −1). The result is also true after an error of the builder.
func (b *builder) addIfLadder(c terms) bool {
	l, isLadder := unsigned.NewLadder(c.dims, c.weights, c.vectors)
	if !isLadder || b.isOver(len(c.weights)*len(c.scope)) {
		return isLadder
	}

	// The table's scope: the auxiliary variable, which is set below, and the effect.
	scope, dims := []int{0}, []int{len(c.weights)}
	if l.Effect >= 0 {
		scope = append(scope, c.scope[l.Effect])
		dims = append(dims, c.dims[l.Effect])
	}
	if l.IsCrisp() { // without noise
		scope[0] = b.addCrispMaximum(c, l)
	} else {
		scope[0] = b.addMaximum(c, l)
	}
	b.addNumbers(scope, dims, l.Coefficients)
	return true
}

// addCrispMaximum adds a ladder of two terms without noise (Crisp): tables of its vectors, and an auxiliary variable z for the largest
// level of the parents, which it returns. A parent is at level 0 if the vector of the first term is not 0 at its value, else at level 1.
// z is 0 if all parents are at level 0, and 1 otherwise. Clauses state that:
//
//	z = 1  or  parent ≠ x                      for each value x of a parent at level 1
//	z = 0  or  some parent has a value at level 1
func (b *builder) addCrispMaximum(c terms, l *unsigned.Ladder) int {
	low, high := l.Order[0], l.Order[1] // the numbers of the terms
	const isFunctional = true
	z := b.addAuxiliary(2, isFunctional)
	zeroOrSomeOther := []Literal{b.is(z, 0)}
	b.addVectors(c, l.Modes, high) // without noise, a vector of the first term has the entries of the second term's vector, or 0
	for _, k := range l.Modes {
		v := c.scope[k]
		zeroOrSomeOther = append(zeroOrSomeOther, b.literalsOutside(v, c.vectors[k][low])...)
		for x, entry := range c.vectors[k][low] {
			if entry == 0 {
				b.addClause([]Literal{b.is(z, 1), b.isNot(v, x)})
			}
		}
	}
	b.addClause(zeroOrSomeOther)
	return z
}

// addMaximum adds a chain of auxiliary variables, one for each parent: the largest level of the parents so far. It returns the last one.
// For each parent, a table over the auxiliary variable before it, the parent and the auxiliary variable after it has the weights with which
// the parent's value raises the level (StepWeight). An auxiliary variable is a function of the parents (functional) only if each value of
// each parent so far raises the level in one way (Deterministic).
func (b *builder) addMaximum(c terms, l *unsigned.Ladder) int {
	states := len(l.Order) // number of levels
	lastMaximum, isFunctional := -1, true
	for _, k := range l.Modes {
		isFunctional = isFunctional && l.Deterministic(k)
		next := b.addAuxiliary(states, isFunctional)

		if lastMaximum < 0 { // before the first parent the level is 0
			b.addTable([]int{c.scope[k], next}, []int{c.dims[k], states}, stepWeights(l, k, 1, c.dims[k]))
		} else {
			b.addTable([]int{lastMaximum, c.scope[k], next}, []int{states, c.dims[k], states}, stepWeights(l, k, states, c.dims[k]))
		}
		if lastMaximum = next; b.err != nil {
			break
		}
	}
	return lastMaximum
}

// stepWeights returns the weights with which the values of parent k raise the level: a table over the level before, one of statesBefore,
// the value, one of d, and the level after.
func stepWeights(l *unsigned.Ladder, k, statesBefore, d int) (weights []float64) {
	for before := range statesBefore {
		for x := range d {
			for after := range l.Order {
				weights = append(weights, l.StepWeight(k, x, before, after))
			}
		}
	}
	return weights
}
