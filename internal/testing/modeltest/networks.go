package modeltest

// Models of other tables: Potts, Blume–Capel, clauses, noisy-or, Bayesian networks, noisy gates, independent sets, interfaces.

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// potts returns a Potts model of three states on a grid: neighbours with equal values weigh e^U(0, 2j), those with different ones 1, and
// each value of a variable has a weak field.
func potts(side int, j float64, seed uint64) (*factorgraph.Model, error) {
	r := newStream(seed, "potts")
	n, edges := openLattice(side, side)
	b := newBuilder(n, 3)
	for i := range n {
		b.addValueWeights(i, func() float64 { return uniform(r, weakField) })
	}
	for _, e := range edges {
		b.addEqualityFactor(e[0], e[1], math.Exp(2*j*r.Float64()), 1)
	}
	return &b.Model, nil
}

// addValueWeights appends a factor over variable i alone, and draws the logarithm of each of its entries.
func (b *builder) addValueWeights(i int, drawLog func() float64) {
	entries := b.addTable(i)
	for x := range entries {
		entries[x] = math.Exp(drawLog())
	}
}

// softSAT returns 2n random clauses of three of n binary variables. The one assignment of the three that violates a clause weighs
// e^−weight, and the others 1.
func softSAT(n int, weight float64, seed uint64) (*factorgraph.Model, error) {
	r := newStream(seed, "soft sat")
	b := newBuilder(n, 2)
	for range 2 * n {
		entries := b.addTable(r.Perm(n)[:3]...)
		for k := range entries {
			entries[k] = 1
		}
		entries[r.IntN(8)] = math.Exp(-weight)
	}
	return &b.Model, nil
}

// qmr returns the posterior of n independent diseases given n positive findings (the form of QMR-DT: Shwe and others, 1991). Each finding
// has four possible diseases. It is absent with probability 0.95 Π (1 − a_k) over those of them that are present, a_k ~ U(0.3, 0.9),
// and positive otherwise; so there is a factor over four diseases for each finding.
func qmr(diseases int, prior float64, seed uint64) (*factorgraph.Model, error) {
	const parents, leak = 4, 0.05
	r := newStream(seed, "qmr")
	b := newBuilder(diseases, 2)
	for i := range diseases {
		b.addFactor([]int{i}, 1-prior, prior)
	}
	for range diseases {
		scope := r.Perm(diseases)[:parents]
		var notCaused [parents]float64 // 1 − a_k
		for k := range notCaused {
			notCaused[k] = 1 - 0.3 - 0.6*r.Float64()
		}
		entries := b.addTable(scope...)
		for x := range entries {
			absent := 1 - leak
			for k, q := range notCaused {
				isPresent := x>>(parents-1-k)&1 == 1
				if isPresent {
					absent *= q
				}
			}
			entries[x] = 1 - absent
		}
	}
	return &b.Model, nil
}

// dirichlet draws a probability vector from the Dirichlet distribution with all parameters a: gamma variables, divided by their sum. A
// small a gives entries near 0 and 1. Entries are raised to 1e-6 of the largest before they are normalised.
func dirichlet(r *rand.Rand, values int, a float64) []float64 {
	p, sum := make([]float64, values), 0.0
	for k := range p {
		p[k] = gamma(r, a)
	}
	largest := slices.Max(p)
	for k := range p {
		p[k] = max(p[k], 1e-6*largest)
		sum += p[k]
	}
	for k := range p {
		p[k] /= sum
	}
	return p
}

// gamma draws from the gamma distribution with shape a and scale 1, by the rejection method of Marsaglia and Tsang (2000). For a < 1 it
// multiplies a draw of shape a + 1 by U^(1/a), U uniform.
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
		lnAcceptance := x*x/2 + d - d*v + d*math.Log(v)
		if math.Log(1-r.Float64()) < lnAcceptance {
			return d * v
		}
	}
}

// addConditional appends the factor P(child | parents). The child is last in its scope; each row, that is each assignment of the
// parents, is drawn from Dirichlet(a).
func (b *builder) addConditional(r *rand.Rand, parents []int, child int, a float64) {
	rows := 1
	for _, p := range parents {
		rows *= b.Domains[p]
	}
	entries := make([]float64, 0, rows*b.Domains[child])
	for range rows {
		entries = append(entries, dirichlet(r, b.Domains[child], a)...)
	}
	b.addFactor(append(slices.Clone(parents), child), entries...)
}

// addSampledEvidence draws a state of a Bayesian network and observes its values at these variables: a factor that is 1 for the value and
// 0 elsewhere. All factors so far must be conditional probability tables (see addConditional), parents before children.
func (b *builder) addSampledEvidence(r *rand.Rand, observed []int) {
	state := make([]int, len(b.Domains))
	for _, f := range b.Factors {
		parents, child := f.Scope[:len(f.Scope)-1], f.Scope[len(f.Scope)-1]
		row := 0
		for _, v := range parents {
			row = row*b.Domains[v] + state[v]
		}

		// Draw the child from its row by inversion: the first value whose cumulated probability exceeds u.
		d, u := b.Domains[child], r.Float64()
		for k, p := range f.Table.(*tensor.Dense).Data[row*d : (row+1)*d] {
			if state[child] = k; u < p {
				break
			}
			u -= p
		}
	}
	for _, v := range observed {
		b.addTable(v)[state[v]] = 1
	}
}

// bayesian returns a Bayesian network of n variables of two or three values. A variable has up to four parents among the 15 variables
// before it and rows from Dirichlet(a). The last fifth of the variables is observed, at the values of a state that is drawn.
func bayesian(n int, a float64, seed uint64) (*factorgraph.Model, error) {
	const maxParents, parentRange = 4, 15
	r := newStream(seed, "bayesian network")
	b := newBuilder(n, 0)
	for i := range b.Domains {
		b.Domains[i] = 2 + r.IntN(2)
	}
	for i := range n {
		first := max(0, i-parentRange)
		count := min(i, 1+r.IntN(maxParents))
		parents := r.Perm(i - first)[:count]
		for k := range parents {
			parents[k] += first
		}
		slices.Sort(parents)
		b.addConditional(r, parents, i, a)
	}
	var observed []int
	for i := n - n/5; i < n; i++ {
		observed = append(observed, i)
	}
	b.addSampledEvidence(r, observed)
	return &b.Model, nil
}

// dynamic returns a dynamic Bayesian network: ten time steps of a ring of binary chains. Variable t·chains + c is chain c at step t. Its
// parents are that chain and its two neighbours at step t − 1, its rows are from Beta(a, a). A third of the variables after step 0 is
// observed, at the values of a state that is drawn.
func dynamic(chains int, a float64, seed uint64) (*factorgraph.Model, error) {
	const steps = 10
	r := newStream(seed, "dbn")
	b := newBuilder(chains*steps, 2)
	var observed []int
	for i := range chains * steps {
		t, c := i/chains, i%chains
		var parents []int
		if t > 0 {
			same, right, left := i-chains, (t-1)*chains+(c+1)%chains, (t-1)*chains+(c+chains-1)%chains
			parents = []int{same, right, left}
		}
		b.addConditional(r, parents, i, a)
		if t > 0 && r.IntN(3) == 0 {
			observed = append(observed, i)
		}
	}
	b.addSampledEvidence(r, observed)
	return &b.Model, nil
}

// noisyGates returns the posterior of the n wires of a logic circuit. The first ten wires are random bits. Each other wire is the output
// of a random gate over three of the thirty wires before it, flipped with probability noise. Every fifth of them is observed, at the
// values of a state that is drawn.
func noisyGates(n int, noise float64, seed uint64) (*factorgraph.Model, error) {
	const inputs, inputRange = 10, 30

	// Entry 4a + 2b + c is the output for the inputs a, b, c.
	gates := [][8]float64{
		{7: 1},                   // and
		{0, 1, 1, 1, 1, 1, 1, 1}, // or
		{0, 1, 1, 0, 1, 0, 0, 1}, // parity
		{0, 0, 0, 1, 0, 1, 1, 1}, // majority
		{0, 0, 1, 1, 0, 1, 0, 1}, // b if a = 0, c if a = 1
	}
	r := newStream(seed, "noisy gates")
	b := newBuilder(n, 2)
	var observed []int
	for i := range n {
		if i < inputs {
			b.addFactor([]int{i}, 0.5, 0.5)
			continue
		}
		first := max(0, i-inputRange)
		wires := r.Perm(i - first)[:3]
		entries := b.addTable(first+wires[0], first+wires[1], first+wires[2], i)
		for x, output := range gates[r.IntN(len(gates))] {
			probabilityOfOne := noise + (1-2*noise)*output
			entries[2*x], entries[2*x+1] = 1-probabilityOfOne, probabilityOfOne
		}
		if i%5 == 0 {
			observed = append(observed, i)
		}
	}
	b.addSampledEvidence(r, observed)
	return &b.Model, nil
}

// hardCore returns the independent sets of a random 3-regular graph of n vertices; a set of k vertices weighs fugacity^k.
func hardCore(n int, fugacity float64, seed uint64) (*factorgraph.Model, error) {
	return uniformOnRegular(n, seed, []float64{1, fugacity}, []float64{1, 1, 1, 0})
}

// strongFerromagnet returns n spins on a random 3-regular graph, all with the coupling J and the field 0.002, which makes one of the two
// phases slightly heavier.
func strongFerromagnet(n int, j float64, seed uint64) (*factorgraph.Model, error) {
	equal, unequal := math.Exp(j), math.Exp(-j)
	return uniformOnRegular(n, seed, []float64{math.Exp(-0.002), math.Exp(0.002)}, []float64{equal, unequal, unequal, equal})
}

// strongPotts returns a Potts model of three states on a random 3-regular graph of n vertices: e^J where neighbours are equal, else 1. A
// weight e^0.01 of value 0 makes its phase slightly heavier.
func strongPotts(n int, j float64, seed uint64) (*factorgraph.Model, error) {
	equal := math.Exp(j)
	return uniformOnRegular(n, seed, []float64{math.Exp(0.01), 1, 1}, []float64{equal, 1, 1, 1, equal, 1, 1, 1, equal})
}

// uniformOnRegular returns a model on a random 3-regular graph of n vertices in which all vertices have the same factor, with the entries
// vertex, and all edges have the same factor, with the entries edge (row-major).
func uniformOnRegular(n int, seed uint64, vertex, edge []float64) (*factorgraph.Model, error) {
	scopes, err := regularScopes(n, seed)
	if err != nil {
		return nil, err
	}
	b := newBuilder(n, len(vertex))
	for i := range n {
		b.addFactor([]int{i}, vertex...)
	}
	for _, scope := range scopes {
		b.addFactor(scope, edge...)
	}
	return &b.Model, nil
}

// blumeCapel returns the Blume–Capel model on a grid of length × 9 spins x = −1, 0, 1, which are the values 0, 1, 2: neighbours weigh
// e^(J x_i x_j), spins e^(−D x² + h x) with weak fields h. At D = 1.965 J ordered spins and zeros have about the same weight.
func blumeCapel(length int, j float64, seed uint64) (*factorgraph.Model, error) {
	r := newStream(seed, "blume-capel")
	n, edges := openLattice(length, 9)
	b := newBuilder(n, 3)
	for i := range n {
		h := uniform(r, weakField)
		b.addFactor([]int{i}, math.Exp(-1.965*j-h), 1, math.Exp(-1.965*j+h))
	}
	equal, opposite := math.Exp(j), math.Exp(-j)
	for _, e := range edges {
		b.addFactor(e[:], equal, 1, opposite, 1, 1, 1, opposite, 1, equal)
	}
	return &b.Model, nil
}

// solidOnSolid returns an interface of heights 0 to 4 over a grid of length × 6 sites: neighbours weigh e^(−β |difference of heights|),
// and the ln weights of the heights of each site are U(−½, ½).
func solidOnSolid(length int, beta float64, seed uint64) (*factorgraph.Model, error) {
	const heights = 5
	r := newStream(seed, "solid on solid")
	n, edges := openLattice(length, 6)
	b := newBuilder(n, heights)
	for i := range n {
		b.addValueWeights(i, func() float64 { return uniform(r, 0.5) })
	}
	for _, e := range edges {
		entries := b.addTable(e[0], e[1])
		for x := range entries {
			entries[x] = math.Exp(-beta * math.Abs(float64(x/heights-x%heights)))
		}
	}
	return &b.Model, nil
}
