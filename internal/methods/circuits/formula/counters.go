package formula

// Symmetric tensors as chains of counters.

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// counter is a symmetric tensor's count vectors, leg by leg. A count vector is its index in the box of counts.
type counter struct {
	dims    []int
	levels  countspace.Levels
	strides []int
	values  []scaled.Vector // by term
	states  []int           // by layer: classes of count vectors
	steps   [][][]int       // by leg, class before it and level: the class after it; −1 for a dead end
	finals  []int           // by class after the last leg: a count vector of it
	start   int             // the class before the first leg; −1 where all is 0
}

// symmetric adds Σ_i α_i S^(i) ∘ R^(i), none of whose numbers may be below 0 where an assignment reaches them. Vectors of legs are tables;
// counts are auxiliary variables, one after every leg but the last, and the term is one more where there are several.
func (b *builder) symmetric(f factor, dims []int, levels countspace.Levels, list []tensor.SymmetryRankOne) {
	list = slices.DeleteFunc(slices.Clone(list), func(t tensor.SymmetryRankOne) bool { return t.Alpha == 0 })
	if len(list) == 0 {
		b.clause([]Literal{})
		return
	}
	c := &counter{dims: dims, levels: levels}
	for _, t := range list {
		c.values = append(c.values, t.S)
	}
	signed := tensor.Signed(&tensor.SymmetryCP{Terms: list})
	switch {
	case b.small(f):
		return
	case signed && c.refused(b, list):
		b.written(f)
		return
	case !b.count(c):
		return
	}
	if c.start < 0 {
		b.clause([]Literal{})
		return
	}

	h := -1
	if len(list) > 1 {
		h = b.auxiliary(len(list), false)
	}
	last := b.countChain(f.scope, c)
	b.countValues(f.scope, c, last, h, list)
	b.countVectors(f.scope, c, h, list)
}

// refused reports whether a number below 0 matters: one of a count that nothing has does not.
func (c *counter) refused(b *builder, list []tensor.SymmetryRankOne) bool {
	if slices.ContainsFunc(list, func(t tensor.SymmetryRankOne) bool {
		return tensor.Signed(&tensor.SymmetryCP{Terms: []tensor.SymmetryRankOne{{Alpha: t.Alpha, R: t.R}}})
	}) {
		return true
	}
	layers, ok := b.reach(c)
	return !ok || slices.ContainsFunc(layers[len(c.dims)], func(at int) bool {
		return slices.ContainsFunc(c.values, func(s scaled.Vector) bool { return s.At(at).Sign() < 0 })
	})
}

// reach lists the count vectors that the legs before every layer can have, in increasing order.
func (b *builder) reach(c *counter) ([][]int, bool) {
	c.strides = []int{0}
	shape, step := c.levels.Shape(), 1
	for a := len(shape) - 1; a >= 0; a-- {
		c.strides = slices.Insert(c.strides, 1, step)
		step *= shape[a]
	}
	layers, total := [][]int{{0}}, int64(0)
	for k, of := range c.levels.Of {
		var next []int
		for _, a := range distinct(of) {
			for _, at := range layers[k] {
				next = append(next, at+c.strides[a])
			}
		}
		slices.Sort(next)
		next = slices.Compact(next)
		layers = append(layers, next)
		if total += int64(len(next)) * 8 * int64(2+c.levels.D); b.over(len(next)*c.levels.D) || total > b.room {
			b.fail(fault.New(fault.OverBudget, "formula: %s: its counters take more memory than the budget", b.name))
			return nil, false
		}
	}
	return layers, b.err == nil
}

// distinct are the levels that a leg has, in increasing order.
func distinct(of []uint8) []uint8 {
	list := slices.Clone(of)
	slices.Sort(list)
	return slices.Compact(list)
}

// count finds the classes of count vectors, from the last leg to the first: those with equal values are one class, and before that those
// whose legs all lead into the same classes. Exactly k of n has k + 2 at most, parity two.
func (b *builder) count(c *counter) bool {
	layers, ok := b.reach(c)
	if !ok {
		return false
	}
	n := len(c.dims)
	c.states, c.steps = make([]int, n+1), make([][][]int, n)
	after := map[int]int{} // class by count vector
	known := map[string]int{}
	for _, at := range layers[n] {
		key, zero := []byte{}, true
		for _, s := range c.values {
			x := s.At(at)
			key, zero = appendNumber(key, x), zero && x.IsZero()
		}
		class, seen := known[string(key)]
		if zero {
			class = -1
		} else if !seen {
			class = len(known)
			known[string(key)] = class
			c.finals = append(c.finals, at)
		}
		after[at] = class
	}
	c.states[n] = len(c.finals)

	for k := n - 1; k >= 0; k-- {
		here := make(map[int]int, len(layers[k]))
		clear(known)
		of := distinct(c.levels.Of[k])
		for _, at := range layers[k] {
			to := slices.Repeat([]int{-1}, c.levels.D)
			alive := false
			for _, a := range of {
				to[a] = after[at+c.strides[a]]
				alive = alive || to[a] >= 0
			}
			key := []byte{}
			for _, t := range to {
				key = appendInt(key, int64(t))
			}
			class, seen := known[string(key)]
			if !alive {
				class = -1
			} else if !seen {
				class = len(known)
				known[string(key)] = class
				c.steps[k] = append(c.steps[k], to)
			}
			here[at] = class
		}
		c.states[k] = len(c.steps[k])
		if after = here; b.over(16 * len(here) * len(of)) {
			return false
		}
	}
	c.start = after[0]
	return true
}

// countChain adds the counters: a clause for every class and value says which class comes next, or that none does. It returns the
// variable after the last leg, −1 where one class is left.
func (b *builder) countChain(scope []int, c *counter) int {
	last := -1
	for k, steps := range c.steps {
		next := -1
		if c.states[k+1] > 1 {
			next = b.auxiliary(c.states[k+1], true)
		}
		for from, to := range steps {
			for x, a := range c.levels.Of[k] {
				clause := make([]Literal, 0, 3)
				if last >= 0 {
					clause = append(clause, b.not(last, from))
				}
				if len(c.levels.Of[k]) > 1 {
					clause = append(clause, b.not(scope[k], x))
				}
				if to[a] >= 0 && next < 0 {
					continue
				}
				if to[a] >= 0 {
					clause = append(clause, b.is(next, to[a]))
				}
				b.clause(clause)
			}
			if b.over(len(c.levels.Of[k])) {
				return -1
			}
		}
		last = next
	}
	return last
}

// countValues adds the values of the counts.
func (b *builder) countValues(scope []int, c *counter, last, h int, list []tensor.SymmetryRankOne) {
	var over, dims []int
	if last >= 0 {
		over, dims = append(over, last), append(dims, len(c.finals))
	}
	if h >= 0 {
		over, dims = append(over, h), append(dims, len(list))
	}
	var values []scaled.Number
	for _, at := range c.finals {
		for i, t := range list {
			values = append(values, scaled.FromFloat(t.Alpha).Mul(c.values[i].At(at)))
		}
	}
	if len(over) == 0 {
		b.scale(values[0])
		return
	}
	b.numbers(over, dims, values)
}

// countVectors adds the vectors of the legs.
func (b *builder) countVectors(scope []int, c *counter, h int, list []tensor.SymmetryRankOne) {
	for k, v := range scope {
		var data []float64
		for _, t := range list {
			if t.R == nil || t.R[k] == nil {
				data = append(data, slices.Repeat([]float64{1}, c.dims[k])...)
			} else {
				data = append(data, t.R[k]...)
			}
		}
		if h >= 0 {
			b.table([]int{h, v}, []int{len(list), c.dims[k]}, data)
		} else {
			b.table([]int{v}, []int{c.dims[k]}, data)
		}
	}
}

// appendNumber writes a key that distinguishes any two numbers.
func appendNumber(key []byte, x scaled.Number) []byte {
	return appendInt(appendInt(key, int64(math.Float64bits(x.Mant))), x.Exp)
}

func appendInt(key []byte, x int64) []byte { return binary.LittleEndian.AppendUint64(key, uint64(x)) }
