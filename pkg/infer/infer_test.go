package infer

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/internal/testing/reference"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// exactTolerance bounds the relative error of ln Z by elimination: rounding only.
const exactTolerance = 1e-9

func TestExactAnswersEqualBruteForce(t *testing.T) {
	for seed := uint64(0); seed < 60; seed++ {
		rng := rand.New(rand.NewPCG(seed, 1))
		m := modeltest.Small(rng,
			modeltest.SmallOptions{Variables: 7, Factors: 8, MaxArity: 4, Constant: seed%3 == 0,
				Zeros: 0.1 * float64(seed%3)})
		queries := []query.Query{{}, {Evidence: modeltest.Evidence(rng, m)},
			{Evidence: modeltest.Evidence(rng, m)}}
		for _, s := range []query.Settings{
			{Method: query.MethodExact},
			{Method: query.MethodAuto, Cores: query.CoresAreVariables},
			{Method: query.MethodExact, Maps: query.MapOrthogonal},
			{Method: query.MethodExact, Maps: query.MapOrthogonal, Cores: query.CoresAreVariables},
			{Method: query.MethodExact, Maps: query.MapBP},
			{Method: query.MethodExact, Maps: query.MapBP, Cores: query.CoresAreVariables},
		} {
			results, err := Run(context.Background(),
				Request{Job: "t", Model: m, Queries: queries, Settings: s})

			if err != nil {
				t.Fatalf("seed %d, %+v: %v", seed, s, err)
			}
			for q, r := range results {
				want, sign := oracle.LogZ(m, queries[q].Evidence)
				switch {
				case r.Status != "ok":
					if s.Maps != "" && sign == 0 {
						// rotated cores of an impossible model cancel to rounding noise,
						// and that is said
						continue
					}
					t.Fatalf("seed %d, %+v, query %d: %+v", seed, s, q, r.Error)
				case sign == 0:
					if !r.Zero {
						t.Errorf("seed %d, %+v, query %d: ln Z %v, Z is 0", seed, s, q, *r.LogZ)
					}
				case math.Abs(*r.LogZ-want) > exactTolerance*(1+math.Abs(want)):
					t.Errorf("seed %d, %+v, query %d: ln Z %v, want %v", seed, s, q, *r.LogZ, want)
				case !r.Exact || r.Plan == nil && r.Components == 0:
					t.Errorf("seed %d, %+v, query %d: not exact, or no plan: %+v", seed, s, q, r)
				}
			}
		}
	}
}

func TestAutoWithoutTheExactWay(t *testing.T) {
	run := func(variables int, s query.Settings) query.Result {
		results, err := Run(context.Background(),
			Request{Job: "t", Model: ising(variables), Queries: []query.Query{{}},
				Settings: s})

		if err != nil {
			t.Fatal(err)
		}
		return results[0]
	}
	// not even the model's own tables fit
	small := run(10, query.Settings{Method: query.MethodExact, Memory: 1 << 10})
	if small.Status != "error" || small.Error.Code != fault.OverBudget ||
		!strings.Contains(small.Error.Message, "bytes") {
		t.Fatalf("exact over its budget: %+v", small)
	}
	want := run(22, query.Settings{Method: query.MethodExact})
	for _, memory := range []int64{1 << 20, 1 << 28} {
		auto := run(22, query.Settings{NoExact: true, Memory: memory, Budget: 1e9})
		if auto.Status != "ok" || auto.Exact || auto.Method != query.MethodTruncated ||
			auto.Uncertainty == nil || len(auto.Estimates) == 0 {
			t.Fatalf("auto: %+v, error %+v", auto, auto.Error)
		}
		if d := math.Abs(*auto.LogZ - *want.LogZ); d > 3**auto.Uncertainty {
			t.Errorf("ln Z is off by %v, stated %v: %+v", d, *auto.Uncertainty, auto.Estimates)
		}
		for _, e := range auto.Estimates {
			if e.PeakBytes > float64(memory) {
				t.Errorf("%v bytes, the budget is %d", e.PeakBytes, memory)
			}
		}
	}
	if none := run(
		22, query.Settings{Method: query.MethodTruncated, Memory: 1 << 10},
	); none.Status != "error" || none.Error.Code != fault.OverBudget {
		t.Errorf("no room for anything: %+v", none)
	}
}

// ising is the complete graph of n binary variables with couplings that shrink with distance.
func ising(n int) *factorgraph.Model {
	m := &factorgraph.Model{Domains: make([]int, n)}
	for i := range m.Domains {
		m.Domains[i] = 2
		for j := range i {
			w := math.Exp(0.3 / float64(i-j))
			m.Factors = append(
				m.Factors,
				factorgraph.Factor{Scope: []int{j, i},
					Table: &tensor.Dense{Shape: []int{2, 2}, Data: []float64{w, 1, 1, w}}},
			)
		}
	}
	return m
}

// countingMemo remembers in memory and counts.
type countingMemo struct {
	known    map[string]*btn.Plan
	computed int
}

func (c *countingMemo) Do(
	ctx context.Context, key string, compute func(context.Context) (*btn.Plan, error),
) (*btn.Plan, bool, error) {
	if d, ok := c.known[key]; ok {
		return d, true, nil
	}
	c.computed++
	d, err := compute(ctx)
	if err == nil {
		c.known[key] = d
	}
	return d, false, err
}

func TestOtherEvidenceHitsTheMemoAndChangesNoBit(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 1))
	m := modeltest.Small(rng, modeltest.SmallOptions{Variables: 8, Factors: 10})
	for _, method := range []query.Method{query.MethodExact, query.MethodSymmetryCP} {
		memo := &countingMemo{known: map[string]*btn.Plan{}}
		for k := range 3 {
			asked := query.Query{Evidence: modeltest.Evidence(rng, m)}
			request := Request{Job: "t", Model: m, Queries: []query.Query{asked},
				Settings: query.Settings{Method: method, Objective: query.ObjectiveFrobenius, Components: 2}}
			remembered, err := stage.Run(context.Background(), stage.Request(request), memo)
			if err != nil {
				t.Fatal(err)
			}
			plain, err := Run(context.Background(), request)
			if err != nil {
				t.Fatal(err)
			}
			want := "hit"
			if k == 0 {
				want = "miss"
			}
			if remembered[0].Cache != want || plain[0].Cache != "off" {
				t.Errorf("%s, query %d: cache %q and %q, want %q and off",
					method, k, remembered[0].Cache, plain[0].Cache, want)
			}
			if !sameNumber(remembered[0].LogZ, plain[0].LogZ) ||
				!sameNumber(remembered[0].Residual, plain[0].Residual) {
				t.Errorf("%s, query %d: remembered and plain answers differ in bits", method, k)
			}
		}
		if memo.computed != 1 {
			t.Errorf("%s: learned %d times", method, memo.computed)
		}
	}
}

func sameNumber(a, b *float64) bool {
	return a == nil && b == nil || a != nil && b != nil &&
		math.Float64bits(*a) == math.Float64bits(*b)
}

func TestOneDifferingEntryMissesTheMemo(t *testing.T) {
	memo := &countingMemo{known: map[string]*btn.Plan{}}
	m := ising(5)
	for k := range 2 {
		if k == 1 {
			m.Factors[3].Table.(*tensor.Dense).Data[1] = math.Nextafter(1, 2)
		}
		if _, err := stage.Run(
			context.Background(),
			stage.Request{Job: "t", Model: m, Queries: []query.Query{{}},
				Settings: query.Settings{Method: query.MethodSymmetryCP, Objective: query.ObjectiveFrobenius, Components: 1}},
			memo,
		); err != nil {
			t.Fatal(err)
		}
	}
	if memo.computed != 2 {
		t.Errorf("learned %d times, want 2", memo.computed)
	}
}

func TestWrongRequestsAreBadInput(t *testing.T) {
	m := ising(3)
	for name, r := range map[string]Request{
		"no model": {Queries: []query.Query{{}}},
		"no query": {Model: m},
		"wrong variable": {Model: m,
			Queries: []query.Query{{Evidence: factorgraph.Evidence{Hard: []factorgraph.Observation{{Var: 7}}}}}},
		"wrong value": {
			Model:   m,
			Queries: []query.Query{{Evidence: factorgraph.Evidence{Hard: []factorgraph.Observation{{Var: 1, Value: 2}}}}},
		},
		"wrong model": {Model: &factorgraph.Model{Domains: []int{2, 0}},
			Queries: []query.Query{{}}},
	} {
		if _, err := Run(context.Background(), r); fault.CodeOf(err) != fault.BadInput {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCancelledContextEndsTheRun(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := Run(ctx, Request{Model: ising(8), Queries: []query.Query{{}},
		Settings: query.Settings{Method: query.MethodSymmetryCP}})

	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
}

func TestReferenceModels(t *testing.T) {
	for _, name := range []string{
		"uai/Grids_11", "uai/Segmentation_11", "uai/CSP_13", "uai/Alchemy_11", "uai/Promedus_29",
		"uai/Pedigree_13",
		"uai/relational_3",
	} {
		t.Run(name, func(t *testing.T) {
			m, evidence := reference.Model(t, name)
			results, err := Run(
				context.Background(),
				Request{Job: "t", Model: m, Queries: []query.Query{{Evidence: evidence}},
					Settings: query.Settings{Method: query.MethodExact}})

			if err != nil {
				t.Fatal(err)
			}
			want, tolerance := reference.Log10Z(t, name)
			if r := results[0]; r.Status != "ok" || math.Abs(*r.Log10Z-want) > tolerance {
				t.Errorf("log10 Z: %+v, want %v", r, want)
			}
		})
	}
}

func TestSlicedAnswersEqualWholeOnes(t *testing.T) {
	m := ising(18)
	asked := query.Query{Marginals: true, Evidence: factorgraph.Observe(map[int]int{3: 1})}
	answer := func(memory int64) query.Result {
		results, err := Run(
			context.Background(),
			Request{Job: "t", Model: m, Queries: []query.Query{asked},
				Settings: query.Settings{Method: query.MethodExact, Memory: memory}})

		if err != nil {
			t.Fatal(err)
		}
		if results[0].Status != "ok" {
			t.Fatalf("%d bytes: %+v", memory, results[0].Error)
		}
		return results[0]
	}
	whole, sliced := answer(1<<30), answer(1<<18)
	if sliced.Plan.Slices < 2 || sliced.Plan.Bytes > 1<<18 {
		t.Fatalf("not sliced: %+v", sliced.Plan)
	}
	if math.Abs(*whole.LogZ-*sliced.LogZ) > 1e-10 {
		t.Errorf("ln Z %v whole, %v in slices", *whole.LogZ, *sliced.LogZ)
	}
	want := oracle.Marginals(m, asked.Evidence)
	for v := range want {
		for a := range want[v] {
			for name, r := range map[string]query.Result{"whole": whole, "sliced": sliced} {
				if math.Abs(r.Marginals[v].P[a]-want[v][a]) > 1e-10 {
					t.Errorf("%s: P(x_%d = %d) = %v, want %v",
						name, v, a, r.Marginals[v].P[a], want[v][a])
				}
			}
		}
	}
}

func TestImpossibleEvidenceHasItsReason(t *testing.T) {
	m := ising(4)
	m.Factors[0].Table.(*tensor.Dense).Data[0] = 0 // x_0 = x_1 = 0 is impossible
	asked := query.Query{Evidence: factorgraph.Observe(map[int]int{0: 0, 1: 0})}
	results, err := Run(context.Background(),
		Request{Job: "t", Model: m, Queries: []query.Query{asked}})

	if err != nil {
		t.Fatal(err)
	}
	if r := results[0]; !r.Zero || r.Status != "ok" || len(r.Warnings) != 1 ||
		!strings.HasPrefix(r.Warnings[0], "Z is 0: ") ||
		!strings.Contains(r.Warnings[0], "0") {
		t.Fatalf("got %+v", r)
	}
	t.Log(results[0].Warnings[0])
}
