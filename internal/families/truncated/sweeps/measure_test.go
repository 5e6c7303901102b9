package sweeps_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/exact"
	"github.com/basetensor/basetensor/internal/families/truncated/sweeps"
	"github.com/basetensor/basetensor/internal/generate"
	"github.com/basetensor/basetensor/internal/lower"
	"github.com/basetensor/basetensor/internal/preprocess"
	"github.com/basetensor/basetensor/internal/reference"
	"github.com/basetensor/basetensor/internal/reparam"
	"github.com/basetensor/basetensor/internal/sumproduct"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// TestMeasure prints a table of what contractions take and return: MPS_MODELS lists models
// ("ising/…" and "uai/…" of the reference folder, or generated ones such as "grid:40:attractive:1",
// "regular:200:1", "complete:40:0.25", "bipartite:40:0.25"), MPS_BONDS bonds, MPS_SEEDS seeds.
func TestMeasure(t *testing.T) {
	names := os.Getenv("MPS_MODELS")
	if names == "" {
		t.Skip("MPS_MODELS lists no models")
	}
	for _, name := range strings.Split(names, ",") {
		e, want := measured(t, name)
		for _, seed := range numbers(t, "MPS_SEEDS", "0") {
			p := sweeps.Plan{}
			for _, bond := range numbers(t, "MPS_BONDS", "32") {
				begin := time.Now()
				var c sweeps.Cost
				var err error
				if p.Order == nil {
					p, _, err = sweeps.Search(context.Background(), e.Hypergraph(),
						sweeps.SearchOptions{Bond: bond, Seed: uint64(seed), Memory: 4 << 30})
				}
				searched := time.Since(begin).Seconds()
				if err == nil {
					c, err = sweeps.Evaluate(e.Hypergraph(), p, bond)
				}
				if err != nil {
					t.Fatal(err)
				}
				fmt.Printf("%s seed %d χ=%d: search %.1f s, predicted %.1e flops %.1e bytes",
					name, seed, bond, searched, c.Flops, c.PeakBytes)
				if limit, _ := strconv.ParseFloat(os.Getenv("MPS_FLOPS"), 64); limit > 0 &&
					c.Flops > limit {
					fmt.Println(", left out")
					continue
				}
				begin = time.Now()
				v, err := sweeps.Contract(context.Background(), e, p, sweeps.Options{
					Bond:      bond,
					Memory:    4 << 30,
					Cutoff:    cutoff(),
					Marginals: os.Getenv("MPS_MARGINALS") != "",
				})
				if err != nil {
					t.Fatal(err)
				}
				fmt.Printf("; %.2f s, %.1e flops, %.1e bytes, sign %d, ln Z %.10f, error %.1e, "+
					"discarded %.0e\n",
					time.Since(begin).Seconds(), v.Flops, v.PeakBytes, v.Z.Sign(), v.Z.LogAbs(),
					v.Z.LogAbs()-want, v.Discarded)
			}
		}
	}
}

func numbers(t *testing.T, variable, fallback string) (out []int) {
	text := os.Getenv(variable)
	if text == "" {
		text = fallback
	}
	for _, f := range strings.Split(text, ",") {
		n, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, n)
	}
	return out
}

// measured returns a simplified expression and ln Z, NaN for a generated model.
func measured(t testing.TB, name string) (*sumproduct.Expression, float64) {
	t.Helper()
	if !strings.Contains(name, ":") {
		return simplify(t, name), exactLnZ(t, name)
	}
	f := strings.Split(name, ":")
	n, _ := strconv.Atoi(f[1])
	delta, _ := strconv.ParseFloat(f[len(f)-1], 64)
	o := generate.Ising{Delta: delta, Attractive: strings.Contains(name, "attractive"), Seed: 1}
	var m *factorgraph.Model
	var err error
	switch f[0] {
	case "grid":
		m, err = generate.Grid(n, n, o)
	case "regular":
		m, err = generate.RandomRegular(n, 3, o)
	case "complete":
		m, err = generate.Complete(n, o)
	case "bipartite":
		return bipartite(n, delta), math.NaN()
	default:
		t.Fatalf("no model %s", name)
	}
	if err != nil {
		t.Fatal(err)
	}
	net, err := reparam.Build(context.Background(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := lower.Build(context.Background(), net)
	if err != nil {
		t.Fatal(err)
	}
	r, err := preprocess.Run(context.Background(), e, preprocess.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r.Expression, math.NaN()
}

// bipartite is the Ising model on the complete bipartite graph of n + n,
// J ~ U(−Δ, Δ), h ~ U(−0.1, 0.1).
func bipartite(n int, delta float64) *sumproduct.Expression {
	rng := rand.New(rand.NewPCG(1, 2))
	e := &sumproduct.Expression{Scale: scaled.One}
	for i := range 2 * n {
		h := 0.2*rng.Float64() - 0.1
		e.Dims = append(e.Dims, 2)
		e.Tables = append(e.Tables,
			sumproduct.Table{Scope: []int{i}, Data: []float64{math.Exp(-h), math.Exp(h)}})
	}
	for i := range n {
		for j := range n {
			k := delta * (2*rng.Float64() - 1)
			e.Tables = append(e.Tables, sumproduct.Table{
				Scope: []int{i, n + j},
				Data:  []float64{math.Exp(k), math.Exp(-k), math.Exp(-k), math.Exp(k)},
			})
		}
	}
	return e
}

// simplify returns a model of the reference folder under its evidence.
func simplify(t testing.TB, name string) *sumproduct.Expression {
	t.Helper()
	e, err := lower.Build(context.Background(), reference.Network(t, name))
	if err != nil {
		t.Fatal(err)
	}
	r, err := preprocess.Run(context.Background(), e, preprocess.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r.Expression
}

func exactLnZ(t testing.TB, name string) float64 {
	t.Helper()
	p, err := exact.Prepare(context.Background(), reference.Network(t, name), false)
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := p.Plan(context.Background(), 4<<30, 1)
	if err != nil {
		t.Fatal(err)
	}
	a, err := p.Answer(context.Background(), c, exact.Options{Memory: 4 << 30, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	return a.Z.LogAbs()
}

func cutoff() float64 {
	c, _ := strconv.ParseFloat(os.Getenv("MPS_CUTOFF"), 64)
	return c
}
