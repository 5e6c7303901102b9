package exchangeable

// A product of interactions as a function of counts.

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
)

// deviationLimit is the deviation of an interaction from those of its kind, nats, above which its variables become individuals.
const deviationLimit = 1e-9

// member is a condition of a term: so many variables, times, of a class have a value.
type member struct{ class, value, times int }

// term is a summand of a function of counts: ln times the number of sets of variables that meet the conditions of all members.
type term struct {
	members []member
	ln      logarithm
}

// countWays returns the number of sets of variables that meet the conditions of members: the product of C(count, times). counts are by
// class and value.
func countWays(members []member, counts [][]int32) float64 {
	product := 1.0
	for _, m := range members {
		product *= binomial(float64(counts[m.class][m.value]), m.times)
	}
	return product
}

// binomial returns the binomial coefficient C(n, k), for small k and a whole number n.
func binomial(n float64, k int) float64 {
	c := 1.0
	for i := range k {
		c = math.Round(c * (n - float64(i)) / float64(i+1))
	}
	return max(0, c)
}

// kinds are the interactions of a partition's classes as terms.
type kinds struct {
	terms     []term
	forbidden []term  // counts that have a set with these members are impossible
	lnError   float64 // bounds what ln of any entry of the product is off, because interactions of a kind differ, nats
}

// pattern is a multiset of values of classes: class · maxDomain + value, increasing, then −1.
type pattern [maxOrder]int16

// kind is the interactions of one tuple of classes.
type kind struct {
	classes pattern // of the variables, increasing, then −1
	shapes  []shape // distinct ones
	number  float64 // of interactions
}

// shape is an interaction up to the identity of its variables.
type shape struct {
	function    int32           // the number of its function
	class       pattern         // by axis: the class of the variable
	relabelling [maxOrder]int32 // by axis: the number of the variable's relabelling
}

// kindsOf returns the interactions as terms of the counts of the classes. A shape is what interactions have in common if they differ in
// their variables only: the function, and the class and the relabelling of each variable. A kind is the interactions of variables of given
// classes. Every set of variables of these classes must have an interaction, and all of them the same entries. If not, k is nil. If entries
// differ, deviating lists the variables of the interactions that differ from most of their kind: they have to become classes of their own.
// If only some of the sets have an interaction, deviating is empty, since that would not help. Cost O(interactions).
func kindsOf(ctx context.Context, m *interactions, p *partition) (k *kinds, deviating []int32, err error) {
	shapes, frequency, err := p.distinctShapes(ctx, m)
	if err != nil {
		return nil, nil, err
	}
	functions := map[int32]*interaction{} // by number
	for i := range m.terms {
		functions[m.terms[i].function] = &m.terms[i]
	}

	k = &kinds{}
	sizes := p.sizes()
	deviates := map[shape]bool{}
	for _, kind := range groupShapes(shapes, frequency) {
		if kind.number != kind.countSets(sizes) { // some sets have no interaction
			return nil, nil, nil
		}
		eachEntry := func(s shape, visit func(pattern, logarithm)) { p.eachEntry(m, functions[s.function], s, visit) }
		for _, s := range k.addKind(kind, frequency, eachEntry) {
			deviates[s] = true
		}
	}
	if len(deviates) == 0 {
		return k, nil, nil
	}

	// List the variables of deviating interactions.
	for i := range m.terms {
		if deviates[p.shapeOf(&m.terms[i])] {
			deviating = append(deviating, m.terms[i].scope.variables()...)
		}
	}
	slices.Sort(deviating)
	return nil, slices.Compact(deviating), nil
}

// addKind adds the entries of a kind as terms. A kind is the interactions between variables of the same classes, and a shape is those of
// them that have the same function and relabellings. The terms are the entries of the most frequent shape, the reference. It returns the
// shapes with an entry that differs from the reference's by more than deviationLimit, and adds smaller differences to lnError. eachEntry
// calls visit for each entry of a shape.
func (k *kinds) addKind(
	kind *kind, frequency map[shape]float64, eachEntry func(s shape, visit func(pattern, logarithm)),
) (deviating []shape) {
	reference := slices.MaxFunc(kind.shapes, func(a, b shape) int { return cmp.Compare(frequency[a], frequency[b]) })
	entries := &kindEntries{values: map[pattern]logarithm{}}
	for _, s := range slices.Concat([]shape{reference}, kind.shapes) { // the reference first: its entries become those of the kind
		deviation := 0.0
		eachEntry(s, func(q pattern, x logarithm) { deviation = max(deviation, entries.deviation(q, x)) })
		if deviation > deviationLimit {
			deviating = append(deviating, s)
		} else {
			k.lnError += deviation * frequency[s]
		}
	}
	for _, q := range entries.patterns {
		k.add(term{q.members(), entries.values[q]})
	}
	return deviating
}

// distinctShapes returns the distinct shapes of the interactions, in the sequence of their first interactions, and how often each occurs.
// A shape is what interactions have in common that differ in their variables only.
func (p *partition) distinctShapes(ctx context.Context, m *interactions) (shapes []shape, frequency map[shape]float64, err error) {
	look := pace.New(ctx) // counts operations, and is over once the context has ended
	frequency = map[shape]float64{}
	for i := range m.terms {
		if look.Over(16) { // about 16 operations for each interaction
			return nil, nil, look.Err()
		}
		s := p.shapeOf(&m.terms[i])
		if frequency[s]++; frequency[s] == 1 {
			shapes = append(shapes, s)
		}
	}
	return shapes, frequency, nil
}

// kindEntries are the entries of a kind: the first one that is given for each pattern.
type kindEntries struct {
	values   map[pattern]logarithm
	patterns []pattern // the keys of values, in the sequence in which they came
}

// deviation returns how far an entry x is from the kind's entry of the same pattern, nats: +Inf if only one of the two is impossible. A
// pattern is the classes and values of the entry's variables. The first entry of a pattern becomes that of the kind.
func (e *kindEntries) deviation(at pattern, x logarithm) float64 {
	expected, ok := e.values[at]
	if !ok {
		expected = x
		e.values[at] = x
		e.patterns = append(e.patterns, at)
	}
	switch {
	case x.isImpossible() != expected.isImpossible():
		return math.Inf(1)
	case x.isImpossible():
		return 0
	default:
		return math.Abs(x.minus(expected).float())
	}
}

// groupShapes groups shapes by their classes into kinds, in the sequence of their first shapes. A shape is what interactions have in common
// that differ in their variables only: the function, and the class and relabelling of each axis. frequency is the number of interactions
// of each shape.
func groupShapes(shapes []shape, frequency map[shape]float64) (list []*kind) {
	byClasses := map[pattern]*kind{}
	for _, s := range shapes {
		classes := s.class                            // an array, so a copy
		slices.Sort(classes[:patternLength(classes)]) // kinds do not tell axes apart
		oneKind := byClasses[classes]
		if oneKind == nil {
			oneKind = &kind{classes: classes}
			byClasses[classes] = oneKind
			list = append(list, oneKind)
		}
		oneKind.shapes = append(oneKind.shapes, s)
		oneKind.number += frequency[s]
	}
	return list
}

// add adds a term to the forbidden ones if ln is −Inf, and otherwise to the terms unless ln is 0.
func (k *kinds) add(t term) {
	if t.ln.isImpossible() {
		k.forbidden = append(k.forbidden, t)
	} else if t.ln != (logarithm{}) {
		k.terms = append(k.terms, t)
	}
}

// patternLength returns the number of entries of a pattern before the first −1.
func patternLength(q pattern) int {
	for k, v := range q {
		if v < 0 {
			return k
		}
	}
	return maxOrder
}

// noPattern is the pattern of nothing.
var noPattern = pattern{-1, -1, -1, -1, -1, -1}

// shapeOf returns the shape of an interaction: the number of its function, and of each axis the class and the relabelling of the variable.
func (p *partition) shapeOf(a *interaction) shape {
	s := shape{function: a.function, class: noPattern}
	for k, v := range a.scope.variables() {
		s.class[k], s.relabelling[k] = int16(p.classOf[v]), p.relabellingOf[v]
	}
	return s
}

// eachEntry calls visit for every entry of interaction a, which has shape s, with the entry's pattern. A pattern has a number for each
// variable, class · maxDomain + the class's value, in increasing order, so that it does not tell variables of a class apart.
func (p *partition) eachEntry(m *interactions, a *interaction, s shape, visit func(pattern, logarithm)) {
	dims := m.dims(a.scope)
	digits := make([]int, len(dims))
	for _, x := range a.ln {
		q := noPattern
		for axis, value := range digits {
			if relabelling := p.relabellings[s.relabelling[axis]]; relabelling != nil {
				value = int(relabelling[value])
			}
			q[axis] = s.class[axis]*maxDomain + int16(value)
		}
		slices.Sort(q[:len(digits)])
		visit(q, x)
		advance(digits, dims)
	}
}

// members returns a pattern as members. A pattern has the number class · maxDomain + value for each variable, increasing. A member is a
// number of variables, times, of one class and value: the equal numbers of the pattern.
func (q pattern) members() (list []member) {
	for _, v := range q[:patternLength(q)] {
		class, value := int(v)/maxDomain, int(v)%maxDomain
		if n := len(list); n > 0 && list[n-1].class == class && list[n-1].value == value {
			list[n-1].times++
		} else {
			list = append(list, member{class, value, 1})
		}
	}
	return list
}

// countSets returns the number of sets of variables with the classes of the kind, given the number of variables of each class. It is
// Π_c C(sizes[c], times), for each class c that the kind has so many times.
func (k *kind) countSets(sizes []int) float64 {
	product := 1.0
	list := k.classes[:patternLength(k.classes)] // ascending: equal classes are neighbours
	for first := 0; first < len(list); {
		times := 1
		for first+times < len(list) && list[first+times] == list[first] {
			times++
		}
		product *= binomial(float64(sizes[list[first]]), times)
		first += times
	}
	return product
}
