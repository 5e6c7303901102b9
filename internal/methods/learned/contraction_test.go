package learned

// Learned plans, contracted with the links (Lemma 5): the conventions of both packages agree.

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/problem"
)

// contracted is Σ_i α_i Z(T^{Q^(i)}).
func contracted(t *testing.T, net *btn.Network, e *btn.Estimate) float64 {
	t.Helper()
	sum := 0.0
	for i, part := range e.Parts {
		v, err := contraction.Part(context.Background(), problem.New(net, problem.Options{}), part, btn.Want{})
		if err != nil {
			t.Fatal(err)
		}
		sum += e.Alpha[i].Mul(v.Z).Float64()
	}
	return sum
}

// TestLemma5OnLearnedPlans: contraction of the parts gives Z of the materialised B̃, maps included.
func TestLemma5OnLearnedPlans(t *testing.T) {
	cases(t, func(t *testing.T, rng *rand.Rand, net *btn.Network) {
		for name, maps := range map[string]bool{"default": false, "maps": true} {
			d := learned(t, net, effort{components: 3, sweeps: 3, starts: 1, maps: maps})
			if maps && frameOf(d).Rotations == nil {
				t.Error("no maps were learned")
			}
			size := 0.0 // Σ|B̃|·|L|, the scale of rounding
			approx := materialiseSum(net.Dims, d)
			at := 0
			indices(net.Dims, func(x []int) {
				p := approx[at]
				for _, link := range net.Links {
					p *= entry(link.T, pick(x, link.Legs))
				}
				size += math.Abs(p)
				at++
			})
			near(t, name+": Z̃", contracted(t, net, &d.Estimates[0]), partition(net, approx), 1e-11, size+1)
		}
	})
}
