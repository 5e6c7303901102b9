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

// addCP adds a CP tensor in the first form that fits: nothing left (a contradiction), a product, a parity or a clause (both have terms of
// both signs), a small table, a mixture of terms not below 0, a ladder, or a table of all entries.
func (b *builder) addCP(scope []int, t *tensor.CP) {
	c := readTerms(scope, t)
	switch isSigned := tensor.Signed(c.asTensor()); {
	case len(c.weights) == 0:
		b.addClause([]Literal{})
	case len(c.weights) == 1 && !isSigned:
		b.addProduct(c)
	case isSigned && (b.addIfParity(c) || b.addIfClause(c)):
	case b.addIfSmall(factor{scope, t}):
	case !isSigned:
		b.addMixture(c)
	case !b.addIfLadder(c):
		b.addWrittenOut(factor{scope, t})
	}
}

// readTerms returns the terms of t that are not 0: the weight is not 0, and neither is any vector.
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

// asTensor returns the terms as a CP tensor without a shape.
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

// addVectors adds Π_k v_k[x_k] over some modes k, with the vectors v_k of one term.
func (b *builder) addVectors(c terms, modes []int, term int) {
	for _, k := range modes {
		b.addTable(c.scope[k:k+1], c.dims[k:k+1], c.vectors[k][term])
	}
}

// modes returns the numbers of all modes.
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

// addMixture adds a sum of terms that are not below 0. The number of the term is a variable, with a table of the weights, and a table with
// the variable of each mode. If the vectors of a mode are the identity, the variable of the mode is that of the term. Otherwise it is an
// auxiliary variable.
func (b *builder) addMixture(c terms) {
	term := -1
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

// areDisjoint reports whether at most one term is not 0 at each assignment. It is false if there are too many terms to compare.
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

// areExclusive reports whether no entry is other than 0 in both vectors.
func areExclusive(v, w []float64) bool {
	for x := range v {
		if v[x] != 0 && w[x] != 0 {
			return false
		}
	}
	return true
}

// addIfParity adds a tensor as a parity, if it is one, and reports whether it is.
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

// isNotNegative reports whether the weight of term t and all its vectors have no number below 0.
func (c terms) isNotNegative(t int) bool {
	isNegative := func(x float64) bool { return x < 0 }
	return c.weights[t] >= 0 && !slices.ContainsFunc(c.vectors, func(v [][]float64) bool { return slices.ContainsFunc(v[t], isNegative) })
}

// addParityChain adds the constraint that an odd (or even) number of variables has a value that flips. flips[k][a] states whether value a
// of variable scope[k] flips. Two variables at a time are replaced by an auxiliary one for their parity, until three are left.
func (b *builder) addParityChain(scope []int, flips [][]bool, isOdd bool) {
	if len(scope) == 0 {
		if isOdd {
			b.addClause([]Literal{})
		}
		return
	}
	for len(scope) > 3 && b.err == nil {
		p := b.addAuxiliary(2, true)
		b.addParityTable([]int{scope[0], scope[1], p}, [][]bool{flips[0], flips[1], {false, true}}, false)
		scope = append([]int{p}, scope[2:]...)
		flips = append([][]bool{{false, true}}, flips[2:]...)
	}
	b.addParityTable(scope, flips, isOdd)
}

// addParityTable adds the constraint of addParityChain as one table of zeros and ones.
func (b *builder) addParityTable(scope []int, flips [][]bool, isOdd bool) {
	valueOf := []float64{1, 0} // by parity
	if isOdd {
		valueOf = []float64{0, 1}
	}
	var dims []int
	parities := []int{0} // by cell of the variables so far, the last variable fastest
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
		values[i] = valueOf[p]
	}
	b.addTable(scope, dims, values)
}

// addIfClause adds a tensor as a clause, if it is one, and reports whether it is. A clause is w Π_k a_k[x_k] [some x_k ∉ S_k]: two terms
// with opposite weights, where the vectors of the negative term are those of the positive one, with the entries outside of S_k set to 0.
func (b *builder) addIfClause(c terms) bool {
	if len(c.weights) != 2 || c.weights[0] != -c.weights[1] {
		return false
	}
	positive := 0 // the number of the term; the other one is 1 − positive
	if c.weights[0] < 0 {
		positive = 1
	}
	if !c.isNotNegative(positive) {
		return false
	}
	for _, v := range c.vectors {
		for x, entry := range v[1-positive] {
			if entry != 0 && entry != v[positive][x] {
				return false
			}
		}
	}
	b.multiplyScale(scaled.FromFloat(c.weights[positive]))
	b.addVectors(c, c.modes(), positive)
	clause := []Literal{}
	for k, v := range c.vectors {
		clause = append(clause, b.literalsOutside(c.scope[k], v[1-positive])...)
	}
	b.addClause(clause)
	return true
}

// literalsOutside returns literals whose disjunction states that the value x of variable v is not one with set[x] ≠ 0: x ≠ a if the set has
// only a, and otherwise x = b for each b outside of the set.
func (b *builder) literalsOutside(v int, set []float64) (c []Literal) {
	n, last := 0, 0 // the number of members, and the last of them
	for x, member := range set {
		if member != 0 {
			n, last = n+1, x
		}
	}
	if n == 1 && len(set) > 1 {
		return []Literal{b.not(v, last)}
	}
	for x, member := range set {
		if member == 0 {
			c = append(c, b.is(v, x))
		}
	}
	return c
}
