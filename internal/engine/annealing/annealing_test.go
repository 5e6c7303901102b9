package annealing

import (
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/basetensor/basetensor/internal/engine/einsum"
	"github.com/basetensor/basetensor/internal/generate"
	"github.com/basetensor/basetensor/internal/lower"
	"github.com/basetensor/basetensor/internal/orders"
	"github.com/basetensor/basetensor/internal/reparam"
	"github.com/basetensor/basetensor/internal/sumproduct"
	"github.com/basetensor/basetensor/pkg/factorgraph"
)

func expression(t testing.TB, m *factorgraph.Model, err error) *sumproduct.Expression {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	net, err := reparam.Build(t.Context(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := lower.Build(t.Context(), net)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestPrototype(t *testing.T) {
	if os.Getenv("BTN_MEASURE") == "" {
		t.Skip()
	}
	k20, e1 := generate.Complete(20, generate.Ising{Delta: 1, Seed: 1})
	reg, e2 := generate.RandomRegular(80, 3, generate.Ising{Delta: 2, Seed: 1})
	grid, e3 := generate.Grid(12, 12, generate.Ising{Delta: 2, Seed: 1})
	for name, c := range map[string]struct {
		m   *factorgraph.Model
		err error
	}{"k20": {k20, e1}, "reg": {reg, e2}, "grid": {grid, e3}} {
		e := expression(t, c.m, c.err)
		z, _, err := einsum.Contract(t.Context(), e, orders.Best(e.Hypergraph()), einsum.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want := z.LogAbs()
		m, err := New(e)
		if err != nil {
			t.Fatal(err)
		}
		pilot, err := m.Pilot(t.Context(), Options{Chains: 100, Seed: 1}, 0.9, 10000)
		fmt.Println(name, "pilot rungs", len(pilot), err)
		total := 20000 // sweeps
		for _, how := range []struct {
			name   string
			chains int
			pops   int
			ladder func(rungs int) []float64
		}{
			{"ais linear 1000", 1, 20, nil},
			{"smc linear 20 chains", 20, 1, nil},
			{"smc linear 100 chains", 100, 1, nil},
			{"smc linear 400 chains", 400, 1, nil},
			{"smc pilot 20 chains", 20, 1, func(r int) []float64 { return Stretch(pilot, r) }},
			{"smc pilot 100 chains", 100, 1, func(r int) []float64 { return Stretch(pilot, r) }},
			{"smc pilot 400 chains", 400, 1, func(r int) []float64 { return Stretch(pilot, r) }},
		} {
			rungs := total / how.chains / how.pops
			ladder := make([]float64, rungs)
			for k := range ladder {
				ladder[k] = float64(k+1) / float64(rungs)
			}
			if how.ladder != nil {
				ladder = how.ladder(rungs)
			}
			squares := 0.0
			const seeds = 40
			for seed := range uint64(seeds) {
				mean := 0.0
				for k := range how.pops {
					p, err := m.Run(t.Context(), Options{Ladder: ladder, Chains: how.chains, Seed: seed}, uint64(k))
					if err != nil {
						t.Fatal(err)
					}
					mean += math.Exp(p.Z.LogAbs()-want) / float64(how.pops)
				}
				squares += math.Pow(math.Log(mean), 2)
			}
			fmt.Printf("  %-24s rms error %.4f nats\n", how.name, math.Sqrt(squares/seeds))
		}
	}
}
