package formula

// CP tensors by kind: products, clauses, parities, noisy-or and noisy-max, sums of terms.

import (
	"slices"

	"github.com/basetensor/basetensor/internal/network/unsigned"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// smallTable is the maximum number of entries of a tensor that is written out at any kind: its
// clauses are found from its zeros then, and no auxiliary variable is needed.
const smallTable = 64

// mostTerms bounds the terms that are compared with each other.
const mostTerms = 64

// terms is a CP tensor without terms that are 0: Σ_t weights[t] Π_k vectors[k][t][x_k].
type terms struct {
	scope, dims []int
	weights     []float64
	vectors     [][][]float64 // by mode and term
	identity    []bool        // by mode: its vectors are the rows of the identity, so that the value of its variable is the term
}

// addCP adds a CP tensor, a sum of products of vectors. It takes the first form that fits:
//
//	a contradiction    no term is left
//	a product          one term, not below 0
//	a parity, a clause two terms, with numbers below 0
//	a small table      at most smallTable entries
//	a mixture          terms that are not below 0
//	a ladder           noisy-or, noisy-max
//	a table            all entries
func (b *builder) addCP(scope []int, t *tensor.CP) {
	c := readTerms(scope, t)
	switch isSigned := tensor.Signed(c.asTensor()); {
	case len(c.weights) == 0:
		b.addClause([]Literal{}) // never holds
	case len(c.weights) == 1 && !isSigned:
		b.addProduct(c)
	case isSigned && (b.addIfParity(c) || b.addIfClause(c)):
	case b.addIfSmall(factor{scope, t}):
	case !isSigned:
		b.addMixture(c)
	case !b.addIfLadder(c): // it is no ladder
		b.addWrittenOut(factor{scope, t})
	}
}

// readTerms returns the terms of t that are not 0: those whose weight is not 0 and whose vectors all have an entry that is not 0. c.vectors
// has the vectors by mode and term. c.identity states by mode whether the vectors are the rows of the identity, without a term left out.
func readTerms(scope []int, t *tensor.CP) terms {
	c := terms{scope: scope, dims: t.Shape}
	var nonzero []int // numbers of terms
	for i, w := range t.Weights {
		isZero := w == 0
		for k := range t.Shape {
			isZero = isZero || !slices.ContainsFunc(vector(t, k, i), func(x float64) bool { return x != 0 })
		}
		if !isZero {
			nonzero = append(nonzero, i)
			c.weights = append(c.weights, w)
		}
	}

	// Their vectors, by mode.
	for k := range t.Shape {
		var vectors [][]float64
		for _, i := range nonzero {
			vectors = append(vectors, vector(t, k, i))
		}
		c.vectors = append(c.vectors, vectors)
		c.identity = append(c.identity, t.Vectors[k] == nil && len(nonzero) == len(t.Weights))
	}
	return c
}

// asTensor returns the terms as a CP tensor. Its Shape is not set.
func (c terms) asTensor() *tensor.CP {
	t := &tensor.CP{Weights: c.weights}
	for _, v := range c.vectors {
		t.Vectors = append(t.Vectors, slices.Concat(v...))
	}
	return t
}

// vector returns the vector of term i on mode k. Vectors that are nil stand for the rows of the identity.
func vector(t *tensor.CP, k, i int) []float64 {
	d := t.Shape[k]
	if t.Vectors[k] != nil {
		return t.Vectors[k][i*d : (i+1)*d]
	}
	v := make([]float64, d)
	v[i] = 1
	return v
}

// addVectors adds the factor Π_k v_k[x_k] over the given modes k, with the vectors v_k of one term: a table for each mode.
func (b *builder) addVectors(c terms, modes []int, term int) {
	for _, k := range modes {
		b.addTable(c.scope[k:k+1], c.dims[k:k+1], c.vectors[k][term])
	}
}

// modes returns the numbers of all modes, 0, 1, 2 and so on.
func (c terms) modes() []int {
	modes := make([]int, len(c.scope))
	for k := range modes {
		modes[k] = k
	}
	return modes
}

// addProduct adds a tensor of a single term.
func (b *builder) addProduct(c terms) {
	b.multiplyScale(scaled.FromFloat(c.weights[0]))
	b.addVectors(c, c.modes(), 0)
}

// addMixture adds a sum of terms Σ_t w_t Π_k v_kt[x_k] that are not below 0. The number t of the term becomes a variable, with a table of
// the weights w_t over it. For each mode k, the vectors v_kt are a table over t and the variable of the mode. If the vectors of a mode are
// the identity (v_kt[x] is 1 if x = t, else 0), the variable of that mode is t. Otherwise t is an auxiliary variable, which is functional
// if the other variables determine it (areDisjoint).
func (b *builder) addMixture(c terms) {
	term := -1 // the variable of the number of the term
	if k := slices.Index(c.identity, true); k >= 0 {
		term = c.scope[k]
	} else {
		term = b.addAuxiliary(len(c.weights), c.areDisjoint())
	}
	b.addTable([]int{term}, []int{len(c.weights)}, c.weights)
	for k, v := range c.scope {
		if v != term {
			b.addTable([]int{term, v}, []int{len(c.weights), c.dims[k]}, slices.Concat(c.vectors[k]...))
		}
	}
}

// areDisjoint reports whether at most one term is not 0 at each assignment. It is true if any two terms exclude each other on some mode: at
// each value of the mode the vector of at least one of the two is 0. It is false if there are too many terms to compare.
func (c terms) areDisjoint() bool {
	if len(c.weights) > mostTerms {
		return false
	}
	for t := range c.weights {
		for u := range t {
			if !slices.ContainsFunc(c.vectors, func(v [][]float64) bool { return areExclusive(v[t], v[u]) }) {
				return false
			}
		}
	}
	return true
}

// areExclusive reports whether at every entry at least one of two vectors is 0.
func areExclusive(v, w []float64) bool {
	for x := range v {
		if v[x] != 0 && w[x] != 0 {
			return false
		}
	}
	return true
}

// addIfParity adds a tensor of two terms as a parity, if it is one, and reports whether it is. In a parity one term, the plain one, has no
// number below 0. The other term is ± the plain one: each variable whose value is one that flips (p.Flips) changes the sign. So the sum is
// 2 times the plain term or 0. It is not 0 where the number of variables with such a value is even or, if p.Odd is set, odd.
func (b *builder) addIfParity(c terms) bool {
	p, ok := unsigned.NewParity(c.weights, c.vectors)
	if !ok {
		return false
	}
	b.multiplyScale(scaled.FromFloat(c.weights[p.Plain]).Mul(scaled.FromFloat(2)))
	b.addVectors(c, c.modes(), p.Plain)
	b.addParityChain(c.scope, p.Flips, p.Odd)
	return true
}

// isNotNegative reports whether term t has no number below 0, neither its weight nor an entry of a vector.
func (c terms) isNotNegative(t int) bool {
	isNegative := func(x float64) bool { return x < 0 }
	return c.weights[t] >= 0 && !slices.ContainsFunc(c.vectors, func(v [][]float64) bool { return slices.ContainsFunc(v[t], isNegative) })
}

// addParityChain adds the constraint that the number of variables with a value that flips is odd if isOdd is set, and even if not.
// flips[k][a] states whether value a of variable scope[k] flips. While there are more than three variables, it replaces the first two by an
// auxiliary variable for their parity, whose value 1 flips.
func (b *builder) addParityChain(scope []int, flips [][]bool, isOdd bool) {
	if len(scope) == 0 {
		if isOdd { // 0 is even: the empty clause never holds
			b.addClause([]Literal{})
		}
		return
	}
	const isFunctional, isEven = true, false
	for len(scope) > 3 && b.err == nil {
		p := b.addAuxiliary(2, isFunctional) // 1 if one of the first two flips and the other one does not: all three are even
		b.addParityTable([]int{scope[0], scope[1], p}, [][]bool{flips[0], flips[1], {false, true}}, isEven)
		scope = append([]int{p}, scope[2:]...)
		flips = append([][]bool{{false, true}}, flips[2:]...)
	}
	b.addParityTable(scope, flips, isOdd)
}

// addParityTable adds the constraint that the number of variables with a value that flips is odd if isOdd is set, and even if not.
// flips[k][a] states whether value a of variable scope[k] flips. The constraint is one table, 1 where it holds and 0 elsewhere.
func (b *builder) addParityTable(scope []int, flips [][]bool, isOdd bool) {
	entryOf := []float64{1, 0} // by parity
	if isOdd {
		entryOf = []float64{0, 1}
	}

	// The parity of each combination of values, the last variable fastest: one variable after another is added.
	var dims []int
	parities := []int{0}
	for _, f := range flips {
		dims = append(dims, len(f))
		next := make([]int, 0, len(parities)*len(f))
		for _, p := range parities {
			for _, isFlip := range f {
				if isFlip {
					next = append(next, 1-p)
				} else {
					next = append(next, p)
				}
			}
		}
		parities = next
	}
	values := make([]float64, len(parities))
	for i, p := range parities {
		values[i] = entryOf[p]
	}
	b.addTable(scope, dims, values)
}

// addIfClause adds a tensor as a clause, if it is one, and reports whether it is. A clause is w Π_k a_k[x_k] · [some x_k ∉ S_k]. As CP it
// has two terms: w Π_k a_k, and −w times the same with the entries of a_k outside of S_k set to 0.
func (b *builder) addIfClause(c terms) bool {
	if len(c.weights) != 2 || c.weights[0] != -c.weights[1] {
		return false
	}
	positive, negative := 0, 1 // the numbers of the terms
	if c.weights[0] < 0 {
		positive, negative = 1, 0
	}

	// The vectors of the negative term are those of the positive one, or 0.
	if !c.isNotNegative(positive) {
		return false
	}
	for _, v := range c.vectors {
		for x, entry := range v[negative] {
			if entry != 0 && entry != v[positive][x] {
				return false
			}
		}
	}

	b.multiplyScale(scaled.FromFloat(c.weights[positive]))
	b.addVectors(c, c.modes(), positive)
	clause := []Literal{}
	for k, v := range c.vectors {
		clause = append(clause, b.literalsOutside(c.scope[k], v[negative])...)
	}
	b.addClause(clause)
	return true
}

// literalsOutside returns literals whose disjunction states that the value of variable v is outside of the set {x : vector[x] ≠ 0}: v ≠ a
// if a is the only member, and otherwise v = x for each x outside of the set.
func (b *builder) literalsOutside(v int, vector []float64) (c []Literal) {
	members, lastMember := 0, 0
	for x, entry := range vector {
		if entry != 0 {
			members, lastMember = members+1, x
		}
	}
	if members == 1 && len(vector) > 1 { // a variable of one value is never outside of its own value: no literal
		return []Literal{b.isNot(v, lastMember)}
	}
	for x, entry := range vector {
		if entry == 0 {
			c = append(c, b.is(v, x))
		}
	}
	return c
}
