package truth

// Classes of variables that may be swapped: one table for each kind of pair, and sums over counts in 60 digits.

import (
	"math"
	"math/big"

	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

// classBits is the precision of the sums: all terms are positive.
const classBits = 200

// classModel is a model whose variables (members) are divided into classes. Any two members of classes i and j have the same table, so
// members of one class may be swapped, unless evidence changes their weights. A group is the members of a class with the same weights.
// A member may have its values relabelled, which hides the classes.
type classModel struct {
	d      *drawer
	sizes  []int // by class: the number of members
	values []int // by class: the number of values of a member

	// Tables, in the values of the classes.
	// pair is by classes i ≤ j: entries [a·d_j + b], or [(a·d_j + b)·h + x] if the pair has a hidden variable x of h values.
	pair   map[[2]int][]float64
	hidden map[[2]int][]float64 // by classes i ≤ j: the weights of the values of the hidden variable that each such pair has
	triple map[int][]float64    // by class: the table of any three members, which is symmetric

	// By member, that is by variable.
	weights  [][]float64 // of the values of its class
	class    []int
	relabels [][]int // relabels[v][a] is the value of variable v that stands for value a of its class

	// For the sum over counts.
	slots      []slot
	pairs      [][]*big.Float // pairs[s][t] is the entry for a pair with the values of slots s and t, its hidden variable summed out
	factorials []*big.Float   // factorials[n] is n!, as far as computed
}

// slot is one value of one group. A count vector has the number of members of the group with that value, for each slot.
type slot struct {
	group, class, value int
	n                   int  // members of the group
	isLast              bool // the last value of the group
	weight              *big.Float
}

// bigFloat returns x in the precision of the sums.
func bigFloat(x float64) *big.Float { return new(big.Float).SetPrec(classBits).SetFloat64(x) }

// bigProduct returns a·b in the precision of the sums.
func bigProduct(a, b *big.Float) *big.Float { return new(big.Float).SetPrec(classBits).Mul(a, b) }

// bigPower returns x^n, by repeated squaring.
func bigPower(x *big.Float, n int) *big.Float {
	y := bigFloat(1)
	for square := x; n > 0; n >>= 1 {
		if n&1 == 1 {
			y = bigProduct(y, square)
		}
		if n > 1 {
			square = bigProduct(square, square)
		}
	}
	return y
}

// drawWeight draws a positive weight, log-uniformly from 10^−decades to 10^decades.
func (m *classModel) drawWeight(decades float64) float64 {
	return math.Pow(10, decades*(2*m.d.Rand.Float64()-1))
}

// classes draws a model of one to four classes of interchangeable variables, with tables of pairs and triples, hidden variables of pairs,
// zeros, relabelled values, and evidence on some members. The truth is a sum over count vectors: how many members of each group have each
// value. Their number is bounded by a limit that is drawn log-uniformly.
func (d *drawer) classes(c *Case) Truth {
	maxCounts := 1e6
	if d.isSmall {
		maxCounts = 60
	}
	maxCounts = math.Exp(d.Rand.Float64() * math.Log(maxCounts))
	if d.Chance(0.5) {
		maxCounts = min(maxCounts, 2000)
	}

	m := &classModel{d: d, pair: map[[2]int][]float64{}, hidden: map[[2]int][]float64{}, triple: map[int][]float64{}}
	decades := modeltest.Pick(d.Rand, 0.5, 0.5, 1, 3, 3, 300)
	m.drawSizes(maxCounts)
	m.drawTables(decades, modeltest.Pick(d.Rand, 0, 0, 0.05, 0.2))
	m.drawMembers(decades)
	m.addModel(c)
	c.Settings = query.Settings{Method: modeltest.Pick(d.Rand, query.MethodAuto, query.MethodAuto, query.MethodExact), Seed: c.Settings.Seed}
	q := query.Query{Marginals: d.Chance(0.7)}
	m.drawEvidence(&q)
	c.Queries = []query.Query{q}
	return m.solve(q.Marginals)
}

// drawSizes draws the number of members and of values of each class, so that there are at most about maxCounts count vectors. A class of n
// members with d values has C(n+d−1, d−1) of them.
func (m *classModel) drawSizes(maxCounts float64) {
	rng := m.d.Rand
	count := modeltest.Pick(rng, 1, 1, 2, 2, 2, 3, 4)
	for k := range count {
		// The classes that remain get equal shares of the bound, as factors.
		d := modeltest.Pick(rng, 2, 2, 2, 2, 3, 3, 4, 5, 8)
		share := math.Pow(maxCounts, 1/float64(count-k))
		n := 1
		limit := 1000
		if m.d.isSmall {
			limit = 6
		} else if m.d.Chance(0.5) {
			limit = 15 + rng.IntN(26)
		}
		for n < limit && choose(n+d, d-1) <= share {
			n++
		}
		if m.d.isSmall {
			n = min(n, 4)
		}
		m.sizes, m.values = append(m.sizes, n), append(m.values, d)
		maxCounts /= choose(n+d-1, d-1)
	}

	// Models of fewer than 12 members would be answered by elimination instead.
	total := 0
	for _, n := range m.sizes {
		total += n
	}
	for total < 12 && !m.d.isSmall {
		m.sizes[0]++
		total++
	}
}

// choose returns the binomial coefficient C(n, k).
func choose(n, k int) float64 {
	c := 1.0
	for i := range k {
		c = c * float64(n-i) / float64(i+1)
	}
	return c
}

// drawTables draws the tables of pairs for most pairs of classes, some with hidden variables, and tables of triples for few classes. An
// entry is 0 with probability zeroShare, except where all members have value 0: so that assignment is always possible.
func (m *classModel) drawTables(decades, zeroShare float64) {
	for i := range m.values {
		for j := i; j < len(m.values); j++ {
			if m.d.Chance(0.15) {
				continue // no table between these classes
			}
			m.drawPairTable(i, j, decades, zeroShare)
		}
		if n := m.sizes[i]; n >= 3 && n <= 16 && m.values[i] <= 3 && m.d.Chance(0.15) {
			m.drawTripleTable(i, decades, zeroShare)
		}
	}
}

// drawEntry draws an entry of a table. It may be 0 unless all members have value 0.
func (m *classModel) drawEntry(isAllZero bool, decades, zeroShare float64) float64 {
	if !isAllZero && m.d.Rand.Float64() < zeroShare {
		return 0
	}
	return m.drawWeight(decades)
}

// drawPairTable draws the table of a member of class i and one of class j, at times with a hidden variable of two or three values. The
// table is symmetric if i = j.
func (m *classModel) drawPairTable(i, j int, decades, zeroShare float64) {
	di, dj := m.values[i], m.values[j]
	hiddenValues := 1
	if m.sizes[i]*m.sizes[j] < 2500 && m.d.Chance(0.2) {
		hiddenValues = 2 + m.d.Rand.IntN(2)
		for range hiddenValues {
			m.hidden[[2]int{i, j}] = append(m.hidden[[2]int{i, j}], m.drawWeight(min(decades, 3)))
		}
	}
	t := make([]float64, di*dj*hiddenValues)
	for a := range di {
		for b := range dj {
			for x := range hiddenValues {
				index := (a*dj+b)*hiddenValues + x
				switch {
				case i == j && a > b:
					t[index] = t[(b*dj+a)*hiddenValues+x]
				default:
					t[index] = m.drawEntry(a == 0 && b == 0, decades, zeroShare)
				}
			}
		}
	}
	m.pair[[2]int{i, j}] = t
}

// drawTripleTable draws the table of any three members of a class of at most three values. An entry depends only on how many of the three
// have each value.
func (m *classModel) drawTripleTable(class int, decades, zeroShare float64) {
	d := m.values[class]
	t := make([]float64, d*d*d)
	drawn := map[[3]int]float64{} // by the number of members with each value
	for index := range t {
		// The three digits of index in base d are the values; the 1 before them ends the loop.
		counts := [3]int{}
		for digits := index + d*d*d; digits > 1; digits /= d {
			counts[digits%d]++
		}
		if _, isDrawn := drawn[counts]; !isDrawn {
			drawn[counts] = m.drawEntry(counts[0] == 3, decades, zeroShare)
		}
		t[index] = drawn[counts]
	}
	m.triple[class] = t
}

// drawMembers draws the weights of the values of every class, which its members share, and in half of the models a relabelling of the
// values of every member.
func (m *classModel) drawMembers(decades float64) {
	isRelabelled := m.d.Chance(0.5)
	for c, n := range m.sizes {
		w := make([]float64, m.values[c])
		for a := range w {
			w[a] = m.drawWeight(min(decades, 3))
		}
		for range n {
			labels := make([]int, len(w))
			for a := range labels {
				labels[a] = a
			}
			if isRelabelled {
				labels = m.d.Rand.Perm(len(w))
			}
			m.class, m.weights, m.relabels = append(m.class, c), append(m.weights, w), append(m.relabels, labels)
		}
	}
}

// addModel sets the model of the case: variable v is member v, and hidden variables of pairs come after the members. Factors are the
// weights of the members, the tables of pairs, and those of triples, all in the relabelled values.
func (m *classModel) addModel(c *Case) {
	n := len(m.class)
	c.Model = &factorgraph.Model{Domains: make([]int, n)}
	for v, class := range m.class {
		d := m.values[class]
		c.Model.Domains[v] = d
		t := dense([]int{d}, make([]float64, d)...)
		for a, x := range m.weights[v] {
			t.Data[m.relabels[v][a]] = x
		}
		c.addFactor(t, v)
	}
	for v := range n {
		for u := range v {
			m.addPair(c, u, v)
		}
	}

	for class := range m.values {
		if m.triple[class] == nil {
			continue
		}
		for v := range n {
			for u := range v {
				for w := range u {
					if m.class[v] == class && m.class[u] == class && m.class[w] == class {
						m.addTriple(c, w, u, v)
					}
				}
			}
		}
	}
}

// addTriple adds the table of three members of one class, in their relabelled values.
func (m *classModel) addTriple(c *Case, w, u, v int) {
	d, t := m.values[m.class[v]], m.triple[m.class[v]]
	data := make([]float64, len(t))
	for index, entry := range t {
		x, y, z := m.relabels[w][index/(d*d)], m.relabels[u][index/d%d], m.relabels[v][index%d]
		data[(x*d+y)*d+z] = entry
	}
	c.addFactor(dense([]int{d, d, d}, data...), w, u, v)
}

// addPair adds the table of members u and v in their relabelled values, if their classes have one. The scope is (u, v) or (v, u), at
// random. If the pair has a hidden variable, that is appended to the model and to the scope, and gets a factor with its weights.
func (m *classModel) addPair(c *Case, u, v int) {
	if m.class[u] > m.class[v] {
		u, v = v, u
	}
	key := [2]int{m.class[u], m.class[v]}
	t, ok := m.pair[key]
	if !ok {
		return
	}
	du, dv := m.values[key[0]], m.values[key[1]]
	h := len(t) / (du * dv) // values of the hidden variable; 1: none
	data := make([]float64, len(t))
	isTransposed := m.d.Chance(0.5) && h == 1
	for index, entry := range t {
		a, b := m.relabels[u][index/h/dv], m.relabels[v][index/h%dv]
		if isTransposed {
			data[b*du+a] = entry
		} else {
			data[(a*dv+b)*h+index%h] = entry
		}
	}

	switch {
	case h > 1:
		hidden := len(c.Model.Domains)
		c.Model.Domains = append(c.Model.Domains, h)
		c.addFactor(dense([]int{du, dv, h}, data...), u, v, hidden)
		c.addFactor(dense([]int{h}, m.hidden[key]...), hidden)
	case isTransposed:
		c.addFactor(dense([]int{dv, du}, data...), v, u)
	default:
		c.addFactor(dense([]int{du, dv}, data...), u, v)
	}
}

// drawEvidence draws evidence on some members in 60 % of models, one to three of them on average, and multiplies it into their weights.
// Members of class 0 may get one common likelihood, all others are observed.
func (m *classModel) drawEvidence(q *query.Query) {
	if m.d.Chance(0.4) {
		return
	}
	rng := m.d.Rand
	likelihood := make([]float64, m.values[0])
	for a := range likelihood {
		likelihood[a] = 0.1 + rng.Float64()
	}

	expected := 1 + rng.IntN(3)
	for v, class := range m.class {
		if rng.IntN(len(m.class)) >= expected {
			continue
		}
		d := m.values[class]
		weights := make([]float64, d)

		// A likelihood.
		if class == 0 && m.d.Chance(0.3) {
			e := factorgraph.Likelihood{Var: v, Weights: make([]float64, d)}
			for a := range weights {
				weights[a] = m.weights[v][a] * likelihood[a]
				e.Weights[m.relabels[v][a]] = likelihood[a]
			}
			m.weights[v] = weights
			q.Evidence.Soft = append(q.Evidence.Soft, e)
			continue
		}

		// An observation, often of value 0, since all members can have that at once.
		a := rng.IntN(d)
		if m.d.Chance(0.7) {
			a = 0
		}
		weights[a] = m.weights[v][a]
		m.weights[v] = weights
		q.Evidence.Hard = append(q.Evidence.Hard, factorgraph.Observation{Var: v, Value: m.relabels[v][a]})
	}
}
