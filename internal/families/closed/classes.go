package closed

// Classes of interchangeable variables, found from interactions.

import (
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
	// faint is the interaction, relative to the largest, that is rounding.
	faint = 1e-12
)

// classes are a partition of the variables.
type classes struct {
	class []int // by variable; −1 for those without an interaction
	count int
	size  []int // by class
}

// eachSet calls f for every set of two variables and more, with its interaction.
func (m *interactions) eachSet(f func(set []int, c *float64)) {
	for k := 2; k < len(m.of); k++ {
		set := make([]int, k)
		for i := range set {
			set[i] = i
		}
		for at := range m.of[k] {
			f(set, &m.of[k][at])
			following(set)
		}
	}
}

// classes returns the partition by two rounds of colour refinement: variables of a class have the same Σ c_T² over their sets T, weighted
// by the colours of the others in T. nil where there are more than mostClasses. Whether it holds is for means to say.
func (m *interactions) classes() *classes {
	largest := 0.0
	m.eachSet(func(_ []int, c *float64) { largest = max(largest, math.Abs(*c)) })
	colour := slices.Repeat([]float64{1}, m.n)
	for range 2 {
		next := make([]float64, m.n)
		m.eachSet(func(set []int, c *float64) {
			if x := *c / largest; math.Abs(x) > faint {
				sum := 0.0
				for _, v := range set {
					sum += colour[v]
				}
				for _, v := range set {
					next[v] += x * x * (sum - colour[v]) / float64(len(set)*len(set))
				}
			}
		})
		colour = next
	}

	order := make([]int, m.n)
	for v := range order {
		order[v] = v
	}
	slices.SortFunc(order, func(u, v int) int {
		switch {
		case colour[u] < colour[v]:
			return -1
		case colour[u] > colour[v]:
			return 1
		}
		return 0
	})
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

// signs returns 1 or −1 for each variable: with the spins of the latter turned round, the interactions of sets of one kind have one sign.
// The first variable of a class is not turned; another is, where exchanging the two in a set changes the sign of its interaction. nil
// where a sign is not to be seen.
func (m *interactions) signs(of *classes) []float64 {
	signs := slices.Repeat([]float64{1}, m.n)
	for k := range of.count {
		first := slices.Index(of.class, k)
		strong := m.strongest(first)
		for i := first + 1; i < m.n; i++ {
			if of.class[i] != k {
				continue
			}
			signs[i] = 0
			for _, set := range strong {
				if slices.Contains(set, i) {
					continue
				}
				other := slices.Clone(set)
				other[slices.Index(other, first)] = i
				slices.Sort(other)
				if x := m.of[len(set)][place(set)] * m.of[len(set)][place(other)]; x != 0 {
					signs[i] = math.Copysign(1, x)
					break
				}
			}
			if signs[i] == 0 {
				return nil
			}
		}
	}
	return signs
}

// strongest returns a few sets with a variable, of the largest interactions.
func (m *interactions) strongest(v int) (list [][]int) {
	const few = 2 * mostOrder // no other variable is in all of them, but where there are no others
	least := 0.0
	m.eachSet(func(set []int, c *float64) {
		if x := math.Abs(*c); x > least && slices.Contains(set, v) {
			list = append(list, slices.Clone(set))
			if len(list) > few {
				weakest := 0
				for at := range list {
					if m.strength(list[at]) < m.strength(list[weakest]) {
						weakest = at
					}
				}
				least = m.strength(list[weakest])
				list = slices.Delete(list, weakest, weakest+1)
			}
		}
	})
	return list
}

func (m *interactions) strength(set []int) float64 { return math.Abs(m.of[len(set)][place(set)]) }

// kindBase is more than the variables of a set, kinds the number of kinds.
const (
	kindBase = mostOrder + 1
	kinds    = kindBase * kindBase * kindBase
)

// kind is the number of a set's variables of each class, Σ kindBase^class; −1 where one has no class.
func (of *classes) kind(set []int) (k int) {
	for _, v := range set {
		switch of.class[v] {
		case 0:
			k++
		case 1:
			k += kindBase
		case 2:
			k += kindBase * kindBase
		default:
			return -1
		}
	}
	return k
}

// means returns the mean interaction of the sets of each kind, spins turned round by signs, and Σ |interaction − mean| over all sets of
// two and more. Sets with a variable of no class have the mean 0.
func (m *interactions) means(of *classes, signs []float64) (mean []float64, off float64) {
	first, differences, sets := make([]float64, kinds), make([]float64, kinds), make([]float64, kinds)
	m.eachSet(func(set []int, c *float64) {
		for _, v := range set {
			*c *= signs[v]
		}
		k := of.kind(set)
		if k < 0 {
			off += math.Abs(*c)
			return
		}
		if sets[k] == 0 {
			first[k] = *c
		}
		differences[k] += *c - first[k] // their sum is hardly rounded
		sets[k]++
	})
	mean = make([]float64, kinds)
	for k, n := range sets {
		if n > 0 {
			mean[k] = first[k] + differences[k]/n
		}
	}
	m.eachSet(func(set []int, c *float64) {
		if k := of.kind(set); k >= 0 {
			off += math.Abs(*c - mean[k])
		}
	})
	return mean, off
}

// sum returns e^{ln + Σ_kinds mean · Σ_sets Π spins} by the number of spins up of each class. Cost counts · kinds. Errors: more than
// mostCounts, the context's.
func (of *classes) sum(ctx context.Context, ln float64, mean []float64, levels countspace.Levels) (countspace.Poly, error) {
	size, err := levels.Size()
	if err != nil || size > mostCounts {
		return countspace.Poly{}, countspace.ErrSize
	}
	var products [mostClasses][][kindBase]float64 // by class, spins up, and variables of the class
	for j := range products {
		n := 0
		if j < of.count {
			n = of.size[j]
		}
		products[j] = make([][kindBase]float64, n+1)
		for up := range n + 1 {
			for k := range kindBase {
				products[j][up][k] = elementary(n, up, k)
			}
		}
	}
	p := countspace.Poly{Shape: levels.Shape(), Coef: scaled.Vector{Mant: make([]float64, size), Exp: make([]int64, size)}}
	var there []int // kinds
	for k, x := range mean {
		if x != 0 {
			there = append(there, k)
		}
	}
	var up [mostClasses]int
	for at := range size {
		if at%4096 == 0 && ctx.Err() != nil {
			return countspace.Poly{}, ctx.Err()
		}
		sum := ln
		for _, k := range there {
			a, b, c := k%kindBase, k/kindBase%kindBase, k/kindBase/kindBase
			sum += mean[k] * products[0][up[0]][a] * products[1][up[1]][b] * products[2][up[2]][c]
		}
		s := scaled.FromLog(sum)
		p.Coef.Mant[at], p.Coef.Exp[at] = s.Mant, s.Exp
		for j := of.count - 1; j >= 0; j-- { // the last class changes fastest
			if up[j]++; up[j] <= of.size[j] {
				break
			}
			up[j] = 0
		}
	}
	return p, nil
}
