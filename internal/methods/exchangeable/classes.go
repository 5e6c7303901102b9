package exchangeable

// Classes of interchangeable variables: swapping two of a class, with their values relabelled, changes no interaction.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
)

const (
	// mostClasses bounds the classes.
	mostClasses = 64
	// alike is the difference of two interactions, relative to 1 + |u|, up to which they are taken for equal. What they differ is added up
	// later.
	alike = 1e-12
	// mostRows bounds the tables that a relabelling is looked for in.
	mostRows = 32
)

// partition is a division of the variables into classes.
type partition struct {
	count int
	class []int32 // by variable; −1: a leaf
	value []int32 // by variable: the place in values of its relabelling
	// values are relabellings: the class's value of each of the variable's. The first one is nil: they are the same.
	values [][]uint8
}

// size counts the variables of every class.
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

// withIndividuals returns a partition in which some variables are classes of their own.
func (p *partition) withIndividuals(variables []int32) *partition {
	if len(variables) == 0 {
		return p
	}
	q := &partition{class: slices.Clone(p.class), value: p.value, values: p.values}
	for k, v := range variables {
		q.class[v] = int32(p.count + k)
	}
	number := slices.Repeat([]int32{-1}, p.count+len(variables))
	for v, c := range q.class {
		if c < 0 {
			continue
		}
		if number[c] < 0 {
			number[c] = int32(q.count)
			q.count++
		}
		q.class[v] = number[c]
	}
	return q
}

// classesOf finds the classes of the variables that are no leaves; nil if there are more than mostClasses, or than half as many as
// variables. Cost O(classes · Σ entries).
func classesOf(ctx context.Context, m *interactions) (*partition, error) {
	n := len(m.domains)
	p := &partition{class: slices.Repeat([]int32{-1}, n), value: make([]int32, n), values: [][]uint8{nil}}
	s := swapper{interactions: m, look: pace.New(ctx)}
	var first []int32
	for v := range int32(n) {
		if m.leaf[v] != nil {
			continue
		}
		class := -1
		for c, r := range first {
			relabelling, ok := s.swaps(r, v)
			if !ok {
				continue
			}
			class = c
			p.value[v] = p.intern(relabelling)
			break
		}
		if s.look.Over(1) || s.ended {
			return nil, ctx.Err()
		}
		if class < 0 {
			if class = len(first); class == mostClasses {
				return nil, nil
			}
			first = append(first, v)
		}
		p.class[v] = int32(class)
	}
	p.count = len(first)
	if p.count == 0 || 2*p.count > m.members() {
		return nil, nil
	}
	return p, nil
}

// intern returns the place of a relabelling: to[a] is the variable's value that is value a of the class.
func (p *partition) intern(to []int) int32 {
	if !slices.ContainsFunc(to, func(x int) bool { return to[x] != x }) {
		return 0
	}
	from := make([]uint8, len(to))
	for a, x := range to {
		from[x] = uint8(a)
	}
	place := slices.IndexFunc(p.values, func(old []uint8) bool { return slices.Equal(old, from) })
	if place < 0 {
		place = len(p.values)
		p.values = append(p.values, from)
	}
	return int32(place)
}

// swapper compares variables.
type swapper struct {
	*interactions
	look  *pace.Pace
	ended bool // the context
}

// swaps returns the values of variable i that the values of r become when both are swapped; false if some interaction changes then.
func (s *swapper) swaps(r, i int32) ([]int, bool) {
	d := s.domains[r]
	if s.domains[i] != d || len(s.touching[i]) != len(s.touching[r]) {
		return nil, false
	}
	to := make([]int, d)
	for a := range to {
		to[a] = a
	}
	if s.keeps(r, i, to, true) {
		return to, true
	}
	if !s.relabels(r, i, to) {
		return nil, false
	}
	return to, s.keeps(r, i, to, false)
}

// keeps reports whether swapping r and i leaves every interaction as it is.
func (s *swapper) keeps(r, i int32, to []int, same bool) bool {
	from := make([]int, len(to))
	for a, x := range to {
		from[x] = a
	}
	for _, place := range s.touching[r] {
		a := &s.list[place]
		other := place
		both := slices.Contains(a.scope.variables(), i)
		if !both {
			var ok bool
			if other, ok = s.swapped(a.scope, r, i); !ok {
				return false
			}
		}
		b := &s.list[other]
		if s.look.Over(1) {
			s.ended = true
			return false
		}
		if same && !both && a.number == b.number && position(a.scope, r) == position(b.scope, i) {
			continue
		}
		if s.look.Over(int64(len(a.u))) {
			s.ended = true
			return false
		}
		if !s.equal(a, b, r, i, to, from, both) {
			return false
		}
	}
	return true
}

// swapped returns the place of the interaction of a scope with i for r.
func (s *swapper) swapped(changed scope, r, i int32) (int32, bool) {
	k := changed.order()
	changed[position(changed, r)] = i
	slices.Sort(changed[:k])
	place, ok := s.places[changed]
	return place, ok
}

// position is the axis of a variable.
func position(s scope, v int32) int { return slices.Index(s[:], v) }

// equal compares interaction a with what b becomes when r and i are swapped.
func (s *swapper) equal(a, b *interaction, r, i int32, to, from []int, both bool) bool {
	list := a.scope.variables()
	dims := s.dims(a.scope)
	strides := strides(s.dims(b.scope))
	digits := make([]int, len(list))
	for _, x := range a.u {
		place := 0
		for k, v := range list {
			switch {
			case v == r:
				place += to[digits[k]] * strides[position(b.scope, i)]
			case v == i && both:
				place += from[digits[k]] * strides[position(b.scope, r)]
			default:
				place += digits[k] * strides[position(b.scope, v)]
			}
		}
		if !near(x, b.u[place]) {
			return false
		}
		following(digits, dims)
	}
	return true
}

// near reports whether two entries may be equal but for rounding.
func near(x, y logarithm) bool {
	if x.isImpossible() || y.isImpossible() {
		return x.isImpossible() == y.isImpossible()
	}
	return math.Abs(x.minus(y).float()) <= alike*(1+math.Abs(x.High))
}

// dims lists the domains of a scope.
func (f *factors) dims(s scope) []int {
	dims := make([]int, 0, mostOrder)
	for _, v := range s.variables() {
		dims = append(dims, f.domains[v])
	}
	return dims
}

// relabels finds the values of i whose interactions with others are nearest to those of the values of r; false if r has no interaction
// without i.
func (s *swapper) relabels(r, i int32, to []int) bool {
	d := len(to)
	far := make([]float64, d*d)
	numbers := map[int32]bool{}
	compared := 0
	for _, place := range s.touching[r] {
		a := &s.list[place]
		if numbers[a.number] || compared == mostRows || slices.Contains(a.scope.variables(), i) {
			continue
		}
		other, ok := s.swapped(a.scope, r, i)
		if !ok {
			return false
		}
		numbers[a.number] = true
		compared++
		if s.look.Over(int64(len(a.u) * d)) {
			s.ended = true
			return false
		}
		b := &s.list[other]
		dims := s.dims(a.scope)
		mine, theirs := strides(dims), strides(s.dims(b.scope))
		axis, axisOfOther := position(a.scope, r), position(b.scope, i)
		dims[axis] = 1
		digits := make([]int, len(dims))
		for range len(a.u) / d {
			from, second := 0, 0
			for k, v := range a.scope.variables() {
				if v != r {
					from += digits[k] * mine[k]
					second += digits[k] * theirs[position(b.scope, v)]
				}
			}
			for x := range d {
				for y := range d {
					far[x*d+y] += distance(a.u[from+x*mine[axis]], b.u[second+y*theirs[axisOfOther]])
				}
			}
			following(digits, dims)
		}
	}
	taken := make([]bool, d)
	for x := range d {
		best := -1
		for y := range d {
			if !taken[y] && (best < 0 || far[x*d+y] < far[x*d+best]) {
				best = y
			}
		}
		taken[best] = true
		to[x] = best
	}
	return compared > 0
}

// distance is the square of a difference; large if one of both is impossible.
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
