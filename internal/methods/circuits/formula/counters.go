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

// addSymmetric adds a symmetric tensor Σ_i α_i S^(i) ∘ R^(i). Its legs are its indices; a level is a set of values of a leg that count the
// same. S^(i) depends only on the counts: how many legs have each level. R^(i) is a vector for each leg.
//
// The vectors become tables. Count vectors that make no difference to the result form a class; after each leg, the class of the counts so
// far becomes an auxiliary variable, unless there is only one class. If there are several terms i, the number of the term is one more
// auxiliary variable. A small tensor, or one with numbers below 0 that an assignment can reach, is written out as a table. Errors are kept
// in b.
func (b *builder) addSymmetric(f factor, dims []int, levels countspace.Levels, terms []tensor.SymmetryRankOne) {
	terms = slices.DeleteFunc(slices.Clone(terms), func(t tensor.SymmetryRankOne) bool { return t.Alpha == 0 })
	if len(terms) == 0 { // the tensor is 0: the empty clause never holds
		b.addClause([]Literal{})
		return
	}

	c := &counter{dims: dims, levels: levels}
	for _, t := range terms {
		c.values = append(c.values, t.S)
	}
	isSigned := tensor.Signed(&tensor.SymmetryCP{Terms: terms})
	switch {
	case b.addIfSmall(f):
		return
	case isSigned && c.needsNegatives(b, terms):
		b.addWrittenOut(f)
		return
	case !b.findClasses(c): // an error
		return
	}
	if c.startClass < 0 { // the tensor is 0
		b.addClause([]Literal{})
		return
	}

	// The variables of the term and of the counts, and the tables over them.
	termVariable := -1 // −1: there is one term
	if len(terms) > 1 {
		const isFunctional = false
		termVariable = b.addAuxiliary(len(terms), isFunctional)
	}
	lastCounter := b.addCounters(f.scope, c)
	b.addCountValues(c, lastCounter, termVariable, terms)
	b.addLegVectors(f.scope, c, termVariable, terms)
}

// needsNegatives reports whether a number below 0 matters: a vector of a leg has one, the Alpha of a term is below 0, or a term has a value
// below 0 at a count vector that the legs can have. It also returns true if there is no memory to find out.
func (c *counter) needsNegatives(b *builder, terms []tensor.SymmetryRankOne) bool {
	if slices.ContainsFunc(terms, func(t tensor.SymmetryRankOne) bool {
		return tensor.Signed(&tensor.SymmetryCP{Terms: []tensor.SymmetryRankOne{{Alpha: t.Alpha, R: t.R}}})
	}) {
		return true
	}
	layers, ok := b.reachableCounts(c) // the count vectors after each number of legs: the last layer has those of all legs
	return !ok || slices.ContainsFunc(layers[len(c.dims)], func(counts int) bool {
		return slices.ContainsFunc(c.values, func(s scaled.Vector) bool { return s.At(counts).Sign() < 0 })
	})
}

// reachableCounts sets c.strides, and returns for each layer k the count vectors that the first k legs can have, in increasing order. A
// count vector states how many legs have each level above 0. It is written as one number, to which one more leg of level a adds
// c.strides[a]. ok is false if they take more memory than is left, or the context has ended.
func (b *builder) reachableCounts(c *counter) (layers [][]int, ok bool) {
	c.strides = []int{0} // level 0 is not counted
	shape, stride := c.levels.Shape(), 1
	for a := len(shape) - 1; a >= 0; a-- {
		c.strides = slices.Insert(c.strides, 1, stride) // of level a + 1: the last level is the fastest
		stride *= shape[a]
	}

	bytes := int64(0)
	layers = [][]int{{0}}
	for k, levelOf := range c.levels.Of { // by value of leg k: its level
		var next []int
		for _, a := range distinctLevels(levelOf) {
			for _, counts := range layers[k] {
				next = append(next, counts+c.strides[a])
			}
		}
		slices.Sort(next)
		next = slices.Compact(next)
		layers = append(layers, next)
		// 8 bytes for each vector, its class, and its class after each level of the next leg.
		if bytes += int64(len(next)) * 8 * int64(2+c.levels.D); b.isOver(len(next)*c.levels.D) || bytes > b.bytesLeft {
			b.fail(fault.New(fault.OverBudget, "formula: %s: its counters take more memory than the budget", b.factorName))
			return nil, false
		}
	}
	return layers, b.err == nil
}

// distinctLevels returns the levels that occur in levelOf, which has the level of each value of a leg: each once, in increasing order.
func distinctLevels(levelOf []uint8) []uint8 {
	levels := slices.Clone(levelOf)
	slices.Sort(levels)
	return slices.Compact(levels)
}

// findClasses finds the classes of count vectors and the transitions between them, from the last layer to the first. Layer k has the count
// vectors of the first k legs: how many of these legs have each level. c.transitions[k][class][a] is the class after leg k of level a.
//
// In the last layer the vectors at which the tensor has equal values are one class. Those with the value 0 are dead ends, whose class is
// −1. The other layers: classesBefore. "Exactly k of n legs" has at most k + 2 classes, and parity has two. findClasses returns false if
// there is an error.
func (b *builder) findClasses(c *counter) (ok bool) {
	layers, ok := b.reachableCounts(c)
	if !ok {
		return false
	}
	n := len(c.dims)
	c.classes, c.transitions = make([]int, n+1), make([][][]int, n)
	classAfter := c.classesOfValues(layers[n])
	c.classes[n] = len(c.finalCounts)

	for k := n - 1; k >= 0; k-- {
		levels := distinctLevels(c.levels.Of[k])
		classAfter = c.classesBefore(k, levels, layers[k], classAfter)
		if b.isOver(16 * len(layers[k]) * len(levels)) { // an estimate: 16 steps for each class looked up
			return false
		}
	}
	c.startClass = classAfter[0] // of the count vector 0, the only one before the first leg
	return true
}

// classesBefore returns the class of each count vector of layer k, which is before leg k. Two vectors are in one class if, for each level
// of the leg, both lead to the same class after it. A vector that leads to dead ends only is a dead end, too (class −1). classAfter has the
// classes of the next layer, levels the levels that the leg can have. It sets c.transitions[k] and c.classes[k].
func (c *counter) classesBefore(k int, levels []uint8, layer []int, classAfter map[int]int) map[int]int {
	classOf := make(map[int]int, len(layer)) // by count vector
	classByKey := map[string]int{}           // by the bytes of the classes that the levels lead to
	for _, counts := range layer {
		next := slices.Repeat([]int{-1}, c.levels.D) // by level of leg k: the class after it
		isDead := true
		for _, a := range levels {
			next[a] = classAfter[counts+c.strides[a]] // one more leg of level a
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
		classOf[counts] = class
	}
	c.classes[k] = len(c.transitions[k])
	return classOf
}

// classesOfValues returns the class of each count vector of the last layer, whose vectors count all legs. Two vectors are in one class if
// each of c.values, the S of the terms, has equal values at them. A vector at which all values are 0 has class −1. One count vector of
// each class is appended to c.finalCounts, in the order of the classes.
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

// addCounters adds, after each leg, an auxiliary variable for the class of the counts there, unless there is only one class. For each class
// before a leg and each value of the leg a clause states the class after it,
//
//	class before ≠ from  or  leg ≠ x  or  class after = to,
//
// without the last literal if to is a dead end: then the clause excludes the combination. Literals about a variable that does not exist are
// left out: a class variable where there is only one class, and a leg of one value. It returns the variable after the last leg, or −1 if
// there is only one class after it, or after an error.
func (b *builder) addCounters(scope []int, c *counter) (lastCounter int) {
	const isFunctional = true // the variables of the legs determine the counts
	classBefore := -1         // the variable of the class before leg k; −1 if there is only one class
	for k, transitions := range c.transitions {
		classAfter := -1 // the variable of the class after it
		if c.classes[k+1] > 1 {
			classAfter = b.addAuxiliary(c.classes[k+1], isFunctional)
		}
		for from, to := range transitions { // to[a] is the class after the leg if it has level a
			for x, a := range c.levels.Of[k] { // value x of leg k has level a
				if isDead := to[a] < 0; !isDead && classAfter < 0 {
					continue // there is only one class after the leg
				}
				clause := make([]Literal, 0, 3)
				if classBefore >= 0 {
					clause = append(clause, b.isNot(classBefore, from))
				}
				if len(c.levels.Of[k]) > 1 { // the leg has several values
					clause = append(clause, b.isNot(scope[k], x))
				}
				if to[a] >= 0 {
					clause = append(clause, b.is(classAfter, to[a]))
				}
				b.addClause(clause)
			}
			if b.isOver(len(c.levels.Of[k])) {
				return -1
			}
		}
		classBefore = classAfter
	}
	return classBefore
}

// addCountValues adds the factors α_i S^(i) of a symmetric tensor Σ_i α_i S^(i) ∘ R^(i), where S^(i) depends only on how many legs have
// each level (the count vector). Count vectors with the same values form a class; c.finalCounts has one vector of each class after the last
// leg. The values become a table over the class and the number i of the term. lastCounter is the variable of the class, or −1 if there is
// only one class. termVariable is the variable of the number i, or −1 if there is only one term.
func (b *builder) addCountValues(c *counter, lastCounter, termVariable int, terms []tensor.SymmetryRankOne) {
	var scope, dims []int
	if lastCounter >= 0 {
		scope, dims = append(scope, lastCounter), append(dims, len(c.finalCounts))
	}
	if termVariable >= 0 {
		scope, dims = append(scope, termVariable), append(dims, len(terms))
	}
	var values []scaled.Number
	for _, counts := range c.finalCounts {
		for i, t := range terms {
			values = append(values, scaled.FromFloat(t.Alpha).Mul(c.values[i].At(counts)))
		}
	}
	if len(scope) == 0 { // one class and one term: a single number
		b.multiplyScale(values[0])
		return
	}
	b.addNumbers(scope, dims, values)
}

// addLegVectors adds the vectors R of each leg of a symmetric tensor Σ_i α_i S^(i) ∘ R^(i) as a table over the number i of the term and the
// leg. termVariable is the variable of that number, −1 if there is only one term.
func (b *builder) addLegVectors(scope []int, c *counter, termVariable int, terms []tensor.SymmetryRankOne) {
	for k, v := range scope {
		var data []float64
		for _, t := range terms {
			if t.R == nil || t.R[k] == nil { // the vector is all 1
				data = append(data, slices.Repeat([]float64{1}, c.dims[k])...)
			} else {
				data = append(data, t.R[k]...)
			}
		}
		if termVariable >= 0 {
			b.addTable([]int{termVariable, v}, []int{len(terms), c.dims[k]}, data)
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
