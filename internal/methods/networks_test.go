package methods_test

import (
	"context"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/closed"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// tolerance of a contraction, relative to Σ|terms|: what rounding alone may do.
const tolerance = 1e-12

// randomLinks deals legs, shuffled,
// to links of 1 to widest legs of random forms, and adds one link without legs.
func randomLinks(rng *rand.Rand, dims []int, widest int, o modeltest.SmallOptions) []btn.Link {
	legs := rng.Perm(len(dims))
	links := []btn.Link{{Legs: nil,
		T: &tensor.CP{Shape: []int{}, Weights: []float64{0.5, 0.75}, Vectors: [][]float64{}}}}
	for len(legs) > 0 {
		n := min(1+rng.IntN(widest), len(legs))
		shape := make([]int, n)
		for k, l := range legs[:n] {
			shape[k] = dims[l]
		}
		kind := modeltest.AllKinds[rng.IntN(len(modeltest.AllKinds))]
		links = append(links,
			btn.Link{Legs: legs[:n:n], T: modeltest.Tensor(rng, kind, shape, o)})
		legs = legs[n:]
	}
	return links
}

// around returns a valid network with one core over all legs, in leg order.
func around(t *testing.T, core tensor.Tensor, links []btn.Link) *btn.Network {
	t.Helper()
	legs := make([]int, len(core.Dims()))
	for l := range legs {
		legs[l] = l
	}
	net := &btn.Network{Dims: core.Dims(), Cores: []btn.Core{{Legs: legs, T: core}}, Links: links,
		Scale: scaled.FromFloat(-1.5)}
	if err := net.Validate(); err != nil {
		t.Fatal(err)
	}
	return net
}

func mixedDims(rng *rand.Rand, n, low, high int) []int {
	dims := make([]int, n)
	for l := range dims {
		dims[l] = low + rng.IntN(high-low+1)
	}
	return dims
}

// plain contracts a part of a network for Z alone, with no bounds.
func plain(net *btn.Network, part btn.Part) (btn.Value, error) {
	return contraction.Part(context.Background(), problem.New(net, problem.Options{}), part,
		btn.Want{})
}

// sum returns Σ_i α_i Z(T^{Q^(i)}).
func sum(t *testing.T, net *btn.Network, e *btn.Estimate) scaled.Number {
	t.Helper()
	var z scaled.Number
	for i, part := range e.Parts {
		v, err := plain(net, part)
		if err != nil {
			t.Fatal(err)
		}
		z = z.Add(e.Weights()[i].Mul(v.Z))
	}
	return z
}

// add appends a part and its weight to an estimate.
func add(e *btn.Estimate, alpha float64, part btn.Part) {
	e.Alpha = append(e.Alpha, scaled.FromFloat(alpha))
	e.Parts = append(e.Parts, part)
}

// agree holds z against brute force, relative to the sum of the terms' absolute values.
func agree(t *testing.T, what string, z scaled.Number, want, sumAbs *big.Float) {
	t.Helper()
	w, _ := want.Float64()
	s, _ := sumAbs.Float64()
	if diff := math.Abs(z.Float64() - w); !(diff <= tolerance*s) {
		t.Errorf("%s: Z = %v, want %v (off by %.3g of Σ|terms|)", what, z.Float64(), w, diff/s)
	}
}

// rotated returns Q with maps applied, Σ_y Π_ℓ O_ℓ[x_ℓ, y_ℓ] Q[y], by definition.
func rotated(
	dims []int, rotations [][]float64, q func(x []int) *big.Float,
) func(x []int) *big.Float {
	return func(x []int) *big.Float {
		total := new(big.Float).SetPrec(120)
		oracle.Each(dims, func(y []int) {
			p := 1.0
			for l, o := range rotations {
				switch {
				case o != nil:
					p *= o[x[l]*dims[l]+y[l]]
				case x[l] != y[l]:
					p = 0
				}
			}
			if p != 0 {
				total.Add(total, new(big.Float).Mul(big.NewFloat(p), q(y)))
			}
		})
		return total
	}
}

// randomRotations returns an orthogonal matrix,
// a product of plane rotations, for about two legs of three.
func randomRotations(rng *rand.Rand, dims []int) [][]float64 {
	all := make([][]float64, len(dims))
	for l, d := range dims {
		if rng.IntN(3) == 0 {
			continue
		}
		o := make([]float64, d*d)
		for x := range d {
			o[x*d+x] = 1
		}
		for i := range d {
			for k := i + 1; k < d; k++ {
				sin, cos := math.Sincos(6 * rng.Float64())
				for x := range d {
					a, b := o[x*d+i], o[x*d+k]
					o[x*d+i], o[x*d+k] = cos*a-sin*b, sin*a+cos*b
				}
			}
		}
		all[l] = o
	}
	return all
}

// symmetryCP returns the estimate that consists of t's own terms, and their frame.
func symmetryCP(t *tensor.SymmetryCP) (*btn.Estimate, *btn.Frame) {
	e, frame := &btn.Estimate{}, &btn.Frame{Levels: t.Levels}
	for _, term := range t.Terms {
		s := countspace.Poly{Shape: t.Levels.Shape(), Coef: term.S}
		add(e, term.Alpha, &closed.SymmetryRankOne{Frame: frame, S: s, R: term.R})
	}
	return e, frame
}
