package truncated_test

// Measurements, not tests: with BTN_MEASURE set, what reusing a model's projectors under evidence does to ln Z and time.

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/basetensor/basetensor/pkg/btn"
	"github.com/basetensor/basetensor/pkg/compressed"
	"github.com/basetensor/basetensor/pkg/einsum"
	"github.com/basetensor/basetensor/pkg/elimination"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/generate"
	"github.com/basetensor/basetensor/pkg/reparam"
	"github.com/basetensor/basetensor/pkg/truncated"
)

func TestMeasureReuse(t *testing.T) {
	which := os.Getenv("BTN_MEASURE")
	if which == "" {
		t.Skip("BTN_MEASURE names no models")
	}
	cpu := func() float64 {
		var u syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e6
	}
	grid := func(rows, cols int, o generate.Ising) func(seed uint64) (*factorgraph.Model, error) {
		return func(seed uint64) (*factorgraph.Model, error) { o.Seed = seed; return generate.Grid(rows, cols, o) }
	}
	for _, c := range []struct {
		name  string
		make  func(seed uint64) (*factorgraph.Model, error)
		bonds []int
		exact bool
	}{
		{"10x10", grid(10, 10, generate.Ising{Delta: 1.5}), []int{4, 8, 16}, true},
		{"20x14", grid(20, 14, generate.Ising{Delta: 1, Attractive: true}), []int{4, 8, 16}, true},
		{"28x28", grid(28, 28, generate.Ising{Delta: 1}), []int{8, 16, 24}, false},
		{"regular", func(seed uint64) (*factorgraph.Model, error) {
			return generate.RandomRegular(80, 3, generate.Ising{Delta: 1, Seed: seed})
		}, []int{8, 16}, false},
		{"complete", func(seed uint64) (*factorgraph.Model, error) {
			return generate.Complete(15, generate.Ising{Delta: 1, Seed: seed})
		}, []int{8, 16, 32}, true},
	} {
		if !strings.Contains(which, c.name) {
			continue
		}
		for seed := uint64(1); seed <= 2; seed++ {
			m, _ := c.make(seed)
			net, _ := reparam.Build(m, reparam.Options{})
			p, err := truncated.Prepare(net, true)
			if err != nil {
				t.Fatal(err)
			}
			tree, err := p.Tree(t.Context(), truncated.SearchOptions{Bond: 16, Memory: btn.DefaultMemory, Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			proj := map[int]*compressed.Projectors{}
			disc, res := map[int]float64{}, map[int]float64{}
			for _, bond := range c.bonds {
				v, err := compressed.Contract(t.Context(), p.Expression(), tree, compressed.Options{Bond: bond, Gauge: 3, Keep: true})
				if err != nil {
					t.Fatal(err)
				}
				bytes := 0
				for _, p := range v.Projectors.Pairs {
					res[bond] = max(res[bond], p.Residual)
					bytes += 16 * len(p.Left)
				}
				c1, _ := compressed.Evaluate(p.Hypergraph(), tree, bond)
				fmt.Printf("%s χ=%d: %d projectors, %.3g bytes, flops %.3g predicted, %.3g counted\n", c.name, bond, len(v.Projectors.Pairs), float64(bytes), c1.Flops, v.Flops)
				proj[bond], disc[bond] = v.Projectors, v.Discarded
			}
			rng := rand.New(rand.NewPCG(seed, 7))
			for _, n := range []int{0, 1, 2, 4, 8, 20} {
				for range 3 {
					var ev factorgraph.Evidence
					for _, v := range rng.Perm(len(m.Domains))[:min(n, len(m.Domains))] {
						ev.Hard = append(ev.Hard, factorgraph.Observation{Var: v, Value: rng.IntN(2)})
					}
					ev, _ = factorgraph.NewEvidence(ev.Hard, nil)
					q, _ := p.Mask(ev)
					w, err := p.Weigh(ev)
					if err != nil {
						t.Fatal(err)
					}
					want := math.NaN() // where it takes too long
					if c.exact {
						z, _, err := einsum.Contract(t.Context(), q.Expression(), elimination.Best(q.Expression().Hypergraph()), einsum.Options{})
						if err != nil {
							t.Fatal(err)
						}
						want = z.LogAbs()
					}
					for _, bond := range c.bonds {
						s := cpu()
						a, _ := compressed.Contract(t.Context(), q.Expression(), tree, compressed.Options{Bond: bond, Gauge: 3})
						ta := cpu() - s
						s = cpu()
						b, err := compressed.Contract(t.Context(), w.Expression(), tree, compressed.Options{Bond: bond, Projectors: proj[bond]})
						if err != nil {
							t.Fatal(err)
						}
						tb := cpu() - s
						fmt.Printf("%s s%d n=%-2d χ=%-2d relearned %.0e %.1fms %.1eflops disc %.0e | reused %.0e Δ %.0e %.1fms %.1eflops res %.0e model's disc %.0e res %.0e excess %.0e | x%.2f\n", c.name, seed, n, bond,
							math.Abs(a.Z.LogAbs()-want), ta, a.Flops, a.Discarded, math.Abs(b.Z.LogAbs()-want), math.Abs(b.Z.LogAbs()-a.Z.LogAbs()), tb, b.Flops, b.Discarded, disc[bond], res[bond], b.Excess, ta/tb)
					}
				}
			}
		}
	}
}
