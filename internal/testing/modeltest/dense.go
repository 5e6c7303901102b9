package modeltest

// Dense models of spins: every pair has a factor, or every triple; and sparse triples.

import (
	"math"
	"math/rand/v2"

	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// sign draws ±1.
func sign(r *rand.Rand) float64 { return float64(2*r.IntN(2) - 1) }

// spikeSlab is the posterior of the active features in a linear regression: a coefficient is the true one for active features, and
// ±signal at random for the others; ln of the odds of each feature is −2.
func spikeSlab(n int, signal float64, seed uint64) (*factorgraph.Model, error) {
	r := random(seed, "spike and slab")
	x, y, coefficient := regression(r, n, signal)
	b := variables(n, 2)
	for i := range n {
		if coefficient[i] == 0 {
			coefficient[i] = signal * sign(r)
		}
		gain := 0.0
		for k := range x {
			gain += coefficient[i] * x[k][i] * (y[k] - coefficient[i]*x[k][i]/2)
		}
		b.add([]int{i}, 1, math.Exp(gain-2))
		for j := range i {
			correlation := 0.0
			for k := range x {
				correlation += x[k][i] * x[k][j]
			}
			b.add([]int{j, i}, 1, 1, 1, math.Exp(-coefficient[i]*coefficient[j]*correlation))
		}
	}
	return &b.Model, nil
}

// regression draws 2n observations y of n features x, correlated by ½, with unit noise. Four features have a coefficient, ±signal.
func regression(r *rand.Rand, n int, signal float64) (x [][]float64, y, coefficient []float64) {
	x, y, coefficient = make([][]float64, 2*n), make([]float64, 2*n), make([]float64, n)
	for _, i := range r.Perm(n)[:4] {
		coefficient[i] = signal * sign(r)
	}
	for k := range x {
		common := r.NormFloat64()
		x[k], y[k] = make([]float64, n), r.NormFloat64()
		for i := range n {
			x[k][i] = (common + r.NormFloat64()) / math.Sqrt2
			y[k] += coefficient[i] * x[k][i]
		}
	}
	return x, y, coefficient
}

// partition is number partitioning: e^(−β (Σ a_i x_i)²), a ~ U(0, 1).
func partition(n int, beta float64, seed uint64) (*factorgraph.Model, error) {
	r := random(seed, "number partitioning")
	b, a := variables(n, 2), make([]float64, n)
	for i := range n {
		a[i] = r.Float64()
		for j := range i {
			b.couple(j, i, -2*beta*a[i]*a[j])
		}
	}
	return &b.Model, nil
}

// hopfield remembers three random patterns: J = β/n Σ ξ_i ξ_j.
func hopfield(n int, beta float64, seed uint64) (*factorgraph.Model, error) {
	r := random(seed, "hopfield")
	b, pattern := variables(n, 2), make([][3]float64, n)
	for i := range n {
		for p := range pattern[i] {
			pattern[i][p] = sign(r)
		}
		for j := range i {
			overlap := 0.0
			for p := range pattern[i] {
				overlap += pattern[i][p] * pattern[j][p]
			}
			b.couple(j, i, beta/float64(n)*overlap)
		}
	}
	return &b.Model, nil
}

// communities is the posterior of two groups of a random graph: an edge within a group has the probability ½, one between them
// e^−contrast / 2.
func communities(n int, contrast float64, seed uint64) (*factorgraph.Model, error) {
	const inside = 0.5
	between := inside * math.Exp(-contrast)
	r := random(seed, "communities")
	b := variables(n, 2)
	for i := range n {
		b.field(i, uniform(r, weak))
		for j := range i {
			probability := between
			if i%2 == j%2 {
				probability = inside
			}
			if r.Float64() < probability {
				b.pair(j, i, inside, between)
			} else {
				b.pair(j, i, 1-inside, 1-between)
			}
		}
	}
	return &b.Model, nil
}

// curieWeiss is a complete graph with J = β/n, and fields U(−0.02, 0.02).
func curieWeiss(n int, beta float64, seed uint64) (*factorgraph.Model, error) {
	r := random(seed, "curie-weiss")
	b := variables(n, 2)
	for i := range n {
		b.field(i, uniform(r, 0.02))
		for j := range i {
			b.couple(j, i, beta/float64(n))
		}
	}
	return &b.Model, nil
}

// triples draws h of every spin, then J of every triple, exp(J x_i x_j x_k), from the stream of this name.
func triples(stream string, scopes func(n int, seed uint64) [][]int, field, coupling law) generator {
	return func(n int, strength float64, seed uint64) (*factorgraph.Model, error) {
		r := random(seed, stream)
		b := variables(n, 2)
		for i := range n {
			b.field(i, field(r, n, strength))
		}
		for _, scope := range scopes(n, seed) {
			j := coupling(r, n, strength)
			plus, minus := math.Exp(j), math.Exp(-j)
			b.add(scope, minus, plus, plus, minus, plus, minus, minus, plus)
		}
		return &b.Model, nil
	}
}

// someTriples are 1.5 n triples of n variables at random.
func someTriples(n int, seed uint64) [][]int { return randomTriples(n, 3*n/2, seed) }

// randomTriples are so many triples of n variables.
func randomTriples(n, count int, seed uint64) [][]int {
	r := random(seed, "triples")
	list := make([][]int, count)
	for k := range list {
		list[k] = r.Perm(n)[:3]
	}
	return list
}

func allTriples(n int, _ uint64) (list [][]int) {
	for i := range n {
		for j := range i {
			for k := range j {
				list = append(list, []int{k, j, i})
			}
		}
	}
	return list
}

// threeSpin is the law of the dense 3-spin model, J ~ N(0, 3β²/n²).
func threeSpin(r *rand.Rand, n int, beta float64) float64 {
	return beta * math.Sqrt(3) / float64(n) * r.NormFloat64()
}

// clause is the law of a parity, even or odd, that weighs e^−w where it is violated.
func clause(r *rand.Rand, n int, weight float64) float64 { return eitherSign(r, n, weight/2) }
