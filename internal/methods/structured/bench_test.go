package structured_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/structured"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/network/reparam"
)

// BenchmarkFind measures detection and contraction with marginals by size, rank and domain.
func BenchmarkFind(b *testing.B) {
	for _, c := range []struct {
		n, d   int
		lambda []float64
	}{
		{100, 2, []float64{1.2}}, {100, 2, []float64{1.2, -1}}, {100, 2, []float64{1.2, 1, 0.8}}, {100, 2, []float64{1.2, 1, 0.8, 0.6}},
		{1000, 2, []float64{1.2}}, {1000, 2, []float64{1.2, 1}},
		{300, 3, []float64{2, 1}}, {300, 2, []float64{1, 1, -1, 2, -2, 1, 1, 1, 1, 1, 1, 1}}, {100, 2, nil},
	} {
		rng := rand.New(rand.NewPCG(1, 2))
		domains := make([]int, c.n)
		for i := range domains {
			domains[i] = c.d
		}
		net, err := reparam.Build(context.Background(), latent(rng, domains, c.lambda, c.n-1, 0, 0), reparam.Options{})
		if err != nil {
			b.Fatal(err)
		}
		name := fmt.Sprint(c.n, " variables of ", c.d, " values, rank ", len(c.lambda))
		var fit *structured.Fit
		b.Run("find/"+name, func(b *testing.B) {
			for b.Loop() {
				if fit, err = structured.Find(context.Background(), net, 1<<32); err != nil {
					b.Fatal(err)
				}
			}
			if fit != nil {
				b.ReportMetric(float64(len(fit.Lambda)), "statistics")
			}
		})
		if fit == nil {
			continue
		}
		b.Run("contract/"+name, func(b *testing.B) {
			for b.Loop() {
				part := &structured.Nodes{Fit: fit, To: structured.WholeShare}
				v, err := part.Contract(context.Background(), problem.New(net, problem.Options{}), btn.Want{Marginals: true})
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(v.Z.LogAbs(), "lnZ")
			}
		})
	}
}
