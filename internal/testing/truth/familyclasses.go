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

// classModel is variables of some classes. Slots are values of groups: members of a class with the same weights.
type classModel struct {
	d          *drawer
	sizes      []int
	values     []int
	pair       map[[2]int][]float64 // of classes i ≤ j; the visible table, or with the hidden value fastest
	hidden     map[[2]int][]float64 // weights of the hidden variable of each such pair
	triple     map[int][]float64    // of three members of a class, symmetric
	weights    [][]float64          // by member
	class      []int                // by member
	relabels   [][]int              // by member: its value for each of the class's
	slots      []slot
	pairs      [][]*big.Float // by slot and slot: the sum over the hidden variable
	factorials []*big.Float
}

// slot is a value of a group.
type slot struct {
	group, class, value int
	n                   int // of the group
	isLast              bool
	weight              *big.Float
}

func bigFloat(x float64) *big.Float { return new(big.Float).SetPrec(classBits).SetFloat64(x) }

func bigProduct(a, b *big.Float) *big.Float { return new(big.Float).SetPrec(classBits).Mul(a, b) }

// bigPower returns x^n.
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

// number draws a weight: of ordinary size, of 1e-3 to 1e3, or of 1e-300 to 1e300.
func (m *classModel) number(decades float64) float64 {
	return math.Pow(10, decades*(2*m.d.Rand.Float64()-1))
}

// classes draws one to four classes with tables of pairs, triples, hidden variables of pairs, zeros, evidence on some members, and values
// relabelled; the number of count vectors is drawn log-uniformly up to a bound.
func (d *drawer) classes(c *Case) Truth {
	bound := 1e6
	if d.few {
		bound = 60
	}
	bound = math.Exp(d.Rand.Float64() * math.Log(bound))
	if d.Chance(0.5) {
		bound = min(bound, 2000)
	}
	m := &classModel{d: d, pair: map[[2]int][]float64{}, hidden: map[[2]int][]float64{}, triple: map[int][]float64{}}
	decades := modeltest.Pick(d.Rand, 0.5, 0.5, 1, 3, 3, 300)
	m.drawSizes(bound)
	m.drawTables(decades, modeltest.Pick(d.Rand, 0, 0, 0.05, 0.2))
	m.drawMembers(decades)
	c.Model = m.model(c)
	c.Settings = query.Settings{Method: modeltest.Pick(d.Rand, query.MethodAuto, query.MethodAuto, query.MethodExact), Seed: c.Settings.Seed}
	q := query.Query{Marginals: d.Chance(0.7)}
	m.observe(&q)
	c.Queries = []query.Query{q}
	return m.solve(q.Marginals)
}

// drawSizes draws classes whose count vectors are at most so many.
func (m *classModel) drawSizes(bound float64) {
	rng := m.d.Rand
	count := modeltest.Pick(rng, 1, 1, 2, 2, 2, 3, 4)
	for k := range count {
		d := modeltest.Pick(rng, 2, 2, 2, 2, 3, 3, 4, 5, 8)
		share := math.Pow(bound, 1/float64(count-k))
		n := 1
		limit := 1000
		if m.d.few {
			limit = 6
		} else if m.d.Chance(0.5) {
			limit = 15 + rng.IntN(26)
		}
		for n < limit && choose(n+d, d-1) <= share {
			n++
		}
		if m.d.few {
			n = min(n, 4)
		}
		m.sizes, m.values = append(m.sizes, n), append(m.values, d)
		bound /= choose(n+d-1, d-1)
	}
	total := 0
	for _, n := range m.sizes {
		total += n
	}
	for total < 12 && !m.d.few { // elimination takes such a small one
		m.sizes[0]++
		total++
	}
}

// choose is C(n, k).
func choose(n, k int) float64 {
	c := 1.0
	for i := range k {
		c = c * float64(n-i) / float64(i+1)
	}
	return c
}

// drawTables draws a table for each kind of pair that has one.
func (m *classModel) drawTables(decades, zero float64) {
	rng := m.d.Rand
	entry := func(diagonal bool) float64 {
		if !diagonal && rng.Float64() < zero {
			return 0
		}
		return m.number(decades)
	}
	for i, di := range m.values {
		for j := i; j < len(m.values); j++ {
			dj := m.values[j]
			if m.d.Chance(0.15) {
				continue
			}
			h := 1
			if m.sizes[i]*m.sizes[j] < 2500 && m.d.Chance(0.2) {
				h = 2 + rng.IntN(2)
				for range h {
					m.hidden[[2]int{i, j}] = append(m.hidden[[2]int{i, j}], m.number(min(decades, 3)))
				}
			}
			t := make([]float64, di*dj*h)
			for a := range di {
				for b := range dj {
					for x := range h {
						at := (a*dj+b)*h + x
						switch {
						case i == j && a > b:
							t[at] = t[(b*dj+a)*h+x]
						default:
							t[at] = entry(a == 0 && b == 0) // value 0 of all is always possible
						}
					}
				}
			}
			m.pair[[2]int{i, j}] = t
		}
		if n := m.sizes[i]; n >= 3 && n <= 16 && di <= 3 && m.d.Chance(0.15) {
			t := make([]float64, di*di*di)
			known := map[[3]int]float64{}
			for at := range t {
				counts := [3]int{}
				for rest := at + di*di*di; rest > 1; rest /= di {
					counts[rest%di]++
				}
				if _, ok := known[counts]; !ok {
					known[counts] = entry(counts[0] == 3)
				}
				t[at] = known[counts]
			}
			m.triple[i] = t
		}
	}
}

// drawMembers draws the weights of every class, and the relabelling of every member.
func (m *classModel) drawMembers(decades float64) {
	relabelled := m.d.Chance(0.5)
	for c, n := range m.sizes {
		w := make([]float64, m.values[c])
		for a := range w {
			w[a] = m.number(min(decades, 3))
		}
		for range n {
			labels := make([]int, len(w))
			for a := range labels {
				labels[a] = a
			}
			if relabelled {
				labels = m.d.Rand.Perm(len(w))
			}
			m.class, m.weights, m.relabels = append(m.class, c), append(m.weights, w), append(m.relabels, labels)
		}
	}
}

// model returns the factor graph: members in a random sequence, hidden variables behind them.
func (m *classModel) model(c *Case) *factorgraph.Model {
	n := len(m.class)
	c.Model = &factorgraph.Model{Domains: make([]int, n)}
	for v, class := range m.class {
		d := m.values[class]
		c.Model.Domains[v] = d
		t := dense([]int{d}, make([]float64, d)...)
		for a, x := range m.weights[v] {
			t.Data[m.relabels[v][a]] = x
		}
		c.add(t, v)
	}
	for v := range n {
		for u := range v {
			m.addPair(c, u, v)
		}
	}
	for class, d := range m.values {
		t := m.triple[class]
		if t == nil {
			continue
		}
		for v := range n {
			for u := range v {
				for w := range u {
					if m.class[v] != class || m.class[u] != class || m.class[w] != class {
						continue
					}
					data := make([]float64, len(t))
					for at, x := range t {
						data[(m.relabels[w][at/(d*d)]*d+m.relabels[u][at/d%d])*d+m.relabels[v][at%d]] = x
					}
					c.add(dense([]int{d, d, d}, data...), w, u, v)
				}
			}
		}
	}
	return c.Model
}

// addPair adds the table of two members, in either sequence.
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
	h := len(t) / (du * dv)
	data := make([]float64, len(t))
	turned := m.d.Chance(0.5) && h == 1
	for at, x := range t {
		a, b := m.relabels[u][at/h/dv], m.relabels[v][at/h%dv]
		if turned {
			data[b*du+a] = x
		} else {
			data[(a*dv+b)*h+at%h] = x
		}
	}
	switch {
	case h > 1:
		hidden := len(c.Model.Domains)
		c.Model.Domains = append(c.Model.Domains, h)
		c.add(dense([]int{du, dv, h}, data...), u, v, hidden)
		c.add(dense([]int{h}, m.hidden[key]...), hidden)
	case turned:
		c.add(dense([]int{dv, du}, data...), v, u)
	default:
		c.add(dense([]int{du, dv}, data...), u, v)
	}
}

// observe draws evidence on some members.
func (m *classModel) observe(q *query.Query) {
	if m.d.Chance(0.4) {
		return
	}
	rng := m.d.Rand
	soft := make([]float64, m.values[0])
	for a := range soft {
		soft[a] = 0.1 + rng.Float64()
	}
	some := 1 + rng.IntN(3)
	for v, class := range m.class {
		if rng.IntN(len(m.class)) >= some {
			continue
		}
		d := m.values[class]
		own := make([]float64, d)
		if class == 0 && m.d.Chance(0.3) {
			e := factorgraph.Likelihood{Var: v, Weights: make([]float64, d)}
			for a := range own {
				own[a] = m.weights[v][a] * soft[a]
				e.Weights[m.relabels[v][a]] = soft[a]
			}
			m.weights[v] = own
			q.Evidence.Soft = append(q.Evidence.Soft, e)
			continue
		}
		a := rng.IntN(d)
		if m.d.Chance(0.7) {
			a = 0 // which is possible
		}
		own[a] = m.weights[v][a]
		m.weights[v] = own
		q.Evidence.Hard = append(q.Evidence.Hard, factorgraph.Observation{Var: v, Value: m.relabels[v][a]})
	}
}
