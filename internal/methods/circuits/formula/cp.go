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

// terms is a CP tensor without terms that are 0: Σ_t weight[t] Π_k vector[k][t][x_k].
type terms struct {
	scope, dims []int
	weights     []float64
	vectors     [][][]float64 // by mode and term
	identity    []bool        // by mode: vectors are the identity
}

// cp adds a CP tensor.
func (b *builder) cp(scope []int, t *tensor.CP) {
	c := readTerms(scope, t)
	switch signed := tensor.Signed(c.asTensor()); {
	case len(c.weights) == 0:
		b.clause([]Literal{})
	case len(c.weights) == 1 && !signed:
		b.product(c)
	case signed && (b.parity(c) || b.falsified(c)):
	case b.small(factor{scope, t}):
	case !signed:
		b.mixture(c)
	case !b.ladder(c):
		b.written(factor{scope, t})
	}
}

// readTerms lists the terms of t that are not 0.
func readTerms(scope []int, t *tensor.CP) terms {
	c := terms{scope: scope, dims: t.Shape}
	whole := true
	var left []int
	for i, w := range t.Weights {
		gone := w == 0
		for k := range t.Shape {
			gone = gone || !slices.ContainsFunc(vector(t, k, i), func(x float64) bool { return x != 0 })
		}
		if whole = whole && !gone; !gone {
			left = append(left, i)
			c.weights = append(c.weights, w)
		}
	}
	for k := range t.Shape {
		var list [][]float64
		for _, i := range left {
			list = append(list, vector(t, k, i))
		}
		c.vectors = append(c.vectors, list)
		c.identity = append(c.identity, whole && t.Vectors[k] == nil)
	}
	return c
}

// asTensor returns the tensor of the terms.
func (c terms) asTensor() *tensor.CP {
	t := &tensor.CP{Weights: c.weights}
	for _, v := range c.vectors {
		t.Vectors = append(t.Vectors, slices.Concat(v...))
	}
	return t
}

// vector returns the vector of term i on mode k.
func vector(t *tensor.CP, k, i int) []float64 {
	d := t.Shape[k]
	if t.Vectors[k] != nil {
		return t.Vectors[k][i*d : (i+1)*d]
	}
	v := make([]float64, d)
	v[i] = 1
	return v
}

// unary adds Π_k v_k[x_k].
func (b *builder) unary(c terms, modes []int, term int) {
	for _, k := range modes {
		b.table(c.scope[k:k+1], c.dims[k:k+1], c.vectors[k][term])
	}
}

func (c terms) modes() []int {
	modes := make([]int, len(c.scope))
	for k := range modes {
		modes[k] = k
	}
	return modes
}

// product adds a term that is the only one.
func (b *builder) product(c terms) {
	b.scale(scaled.FromFloat(c.weights[0]))
	b.unary(c, c.modes(), 0)
}

// mixture adds a sum of terms that are at least 0: the term is a variable h, with a table of weights and one for every other.
// The variable of a mode with the identity is h itself.
func (b *builder) mixture(c terms) {
	h := -1
	if k := slices.Index(c.identity, true); k >= 0 {
		h = c.scope[k]
	} else {
		h = b.auxiliary(len(c.weights), c.disjoint())
	}
	b.table([]int{h}, []int{len(c.weights)}, c.weights)
	for k, v := range c.scope {
		if v != h {
			b.table([]int{h, v}, []int{len(c.weights), c.dims[k]}, slices.Concat(c.vectors[k]...))
		}
	}
}

// disjoint reports whether no assignment has two terms that are not 0.
func (c terms) disjoint() bool {
	if len(c.weights) > mostTerms {
		return false
	}
	for t := range c.weights {
		for u := range t {
			if !slices.ContainsFunc(c.vectors, func(v [][]float64) bool { return exclusive(v[t], v[u]) }) {
				return false
			}
		}
	}
	return true
}

func exclusive(v, w []float64) bool {
	for x := range v {
		if v[x] != 0 && w[x] != 0 {
			return false
		}
	}
	return true
}

// parity adds a tensor that is a parity, and reports whether t is one.
func (b *builder) parity(c terms) bool {
	p, ok := unsigned.NewParity(c.weights, c.vectors)
	if !ok {
		return false
	}
	b.scale(scaled.FromFloat(c.weights[p.Plain]).Mul(scaled.FromFloat(2)))
	b.unary(c, c.modes(), p.Plain)
	b.parityChain(c.scope, p.Flips, p.Odd)
	return true
}

// above reports whether the numbers of a term are at least 0.
func (c terms) above(t int) bool {
	below := func(x float64) bool { return x < 0 }
	return c.weights[t] >= 0 && !slices.ContainsFunc(c.vectors, func(v [][]float64) bool { return slices.ContainsFunc(v[t], below) })
}

// parityChain says that an odd (or even) number of variables has a value that flips. Auxiliary variables are the parities so far.
func (b *builder) parityChain(scope []int, flips [][]bool, odd bool) {
	if len(scope) == 0 {
		if odd {
			b.clause([]Literal{})
		}
		return
	}
	for len(scope) > 3 && b.err == nil {
		p := b.auxiliary(2, true)
		b.evenParity([]int{scope[0], scope[1], p}, [][]bool{flips[0], flips[1], {false, true}}, false)
		scope = append([]int{p}, scope[2:]...)
		flips = append([][]bool{{false, true}}, flips[2:]...)
	}
	b.evenParity(scope, flips, odd)
}

// evenParity is the table of a parity.
func (b *builder) evenParity(scope []int, flips [][]bool, odd bool) {
	data := []float64{1, 0}
	if odd {
		data = []float64{0, 1}
	}
	var dims []int
	list := []int{0} // the parity of every cell
	for _, f := range flips {
		dims = append(dims, len(f))
		next := make([]int, 0, len(list)*len(f))
		for _, p := range list {
			for _, flip := range f {
				if flip {
					next = append(next, 1-p)
				} else {
					next = append(next, p)
				}
			}
		}
		list = next
	}
	values := make([]float64, len(list))
	for i, p := range list {
		values[i] = data[p]
	}
	b.table(scope, dims, values)
}

// falsified adds a tensor that is w Π_k a_k[x_k] [some x_k ∉ S_k], and reports whether t is one:
// two terms with opposite weights, the vectors of one being the other's with some entries set to 0.
// It is a clause.
func (b *builder) falsified(c terms) bool {
	if len(c.weights) != 2 || c.weights[0] != -c.weights[1] {
		return false
	}
	all := 0
	if c.weights[0] < 0 {
		all = 1
	}
	if !c.above(all) {
		return false
	}
	for _, v := range c.vectors {
		for x, o := range v[1-all] {
			if o != 0 && o != v[all][x] {
				return false
			}
		}
	}
	b.scale(scaled.FromFloat(c.weights[all]))
	b.unary(c, c.modes(), all)
	clause := []Literal{}
	for k, v := range c.vectors {
		clause = append(clause, b.outside(c.scope[k], v[1-all])...)
	}
	b.clause(clause)
	return true
}

// outside returns literals whose disjunction excludes the values with in ≠ 0.
func (b *builder) outside(v int, in []float64) (c []Literal) {
	n, only := 0, 0
	for x, w := range in {
		if w != 0 {
			n, only = n+1, x
		}
	}
	if n == 1 && len(in) > 1 {
		return []Literal{b.not(v, only)}
	}
	for x, w := range in {
		if w == 0 {
			c = append(c, b.is(v, x))
		}
	}
	return c
}
