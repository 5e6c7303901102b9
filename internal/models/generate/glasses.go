package generate

// Dense and strong models: entries over many orders of magnitude, many phases, few states that weigh.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// spikeSlab is the posterior of the active features in a linear regression of n features on 2n observations with unit noise: features
// correlated by ½, four of them active with coefficients ±s, ln of the odds of each feature −2.
func spikeSlab(n int, signal float64, seed uint64) (*factorgraph.Model, error) {
	r := random(seed, "spike and slab")
	observations := 2 * n
	x, y := make([][]float64, observations), make([]float64, observations)
	active := map[int]float64{}
	for _, i := range r.Perm(n)[:4] {
		active[i] = signal * float64(2*r.IntN(2)-1)
	}
	for k := range x {
		common := r.NormFloat64()
		y[k] = r.NormFloat64()
		x[k] = make([]float64, n)
		for i := range n {
			x[k][i] = (common + r.NormFloat64()) / math.Sqrt2
			y[k] += active[i] * x[k][i]
		}
	}
	sum := func(of func(k int) float64) (s float64) {
		for k := range x {
			s += of(k)
		}
		return s
	}
	b := spins(n)
	size := make([]float64, n) // coefficients: the true ones of active features, ±signal at random for the others
	for i := range n {
		if size[i] = active[i]; size[i] == 0 {
			size[i] = signal * float64(2*r.IntN(2)-1)
		}
		gain := sum(func(k int) float64 { return size[i] * x[k][i] * (y[k] - size[i]*x[k][i]/2) })
		b.add([]int{i}, 1, math.Exp(gain-2))
		for j := range i {
			b.add([]int{j, i}, 1, 1, 1, math.Exp(-size[i]*size[j]*sum(func(k int) float64 { return x[k][i] * x[k][j] })))
		}
	}
	return b.model(), nil
}

// partition is number partitioning: e^(−β (Σ a_i x_i)²), a ~ U(0, 1).
func partition(n int, beta float64, seed uint64) (*factorgraph.Model, error) {
	r := random(seed, "number partitioning")
	a := make([]float64, n)
	b := spins(n)
	for i := range n {
		a[i] = r.Float64()
		for j := range i {
			b.couple(j, i, -2*beta*a[i]*a[j])
		}
	}
	return b.model(), nil
}

// blumeCapel is a grid of 9 × n spins −1, 0, 1: e^(J x_i x_j) and e^(−D x²), D = 1.965 J where phases meet, and weak fields.
func blumeCapel(length int, j float64, seed uint64) (*factorgraph.Model, error) {
	r := random(seed, "blume-capel")
	n, edges := lattice(false, length, 9)
	b := builder{domains: slices.Repeat([]int{3}, n)}
	for i := range n {
		h := uniform(r, weak)
		b.add([]int{i}, math.Exp(-1.965*j-h), 1, math.Exp(-1.965*j+h))
	}
	same, other := math.Exp(j), math.Exp(-j)
	for _, e := range edges {
		b.add([]int{e[0], e[1]}, same, 1, other, 1, 1, 1, other, 1, same)
	}
	return b.model(), nil
}

// triple adds exp(J x_i x_j x_k).
func (b *builder) triple(scope []int, coupling float64) {
	plus, minus := math.Exp(coupling), math.Exp(-coupling)
	b.add(scope, minus, plus, plus, minus, plus, minus, minus, plus)
}

func sparseTriples(n int, delta float64, seed uint64) (*factorgraph.Model, error) {
	r := random(seed, "sparse triples")
	b := spins(n)
	for i := range n {
		b.field(i, uniform(r, weak))
	}
	for _, scope := range triples(n, 3*n/2, seed) {
		b.triple(scope, uniform(r, delta))
	}
	return b.model(), nil
}

// denseTriples is the 3-spin model: J ~ N(0, 3β²/n²) on all triples.
func denseTriples(n int, beta float64, seed uint64) (*factorgraph.Model, error) {
	r := random(seed, "dense triples")
	b := spins(n)
	for i := range n {
		for j := range i {
			for k := range j {
				b.triple([]int{k, j, i}, beta*math.Sqrt(3)/float64(n)*r.NormFloat64())
			}
		}
	}
	return b.model(), nil
}

// hopfield remembers three random patterns: J = β/n Σ ξ_i ξ_j.
func hopfield(n int, beta float64, seed uint64) (*factorgraph.Model, error) {
	const patterns = 3
	r := random(seed, "hopfield")
	xi := make([][patterns]float64, n)
	b := spins(n)
	for i := range n {
		for p := range patterns {
			xi[i][p] = float64(2*r.IntN(2) - 1)
		}
		for j := range i {
			sum := 0.0
			for p := range patterns {
				sum += xi[i][p] * xi[j][p]
			}
			b.couple(j, i, beta/float64(n)*sum)
		}
	}
	return b.model(), nil
}

// communities is the posterior of two groups of a random graph of n vertices, edges e^s times as likely within a group as between.
func communities(n int, contrast float64, seed uint64) (*factorgraph.Model, error) {
	r := random(seed, "communities")
	within := 0.5
	between := within * math.Exp(-contrast)
	b := spins(n)
	for i := range n {
		b.field(i, uniform(r, weak))
		for j := range i {
			p := between
			if i%2 == j%2 {
				p = within
			}
			same, other := within, between
			if r.Float64() >= p {
				same, other = 1-within, 1-between
			}
			b.add([]int{j, i}, same, other, other, same)
		}
	}
	return b.model(), nil
}

// strongFerromagnet has J everywhere on a random 3-regular graph, and a field that tells its two phases apart by little.
func strongFerromagnet(n int, j float64, seed uint64) (*factorgraph.Model, error) {
	return strong(n, 2, seed, func(b *builder, i int) { b.field(i, 0.002) }, func(b *builder, e edge) { b.couple(e.i, e.j, j) })
}

// strongPotts has three states, e^J where neighbours are equal.
func strongPotts(n int, j float64, seed uint64) (*factorgraph.Model, error) {
	same := math.Exp(j)
	return strong(n, 3, seed, func(b *builder, i int) { b.add([]int{i}, math.Exp(0.01), 1, 1) },
		func(b *builder, e edge) { b.add([]int{e.i, e.j}, same, 1, 1, 1, same, 1, 1, 1, same) })
}

// strong is a random 3-regular graph with these factors.
func strong(n, states int, seed uint64, field func(*builder, int), couple func(*builder, edge)) (*factorgraph.Model, error) {
	edges, err := sparse(random(seed, "strong"), n, 1, seed)
	if err != nil {
		return nil, err
	}
	b := builder{domains: slices.Repeat([]int{states}, n)}
	for i := range n {
		field(&b, i)
	}
	for _, e := range edges {
		couple(&b, e)
	}
	return b.model(), nil
}

// curieWeiss is a complete graph with J = β/n, and fields U(−0.02, 0.02).
func curieWeiss(n int, beta float64, seed uint64) (*factorgraph.Model, error) {
	r := random(seed, "curie-weiss")
	b := spins(n)
	for i := range n {
		b.field(i, uniform(r, 0.02))
		for j := range i {
			b.couple(j, i, beta/float64(n))
		}
	}
	return b.model(), nil
}

// solidOnSolid is an interface of heights 0 to 4 over a grid of 6 × n: e^(−β |difference|), pinned by ln weights U(−½, ½).
func solidOnSolid(length int, beta float64, seed uint64) (*factorgraph.Model, error) {
	const heights = 5
	r := random(seed, "solid on solid")
	n, edges := lattice(false, length, 6)
	b := builder{domains: slices.Repeat([]int{heights}, n)}
	for i := range n {
		b.weigh(i, func() float64 { return uniform(r, 0.5) })
	}
	for _, e := range edges {
		var entries []float64
		for x := range heights * heights {
			entries = append(entries, math.Exp(-beta*math.Abs(float64(x/heights-x%heights))))
		}
		b.add([]int{e[0], e[1]}, entries...)
	}
	return b.model(), nil
}
