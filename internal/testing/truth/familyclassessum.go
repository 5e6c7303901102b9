package truth

// The sum over the count vectors of classes, in 60 digits.

import (
	"math/big"

	"github.com/basetensor/basetensor/internal/testing/oracle"
)

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
