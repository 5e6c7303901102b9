package truth

// The sum over the count vectors of classes, in 60 digits.

import (
	"math/big"

	"github.com/basetensor/basetensor/internal/testing/oracle"
)

// sameWeights reports whether two lists of weights of one class are equal, so that their members are of one group.
func sameWeights(a, b []float64) bool {
	for k := range a {
		if a[k] != b[k] {
			return false
		}
	}
	return true
}

// classGroups divides the members of a classModel into groups: members of one class with the same weights.
type classGroups struct {
	group     []int // by member: its group
	first     []int // by group: one of its members
	size      []int // by group: the number of its members
	firstSlot []int // by group: the slot of its value 0; those of its other values follow
}

// groupMembers returns the groups of the members, and sets the slots of the model: one for each value of each group.
func (m *classModel) groupMembers() classGroups {
	g := classGroups{group: make([]int, len(m.class))}
	for v := range m.class {
		g.group[v] = -1
		for k, r := range g.first {
			if m.class[r] == m.class[v] && sameWeights(m.weights[r], m.weights[v]) {
				g.group[v] = k
				g.size[k]++
				break
			}
		}
		if g.group[v] < 0 {
			g.group[v] = len(g.first)
			g.first, g.size = append(g.first, v), append(g.size, 1)
		}
	}

	g.firstSlot = make([]int, len(g.first))
	for k, v := range g.first {
		g.firstSlot[k] = len(m.slots)
		d := m.values[m.class[v]]
		for a := range d {
			m.slots = append(m.slots, slot{
				group: k, class: m.class[v], value: a, n: g.size[k], isLast: a == d-1, weight: bigFloat(m.weights[v][a]),
			})
		}
	}
	return g
}

// solve returns Z as the sum over all count vectors, and the marginals of all variables if they are asked for.
//
// The marginal of a member is the mean share of its group that has each value. The marginal of the hidden variable of a pair needs the mean
// number of pairs of members with each two values.
func (m *classModel) solve(wantsMarginals bool) Truth {
	groups := m.groupMembers()
	m.pairs = make([][]*big.Float, len(m.slots))
	for s := range m.slots {
		for t := range m.slots {
			m.pairs[s] = append(m.pairs[s], m.pairEntry(s, t))
		}
	}

	sum := bigFloat(0)
	m.forEachCounts(func(_ []int, w *big.Float) { sum.Add(sum, w) })
	if sum.Sign() == 0 {
		return Truth{}
	}
	t := Truth{Z: numberOf(sum)}
	if !wantsMarginals {
		return t
	}

	// Mean counts of the slots, and of ordered pairs of different members in slots s and r: meanPairs[s·slots + r].
	mean := make([]float64, len(m.slots))
	meanPairs := make([]float64, len(m.slots)*len(m.slots))
	m.forEachCounts(func(counts []int, w *big.Float) {
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
				meanPairs[s*len(counts)+r] += p * float64(k) * float64(l)
			}
		}
	})

	// Members first, then hidden variables in the order in which addModel adds them.
	for v, g := range groups.group {
		row := make([]float64, m.values[m.class[v]])
		for a := range row {
			row[m.relabels[v][a]] = mean[groups.firstSlot[g]+a] / float64(groups.size[g])
		}
		t.Marginals = append(t.Marginals, row)
	}
	for v := range m.class {
		for u := range v {
			if row := m.hiddenMarginal(u, v, groups, meanPairs); row != nil {
				t.Marginals = append(t.Marginals, row)
			}
		}
	}
	return t
}

// hiddenMarginal returns the marginal of the hidden variable of members u and v, or nil if they have none. It is
// P(h) = Σ_ab P(u = a, v = b) · table(a, b, h) · weight(h) / Σ_h' table(a, b, h') · weight(h'), where P(u = a, v = b) is the mean number of
// pairs of their groups with these values, meanPairs, divided by the number of pairs.
func (m *classModel) hiddenMarginal(u, v int, groups classGroups, meanPairs []float64) []float64 {
	if m.class[u] > m.class[v] {
		u, v = v, u
	}
	key := [2]int{m.class[u], m.class[v]}
	weights := m.hidden[key]
	if weights == nil {
		return nil
	}

	gu, gv := groups.group[u], groups.group[v]
	pairs := float64(groups.size[gu] * groups.size[gv]) // ordered pairs of different members
	if gu == gv {
		pairs -= float64(groups.size[gu])
	}

	row := make([]float64, len(weights))
	du, dv := m.values[key[0]], m.values[key[1]]
	for a := range du {
		for b := range dv {
			s, r := groups.firstSlot[gu]+a, groups.firstSlot[gv]+b
			p := meanPairs[s*len(m.slots)+r] / pairs
			if p == 0 {
				continue
			}
			for h, w := range weights {
				entry := bigFloat(m.pair[key][(a*dv+b)*len(weights)+h])
				conditional, _ := new(big.Float).Quo(bigProduct(entry, bigFloat(w)), m.pairs[s][r]).Float64()
				row[h] += p * conditional
			}
		}
	}
	return row
}

// pairEntry returns the entry of the table of two members with the values of slots s and t, with the hidden variable summed out if there is
// one. It is 1 if their classes have no table.
func (m *classModel) pairEntry(s, t int) *big.Float {
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
	entries := table[(a.value*m.values[key[1]]+b.value)*h:][:h] // by the value of the hidden variable
	if h == 1 {
		return bigFloat(entries[0])
	}
	sum := bigFloat(0)
	for x, entry := range entries {
		sum.Add(sum, bigProduct(bigFloat(entry), bigFloat(m.hidden[key][x])))
	}
	return sum
}

// forEachCounts calls f for every count vector (the number of members in each slot) with a positive weight. The weight is the number of
// assignments with these counts times the weight of each:
//
//	Π_groups n! / Π_slots k_s! · Π_s weight_s^k_s · Π_s pair_ss^(k_s (k_s − 1)/2) · Π_{s<t} pair_st^(k_s k_t) · triples.
//
// f must not keep or change its arguments.
func (m *classModel) forEachCounts(f func(counts []int, weight *big.Float)) {
	counts := make([]int, len(m.slots))
	pairFactors := make([]*big.Float, len(m.slots))
	for s := range pairFactors {
		pairFactors[s] = bigFloat(1)
	}

	// visit chooses the counts of slot s and those after it. unplaced is the number of members of the slot's group that have no slot yet,
	// weight the product for the slots before s, and pairFactors[t] is Π_{r<s} pair_rt^k_r, for every member that is put into slot t ≥ s.
	var visit func(s, unplaced int, weight *big.Float, pairFactors []*big.Float)
	visit = func(s, unplaced int, weight *big.Float, pairFactors []*big.Float) {
		if s == len(m.slots) {
			if w := m.timesTriples(counts, weight); w.Sign() > 0 {
				f(counts, w)
			}
			return
		}

		// The last slot of a group takes all of its members that remain.
		current := &m.slots[s]
		if current.value == 0 {
			unplaced = current.n
		}
		least := 0
		if current.isLast {
			least = unplaced
		}

		memberWeight := bigProduct(current.weight, pairFactors[s])
		for k := least; k <= unplaced; k++ {
			w := bigProduct(weight, bigPower(memberWeight, k))
			w = bigProduct(w, bigPower(m.pairs[s][s], k*(k-1)/2))
			if w.Sign() == 0 {
				if k > 2 {
					break // larger counts have weight 0 as well
				}
				continue
			}
			w.Quo(w, m.factorial(k))
			if current.isLast {
				w = bigProduct(w, m.factorial(current.n))
			}
			next := pairFactors
			if k > 0 && s+1 < len(pairFactors) {
				next = append([]*big.Float{}, pairFactors...)
				for t := s + 1; t < len(pairFactors); t++ {
					next[t] = bigProduct(pairFactors[t], bigPower(m.pairs[s][t], k))
				}
			}
			counts[s] = k
			visit(s+1, unplaced-k, w, next)
		}
		counts[s] = 0
	}
	visit(0, 0, bigFloat(1), pairFactors)
}

// timesTriples returns weight times the tables of all triples of members, given the counts of the slots. A class with k[a] members of value
// a has k[a]·k[b]·k[e] triples of three different values, and C(k[a], 2)·k[b] or C(k[a], 3) if values are equal.
func (m *classModel) timesTriples(counts []int, weight *big.Float) *big.Float {
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
					triples := k[a] * k[b] * k[e]
					switch {
					case a == e:
						triples = k[a] * (k[a] - 1) * (k[a] - 2) / 6
					case a == b:
						triples = k[a] * (k[a] - 1) / 2 * k[e]
					case b == e:
						triples = k[b] * (k[b] - 1) / 2 * k[a]
					}
					if triples > 0 {
						weight = bigProduct(weight, bigPower(bigFloat(table[(a*d+b)*d+e]), triples))
					}
				}
			}
		}
	}
	return weight
}

// factorial returns n!, and keeps it.
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

// numberOf returns x as an oracle's number, without rounding.
func numberOf(x *big.Float) oracle.Number {
	m := new(big.Float)
	exp := x.MantExp(m)
	i, _ := m.SetMantExp(m, classBits).Int(nil)
	return oracle.NewNumber(i, int64(exp)-classBits)
}
