package truncated

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/engine/einsum"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/orders"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// masks reports whether a variable can be observed by a mask.
func masks(p *Prepared, v int) bool {
	_, err := p.Mask(factorgraph.Observe(map[int]int{v: 0}))
	return err == nil
}

// Z and all marginals of a network under a mask are the values of the network conditioned on the same evidence.
func TestMaskIsConditioning(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 1))
	masked := 0
	for range 400 {
		m := modeltest.Small(rng, modeltest.SmallOptions{})
		net, err := reparam.Build(context.Background(), m, reparam.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p, err := Prepare(context.Background(), net, true)
		if err != nil {
			t.Fatal(err)
		}
		var ev factorgraph.Evidence
		for v, d := range m.Domains {
			if !masks(p, v) {
				continue
			}
			switch rng.IntN(4) {
			case 0:
				ev.Hard = append(ev.Hard, factorgraph.Observation{Var: v, Value: rng.IntN(d)})
			case 1:
				w := make([]float64, d)
				for x := range w {
					w[x] = rng.Float64()
				}
				ev.Soft = append(ev.Soft, factorgraph.Likelihood{Var: v, Weights: w})
			}
		}
		q, err := p.Mask(ev)
		if err != nil {
			t.Fatal(err)
		}
		if !ev.IsEmpty() {
			masked++
		}
		conditioned, err := net.Condition(ev)
		if err != nil {
			t.Fatal(err)
		}
		given, err := lower.Build(context.Background(), conditioned)
		if err != nil {
			t.Fatal(err)
		}
		want, index := exactly(t, given)
		wantRows := func(v, x int) float64 {
			i := given.Variables[v]
			if s := given.Support[i]; s != nil {
				if x = slices.Index(s, x); x < 0 {
					return 0
				}
			}
			return index[i][x]
		}
		z, marginals := exactly(t, q.Expression())
		if want.IsZero() {
			if !z.IsZero() && math.Abs(z.LogAbs()) < 600 && z.LogAbs() > -30 {
				t.Fatalf("Z %v under a mask, 0 conditioned", z)
			}
			continue
		}
		if math.Abs(z.LogAbs()-want.LogAbs()) > 1e-9 {
			t.Fatalf("ln Z %v under a mask, %v conditioned", z.LogAbs(), want.LogAbs())
		}
		rows, err := q.VariableMarginals(marginals)
		if err != nil {
			t.Fatal(err)
		}
		for v := range m.Domains {
			for x := range rows[v] {
				if math.Abs(rows[v][x]-wantRows(v, x)) > 1e-9 {
					t.Fatalf("P(x_%d = %d) is %v under a mask, %v conditioned", v, x, rows[v][x], wantRows(v, x))
				}
			}
		}
	}
	if masked < 200 {
		t.Errorf("only %d masks", masked)
	}
}

// exactly contracts an expression by elimination.
func exactly(t *testing.T, e *sumproduct.Expression) (scaled.Number, [][]float64) {
	t.Helper()
	r, _, err := einsum.Marginals(t.Context(), e, orders.MinFill(e.Hypergraph()), einsum.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rows := make([][]float64, len(r.Marginals))
	for i, row := range r.Marginals {
		for _, x := range row {
			rows[i] = append(rows[i], x.Div(r.Z).Float64())
		}
	}
	return r.Z, rows
}

// A sweep planned without evidence serves a network under a mask, and is priced there.
func TestSweepUnderMask(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 4))
	compared := 0
	for range 60 {
		m := modeltest.Small(rng, modeltest.SmallOptions{})
		net, err := reparam.Build(context.Background(), m, reparam.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p, err := Prepare(context.Background(), net, true)
		if err != nil {
			t.Fatal(err)
		}
		if p.IsDecided() {
			continue
		}
		sweep, err := p.searchSweep(t.Context(), SearchOptions{Bond: 4, Memory: 1 << 30, Seed: 1}, 1, truncatedLeast)
		if err != nil {
			t.Fatal(err)
		}
		var ev factorgraph.Evidence
		for v, d := range m.Domains {
			if masks(p, v) && rng.IntN(3) == 0 {
				ev.Hard = append(ev.Hard, factorgraph.Observation{Var: v, Value: rng.IntN(d)})
			}
		}
		q, err := p.Mask(ev)
		if err != nil {
			t.Fatal(err)
		}
		want, _ := exactly(t, q.Expression())
		got, err := q.Contract(t.Context(), &sweep.plan, 1<<12, 0, false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := q.Price(t.Context(), &sweep.plan, 8, false); err != nil {
			t.Fatal(err)
		}
		if want.Sign() > 0 && math.Abs(got.Z.LogAbs()-want.LogAbs()) > 1e-9 {
			t.Fatalf("ln Z %v, want %v", got.Z.LogAbs(), want.LogAbs())
		}
		if want.Sign() > 0 && len(ev.Hard) > 0 {
			compared++
		}
	}
	if compared < 20 {
		t.Errorf("only %d compared", compared)
	}
}

// TestMasksKeepTheRangeOfFloat64: likelihoods are refused if their products with the tables or with one another leave the
// range of float64, and accepted at its edge.
func TestMasksKeepTheRangeOfFloat64(t *testing.T) {
	m := &factorgraph.Model{Domains: []int{2, 2, 2}}
	for _, scope := range [][]int{{0, 1}, {1, 2}, {0, 2}} {
		table := &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1, 1e-150, 2e-150, 3}}
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: scope, Table: table})
	}
	net, err := reparam.Build(t.Context(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := Prepare(t.Context(), net, true)
	if err != nil {
		t.Fatal(err)
	}
	for weight, fits := range map[float64]bool{1: true, 0: true, 1e-60: true, 1e-160: false, 1e100: true, 1e300: false} {
		soft := []factorgraph.Likelihood{{Var: 0, Weights: []float64{1, weight}}, {Var: 1, Weights: []float64{weight, 1}}}
		if _, err := p.Mask(factorgraph.Evidence{Soft: soft}); (err == nil) != fits || err != nil && !errors.Is(err, ErrNoMask) {
			t.Errorf("likelihoods of %v: %v", weight, err)
		}
	}
}
