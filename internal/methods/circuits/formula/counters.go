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

// counter is a symmetric tensor as an automaton that counts the levels of its legs, leg by leg. A count vector states how many of the legs
// so far have each level above 0; it is written as its index in the box of counts. Count vectors from which the remaining legs lead to the
// same values are one class. Layer k is before leg k; the last layer is after all legs.
type counter struct {
	dims        []int
	levels      countspace.Levels
	strides     []int
	values      []scaled.Vector // by term
	classes     []int           // by layer: the number of classes of count vectors
	transitions [][][]int       // by leg, class before it and level: the class after it; −1 for a dead end
	finalCounts []int           // by class after the last leg: a count vector of it
	startClass  int             // the class before the first leg; −1 if the tensor is 0
}

// addSymmetric adds a symmetric tensor Σ_i α_i S^(i) ∘ R^(i). The vectors of legs become tables. The class of the count after a leg becomes
// an auxiliary variable, one for each leg at most. If there are several terms, the number of the term is one more auxiliary variable. A
// small tensor, or one with numbers below 0 that an assignment can reach, is written out as a table.
func (b *builder) addSymmetric(f factor, dims []int, levels countspace.Levels, list []tensor.SymmetryRankOne) {
	list = slices.DeleteFunc(slices.Clone(list), func(t tensor.SymmetryRankOne) bool { return t.Alpha == 0 })
	if len(list) == 0 {
		b.addClause([]Literal{})
		return
	}
	c := &counter{dims: dims, levels: levels}
	for _, t := range list {
		c.values = append(c.values, t.S)
	}
	isSigned := tensor.Signed(&tensor.SymmetryCP{Terms: list})
	switch {
	case b.addIfSmall(f):
		return
	case isSigned && c.needsNegatives(b, list):
		b.addWrittenOut(f)
		return
	case !b.findClasses(c):
		return
	}
	if c.startClass < 0 {
		b.addClause([]Literal{})
		return
	}

	term := -1 // the variable of the term; −1 if there is one term
	if len(list) > 1 {
		term = b.addAuxiliary(len(list), false)
	}
	last := b.addCounters(f.scope, c)
	b.addCountValues(c, last, term, list)
	b.addLegVectors(f.scope, c, term, list)
}

// needsNegatives reports whether a number below 0 matters: a vector of a leg has one, or the value of a count vector that legs can have is
// one. It also returns true if there is no memory to find out.
func (c *counter) needsNegatives(b *builder, list []tensor.SymmetryRankOne) bool {
	if slices.ContainsFunc(list, func(t tensor.SymmetryRankOne) bool {
		return tensor.Signed(&tensor.SymmetryCP{Terms: []tensor.SymmetryRankOne{{Alpha: t.Alpha, R: t.R}}})
	}) {
		return true
	}
	layers, ok := b.reachableCounts(c)
	return !ok || slices.ContainsFunc(layers[len(c.dims)], func(counts int) bool {
		return slices.ContainsFunc(c.values, func(s scaled.Vector) bool { return s.At(counts).Sign() < 0 })
	})
}

// reachableCounts sets the strides of the counter, and returns for each layer the count vectors that the legs before it can have, in
// increasing order. ok is false if they take more memory than is left, or the context has ended.
func (b *builder) reachableCounts(c *counter) (layers [][]int, ok bool) {
	c.strides = []int{0}
	shape, step := c.levels.Shape(), 1
	for a := len(shape) - 1; a >= 0; a-- {
		c.strides = slices.Insert(c.strides, 1, step)
		step *= shape[a]
	}
	bytes := int64(0)
	layers = [][]int{{0}}
	for k, of := range c.levels.Of {
		var next []int
		for _, a := range distinctLevels(of) {
			for _, counts := range layers[k] {
				next = append(next, counts+c.strides[a])
			}
		}
		slices.Sort(next)
		next = slices.Compact(next)
		layers = append(layers, next)
		if bytes += int64(len(next)) * 8 * int64(2+c.levels.D); b.over(len(next)*c.levels.D) || bytes > b.bytesLeft {
			b.fail(fault.New(fault.OverBudget, "formula: %s: its counters take more memory than the budget", b.factorName))
			return nil, false
		}
	}
	return layers, b.err == nil
}

// distinctLevels returns the levels that the values of a leg have, each once and in increasing order.
func distinctLevels(of []uint8) []uint8 {
	list := slices.Clone(of)
	slices.Sort(list)
	return slices.Compact(list)
}

// findClasses finds the classes of count vectors, from the last layer to the first. In the last layer the vectors with equal values are one
// class, and those with the value 0 are dead ends (−1). In a layer before, the vectors from which each level leads into the same class are
// one class. Exactly k of n legs has at most k + 2 classes, and parity has two. It returns false if there is an error.
func (b *builder) findClasses(c *counter) (ok bool) {
	layers, ok := b.reachableCounts(c)
	if !ok {
		return false
	}
	n := len(c.dims)
	c.classes, c.transitions = make([]int, n+1), make([][][]int, n)
	classAfter := c.classesOfValues(layers[n])
	c.classes[n] = len(c.finalCounts)

	classByKey := map[string]int{}
	for k := n - 1; k >= 0; k-- {
		classHere := make(map[int]int, len(layers[k])) // by count vector
		clear(classByKey)
		levels := distinctLevels(c.levels.Of[k])
		for _, counts := range layers[k] {
			next := slices.Repeat([]int{-1}, c.levels.D) // by level: the class after leg k
			isDead := true
			for _, a := range levels {
				next[a] = classAfter[counts+c.strides[a]]
				isDead = isDead && next[a] < 0
			}
			key := []byte{}
			for _, class := range next {
				key = appendInt(key, int64(class))
			}
			class, isKnown := classByKey[string(key)]
			if isDead {
				class = -1
			} else if !isKnown {
				class = len(classByKey)
				classByKey[string(key)] = class
				c.transitions[k] = append(c.transitions[k], next)
			}
			classHere[counts] = class
		}
		c.classes[k] = len(c.transitions[k])
		if classAfter = classHere; b.over(16 * len(classHere) * len(levels)) {
			return false
		}
	}
	c.startClass = classAfter[0]
	return true
}

// classesOfValues returns the class of each count vector of the last layer, by the values that the terms have there, and −1 if all are 0.
// It appends a count vector of each class to finalCounts.
func (c *counter) classesOfValues(layer []int) map[int]int {
	classOf := map[int]int{} // by count vector
	classByKey := map[string]int{}
	for _, counts := range layer {
		key, isZero := []byte{}, true
		for _, s := range c.values {
			x := s.At(counts)
			key, isZero = appendNumber(key, x), isZero && x.IsZero()
		}
		class, isKnown := classByKey[string(key)]
		if isZero {
			class = -1
		} else if !isKnown {
			class = len(classByKey)
			classByKey[string(key)] = class
			c.finalCounts = append(c.finalCounts, counts)
		}
		classOf[counts] = class
	}
	return classOf
}

// addCounters adds an auxiliary variable for the class after each leg, if there are several classes there. For each class before a leg and
// each value of the leg a clause states the class after it, or excludes the value if that is a dead end. It returns the variable after the
// last leg, −1 if there is one class.
func (b *builder) addCounters(scope []int, c *counter) (last int) {
	last = -1
	for k, transitions := range c.transitions {
		next := -1
		if c.classes[k+1] > 1 {
			next = b.addAuxiliary(c.classes[k+1], true)
		}
		for from, to := range transitions {
			for x, a := range c.levels.Of[k] {
				if to[a] >= 0 && next < 0 {
					continue // the only class follows
				}
				clause := make([]Literal, 0, 3)
				if last >= 0 {
					clause = append(clause, b.not(last, from))
				}
				if len(c.levels.Of[k]) > 1 {
					clause = append(clause, b.not(scope[k], x))
				}
				if to[a] >= 0 {
					clause = append(clause, b.is(next, to[a]))
				}
				b.addClause(clause)
			}
			if b.over(len(c.levels.Of[k])) {
				return -1
			}
		}
		last = next
	}
	return last
}

// addCountValues adds the table of α_i S^(i) over the class after the last leg and the term i. last and term are the variables of the two,
// −1 if there is only one class or term.
func (b *builder) addCountValues(c *counter, last, term int, list []tensor.SymmetryRankOne) {
	var scope, dims []int
	if last >= 0 {
		scope, dims = append(scope, last), append(dims, len(c.finalCounts))
	}
	if term >= 0 {
		scope, dims = append(scope, term), append(dims, len(list))
	}
	var values []scaled.Number
	for _, counts := range c.finalCounts {
		for i, t := range list {
			values = append(values, scaled.FromFloat(t.Alpha).Mul(c.values[i].At(counts)))
		}
	}
	if len(scope) == 0 {
		b.multiplyScale(values[0])
		return
	}
	b.addNumbers(scope, dims, values)
}

// addLegVectors adds the vector of each leg, as a table over the leg and the term. term is the variable of the term, −1 if there is one
// term.
func (b *builder) addLegVectors(scope []int, c *counter, term int, list []tensor.SymmetryRankOne) {
	for k, v := range scope {
		var data []float64
		for _, t := range list {
			if t.R == nil || t.R[k] == nil {
				data = append(data, slices.Repeat([]float64{1}, c.dims[k])...)
			} else {
				data = append(data, t.R[k]...)
			}
		}
		if term >= 0 {
			b.addTable([]int{term, v}, []int{len(list), c.dims[k]}, data)
		} else {
			b.addTable([]int{v}, []int{c.dims[k]}, data)
		}
	}
}

// appendNumber appends the bytes of x to a key. They are different for any two different numbers.
func appendNumber(key []byte, x scaled.Number) []byte {
	return appendInt(appendInt(key, int64(math.Float64bits(x.Mant))), x.Exp)
}

// appendInt appends the 8 bytes of x to a key.
func appendInt(key []byte, x int64) []byte { return binary.LittleEndian.AppendUint64(key, uint64(x)) }
