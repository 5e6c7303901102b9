package methods_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/closed"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/tensor"
)

const trials = 25

var signed = modeltest.SmallOptions{Negative: true, Zeros: 0.1}

func TestLemma2CPBaseTensor(t *testing.T) {
	for seed := range uint64(trials) {
		rng := rand.New(rand.NewPCG(seed, 2))
		dims := mixedDims(rng, 5+rng.IntN(3), 1, 3)
		core := modeltest.Tensor(rng, modeltest.CP, dims, signed).(*tensor.CP)
		net := around(t, core, randomLinks(rng, dims, 3, signed))
		want, sumAbs := oracle.NetworkZ(net)

		frame := &btn.Frame{}
		together := &btn.Estimate{Parts: []btn.Part{&closed.CP{Frame: frame, Tensor: core}}}
		agree(t, fmt.Sprintf("seed %d, class cp", seed), sum(t, net, together), want, sumAbs)

		apart := &btn.Estimate{} // the same terms, one part each
		for i, w := range core.Weights {
			r := make([][]float64, len(dims))
			for l, d := range dims {
				r[l] = make([]float64, d)
				if v := core.Vectors[l]; v != nil {
					copy(r[l], v[i*d:])
				} else {
					r[l][i] = 1
				}
			}
			add(apart, w, &closed.RankOne{Frame: frame, R: r})
		}
		agree(t, fmt.Sprintf("seed %d, class rank-one", seed), sum(t, net, apart), want, sumAbs)
	}
}

// TestLemma3SymmetricBaseTensor: the paper's symmetric tensors,
// one dimension d and levels λ = identity, and two levels on mixed domains.
func TestLemma3SymmetricBaseTensor(t *testing.T) {
	for seed := range uint64(trials) {
		rng := rand.New(rand.NewPCG(seed, 3))
		core := modeltest.Tensor(rng, modeltest.Symmetric, mixedDims(rng, 6, 1, 3),
			signed).(*tensor.Symmetric)
		if seed%2 == 0 {
			core = paperSymmetric(t, rng, 6+rng.IntN(2), 1+rng.IntN(3))
		}
		net := around(t, core, randomLinks(rng, core.Shape, 3, signed))
		s := countspace.Poly{Shape: core.Levels.Shape(), Coef: core.Values}
		part := &closed.SymmetryRankOne{Frame: &btn.Frame{Levels: core.Levels}, S: s}
		e := &btn.Estimate{Parts: []btn.Part{part}}
		want, sumAbs := oracle.NetworkZ(net)
		agree(t, fmt.Sprintf("seed %d, d %v, D = %d", seed, core.Shape, core.Levels.D),
			sum(t, net, e), want, sumAbs)
	}
}

func paperSymmetric(t *testing.T, rng *rand.Rand, n, d int) *tensor.Symmetric {
	t.Helper()
	levels, err := countspace.Identity(mixedDims(rng, n, d, d))
	if err != nil {
		t.Fatal(err)
	}
	size, err := levels.Size()
	if err != nil {
		t.Fatal(err)
	}
	s := &tensor.Symmetric{Shape: mixedDims(rng, n, d, d), Levels: levels}
	for range size {
		s.Values.Mant = append(s.Values.Mant, 2*rng.Float64()-1)
		s.Values.Exp = append(s.Values.Exp, rng.Int64N(9)-4)
	}
	return s
}

func TestLemma4SymmetryCPBaseTensor(t *testing.T) {
	for seed := range uint64(trials) {
		rng := rand.New(rand.NewPCG(seed, 4))
		core := modeltest.Tensor(rng, modeltest.SymmetryCP, mixedDims(rng, 6, 1, 3),
			signed).(*tensor.SymmetryCP)
		net := around(t, core, randomLinks(rng, core.Shape, 3, signed))
		want, sumAbs := oracle.NetworkZ(net)
		e, _ := symmetryCP(core)
		agree(t, fmt.Sprintf("seed %d, D = %d", seed, core.Levels.D), sum(t, net, e), want, sumAbs)
	}
}

// TestLemma5AdditiveDecomposition: any weighted sum of parts of mixed classes, contracted one
// by one, is the contraction with the sum as base tensor. Learned maps apply to all of them.
func TestLemma5AdditiveDecomposition(t *testing.T) {
	for seed := range uint64(trials) {
		rng := rand.New(rand.NewPCG(seed, 5))
		dims := mixedDims(rng, 5, 1, 3)
		links := randomLinks(rng, dims, 3, signed)
		cp := modeltest.Tensor(rng, modeltest.CP, dims, signed).(*tensor.CP)
		symmetric := modeltest.Tensor(rng, modeltest.SymmetryCP, dims, signed).(*tensor.SymmetryCP)
		e, frame := symmetryCP(symmetric)
		add(e, -0.7, &closed.CP{Frame: frame, Tensor: cp})
		add(e, 0.3, &closed.RankOne{Frame: frame}) // R = 1
		base := func(x []int) *big.Float {
			b := oracle.Entry(symmetric, x)
			b.Add(b, new(big.Float).Mul(big.NewFloat(-0.7), oracle.Entry(cp, x)))
			return b.Add(b, big.NewFloat(0.3))
		}
		if seed%2 == 1 {
			frame.Rotations = randomRotations(rng, dims)
			base = rotated(dims, frame.Rotations, base)
		}
		net := around(t, cp, links) // its core does not matter: the parts replace it
		want, sumAbs := oracle.NetworkZWith(net, base)
		agree(t, fmt.Sprintf("seed %d", seed), sum(t, net, e), want, sumAbs)
	}
}
