package infer

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// TestCircuitsAnswerEverything: every question that exact methods answer, by a circuit, against an elimination. What does not fit its
// budget says so.
func TestCircuitsAnswerEverything(t *testing.T) {
	refused, asked := 0, 0
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 64))
		m := modeltest.Small(rng, modeltest.SmallOptions{
			Variables: 4 + rng.IntN(3), Factors: 6 + rng.IntN(5), MaxDomain: 3, MaxArity: 3, MaxStates: 1 << 8,
			Kinds: []modeltest.Kind{modeltest.Dense, modeltest.Symmetric}, Zeros: 0.3,
		})
		set := rng.Perm(len(m.Domains))[:2]
		all := query.Query{Evidence: modeltest.Evidence(rng, m), Marginals: true, MPE: true, Samples: 50, Seed: seed}
		joint, gradients := all, all
		joint.Joint = set
		gradients.Gradients = true
		run := func(s query.Settings, queries ...query.Query) []query.Result {
			t.Helper()
			results, err := Run(context.Background(), Request{Job: "c", Model: m, Settings: s, Queries: queries})
			if err != nil {
				t.Fatalf("seed %d, %+v: %v", seed, s, err)
			}
			return results
		}
		want := append(run(query.Settings{Method: query.MethodExact}, all, joint), run(query.Settings{Method: query.MethodExact}, gradients)...)
		if want[0].Zero {
			continue
		}
		asked++
		whole := query.Settings{Method: query.MethodCircuit}
		step := query.Settings{Method: query.MethodCircuit, Budget: policy.CircuitFlops}
		for k, got := range append(run(whole, all, joint), run(whole, gradients)...) {
			sameAnswers(t, fmt.Sprintf("seed %d, query %d", seed, k), m, all.Evidence, &got, &want[k])
		}
		for k, got := range run(step, all, joint) {
			if got.Error != nil && got.Error.Code == fault.OverBudget {
				refused++
				continue
			}
			sameAnswers(t, fmt.Sprintf("seed %d, query %d in one step", seed, k), m, all.Evidence, &got, &want[k])
		}
	}
	if refused < 15 || asked < 30 {
		t.Errorf("%d models, %d queries do not fit one step", asked, refused)
	}
}

// sameAnswers compares exact answers; samples have a weight above 0.
func sameAnswers(t *testing.T, what string, m *factorgraph.Model, ev factorgraph.Evidence, got, want *query.Result) {
	t.Helper()
	if want.Error != nil {
		t.Fatalf("%s, along a tree: %+v", what, want.Error)
	}
	if got.Error != nil || !got.Exact || math.Abs(*got.LogZ-*want.LogZ) > 1e-10 {
		t.Fatalf("%s: %+v, exact %t", what, got.Error, got.Exact)
	}
	near(t, what, query.Probabilities(got.Marginals), query.Probabilities(want.Marginals))
	if got.MPE == nil || math.Abs(got.MPE.LnWeight-want.MPE.LnWeight) > 1e-10 || got.MPE.Unique && want.MPE.Unique &&
		fmt.Sprint(got.MPE.Assignment) != fmt.Sprint(want.MPE.Assignment) {
		t.Errorf("%s: MPE %+v, want %+v", what, got.MPE, want.MPE)
	}
	if got.Samples == nil || want.Samples == nil {
		t.Fatalf("%s: samples %v, want %v", what, got.Samples, want.Samples)
	}
	if len(got.Samples.Assignments) != len(want.Samples.Assignments) {
		t.Errorf("%s: %d samples", what, len(got.Samples.Assignments))
	}
	for _, x := range got.Samples.Assignments {
		at := map[int]int{}
		for v, a := range x {
			at[v] = a
		}
		for _, h := range ev.Hard {
			if at[h.Var] != h.Value {
				t.Errorf("%s: the sample %v is against the evidence", what, x)
			}
		}
		if oracle.Z(m, factorgraph.Observe(at)).Sign() <= 0 {
			t.Errorf("%s: the sample %v has weight 0", what, x)
		}
	}
	if want.Joint != nil {
		if got.Joint == nil {
			t.Fatalf("%s: no joint marginal", what)
		}
		near(t, what+", joint", [][]float64{got.Joint.P}, [][]float64{want.Joint.P})
	}
	if (got.Gradients == nil) != (want.Gradients == nil) {
		t.Fatalf("%s: gradients %v, want %v", what, got.Gradients, want.Gradients)
	}
	if want.Gradients == nil {
		return
	}
	for f := range want.Gradients.By {
		for k, g := range want.Gradients.By[f] {
			if math.Abs(got.Gradients.By[f][k]-g) > 1e-9*(1+math.Abs(g)) {
				t.Errorf("%s: gradient %d of factor %d is %v, want %v", what, k, f, got.Gradients.By[f][k], g)
			}
		}
	}
}

// TestCircuitsNameTheMethodForNumbersBelow0: method circuit refuses them, in tables and in weights, and the method that it names answers.
func TestCircuitsNameTheMethodForNumbersBelow0(t *testing.T) {
	for _, sign := range [][2]float64{{-0.5, 0.1}, {0.5, -0.1}} {
		m := &factorgraph.Model{Domains: []int{2, 2}, Factors: []factorgraph.Factor{
			{Scope: []int{0, 1}, Table: &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1, sign[0], 0, 3}}},
			{Scope: []int{1}, Table: &tensor.Dense{Shape: []int{2}, Data: []float64{4, sign[1]}}},
		}}
		queries := []query.Query{{}, {Marginals: true}, {Gradients: true}}
		for method, refused := range map[query.Method]bool{query.MethodCircuit: true, query.MethodExact: false, query.MethodAuto: false} {
			results, err := Run(t.Context(), Request{Job: "c", Model: m, Queries: queries, Settings: query.Settings{Method: method}})
			if err != nil {
				t.Fatal(err)
			}
			for q, r := range results {
				switch {
				case refused && (r.Error == nil || r.Error.Code != fault.Unsupported || !strings.Contains(r.Error.Message, "by method exact")):
					t.Errorf("numbers %v, query %d: %+v", sign, q, r.Error)
				case !refused && (!r.Exact || math.Abs(*r.LogZ-math.Log(4+sign[1]*(sign[0]+3))) > 1e-12):
					t.Errorf("numbers %v, %s, query %d: %+v", sign, method, q, r)
				}
			}
		}
	}
}
