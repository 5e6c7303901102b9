package modeltest

// Dense models of spins: every pair has a factor, or every triple; and sparse triples.

import (
	"math"
	"math/rand/v2"

	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// sign draws −1 or +1, with probability ½ each.
func sign(r *rand.Rand) float64 { return float64(2*r.IntN(2) - 1) }

// spikeSlab returns the posterior of which features are active in a linear regression with unit noise. Variable s_i is 1 if feature i
// is active; then its coefficient c_i is the true one, or ±signal at random if the data were drawn without it. The prior ln odds of
// each feature are −2, so
//
//	ln P(s | y) = −½ Σ_k (y_k − Σ_i c_i s_i x_ki)² − 2 Σ_i s_i + const,
//
// which is a sum of terms of one feature (gain) and of two.
func spikeSlab(n int, signal float64, seed uint64) (*factorgraph.Model, error) {
	r := newStream(seed, "spike and slab")
	x, y, coefficient := regression(r, n, signal)
	b := newBuilder(n, 2)
	for i := range n {
		if coefficient[i] == 0 {
			coefficient[i] = signal * sign(r)
		}

		// Σ_k c_i x_ki y_k − ½ c_i² x_ki²
		gain := 0.0
		for k := range x {
			gain += coefficient[i] * x[k][i] * (y[k] - coefficient[i]*x[k][i]/2)
		}
		b.addFactor([]int{i}, 1, math.Exp(gain-2))

		// −c_i c_j Σ_k x_ki x_kj
		for j := range i {
			correlation := 0.0
			for k := range x {
				correlation += x[k][i] * x[k][j]
			}
			b.addFactor([]int{j, i}, 1, 1, 1, math.Exp(-coefficient[i]*coefficient[j]*correlation))
		}
	}
	return &b.Model, nil
}

// regression draws the data of a linear regression: 2n observations y of n features, y_k = Σ_i c_i x_ki + noise, where x[k][i] is
// feature i of observation k. The noise and the features have variance 1, and two features have the correlation ½. Four features,
// drawn at random, have the coefficient c_i = ±signal, and the others 0.
func regression(r *rand.Rand, n int, signal float64) (x [][]float64, y, coefficient []float64) {
	x, y, coefficient = make([][]float64, 2*n), make([]float64, 2*n), make([]float64, n)
	for _, i := range r.Perm(n)[:4] {
		coefficient[i] = signal * sign(r)
	}
	for k := range x {
		common := r.NormFloat64() // shared by all features, which correlates them
		x[k], y[k] = make([]float64, n), r.NormFloat64()
		for i := range n {
			x[k][i] = (common + r.NormFloat64()) / math.Sqrt2
			y[k] += coefficient[i] * x[k][i]
		}
	}
	return x, y, coefficient
}

// numberPartitioning returns the model P(x) ∝ e^(−β (Σ a_i x_i)²) of n spins x = ±1: a good state divides the numbers a_i ~ U(0, 1) into
// two groups of nearly equal sums. The squares a_i² are constant and left out, so the coupling of i and j is −2β a_i a_j.
func numberPartitioning(n int, beta float64, seed uint64) (*factorgraph.Model, error) {
	r := newStream(seed, "number partitioning")
	b, a := newBuilder(n, 2), make([]float64, n)
	for i := range n {
		a[i] = r.Float64()
		for j := range i {
			b.addCoupling(j, i, -2*beta*a[i]*a[j])
		}
	}
	return &b.Model, nil
}

// hopfield returns a Hopfield network of n spins that stores three random patterns ξ of ±1: J_ij = β/n Σ_patterns ξ_i ξ_j.
func hopfield(n int, beta float64, seed uint64) (*factorgraph.Model, error) {
	r := newStream(seed, "hopfield")
	b, pattern := newBuilder(n, 2), make([][3]float64, n)
	for i := range n {
		for p := range pattern[i] {
			pattern[i][p] = sign(r)
		}
		for j := range i {
			overlap := 0.0
			for p := range pattern[i] {
				overlap += pattern[i][p] * pattern[j][p]
			}
			b.addCoupling(j, i, beta/float64(n)*overlap)
		}
	}
	return &b.Model, nil
}

// communities returns the posterior of the two groups of the n vertices of a random graph (a stochastic block model). An edge within a
// group has the probability ½, one between groups e^−contrast / 2. The true groups are the even and the odd vertices. A weak field on
// each vertex breaks the symmetry of the groups.
func communities(n int, contrast float64, seed uint64) (*factorgraph.Model, error) {
	const inside = 0.5
	between := inside * math.Exp(-contrast)
	r := newStream(seed, "communities")
	b := newBuilder(n, 2)
	for i := range n {
		b.addField(i, uniform(r, weakField))
		for j := range i {
			probability := between
			if i%2 == j%2 {
				probability = inside
			}
			if r.Float64() < probability {
				b.addEqualityFactor(j, i, inside, between)
			} else {
				b.addEqualityFactor(j, i, 1-inside, 1-between)
			}
		}
	}
	return &b.Model, nil
}

// curieWeiss returns n spins on the complete graph with the couplings J = β/n and fields U(−0.02, 0.02).
func curieWeiss(n int, beta float64, seed uint64) (*factorgraph.Model, error) {
	r := newStream(seed, "curie-weiss")
	b := newBuilder(n, 2)
	for i := range n {
		b.addField(i, uniform(r, 0.02))
		for j := range i {
			b.addCoupling(j, i, beta/float64(n))
		}
	}
	return &b.Model, nil
}

// tripleModels returns a generator of spin models with couplings of three spins: P(x) ∝ exp(Σ h_i x_i + Σ J_ijk x_i x_j x_k).
// The triples are scopes(n, seed). The fields h are drawn first, then the couplings J, from the stream of this name.
func tripleModels(stream string, scopes func(n int, seed uint64) [][]int, field, coupling law) generator {
	return func(n int, strength float64, seed uint64) (*factorgraph.Model, error) {
		r := newStream(seed, stream)
		b := newBuilder(n, 2)
		for i := range n {
			b.addField(i, field(r, n, strength))
		}
		for _, scope := range scopes(n, seed) {
			j := coupling(r, n, strength)
			plus, minus := math.Exp(j), math.Exp(-j)
			b.addFactor(scope, minus, plus, plus, minus, plus, minus, minus, plus)
		}
		return &b.Model, nil
	}
}

// someTriples draws 1.5 n random triples of n variables.
func someTriples(n int, seed uint64) [][]int { return randomTriples(n, 3*n/2, seed) }

// randomTriples draws count random triples of different variables out of n; a triple may be drawn twice.
func randomTriples(n, count int, seed uint64) [][]int {
	r := newStream(seed, "triples")
	list := make([][]int, count)
	for k := range list {
		list[k] = r.Perm(n)[:3]
	}
	return list
}

// allTriples returns every triple of n variables, each in increasing order; it needs no seed.
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

// threeSpinLaw draws a coupling of the dense 3-spin model, J ~ N(0, 3β²/n²).
func threeSpinLaw(r *rand.Rand, n int, beta float64) float64 {
	return beta * math.Sqrt(3) / float64(n) * r.NormFloat64()
}

// parityLaw draws a coupling of three spins, ±w/2, that is a soft parity constraint: up to a constant factor, a violated one weighs
// e^−w and a met one 1. The sign says whether the parity is even or odd.
func parityLaw(r *rand.Rand, n int, weight float64) float64 { return randomSign(r, n, weight/2) }
