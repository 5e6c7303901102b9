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
	// maxCompared bounds the interactions by which matchValues chooses a relabelling.
	maxCompared = 32
)

// partition is a division of the variables into classes.
type partition struct {
	count int
	class []int32 // by variable; −1: a leaf
	value []int32 // by variable: the place in values of its relabelling
	// values are relabellings: the class's value of each of the variable's. The first one is nil: they are the same.
	values [][]uint8
}

// sizes returns the number of variables of every class.
func (p *partition) sizes() []int {
	n := make([]int, p.count)
	for _, c := range p.class {
		if c >= 0 {
			n[c]++
		}
	}
	return n
}

// canonical returns the class's value of a variable's value.
func (p *partition) canonical(v int32, x int) int {
	if relabelling := p.values[p.value[v]]; relabelling != nil {
		return int(relabelling[x])
	}
	return x
}

// withIndividuals returns the partition in which some variables are classes of their own. Classes that become empty are left out.
func (p *partition) withIndividuals(variables []int32) *partition {
	if len(variables) == 0 {
		return p
	}
	out := &partition{class: slices.Clone(p.class), value: p.value, values: p.values}
	for k, v := range variables {
		out.class[v] = int32(p.count + k)
	}
	newNumber := slices.Repeat([]int32{-1}, p.count+len(variables))
	for v, c := range out.class {
		if c < 0 {
			continue
		}
		if newNumber[c] < 0 {
			newNumber[c] = int32(out.count)
			out.count++
		}
		out.class[v] = newNumber[c]
	}
	return out
}

// divideIntoClasses divides the variables that are no leaves into classes: each is compared with one member of every class. It returns nil
// if there are more than maxClasses classes, or more than half as many as variables. Cost O(classes · Σ entries).
func divideIntoClasses(ctx context.Context, m *interactions) (*partition, error) {
	n := len(m.domains)
	p := &partition{class: slices.Repeat([]int32{-1}, n), value: make([]int32, n), values: [][]uint8{nil}}
	swaps := swapper{interactions: m, pace: pace.New(ctx)}
	var representatives []int32
	for v := range int32(n) {
		if m.leafOf[v] != nil {
			continue
		}
		class := -1
		for c, representative := range representatives {
			relabelling, ok := swaps.findSwap(representative, v)
			if !ok {
				continue
			}
			class = c
			p.value[v] = p.internRelabelling(relabelling)
			break
		}
		if swaps.pace.Over(1) || swaps.ended {
			return nil, ctx.Err()
		}
		if class < 0 {
			if class = len(representatives); class == maxClasses {
				return nil, nil
			}
			representatives = append(representatives, v)
		}
		p.class[v] = int32(class)
	}
	p.count = len(representatives)
	if p.count == 0 || 2*p.count > m.memberCount() {
		return nil, nil
	}
	return p, nil
}

// internRelabelling returns the place in values of a variable's relabelling, which it adds if it is new. toValue[a] is the variable's value
// that is value a of the class.
func (p *partition) internRelabelling(toValue []int) int32 {
	if !slices.ContainsFunc(toValue, func(x int) bool { return toValue[x] != x }) {
		return 0
	}
	relabelling := make([]uint8, len(toValue))
	for a, x := range toValue {
		relabelling[x] = uint8(a)
	}
	place := slices.IndexFunc(p.values, func(known []uint8) bool { return slices.Equal(known, relabelling) })
	if place < 0 {
		place = len(p.values)
		p.values = append(p.values, relabelling)
	}
	return int32(place)
}

// swapper compares variables with each other.
type swapper struct {
	*interactions
	pace  *pace.Pace
	ended bool // the context
}

// findSwap looks for a relabelling with which variables r and i can be swapped without changing an interaction. It returns, by value of r,
// the value of i. ok is false if it finds none.
func (s *swapper) findSwap(r, i int32) ([]int, bool) {
	values := s.domains[r]
	if s.domains[i] != values || len(s.touching[i]) != len(s.touching[r]) {
		return nil, false
	}
	toValue := make([]int, values)
	for a := range toValue {
		toValue[a] = a
	}
	if s.keepsInteractions(r, i, toValue, true) {
		return toValue, true
	}
	if !s.matchValues(r, i, toValue) {
		return nil, false
	}
	return toValue, s.keepsInteractions(r, i, toValue, false)
}

// keepsInteractions reports whether swapping r and i leaves every interaction as it is: value a of r becomes toValue[a] of i. With
// isIdentity values keep their names, and equal numbers of interactions suffice. It returns false if the context ends.
func (s *swapper) keepsInteractions(r, i int32, toValue []int, isIdentity bool) bool {
	fromValue := make([]int, len(toValue))
	for a, x := range toValue {
		fromValue[x] = a
	}
	for _, place := range s.touching[r] {
		a := &s.terms[place]
		changedPlace := place
		touchesBoth := slices.Contains(a.scope.variables(), i)
		if !touchesBoth {
			var ok bool
			if changedPlace, ok = s.placeAfterSwap(a.scope, r, i); !ok {
				return false
			}
		}
		b := &s.terms[changedPlace]
		if s.pace.Over(1) {
			s.ended = true
			return false
		}
		if isIdentity && !touchesBoth && a.number == b.number && position(a.scope, r) == position(b.scope, i) {
			continue
		}
		if s.pace.Over(int64(len(a.u))) {
			s.ended = true
			return false
		}
		if !s.areEqual(a, b, r, i, toValue, fromValue, touchesBoth) {
			return false
		}
	}
	return true
}

// placeAfterSwap returns the place of the interaction whose scope is a scope with i in the place of r. ok is false if there is none.
func (s *swapper) placeAfterSwap(changed scope, r, i int32) (int32, bool) {
	k := changed.order()
	changed[position(changed, r)] = i
	slices.Sort(changed[:k])
	place, ok := s.places[changed]
	return place, ok
}

// position returns the axis of a variable in a scope.
func position(s scope, v int32) int { return slices.Index(s[:], v) }

// areEqual reports whether interaction a equals interaction b after r and i are swapped. touchesBoth: their scope has both variables.
func (s *swapper) areEqual(a, b *interaction, r, i int32, toValue, fromValue []int, touchesBoth bool) bool {
	list := a.scope.variables()
	dims := s.dims(a.scope)
	strides := strides(s.dims(b.scope))
	digits := make([]int, len(list))
	for _, x := range a.u {
		place := 0
		for k, v := range list {
			switch {
			case v == r:
				place += toValue[digits[k]] * strides[position(b.scope, i)]
			case v == i && touchesBoth:
				place += fromValue[digits[k]] * strides[position(b.scope, r)]
			default:
				place += digits[k] * strides[position(b.scope, v)]
			}
		}
		if !areNear(x, b.u[place]) {
			return false
		}
		advance(digits, dims)
	}
	return true
}

// areNear reports whether two entries are equal up to rounding.
func areNear(x, y logarithm) bool {
	if x.isImpossible() || y.isImpossible() {
		return x.isImpossible() == y.isImpossible()
	}
	return math.Abs(x.minus(y).float()) <= equalTolerance*(1+math.Abs(x.High))
}

// dims returns the domains of a scope's variables.
func (f *factors) dims(s scope) []int {
	dims := make([]int, 0, maxOrder)
	for _, v := range s.variables() {
		dims = append(dims, f.domains[v])
	}
	return dims
}

// matchValues sets toValue[x], for each value x of r, to the value of i whose interactions with others are nearest to those of x, each used
// once. It returns false if r has no interaction without i, or an interaction that i has not.
func (s *swapper) matchValues(r, i int32, toValue []int) bool {
	d := len(toValue)
	distances := make([]float64, d*d)
	seen := map[int32]bool{}
	compared := 0
	for _, place := range s.touching[r] {
		a := &s.terms[place]
		if seen[a.number] || compared == maxCompared || slices.Contains(a.scope.variables(), i) {
			continue
		}
		other, ok := s.placeAfterSwap(a.scope, r, i)
		if !ok {
			return false
		}
		seen[a.number] = true
		compared++
		if s.pace.Over(int64(len(a.u) * d)) {
			s.ended = true
			return false
		}
		b := &s.terms[other]
		dims := s.dims(a.scope)
		strides, otherStrides := strides(dims), strides(s.dims(b.scope))
		axis, axisOfOther := position(a.scope, r), position(b.scope, i)
		dims[axis] = 1
		digits := make([]int, len(dims))
		for range len(a.u) / d {
			first, otherFirst := 0, 0
			for k, v := range a.scope.variables() {
				if v != r {
					first += digits[k] * strides[k]
					otherFirst += digits[k] * otherStrides[position(b.scope, v)]
				}
			}
			for x := range d {
				for y := range d {
					distances[x*d+y] += distance(a.u[first+x*strides[axis]], b.u[otherFirst+y*otherStrides[axisOfOther]])
				}
			}
			advance(digits, dims)
		}
	}
	taken := make([]bool, d)
	for x := range d {
		best := -1
		for y := range d {
			if !taken[y] && (best < 0 || distances[x*d+y] < distances[x*d+best]) {
				best = y
			}
		}
		taken[best] = true
		toValue[x] = best
	}
	return compared > 0
}

// distance returns the square of the difference of two logarithms. It is large if one of both is impossible.
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
