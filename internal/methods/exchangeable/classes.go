package exchangeable

// Classes of interchangeable variables: swapping two of a class, with their values relabelled, changes no interaction.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
)

const (
	// maxClasses bounds the classes.
	maxClasses = 64
	// equalTolerance is the difference of two interactions, relative to 1 + |u|, up to which they are equal. What they differ by is added
	// up later.
	equalTolerance = 1e-12
	// maxCompared bounds the interactions from which matchValues chooses a relabelling.
	maxCompared = 32
)

// partition is a division of the variables into classes.
type partition struct {
	count         int       // of classes
	classOf       []int32   // by variable; −1: a leaf
	relabellingOf []int32   // by variable: the index of its relabelling in relabellings
	relabellings  [][]uint8 // relabellings[k][x] is the class's value for value x of a variable; the first one is nil, for no change
}

// sizes returns the number of variables of every class.
func (p *partition) sizes() []int {
	n := make([]int, p.count)
	for _, c := range p.classOf {
		if c >= 0 {
			n[c]++
		}
	}
	return n
}

// canonical returns the class's value for value x of variable v.
func (p *partition) canonical(v int32, x int) int {
	if relabelling := p.relabellings[p.relabellingOf[v]]; relabelling != nil {
		return int(relabelling[x])
	}
	return x
}

// withIndividuals returns the partition in which some variables are classes of their own. Classes that become empty are left out.
func (p *partition) withIndividuals(variables []int32) *partition {
	if len(variables) == 0 {
		return p
	}
	refined := &partition{classOf: slices.Clone(p.classOf), relabellingOf: p.relabellingOf, relabellings: p.relabellings}
	for k, v := range variables {
		refined.classOf[v] = int32(p.count + k)
	}

	// Number the classes anew, in the sequence of their first variables.
	newNumber := slices.Repeat([]int32{-1}, p.count+len(variables))
	for v, c := range refined.classOf {
		if c < 0 {
			continue
		}
		if newNumber[c] < 0 {
			newNumber[c] = int32(refined.count)
			refined.count++
		}
		refined.classOf[v] = newNumber[c]
	}
	return refined
}

// divideIntoClasses divides the variables that are no leaves into classes: a variable belongs to a class if it can be swapped with the
// class's first variable, the representative. It returns nil if there are more than maxClasses classes, or more than half as many as
// variables. Cost O(classes · Σ entries).
func divideIntoClasses(ctx context.Context, interactions *interactions) (*partition, error) {
	n := len(interactions.domains)
	p := &partition{classOf: slices.Repeat([]int32{-1}, n), relabellingOf: make([]int32, n), relabellings: [][]uint8{nil}}
	swaps := swapper{interactions: interactions, pace: pace.New(ctx)}
	var representatives []int32
	for v := range int32(n) {
		if interactions.leafOf[v] != nil {
			continue
		}
		class := slices.IndexFunc(representatives, func(representative int32) bool {
			relabelling, ok := swaps.findSwap(representative, v)
			if ok {
				p.relabellingOf[v] = p.internRelabelling(relabelling)
			}
			return ok
		})
		if swaps.pace.Over(1) || swaps.ended {
			return nil, ctx.Err()
		}
		if class < 0 { // a new class
			class = len(representatives)
			if class == maxClasses {
				return nil, nil
			}
			representatives = append(representatives, v)
		}
		p.classOf[v] = int32(class)
	}
	p.count = len(representatives)
	if p.count == 0 || 2*p.count > interactions.memberCount() {
		return nil, nil
	}
	return p, nil
}

// internRelabelling returns the index in p.relabellings of a variable's relabelling, and adds it if it is new. toValue[a] is the variable's
// value that is value a of the class. The relabelling is the inverse: the class's value by the variable's value.
func (p *partition) internRelabelling(toValue []int) int32 {
	isIdentity := true
	for a, x := range toValue {
		isIdentity = isIdentity && x == a
	}
	if isIdentity {
		return 0 // relabellings[0] is nil, which stands for the identity
	}
	relabelling := make([]uint8, len(toValue))
	for a, x := range toValue {
		relabelling[x] = uint8(a)
	}
	index := slices.IndexFunc(p.relabellings, func(present []uint8) bool { return slices.Equal(present, relabelling) })
	if index < 0 {
		index = len(p.relabellings)
		p.relabellings = append(p.relabellings, relabelling)
	}
	return int32(index)
}

// swapper compares variables with each other.
type swapper struct {
	*interactions
	pace  *pace.Pace
	ended bool // the context ended
}

// findSwap looks for a relabelling of values with which variables r and i can be swapped without changing an interaction. It returns, for
// each value of r, the value of i that takes its place. ok is false if it finds none.
func (s *swapper) findSwap(r, i int32) (toValue []int, ok bool) {
	values := s.domains[r]
	if s.domains[i] != values || len(s.touching[i]) != len(s.touching[r]) {
		return nil, false
	}

	// First the identity, then the relabelling by which their interactions are nearest to each other.
	toValue = make([]int, values)
	for a := range toValue {
		toValue[a] = a
	}
	isIdentity := true
	if s.keepsInteractions(r, i, toValue, isIdentity) {
		return toValue, true
	}
	if !s.matchValues(r, i, toValue) { // it sets toValue
		return nil, false
	}
	isIdentity = false
	return toValue, s.keepsInteractions(r, i, toValue, isIdentity)
}

// keepsInteractions reports whether swapping variables r and i leaves every interaction as it is. Value a of r becomes value toValue[a] of
// i. With isIdentity toValue changes no value. Then interactions of one function, which have equal numbers, need not be compared entry by
// entry if r and i are at the same position in their scopes. It returns false if the context ends.
func (s *swapper) keepsInteractions(r, i int32, toValue []int, isIdentity bool) bool {
	fromValue := make([]int, len(toValue))
	for a, x := range toValue {
		fromValue[x] = a
	}

	for _, term := range s.touching[r] {
		// Swapping turns interaction a into b, which is over i instead of r.
		a := &s.terms[term]
		swappedTerm := term
		touchesBoth := slices.Contains(a.scope.variables(), i)
		if !touchesBoth {
			var ok bool
			if swappedTerm, ok = s.termAfterSwap(a.scope, r, i); !ok {
				return false
			}
		}
		b := &s.terms[swappedTerm]
		if s.pace.Over(1) {
			s.ended = true
			return false
		}
		isSameFunction := a.function == b.function && position(a.scope, r) == position(b.scope, i)
		if isIdentity && !touchesBoth && isSameFunction {
			continue
		}
		if s.pace.Over(int64(len(a.ln))) {
			s.ended = true
			return false
		}
		if !s.areEqual(a, b, r, i, toValue, fromValue, touchesBoth) {
			return false
		}
	}
	return true
}

// termAfterSwap returns the index of the interaction whose scope has i in the place of r. ok is false if there is none.
func (s *swapper) termAfterSwap(swapped scope, r, i int32) (int32, bool) {
	k := swapped.order()
	swapped[position(swapped, r)] = i
	slices.Sort(swapped[:k])
	term, ok := s.termOf[swapped]
	return term, ok
}

// position returns the axis of variable v in a scope.
func position(s scope, v int32) int { return slices.Index(s[:], v) }

// areEqual reports whether interaction a equals interaction b after variables r and i are swapped, with value x of r as toValue[x] of i.
// fromValue is the inverse of toValue. There are two cases. If touchesBoth, a has both variables, and b is a itself. Otherwise a has r and
// not i, and b has i in its place.
func (s *swapper) areEqual(a, b *interaction, r, i int32, toValue, fromValue []int, touchesBoth bool) bool {
	list := a.scope.variables()
	dims := s.dims(a.scope)
	strides := strides(s.dims(b.scope))
	digits := make([]int, len(list))
	for _, x := range a.ln {
		entry := 0 // of b, for the swapped values
		for axis, v := range list {
			switch {
			case v == r:
				entry += toValue[digits[axis]] * strides[position(b.scope, i)]
			case v == i && touchesBoth:
				entry += fromValue[digits[axis]] * strides[position(b.scope, r)]
			default:
				entry += digits[axis] * strides[position(b.scope, v)]
			}
		}
		if !areNear(x, b.ln[entry]) {
			return false
		}
		advance(digits, dims)
	}
	return true
}

// areNear reports whether two logarithms are equal up to rounding.
func areNear(x, y logarithm) bool {
	if x.isImpossible() || y.isImpossible() {
		return x.isImpossible() == y.isImpossible()
	}
	return math.Abs(x.minus(y).float()) <= equalTolerance*(1+math.Abs(x.High))
}

// dims returns the domains of the variables of a scope.
func (f *factors) dims(s scope) []int {
	dims := make([]int, 0, maxOrder)
	for _, v := range s.variables() {
		dims = append(dims, f.domains[v])
	}
	return dims
}

// addDistances adds to distances[x*d+y], for all values x of r and y of i, the squared differences between the entries of a with r at x and
// those of b with i at y, at all values of the other variables. b has the variables of a, with i in place of r.
func (s *swapper) addDistances(a *interaction, r int32, b *interaction, i int32, distances []float64) {
	d := s.domains[r]
	dims := s.dims(a.scope)
	strides, otherStrides := strides(dims), strides(s.dims(b.scope))
	axis, axisOfOther := position(a.scope, r), position(b.scope, i)
	dims[axis] = 1                   // r stays at value 0 below
	digits := make([]int, len(dims)) // values of the variables of a, with r at 0
	for range len(a.ln) / d {
		first, otherFirst := 0, 0 // entries of a and b with r and i at value 0
		for k, v := range a.scope.variables() {
			if v != r {
				first += digits[k] * strides[k]
				otherFirst += digits[k] * otherStrides[position(b.scope, v)]
			}
		}
		for x := range d {
			for y := range d {
				distances[x*d+y] += distance(a.ln[first+x*strides[axis]], b.ln[otherFirst+y*otherStrides[axisOfOther]])
			}
		}
		advance(digits, dims)
	}
}

// matchValues sets toValue[x], for each value x of variable r, to the value of variable i whose interactions with other variables are
// nearest to those of x. Each value of i is used once. It compares up to maxCompared interactions that have r and not i with those that
// have i in the place of r. It returns false if there is none to compare, if i has no such interaction for one of r, or if the context
// ended.
func (s *swapper) matchValues(r, i int32, toValue []int) bool {
	d := len(toValue)

	// distances[x*d+y] is the sum of the squared differences between value x of r and value y of i.
	distances := make([]float64, d*d)
	isCompared := map[int32]bool{} // by number of the function, which many interactions share
	compared := 0
	for _, term := range s.touching[r] {
		a := &s.terms[term]
		if isCompared[a.function] || compared == maxCompared || slices.Contains(a.scope.variables(), i) {
			continue
		}
		swappedTerm, ok := s.termAfterSwap(a.scope, r, i)
		if !ok {
			return false
		}
		isCompared[a.function] = true
		compared++
		if s.pace.Over(int64(len(a.ln) * d)) {
			s.ended = true
			return false
		}

		s.addDistances(a, r, &s.terms[swappedTerm], i, distances)
	}

	takeNearest(distances, toValue)
	return compared > 0
}

// takeNearest sets toValue[x], value by value, to the value y that is nearest to x by distances[x*d+y], for d values, among those that are
// not taken yet.
func takeNearest(distances []float64, toValue []int) {
	d := len(toValue)
	isTaken := make([]bool, d)
	for x := range d {
		nearest := -1
		for y := range d {
			if !isTaken[y] && (nearest < 0 || distances[x*d+y] < distances[x*d+nearest]) {
				nearest = y
			}
		}
		isTaken[nearest] = true
		toValue[x] = nearest
	}
}

// distance returns the square of the difference of two logarithms. It is large if only one of them is that of 0.
func distance(x, y logarithm) float64 {
	const large = 1e12
	switch {
	case x.isImpossible() && y.isImpossible():
		return 0
	case x.isImpossible() || y.isImpossible():
		return large
	}
	e := x.minus(y).float()
	return e * e
}
