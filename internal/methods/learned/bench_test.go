package learned

// Cost against the number of legs: pairwise cores, two levels.

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// pairwise returns n/2 Ising factors, J uniform in ±1, over n binary legs.
func pairwise(n int) *btn.Network {
	rng := rand.New(rand.NewPCG(uint64(n), 5))
	net := &btn.Network{Scale: scaled.One}
	for l := 0; l+1 < n; l += 2 {
		j := 2*rng.Float64() - 1
		e, f := math.Exp(j), math.Exp(-j)
		net.Dims = append(net.Dims, 2, 2)
		net.Cores = append(net.Cores, btn.Core{
			Legs: []int{l, l + 1},
			T:    &tensor.Dense{Shape: []int{2, 2}, Data: []float64{e, f, f, e}},
		})
	}
	return net
}

func eachSize(b *testing.B, f func(b *testing.B, net *btn.Network)) {
	for _, n := range []int{100, 300, 1000, 3000, 10000} {
		b.Run(fmt.Sprintf("legs=%d", n), func(b *testing.B) {
			net := pairwise(n)
			b.ReportAllocs()
			b.ResetTimer()
			f(b, net)
		})
	}
}

// BenchmarkSweep is one joint sweep over two components: R leg by leg, S, and the refit of α, for
// each.
func BenchmarkSweep(b *testing.B) {
	eachSize(b, func(b *testing.B, net *btn.Network) {
		sp, err := newSpace(net, countspace.TwoLevels(net.Dims))
		if err != nil {
			b.Fatal(err)
		}
		norm2, err := sp.normSq()
		if err != nil {
			b.Fatal(err)
		}
		m := &model{sp: sp, norm2: norm2, fit: fit{Residual: 1}}
		for i := range 2 {
			m.appendPart(newPart(sp, 7, 0, i, 0))
			if err := m.fitNewPart(i); err != nil {
				b.Fatal(err)
			}
		}
		for b.Loop() {
			for i := range m.parts {
				if err := m.improve(context.Background(), i); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}
