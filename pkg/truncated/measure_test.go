package truncated

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/basetensor/basetensor/pkg/btn"
	"github.com/basetensor/basetensor/pkg/compressed"
	"github.com/basetensor/basetensor/pkg/einsum"
	"github.com/basetensor/basetensor/pkg/elimination"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/generate"
	"github.com/basetensor/basetensor/pkg/reparam"
)

func TestMeasureReuse(t *testing.T) {
	if os.Getenv("BTN_MEASURE") == "" {
		t.Skip()
	}
	for _, c := range []struct {
		r, c int
		o    generate.Ising
	}{{10, 10, generate.Ising{Delta: 1.5}}, {20, 14, generate.Ising{Delta: 1, Attractive: true}}} {
		for seed := uint64(1); seed <= 2; seed++ {
			c.o.Seed = seed
			m, _ := generate.Grid(c.r, c.c, c.o)
			net, _ := reparam.Build(m, reparam.Options{})
			p, err := Prepare(net, true)
			if err != nil {
				t.Fatal(err)
			}
			plan, err := p.tree(t.Context(), SearchOptions{Bond: 16, Memory: btn.DefaultMemory, Seed: 1}, leastMoves)
			if err != nil {
				t.Fatal(err)
			}
			tree, _ := decodeTree(plan.plan.Tree)
			proj := map[[2]int]*compressed.Projectors{}
			disc := map[[2]int]float64{}
			for _, bond := range []int{4, 8, 16} {
				for _, g := range []int{-1, 3} {
					v, err := compressed.Contract(t.Context(), p.Expression(), tree, compressed.Options{Bond: bond, Gauge: g, Keep: true})
					if err != nil {
						t.Fatal(err)
					}
					proj[[2]int{bond, g}] = v.Projectors
					disc[[2]int{bond, g}] = v.Discarded
				}
			}
			rng := rand.New(rand.NewPCG(seed, 7))
			for _, n := range []int{0, 1, 2, 3, 5, 20} {
				for range 3 {
					var ev factorgraph.Evidence
					for _, v := range rng.Perm(len(m.Domains))[:n] {
						ev.Hard = append(ev.Hard, factorgraph.Observation{Var: v, Value: rng.IntN(2)})
					}
					ev, _ = factorgraph.NewEvidence(ev.Hard, nil)
					q, _ := p.Mask(ev)
					w, err := p.Weigh(ev)
					if err != nil {
						t.Fatal(err)
					}
					z, _, err := einsum.Contract(t.Context(), q.Expression(), elimination.Best(q.Expression().Hypergraph()), einsum.Options{})
					if err != nil {
						t.Fatal(err)
					}
					e := func(v compressed.Value) float64 { return math.Abs(v.Z.LogAbs() - z.LogAbs()) }
					for _, bond := range []int{4, 8, 16} {
						s := time.Now()
						a, _ := compressed.Contract(t.Context(), q.Expression(), tree, compressed.Options{Bond: bond, Gauge: 3})
						ta := time.Since(s)
						fmt.Printf("%dx%d s%d n=%-2d χ=%-2d relearned %.0e %v disc %.0e |", c.r, c.c, seed, n, bond, e(a), ta.Round(100*time.Microsecond), a.Discarded)
						for _, g := range []int{-1, 3} {
							k := [2]int{bond, g}
							for _, rg := range []int{-1, 3} {
								s := time.Now()
								b, err := compressed.Contract(t.Context(), w.Expression(), tree, compressed.Options{Bond: bond, Gauge: rg, Projectors: proj[k]})
								if err != nil {
									t.Fatal(err)
								}
								tb := time.Since(s)
								if rg < 0 {
									fmt.Printf(" learned g%d: %.0e disc %.0e", g, e(b), disc[k])
								}
								fmt.Printf(" res g%d %.0e %v", rg, b.Discarded, tb.Round(100*time.Microsecond))
							}
						}
						fmt.Println()
					}
				}
			}
		}
	}
}
