package structured_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/base/sampling"
	"github.com/basetensor/basetensor/internal/methods/structured"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// noisy multiplies the tables of pairs by e^{ε g}, g normal.
func noisy(rng *rand.Rand, m *factorgraph.Model, epsilon float64) {
	for _, f := range m.Factors {
		if t := f.Table.(*tensor.Dense); len(f.Scope) == 2 {
			for x := range t.Data {
				t.Data[x] *= math.Exp(epsilon * rng.NormFloat64())
			}
		}
	}
}

// TestNearIsUnbiased: the mean of the weights, and marginals by them, beside enumeration; with zeros, three values and evidence.
func TestNearIsUnbiased(t *testing.T) {
	ctx := context.Background()
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 5))
		domains := []int{2, 2, 3, 2, 2, 2, 2, 3, 2, 2, 2, 2}
		m := latent(rng, domains, []float64{2}, 0, 2, 1)
		noisy(rng, m, 0.1)
		evidence := factorgraph.Evidence{Hard: []factorgraph.Observation{{Var: 4, Value: 1}}}
		net, err := reparam.Build(ctx, m, reparam.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if net, err = net.Condition(evidence); err != nil {
			t.Fatal(err)
		}
		p := problem.New(net, problem.Options{})
		path, spread, each, _, err := structured.FindNearPath(ctx, p, seed, 1e9)
		if err != nil {
			t.Fatal(err)
		}
		if path == nil {
			t.Fatalf("seed %d: no path", seed)
		}
		if err := path.Fits(net); err != nil {
			t.Error(err)
		}
		if !(spread >= 0) || each <= 0 {
			t.Errorf("seed %d: spread %v, %v flops", seed, spread, each)
		}
		for _, rungs := range []int{1, path.Rungs, 3 * path.Rungs} {
			path := &structured.Path{Fit: path.Fit, Rungs: rungs}
			const n = 20_000
			w, _, err := structured.WeighChains(ctx, p, path, seed, 0, n, true)
			if err != nil {
				t.Fatal(err)
			}
			half, _, err := structured.WeighChains(ctx, p, path, seed, n/2, n, false)
			if err != nil || half.Ln[7] != w.Ln[n/2+7] {
				t.Errorf("chain %d depends on the part: %v, %v; %v", n/2+7, half.Ln[7], w.Ln[n/2+7], err)
			}
			if most := slices.Max(w.Ln); !(most <= w.LnBound) || w.LnBound > most+6 {
				t.Errorf("seed %d, %d rungs: the largest weight is e^%v, at most e^%v is stated", seed, rungs, most, w.LnBound)
			}
			mean := sampling.MeanOf(w.Ln)
			want := oracle.Ln(oracle.Z(m, evidence))
			if off := math.Abs(mean.Ln + net.Scale.LogAbs() - want); off > 5*mean.StandardError+1e-9 {
				t.Errorf("seed %d, %d rungs: ln Z %v ± %v, want %v", seed, rungs, mean.Ln+net.Scale.LogAbs(), mean.StandardError, want)
			}
			total := math.Exp(mean.Ln-w.LnLargest) * n
			at := 0
			for v, row := range oracle.Marginals(m, evidence) {
				for x, q := range row {
					if got := w.WeightByValue[at] / total; math.Abs(got-q) > 6*math.Sqrt(w.SquareByValue[at])/total+1e-9 {
						t.Errorf("seed %d, %d rungs: P(%d = %d) = %v, want %v", seed, rungs, v, x, got, q)
					}
					at++
				}
			}
		}
	}
}
