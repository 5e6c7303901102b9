package exchangeable

// What a product of interactions is as a function of counts.

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
)

// different is the deviation of an interaction from those of its kind, nats, above which its variables are individuals.
const different = 1e-9

// member says how often a set has a value of a class.
type member struct{ class, value, times int }

// term is a share of a function of counts: ln times the number of ways to choose the members' values.
type term struct {
	members []member
	ln      logarithm
}

// ways is the number of sets among k that have the members: Π C(k_cv, times).
func ways(members []member, counts [][]int32) float64 {
	product := 1.0
	for _, m := range members {
		product *= choose(float64(counts[m.class][m.value]), m.times)
	}
	return product
}

// choose is C(n, k) for small k.
func choose(n float64, k int) float64 {
	c := 1.0
	for i := range k {
		c = math.Round(c * (n - float64(i)) / float64(i+1))
	}
	return max(0, c)
}

// kinds are the interactions of a partition's classes as terms. off bounds what the logarithm of any entry of the product differs, nats.
type kinds struct {
	terms     []term
	forbidden []term // counts that have such a set are impossible
	off       float64
}

// pattern is a multiset of values of classes: class · mostDomain + value, increasing, then −1.
type pattern [mostOrder]int16

// kind is the interactions of one tuple of classes.
type kind struct {
	classes pattern // of the variables, increasing, then −1
	shapes  []shape
	number  float64 // of interactions
}

// shape is an interaction up to the identity of its variables.
type shape struct {
	number int32
	class  pattern          // by axis
	value  [mostOrder]int32 // the variables' relabellings
}

// kindsOf returns the terms. deviating lists the variables of interactions that differ from others of their kind: they have to be
// individuals. It is nil if the classes are none: tables are missing, or some differ without a reason. Cost O(interactions).
func kindsOf(ctx context.Context, m *interactions, p *partition) (k *kinds, deviating []int32, err error) {
	look := pace.New(ctx)
	known := map[shape]float64{} // how often
	var sequence []shape
	for i := range m.list {
		if look.Over(16) {
			return nil, nil, look.Err()
		}
		s := p.shape(&m.list[i])
		if known[s]++; known[s] == 1 {
			sequence = append(sequence, s)
		}
	}
	byClasses := map[pattern]*kind{}
	var all []*kind
	for _, s := range sequence {
		classes := s.class
		slices.Sort(classes[:order(classes)])
		tuple := byClasses[classes]
		if tuple == nil {
			tuple = &kind{classes: classes}
			byClasses[classes] = tuple
			all = append(all, tuple)
		}
		tuple.shapes = append(tuple.shapes, s)
		tuple.number += known[s]
	}
	functions := map[int32]*interaction{}
	for i := range m.list {
		functions[m.list[i].number] = &m.list[i]
	}
	k = &kinds{}
	sizes := p.sizes()
	strange := map[shape]bool{}
	for _, tuple := range all {
		if tuple.number != tuple.sets(sizes) {
			return nil, nil, nil
		}
		reference := slices.MaxFunc(tuple.shapes, func(a, b shape) int { return cmp.Compare(known[a], known[b]) })
		values := map[pattern]logarithm{}
		var patterns []pattern
		for _, s := range slices.Concat([]shape{reference}, tuple.shapes) {
			largest := 0.0
			p.entries(m, functions[s.number], s, func(q pattern, x logarithm) {
				y, ok := values[q]
				if !ok {
					y = x
					values[q] = x
					patterns = append(patterns, q)
				}
				if x.isImpossible() != y.isImpossible() {
					largest = math.Inf(1)
				} else if !x.isImpossible() {
					largest = max(largest, math.Abs(x.minus(y).float()))
				}
			})
			if largest > different {
				strange[s] = true
			} else {
				k.off += largest * known[s]
			}
		}
		for _, q := range patterns {
			switch t := (term{q.members(), values[q]}); {
			case t.ln.isImpossible():
				k.forbidden = append(k.forbidden, t)
			case t.ln != logarithm{}:
				k.terms = append(k.terms, t)
			}
		}
	}
	if len(strange) > 0 {
		for i := range m.list {
			if strange[p.shape(&m.list[i])] {
				deviating = append(deviating, m.list[i].scope.variables()...)
			}
		}
		slices.Sort(deviating)
		return nil, slices.Compact(deviating), nil
	}
	return k, nil, nil
}

// order is the number of entries of a pattern.
func order(q pattern) int {
	for k, v := range q {
		if v < 0 {
			return k
		}
	}
	return mostOrder
}

// noPattern is the pattern of nothing.
var noPattern = pattern{-1, -1, -1, -1, -1, -1}

// shape returns an interaction's shape.
func (p *partition) shape(a *interaction) shape {
	s := shape{number: a.number, class: noPattern}
	for k, v := range a.scope.variables() {
		s.class[k], s.value[k] = int16(p.class[v]), p.value[v]
	}
	return s
}

// entries calls f for every entry of an interaction of some shape: with its pattern.
func (p *partition) entries(m *interactions, a *interaction, s shape, f func(pattern, logarithm)) {
	dims := m.dims(a.scope)
	digits := make([]int, len(dims))
	for _, x := range a.u {
		q := noPattern
		for k, digit := range digits {
			if relabelling := p.values[s.value[k]]; relabelling != nil {
				digit = int(relabelling[digit])
			}
			q[k] = s.class[k]*mostDomain + int16(digit)
		}
		slices.Sort(q[:len(digits)])
		f(q, x)
		following(digits, dims)
	}
}

// members returns the multiset of a pattern.
func (q pattern) members() (list []member) {
	for _, v := range q[:order(q)] {
		class, value := int(v)/mostDomain, int(v)%mostDomain
		if n := len(list); n > 0 && list[n-1].class == class && list[n-1].value == value {
			list[n-1].times++
		} else {
			list = append(list, member{class, value, 1})
		}
	}
	return list
}

// sets is the number of sets of variables that have one of each of the kind's classes.
func (k *kind) sets(sizes []int) float64 {
	product := 1.0
	list := k.classes[:order(k.classes)]
	for index := 0; index < len(list); {
		times := 1
		for index+times < len(list) && list[index+times] == list[index] {
			times++
		}
		product *= choose(float64(sizes[list[index]]), times)
		index += times
	}
	return product
}
