package closed

// Classes of interchangeable variables, found from interactions.

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

const (
	// mostClasses bounds the classes: counts are a table over all of them.
	mostClasses = 3
	// mostCounts bounds that table's entries.
	mostCounts = 1 << 20
	// alike is the relative difference of two variables' fingerprints, up to which they are taken for one class.
	alike = 1e-7
	// rounded bounds the rounding of a sum of interactions, relative to that of their absolute values.
	rounded = 0x1p-50
	// faint is the interaction, relative to the largest, that is rounding.
	faint = 1e-12
)

// classes are a partition of the variables.
type classes struct {
	class []int // by variable; −1 for those without an interaction
	count int
	size  []int   // by class
	value [][]int // value[i][a] is the value of variable i that is value a of its class
}

// eachSet calls f for every set of two variables and more, with its interaction.
func (m *interactions) eachSet(f func(set []int, u []float64)) {
	for k := 2; k < len(m.of); k++ {
		set := make([]int, k)
		for i := range set {
			set[i] = i
		}
		size := power(m.d, k)
		for at := 0; at < len(m.of[k]); at += size {
			f(set, m.of[k][at:at+size])
			following(set)
		}
	}
}

// classes returns the partition by two rounds of colour refinement: variables of a class have the same Σ |u_T|² over their sets T, weighted
// by the colours of the others in T. nil where there are more than mostClasses. Whether it holds is for means to say.
func (m *interactions) classes() *classes {
	largest := 0.0
	m.eachSet(func(_ []int, u []float64) { largest = max(largest, norm(u)) })
	colour := slices.Repeat([]float64{1}, m.n)
	for range 2 {
		next := make([]float64, m.n)
		m.eachSet(func(set []int, u []float64) {
			if x := norm(u) / largest; x > faint*faint {
				sum := 0.0
				for _, v := range set {
					sum += colour[v]
				}
				for _, v := range set {
					next[v] += x * (sum - colour[v]) / float64(len(set)*len(set))
				}
			}
		})
		colour = next
	}

	order := make([]int, m.n)
	for v := range order {
		order[v] = v
	}
	slices.SortFunc(order, func(u, v int) int { return cmp.Compare(colour[u], colour[v]) })
	of := &classes{class: make([]int, m.n)}
	before := 0.0 // no variable without an interaction has another colour
	for _, v := range order {
		if colour[v] == 0 {
			of.class[v] = -1
			continue
		}
		if of.count == 0 || colour[v] > (1+alike)*before {
			of.count++
			of.size = append(of.size, 0)
		}
		before = colour[v]
		of.class[v] = of.count - 1
		of.size[of.count-1]++
	}
	if of.count == 0 || of.count > mostClasses {
		return nil
	}
	return of
}

// norm is Σ u².
func norm(u []float64) (sum float64) {
	for _, x := range u {
		sum += x * x
	}
	return sum
}

// relabel finds the value of each variable that is one of its class: the first variable of a class keeps its values, and another has those
// which, where it is exchanged for the first one in a set, give the nearest interactions. Interactions are changed to the classes' values.
// Whether they are the same is for means to say.
func (m *interactions) relabel(of *classes) {
	of.value = make([][]int, m.n)
	plain := make([]int, m.d)
	for a := range plain {
		plain[a] = a
	}
	for i := range of.value {
		of.value[i] = plain
	}
	for k := range of.count {
		first := slices.Index(of.class, k)
		strong := m.strongest(first)
		for i := first + 1; i < m.n; i++ {
			if of.class[i] == k {
				of.value[i] = m.valuesLike(strong, first, i)
			}
		}
	}

	old := make([]float64, power(m.d, len(m.of)-1))
	m.eachSet(func(set []int, u []float64) {
		for l, i := range set {
			if slices.Equal(of.value[i], plain) {
				continue
			}
			copy(old, u)
			m.axis(len(set), l, func(a, other, at int) { u[at] = old[at+(of.value[i][a]-a)*power(m.d, len(set)-1-l)] })
		}
	})
}

// axis calls f for every entry of a function of k variables: with the value of variable l, the number of the others' values, the entry.
func (m *interactions) axis(k, l int, f func(a, other, at int)) {
	stride := power(m.d, k-1-l)
	for at := range power(m.d, k) {
		f(at/stride%m.d, at/(stride*m.d)*stride+at%stride, at)
	}
}

// valuesLike returns the values of variable i that are nearest to those of another in some sets.
func (m *interactions) valuesLike(sets [][]int, first, i int) []int {
	far := make([]float64, m.d*m.d) // squared distance of value a of the first and b of i
	rows := [2][]float64{}
	for _, set := range sets {
		if slices.Contains(set, i) {
			continue
		}
		k := len(set)
		others := power(m.d, k-1)
		other := slices.Clone(set)
		other[slices.Index(other, first)] = i
		slices.Sort(other)
		for side, list := range [2][]int{set, other} {
			u := m.at(list)
			rows[side] = slices.Grow(rows[side][:0], m.d*others)[:m.d*others]
			m.axis(k, slices.Index(list, [2]int{first, i}[side]), func(a, rest, at int) { rows[side][a*others+rest] = u[at] })
		}
		for a := range m.d {
			for b := range m.d {
				for rest := range others {
					y := rows[0][a*others+rest] - rows[1][b*others+rest]
					far[a*m.d+b] += y * y
				}
			}
		}
	}
	values := make([]int, 0, m.d)
	for a := range m.d {
		best := -1
		for b := range m.d {
			if !slices.Contains(values, b) && (best < 0 || far[a*m.d+b] < far[a*m.d+best]) {
				best = b
			}
		}
		values = append(values, best)
	}
	return values
}

// strongest returns a few sets with a variable, of the largest interactions.
func (m *interactions) strongest(v int) (list [][]int) {
	const few = 2 * mostOrder // no other variable is in all of them, but where there are no others
	strength := func(set []int) float64 { return norm(m.at(set)) }
	least := 0.0
	m.eachSet(func(set []int, u []float64) {
		if x := norm(u); x > least && slices.Contains(set, v) {
			list = append(list, slices.Clone(set))
			if len(list) > few {
				weakest := 0
				for at := range list {
					if strength(list[at]) < strength(list[weakest]) {
						weakest = at
					}
				}
				least = strength(list[weakest])
				list = slices.Delete(list, weakest, weakest+1)
			}
		}
	})
	return list
}

// pattern says how often a set has each value of each class.
type pattern [mostClasses * mostValues]uint8

// mean is the mean interaction of all sets and values of one pattern.
type mean struct {
	pattern            pattern
	first, differences float64 // the first number, and Σ of what others differ from it: hardly rounded
	numbers            float64
}

func (m *mean) value() float64 { return m.first + m.differences/m.numbers }

// means returns the means of all patterns, and Σ of the largest deviation from them over all sets of two and more, with the rounding of a
// sum of all their interactions. Sets with a variable of no class have the mean 0.
func (m *interactions) means(of *classes) (list []*mean, off float64) {
	known := map[pattern]*mean{}
	lists := map[[mostOrder]int8][]*mean{} // of the entries of a set, by the classes of its variables
	entries := func(set []int) []*mean {
		var key [mostOrder]int8
		for l, i := range set {
			if key[l] = int8(1 + of.class[i]); key[l] == 0 {
				return nil
			}
		}
		if there := lists[key]; there != nil {
			return there
		}
		all := make([]*mean, power(m.d, len(set)))
		for at := range all {
			var p pattern
			left := at
			for l := len(set) - 1; l >= 0; l-- {
				p[of.class[set[l]]*m.d+left%m.d]++
				left /= m.d
			}
			if known[p] == nil {
				known[p] = &mean{pattern: p}
				list = append(list, known[p])
			}
			all[at] = known[p]
		}
		lists[key] = all
		return all
	}

	m.eachSet(func(set []int, u []float64) {
		for x, mean := range entries(set) {
			if mean.numbers == 0 {
				mean.first = u[x]
			}
			mean.differences += u[x] - mean.first
			mean.numbers++
		}
	})
	m.eachSet(func(set []int, u []float64) {
		largest, size, means := 0.0, 0.0, entries(set)
		for x, y := range u {
			size = max(size, math.Abs(y))
			if means != nil {
				y -= means[x].value()
			}
			largest = max(largest, math.Abs(y))
		}
		off += largest + rounded*size
	})
	return list, off
}

// sum returns e^{ln + Σ_patterns mean · ways to choose its values} by the numbers of variables at each value of each class, 0 where a class
// has fewer variables. Cost counts · patterns. Errors: more than mostCounts, the context's.
func (of *classes) sum(ctx context.Context, ln float64, means []*mean, levels countspace.Levels) (countspace.Poly, error) {
	size, err := levels.Size()
	if err != nil || size > mostCounts {
		return countspace.Poly{}, countspace.ErrSize
	}
	d := (levels.D-1)/of.count + 1
	ways := make([][mostOrder + 1]float64, slices.Max(of.size)+1) // to choose t of c
	for c := range ways {
		for t := range ways[c] {
			ways[c][t] = choose(c, t)
		}
	}
	type term struct {
		mean  float64
		value []int // class and value, as often as they are chosen at once
		times []uint8
	}
	var terms []term
	for _, m := range means {
		if t := (term{mean: m.value()}); t.mean != 0 {
			for v, times := range m.pattern {
				if times > 0 {
					t.value, t.times = append(t.value, v), append(t.times, times)
				}
			}
			terms = append(terms, t)
		}
	}

	p := countspace.Poly{Shape: levels.Shape(), Coef: scaled.Vector{Mant: make([]float64, size), Exp: make([]int64, size)}}
	counts := make([]int, of.count*d)
	for k, n := range of.size {
		counts[k*d] = n
	}
	for at := range size {
		if at%4096 == 0 && ctx.Err() != nil {
			return countspace.Poly{}, ctx.Err()
		}
		feasible := true
		for k := range of.count {
			feasible = feasible && counts[k*d] >= 0
		}
		if feasible {
			sum := ln
			for _, t := range terms {
				y := t.mean
				for l, v := range t.value {
					y *= ways[counts[v]][t.times[l]]
				}
				sum += y
			}
			s := scaled.FromLog(sum)
			p.Coef.Mant[at], p.Coef.Exp[at] = s.Mant, s.Exp
		}
	next:
		for k := of.count - 1; k >= 0; k-- { // the last level changes fastest
			for a := d - 1; a > 0; a-- {
				counts[k*d]--
				if counts[k*d+a]++; counts[k*d+a] <= of.size[k] {
					break next
				}
				counts[k*d] += counts[k*d+a]
				counts[k*d+a] = 0
			}
		}
	}
	return p, nil
}
