package baseline_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/engine/einsum"
	"github.com/basetensor/basetensor/internal/generate"
	"github.com/basetensor/basetensor/internal/lower"
	"github.com/basetensor/basetensor/internal/oracle"
	"github.com/basetensor/basetensor/internal/orders"
	"github.com/basetensor/basetensor/internal/reparam"
	"github.com/basetensor/basetensor/internal/sumproduct"
	"github.com/basetensor/basetensor/lab/baseline"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// rounding bounds |Δ ln Z| of a computation that is exact on paper, at these sizes.
const rounding = 1e-10

func expression(t testing.TB, m *factorgraph.Model, err error) *sumproduct.Expression {
	t.Helper()
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
	return e
}

func lnZ(t *testing.T, e *sumproduct.Expression) float64 {
	t.Helper()
	z, _, err := einsum.Contract(context.Background(), e, orders.Best(e.Hypergraph()), einsum.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return z.LogAbs()
}

// randomModels are small ones of any arity and mixed domains, with zeros.
func randomModels(n int) []*factorgraph.Model {
	var list []*factorgraph.Model
	for seed := range uint64(n) {
		rng := rand.New(rand.NewPCG(seed, 1))
		list = append(list, generate.Small(rng, generate.SmallOptions{
			Factors:  9,
			Zeros:    0.1 * float64(seed%2),
			Kinds:    []generate.Kind{generate.Dense},
			Constant: true,
		}))
	}
	return list
}

// TestAgainstEnumeration: bounds are bounds on every model, and what has room is exact.
func TestAgainstEnumeration(t *testing.T) {
	ctx := context.Background()
	for seed, m := range randomModels(60) {
		want, _ := oracle.LogZ(m, factorgraph.Evidence{})
		e := expression(t, m, nil)
		for ibound := 1; ibound <= 6; ibound++ {
			upper, err := baseline.MiniBucket(ctx, e, ibound)
			if err != nil {
				t.Fatal(err)
			}
			renormalised, err := baseline.BucketRenormalisation(ctx, e, baseline.RenormalisationOptions{IBound: ibound})
			if err != nil {
				t.Fatal(err)
			}
			if upper.LnZ < want-rounding {
				t.Errorf("model %d, ibound %d: mini-buckets say %v, below ln Z = %v", seed, ibound, upper.LnZ, want)
			}
			if ibound == 6 { // six variables
				for what, got := range map[string]float64{"mini-buckets": upper.LnZ, "renormalisation": renormalised.LnZ} {
					if got != want && !(math.Abs(got-want) <= rounding) {
						t.Errorf("model %d: %s say %v, ln Z = %v", seed, what, got, want)
					}
				}
			}
		}
		lower, err := baseline.MeanField(ctx, e, baseline.MeanFieldOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if lower.LnZ > want+rounding {
			t.Errorf("model %d: mean field says %v, above ln Z = %v", seed, lower.LnZ, want)
		}
		for i, q := range lower.Marginals {
			total := 0.0
			for _, p := range q {
				total += p
			}
			if len(q) != e.Dims[i] || math.Abs(total-1) > rounding {
				t.Errorf("model %d: q_%d = %v", seed, i, q)
			}
		}
	}
}

// TestExactOnTrees: buckets of two indices are enough for pairwise trees, here combs of ternary
// variables.
func TestExactOnTrees(t *testing.T) {
	m := &factorgraph.Model{}
	rng := rand.New(rand.NewPCG(5, 5))
	for i := range 200 {
		m.Domains = append(m.Domains, 3)
		if i > 0 {
			f := generate.Tensor(rng, generate.Dense, []int{3, 3}, generate.SmallOptions{})
			m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{i, max(0, i-1-i%3)}, Table: f})
		}
	}
	e := expression(t, m, nil)
	want := lnZ(t, e)
	for what, run := range map[string]func() (baseline.Result, error){
		"mini-buckets": func() (baseline.Result, error) { return baseline.MiniBucket(t.Context(), e, 1) },
		"renormalisation": func() (baseline.Result, error) {
			return baseline.BucketRenormalisation(t.Context(), e, baseline.RenormalisationOptions{IBound: 1})
		},
	} {
		if r, err := run(); err != nil || math.Abs(r.LnZ-want) > rounding*want {
			t.Errorf("%s: %v (%v), ln Z = %v", what, r.LnZ, err, want)
		}
	}
}

// TestRenormalisationIsBetterThanTheBound on grids, and global optimisation better than local
// vectors.
func TestRenormalisationIsBetterThanTheBound(t *testing.T) {
	bound, local, global := 0.0, 0.0, 0.0
	const seeds = 10
	for seed := range uint64(seeds) {
		m, err := generate.Grid(7, 7, generate.Ising{Delta: 1, Seed: seed})
		e := expression(t, m, err)
		want := lnZ(t, e)
		upper, err1 := baseline.MiniBucket(t.Context(), e, 4)
		mbr, err2 := baseline.BucketRenormalisation(t.Context(), e, baseline.RenormalisationOptions{
			IBound: 4, Rounds: -1,
		})
		gbr, err3 := baseline.BucketRenormalisation(t.Context(), e, baseline.RenormalisationOptions{IBound: 4})
		if err := errors.Join(err1, err2, err3); err != nil {
			t.Fatal(err)
		}
		bound += (upper.LnZ - want) / seeds
		local += math.Abs(mbr.LnZ-want) / seeds
		global += math.Abs(gbr.LnZ-want) / seeds
	}
	t.Logf("mean |Δ ln Z|: mini-buckets %.3g, local %.3g, global %.3g", bound, local, global)
	if !(global < local && local < bound) {
		t.Errorf("mean |Δ ln Z|: mini-buckets %v, local %v, global %v", bound, local, global)
	}
}

// TestMeanFieldOfIndependentVariables is exact, with the marginals.
func TestMeanFieldOfIndependentVariables(t *testing.T) {
	e := &sumproduct.Expression{Dims: []int{2, 3, 4}, Scale: scaled.FromFloat(2), Tables: []sumproduct.Table{
		{Scope: []int{0}, Data: []float64{1, 3}}, {Scope: []int{1}, Data: []float64{0, 1, 1}}, {Data: []float64{5}},
	}}
	r, err := baseline.MeanField(t.Context(), e, baseline.MeanFieldOptions{})
	if err != nil || math.Abs(r.LnZ-math.Log(2*4*2*4*5)) > rounding || !r.Converged {
		t.Fatalf("%+v, %v; ln Z = ln 320", r, err)
	}
	for i, want := range [][]float64{{0.25, 0.75}, {0, 0.5, 0.5}, {0.25, 0.25, 0.25, 0.25}} {
		for x := range want {
			if math.Abs(r.Marginals[i][x]-want[x]) > rounding {
				t.Errorf("index %d: %v, want %v", i, r.Marginals[i], want)
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	bad := &sumproduct.Expression{
		Dims:   []int{2},
		Scale:  scaled.One,
		Tables: []sumproduct.Table{{Scope: []int{0}, Data: []float64{1, -1}}},
	}
	good := &sumproduct.Expression{
		Dims:   []int{2},
		Scale:  scaled.One,
		Tables: []sumproduct.Table{{Scope: []int{0}, Data: []float64{1, 1}}},
	}
	wide, err := generate.Complete(40, generate.Ising{Delta: 1})
	huge := expression(t, wide, err)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for what, run := range map[string]func(ctx context.Context, e *sumproduct.Expression, ibound int) error{
		"mini-buckets": func(ctx context.Context, e *sumproduct.Expression, ibound int) error {
			_, err := baseline.MiniBucket(ctx, e, ibound)
			return err
		},
		"renormalisation": func(ctx context.Context, e *sumproduct.Expression, ibound int) error {
			_, err := baseline.BucketRenormalisation(ctx, e, baseline.RenormalisationOptions{IBound: ibound})
			return err
		},
		"mean field": func(ctx context.Context, e *sumproduct.Expression, _ int) error {
			_, err := baseline.MeanField(ctx, e, baseline.MeanFieldOptions{})
			return err
		},
	} {
		if err := run(t.Context(), bad, 3); fault.CodeOf(err) != fault.Unsupported {
			t.Errorf("%s of an entry −1: %v", what, err)
		}
		if err := run(cancelled, good, 3); !errors.Is(err, context.Canceled) {
			t.Errorf("%s after a cancellation: %v", what, err)
		}
		if what == "mean field" {
			continue
		}
		if err := run(t.Context(), huge, 39); fault.CodeOf(err) != fault.OverBudget {
			t.Errorf("%s of 2^40 entries: %v", what, err)
		}
		if err := run(t.Context(), good, -1); fault.CodeOf(err) != fault.BadInput {
			t.Errorf("%s with ibound −1: %v", what, err)
		}
	}
}
