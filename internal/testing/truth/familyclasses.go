package truth

// Classes of variables that may be swapped: one table for each kind of pair, and sums over counts in 60 digits.

import (
	"math"
	"math/big"

	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/testing/oracle"
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
	decades := generate.Pick(d.Rand, 0.5, 0.5, 1, 3, 3, 300)
	m.drawSizes(bound)
	m.drawTables(decades, generate.Pick(d.Rand, 0, 0, 0.05, 0.2))
	m.drawMembers(decades)
	c.Model = m.model(c)
	c.Settings = btn.Settings{Method: generate.Pick(d.Rand, btn.MethodAuto, btn.MethodAuto, btn.MethodExact), Seed: c.Settings.Seed}
	q := query.Query{Marginals: d.Chance(0.7)}
	m.observe(&q)
	c.Queries = []query.Query{q}
	return m.solve(q.Marginals)
}

// drawSizes draws classes whose count vectors are at most so many.
func (m *classModel) drawSizes(bound float64) {
	rng := m.d.Rand
	count := generate.Pick(rng, 1, 1, 2, 2, 2, 3, 4)
	for k := range count {
		d := generate.Pick(rng, 2, 2, 2, 2, 3, 3, 4, 5, 8)
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

// sameWeights reports whether two members are of one group.
func sameWeights(a, b []float64) bool {
	for k := range a {
		if a[k] != b[k] {
			return false
		}
	}
	return true
}

// solve adds up all count vectors.
func (m *classModel) solve(marginals bool) Truth {
	group := make([]int, len(m.class))
	var first []int
	var members []int
	for v := range m.class {
		group[v] = -1
		for g, r := range first {
			if m.class[r] == m.class[v] && sameWeights(m.weights[r], m.weights[v]) {
				group[v] = g
				members[g]++
				break
			}
		}
		if group[v] < 0 {
			group[v] = len(first)
			first, members = append(first, v), append(members, 1)
		}
	}
	slotOf := make([]int, len(first)) // of value 0
	for g, v := range first {
		slotOf[g] = len(m.slots)
		d := m.values[m.class[v]]
		for a := range d {
			m.slots = append(m.slots, slot{g, m.class[v], a, members[g], a == d-1, bigFloat(m.weights[v][a])})
		}
	}
	m.pairs = make([][]*big.Float, len(m.slots))
	for s := range m.slots {
		for t := range m.slots {
			m.pairs[s] = append(m.pairs[s], m.pairOf(s, t))
		}
	}
	sum := bigFloat(0)
	m.each(func(_ []int, w *big.Float) { sum.Add(sum, w) })
	if sum.Sign() == 0 {
		return Truth{}
	}
	t := Truth{Z: numberOf(sum)}
	if !marginals {
		return t
	}
	mean := make([]float64, len(m.slots))
	product := make([]float64, len(m.slots)*len(m.slots))
	m.each(func(counts []int, w *big.Float) {
		p, _ := new(big.Float).Quo(w, sum).Float64()
		for s, k := range counts {
			mean[s] += p * float64(k)
			if len(m.hidden) == 0 {
				continue
			}
			for r, l := range counts {
				if r == s {
					l--
				}
				product[s*len(counts)+r] += p * float64(k) * float64(l)
			}
		}
	})
	for v, g := range group {
		row := make([]float64, m.values[m.class[v]])
		for a := range row {
			row[m.relabels[v][a]] = mean[slotOf[g]+a] / float64(members[g])
		}
		t.Marginals = append(t.Marginals, row)
	}
	for v := range m.class { // in the sequence of addPair
		for u := range v {
			t.Marginals = append(t.Marginals, m.hiddenRow(u, v, group, slotOf, members, product)...)
		}
	}
	return t
}

// hiddenRow returns the marginal of the hidden variable of a pair, if it has one.
func (m *classModel) hiddenRow(u, v int, group, slotOf, members []int, product []float64) [][]float64 {
	if m.class[u] > m.class[v] {
		u, v = v, u
	}
	key := [2]int{m.class[u], m.class[v]}
	weights := m.hidden[key]
	if weights == nil {
		return nil
	}
	row := make([]float64, len(weights))
	pairs := float64(members[group[u]] * members[group[v]])
	if group[u] == group[v] {
		pairs -= float64(members[group[u]])
	}
	du, dv := m.values[key[0]], m.values[key[1]]
	for a := range du {
		for b := range dv {
			s, r := slotOf[group[u]]+a, slotOf[group[v]]+b
			p := product[s*len(m.slots)+r] / pairs
			if p == 0 {
				continue
			}
			for h, w := range weights {
				share, _ := new(big.Float).Quo(bigProduct(bigFloat(m.pair[key][(a*dv+b)*len(weights)+h]), bigFloat(w)), m.pairs[s][r]).Float64()
				row[h] += p * share
			}
		}
	}
	return [][]float64{row}
}

// pairOf is the table entry of two slots, hidden variables summed out.
func (m *classModel) pairOf(s, t int) *big.Float {
	a, b := m.slots[s], m.slots[t]
	if a.class > b.class {
		a, b = b, a
	}
	key := [2]int{a.class, b.class}
	table, ok := m.pair[key]
	if !ok {
		return bigFloat(1)
	}
	h := len(table) / (m.values[key[0]] * m.values[key[1]])
	from := table[(a.value*m.values[key[1]]+b.value)*h:][:h]
	if h == 1 {
		return bigFloat(from[0])
	}
	sum := bigFloat(0)
	for x, y := range from {
		sum.Add(sum, bigProduct(bigFloat(y), bigFloat(m.hidden[key][x])))
	}
	return sum
}

// each calls f for every count vector with a weight above 0: the number of its assignments times their weight.
func (m *classModel) each(f func(counts []int, weight *big.Float)) {
	counts := make([]int, len(m.slots))
	row := make([]*big.Float, len(m.slots)) // Π over earlier slots of pair^count
	for s := range row {
		row[s] = bigFloat(1)
	}
	var walk func(s, left int, weight *big.Float, row []*big.Float)
	walk = func(s, left int, weight *big.Float, row []*big.Float) {
		if s == len(m.slots) {
			if w := m.tripled(counts, weight); w.Sign() > 0 {
				f(counts, w)
			}
			return
		}
		own := &m.slots[s]
		if own.value == 0 {
			left = own.n
		}
		least := 0
		if own.isLast {
			least = left
		}
		each := bigProduct(own.weight, row[s])
		for k := least; k <= left; k++ {
			w := bigProduct(weight, bigPower(each, k))
			w = bigProduct(w, bigPower(m.pairs[s][s], k*(k-1)/2))
			if w.Sign() == 0 {
				if k > 2 {
					break
				}
				continue
			}
			w.Quo(w, m.factorial(k))
			if own.isLast {
				w = bigProduct(w, m.factorial(own.n))
			}
			next := row
			if k > 0 && s+1 < len(row) {
				next = append([]*big.Float{}, row...)
				for t := s + 1; t < len(row); t++ {
					next[t] = bigProduct(row[t], bigPower(m.pairs[s][t], k))
				}
			}
			counts[s] = k
			walk(s+1, left-k, w, next)
		}
		counts[s] = 0
	}
	walk(0, 0, bigFloat(1), row)
}

// tripled multiplies a weight by the tables of triples.
func (m *classModel) tripled(counts []int, weight *big.Float) *big.Float {
	for class, table := range m.triple {
		d := m.values[class]
		k := make([]int, d)
		for s, c := range counts {
			if m.slots[s].class == class {
				k[m.slots[s].value] += c
			}
		}
		for a := range d {
			for b := a; b < d; b++ {
				for e := b; e < d; e++ {
					ways := k[a] * k[b] * k[e]
					switch {
					case a == e:
						ways = k[a] * (k[a] - 1) * (k[a] - 2) / 6
					case a == b:
						ways = k[a] * (k[a] - 1) / 2 * k[e]
					case b == e:
						ways = k[b] * (k[b] - 1) / 2 * k[a]
					}
					if ways > 0 {
						weight = bigProduct(weight, bigPower(bigFloat(table[(a*d+b)*d+e]), ways))
					}
				}
			}
		}
	}
	return weight
}

// factorial is n!.
func (m *classModel) factorial(n int) *big.Float {
	for k := len(m.factorials); k <= n; k++ {
		f := bigFloat(1)
		if k > 0 {
			f = bigProduct(m.factorials[k-1], bigFloat(float64(k)))
		}
		m.factorials = append(m.factorials, f)
	}
	return m.factorials[n]
}

// numberOf returns a big.Float without rounding.
func numberOf(x *big.Float) oracle.Number {
	m := new(big.Float)
	exp := x.MantExp(m)
	i, _ := m.SetMantExp(m, classBits).Int(nil)
	return oracle.NewNumber(i, int64(exp)-classBits)
}
