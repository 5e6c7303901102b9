package modeltest

// Models of other tables: Potts, Blume–Capel, clauses, noisy-or, Bayesian networks, noisy gates, independent sets, interfaces.

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/tensor"
)

func potts(side int, j float64, seed uint64) (*factorgraph.Model, error) {
	r := random(seed, "potts")
	n, edges := lattice(false, side, side)
	b := variables(n, 3)
	for i := range n {
		b.weigh(i, func() float64 { return uniform(r, weak) })
	}
	for _, e := range edges {
		b.pair(e[0], e[1], math.Exp(2*j*r.Float64()), 1)
	}
	return &b.Model, nil
}

// weigh adds weights of all values of a variable, and draws their logarithms.
func (b *builder) weigh(i int, draw func() float64) {
	entries := b.table(i)
	for x := range entries {
		entries[x] = math.Exp(draw())
	}
}

func softSAT(n int, weight float64, seed uint64) (*factorgraph.Model, error) {
	r := random(seed, "soft sat")
	b := variables(n, 2)
	for range 2 * n {
		entries := b.table(r.Perm(n)[:3]...)
		for k := range entries {
			entries[k] = 1
		}
		entries[r.IntN(8)] = math.Exp(-weight)
	}
	return &b.Model, nil
}

// qmr is a network of two levels (the form of QMR-DT: Shwe and others, 1991): independent diseases; a finding is absent with probability
// 0.95 Π (1 − a_k) over its diseases that are present, a_k ~ U(0.3, 0.9). All findings are positive, so the variables are the diseases.
func qmr(diseases int, prior float64, seed uint64) (*factorgraph.Model, error) {
	const parents, leak = 4, 0.05
	r := random(seed, "qmr")
	b := variables(diseases, 2)
	for i := range diseases {
		b.add([]int{i}, 1-prior, prior)
	}
	for range diseases {
		scope := r.Perm(diseases)[:parents]
		var quiet [parents]float64
		for k := range quiet {
			quiet[k] = 1 - 0.3 - 0.6*r.Float64()
		}
		entries := b.table(scope...)
		for x := range entries {
			absent := 1 - leak
			for k, q := range quiet {
				if x>>(parents-1-k)&1 == 1 {
					absent *= q
				}
			}
			entries[x] = 1 - absent
		}
	}
	return &b.Model, nil
}

// row draws from a Dirichlet distribution of equal parameters, small ones for rows near 0 and 1; no entry is below 1e-6 of the largest.
func row(r *rand.Rand, values int, a float64) []float64 {
	p, sum := make([]float64, values), 0.0
	for k := range p {
		p[k] = gamma(r, a)
	}
	top := slices.Max(p)
	for k := range p {
		p[k] = max(p[k], 1e-6*top)
		sum += p[k]
	}
	for k := range p {
		p[k] /= sum
	}
	return p
}

// gamma draws from the gamma distribution of scale 1 (Marsaglia and Tsang, 2000; below 1 by a power of a uniform number).
func gamma(r *rand.Rand, a float64) float64 {
	if a < 1 {
		return gamma(r, a+1) * math.Pow(1-r.Float64(), 1/a)
	}
	d := a - 1./3
	for {
		x := r.NormFloat64()
		v := 1 + x/math.Sqrt(9*d)
		if v <= 0 {
			continue
		}
		v = v * v * v
		if math.Log(1-r.Float64()) < x*x/2+d-d*v+d*math.Log(v) {
			return d * v
		}
	}
}

// conditional adds P(child | parents): rows Dirichlet(a), the child last.
func (b *builder) conditional(r *rand.Rand, parents []int, child int, a float64) {
	rows := 1
	for _, p := range parents {
		rows *= b.Domains[p]
	}
	entries := make([]float64, 0, rows*b.Domains[child])
	for range rows {
		entries = append(entries, row(r, b.Domains[child], a)...)
	}
	b.add(append(slices.Clone(parents), child), entries...)
}

// observe draws a state from the first n factors, which are conditional probability tables in the sequence of their children, and adds its
// values at these variables as evidence.
func (b *builder) observe(r *rand.Rand, variables []int) {
	x := make([]int, len(b.Domains))
	for _, f := range b.Factors {
		parents, child := f.Scope[:len(f.Scope)-1], f.Scope[len(f.Scope)-1]
		given := 0
		for _, v := range parents {
			given = given*b.Domains[v] + x[v]
		}
		d, u := b.Domains[child], r.Float64()
		for k, p := range f.Table.(*tensor.Dense).Data[given*d : (given+1)*d] {
			if x[child] = k; u < p {
				break
			}
			u -= p
		}
	}
	for _, v := range variables {
		b.table(v)[x[v]] = 1
	}
}

func bayesian(n int, a float64, seed uint64) (*factorgraph.Model, error) {
	const most, near = 4, 15
	r := random(seed, "bayesian network")
	b := variables(n, 0)
	for i := range b.Domains {
		b.Domains[i] = 2 + r.IntN(2)
	}
	for i := range n {
		first := max(0, i-near)
		count := min(i, 1+r.IntN(most))
		parents := r.Perm(i - first)[:count]
		for k := range parents {
			parents[k] += first
		}
		slices.Sort(parents)
		b.conditional(r, parents, i, a)
	}
	var observed []int
	for i := n - n/5; i < n; i++ {
		observed = append(observed, i)
	}
	b.observe(r, observed)
	return &b.Model, nil
}

func dynamic(chains int, a float64, seed uint64) (*factorgraph.Model, error) {
	const steps = 10
	r := random(seed, "dbn")
	b := variables(chains*steps, 2)
	var observed []int
	for i := range chains * steps {
		t, c := i/chains, i%chains
		var parents []int
		if t > 0 {
			parents = []int{i - chains, (t-1)*chains + (c+1)%chains, (t-1)*chains + (c+chains-1)%chains}
		}
		b.conditional(r, parents, i, a)
		if t > 0 && r.IntN(3) == 0 {
			observed = append(observed, i)
		}
	}
	b.observe(r, observed)
	return &b.Model, nil
}

// noisyGates is a circuit of n wires, the first ten random, the others functions of three of the thirty wires before: and, or, parity,
// the majority, or one of them chosen by another; each is flipped with probability ε, and every fifth observed.
func noisyGates(n int, noise float64, seed uint64) (*factorgraph.Model, error) {
	const inputs, near = 10, 30
	gates := [][8]float64{{7: 1}, {0, 1, 1, 1, 1, 1, 1, 1}, {0, 1, 1, 0, 1, 0, 0, 1}, {0, 0, 0, 1, 0, 1, 1, 1}, {0, 0, 1, 1, 0, 1, 0, 1}}
	r := random(seed, "noisy gates")
	b := variables(n, 2)
	var observed []int
	for i := range n {
		if i < inputs {
			b.add([]int{i}, 0.5, 0.5)
			continue
		}
		first := max(0, i-near)
		wires := r.Perm(i - first)[:3]
		entries := b.table(first+wires[0], first+wires[1], first+wires[2], i)
		for x, one := range gates[r.IntN(len(gates))] {
			p := noise + (1-2*noise)*one
			entries[2*x], entries[2*x+1] = 1-p, p
		}
		if i%5 == 0 {
			observed = append(observed, i)
		}
	}
	b.observe(r, observed)
	return &b.Model, nil
}

// hardCore draws a random 3-regular graph and weighs its independent sets: fugacity^k for one of k vertices.
func hardCore(n int, fugacity float64, seed uint64) (*factorgraph.Model, error) {
	return onRegular(n, seed, []float64{1, fugacity}, []float64{1, 1, 1, 0})
}

// strongFerromagnet draws spins on a random 3-regular graph with the coupling J everywhere, and a field that tells its two phases apart by
// little.
func strongFerromagnet(n int, j float64, seed uint64) (*factorgraph.Model, error) {
	equal, unequal := math.Exp(j), math.Exp(-j)
	return onRegular(n, seed, []float64{math.Exp(-0.002), math.Exp(0.002)}, []float64{equal, unequal, unequal, equal})
}

// strongPotts draws variables of three states on a random 3-regular graph: e^J where neighbours are equal.
func strongPotts(n int, j float64, seed uint64) (*factorgraph.Model, error) {
	equal := math.Exp(j)
	return onRegular(n, seed, []float64{math.Exp(0.01), 1, 1}, []float64{equal, 1, 1, 1, equal, 1, 1, 1, equal})
}

// onRegular has the same table at all vertices of a random 3-regular graph, and the same at all edges.
func onRegular(n int, seed uint64, vertex, edge []float64) (*factorgraph.Model, error) {
	scopes, err := regularScopes(n, seed)
	if err != nil {
		return nil, err
	}
	b := variables(n, len(vertex))
	for i := range n {
		b.add([]int{i}, vertex...)
	}
	for _, scope := range scopes {
		b.add(scope, edge...)
	}
	return &b.Model, nil
}

// blumeCapel is a grid of 9 × n spins −1, 0, 1: e^(J x_i x_j) and e^(−D x²), D = 1.965 J where phases meet, and weak fields.
func blumeCapel(length int, j float64, seed uint64) (*factorgraph.Model, error) {
	r := random(seed, "blume-capel")
	n, edges := lattice(false, length, 9)
	b := variables(n, 3)
	for i := range n {
		h := uniform(r, weak)
		b.add([]int{i}, math.Exp(-1.965*j-h), 1, math.Exp(-1.965*j+h))
	}
	equal, opposite := math.Exp(j), math.Exp(-j)
	for _, e := range edges {
		b.add(e[:], equal, 1, opposite, 1, 1, 1, opposite, 1, equal)
	}
	return &b.Model, nil
}

// solidOnSolid is an interface of heights 0 to 4 over a grid of 6 × n: e^(−β |difference|), pinned by ln weights U(−½, ½).
func solidOnSolid(length int, beta float64, seed uint64) (*factorgraph.Model, error) {
	const heights = 5
	r := random(seed, "solid on solid")
	n, edges := lattice(false, length, 6)
	b := variables(n, heights)
	for i := range n {
		b.weigh(i, func() float64 { return uniform(r, 0.5) })
	}
	for _, e := range edges {
		entries := b.table(e[0], e[1])
		for x := range entries {
			entries[x] = math.Exp(-beta * math.Abs(float64(x/heights-x%heights)))
		}
	}
	return &b.Model, nil
}
