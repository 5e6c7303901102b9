package truncated_test

// Measurements, not tests: with BTN_MEASURE set, what reusing a model's projectors under evidence does to ln Z and time.

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/engine/einsum"
	"github.com/basetensor/basetensor/internal/families/truncated"
	"github.com/basetensor/basetensor/internal/families/truncated/trees"
	"github.com/basetensor/basetensor/internal/generate"
	"github.com/basetensor/basetensor/internal/orders"
	"github.com/basetensor/basetensor/internal/reparam"
	"github.com/basetensor/basetensor/pkg/factorgraph"
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
	sums := map[string]*sum{}
	var keys []string
	cases, err := strconv.Atoi(os.Getenv("BTN_CASES"))
	if err != nil {
		cases = 3
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
		{"18x24", grid(18, 24, generate.Ising{Delta: 1}), []int{8, 16}, true},
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
			net, _ := reparam.Build(context.Background(), m, reparam.Options{})
			p, err := truncated.Prepare(context.Background(), net, true)
			if err != nil {
				t.Fatal(err)
			}
			plan, err := p.Tree(t.Context(), truncated.SearchOptions{Bond: 16, Memory: btn.DefaultMemory, Seed: 1}, 1<<22)
			if err != nil {
				t.Fatal(err)
			}
			known := map[string]*trees.Projectors{}
			memo := func(ctx context.Context, key string,
				learn func(context.Context) (*trees.Projectors, error)) (*trees.Projectors, error) {
				if known[key] == nil {
					var err error
					if known[key], err = learn(ctx); err != nil {
						return nil, err
					}
				}
				return known[key], nil
			}
			rng := rand.New(rand.NewPCG(seed, 7))
			for _, n := range []int{1, 2, 3, 4, 5} {
				for range cases {
					ev := observe(rng, m, n)
					q, err := p.Mask(ev)
					if err != nil {
						t.Fatal(err)
					}
					want := math.NaN() // where it takes too long
					if c.exact {
						z, _, err := einsum.Contract(t.Context(), q.Expression(), orders.Best(q.Expression().Hypergraph()), einsum.Options{})
						if err != nil {
							t.Fatal(err)
						}
						want = z.LogAbs()
					}
					for _, bond := range c.bonds {
						s := cpu()
						a, err := q.Contract(t.Context(), &plan, bond, 0, false)
						if err != nil {
							t.Fatal(err)
						}
						ta := cpu() - s
						if !c.exact && want != want || !c.exact && bond == c.bonds[0] {
							b, err := q.Contract(t.Context(), &plan, 2*c.bonds[len(c.bonds)-1], 0, false)
							if err != nil {
								t.Fatal(err)
							}
							want = b.Z.LogAbs()
						}
						for _, accuracy := range []float64{1e-9, 1e-6, 1e-4} {
							o := truncated.Reuse{Accuracy: accuracy, Projectors: memo, Flops: 1}
							if _, err := p.Under(t.Context(), &plan, bond, 0, ev, o); err != nil { // learns
								t.Fatal(err)
							}
							s = cpu()
							b, err := p.Under(t.Context(), &plan, bond, 0, ev, o)
							if err != nil {
								t.Fatal(err)
							}
							tb := cpu() - s
							key := fmt.Sprintf("%s χ=%-2d accuracy %.0e n=%d", c.name, bond, accuracy, n)
							r := sums[key]
							if r == nil {
								r = &sum{}
								sums[key] = r
								keys = append(keys, key)
							}
							r.cases++
							r.relearned += ta
							r.all += tb
							if b.Truncation.Reused {
								r.reused++
								r.worst = max(r.worst, math.Abs(b.Z.LogAbs()-want))
								r.own = max(r.own, math.Abs(a.Z.LogAbs()-want))
								r.speed += ta / tb
							}
						}
					}
				}
			}
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		r := sums[k]
		fmt.Printf("%s: %3d of %3d reused, worst error %.0e (relearned %.0e), %.2f times as fast; all %.0f ms, relearned %.0f ms\n",
			k, r.reused, r.cases, r.worst, r.own, r.speed/float64(r.reused), r.all, r.relearned)
	}
}

// sum is what was measured of some cases. Times are in ms of CPU.
type sum struct {
	cases, reused                     int
	worst, own, speed, all, relearned float64
}

// observe draws n observations.
func observe(rng *rand.Rand, m *factorgraph.Model, n int) factorgraph.Evidence {
	var hard []factorgraph.Observation
	for _, v := range rng.Perm(len(m.Domains))[:n] {
		hard = append(hard, factorgraph.Observation{Var: v, Value: rng.IntN(m.Domains[v])})
	}
	ev, err := factorgraph.NewEvidence(hard, nil)
	if err != nil {
		panic(err)
	}
	return ev
}
