package infer

import (
	"context"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/answer/plan"
	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// TestQueriesOnOneModelKeepTheirBits: alarm under random evidence, in one request,
// in another sequence, alone, and by workers that know the network already.
func TestQueriesOnOneModelKeepTheirBits(t *testing.T) {
	m := alarm(t)
	rng := rand.New(rand.NewPCG(7, 1))
	queries := append(observed(rng, m, 30, 37, false), observed(rng, m, 30, 5, true)...)
	ctx := context.Background()
	run := func(queries ...query.Query) []query.Result {
		results, err := Run(ctx, Request{Job: "t", Model: m, Queries: queries})
		if err != nil {
			t.Fatal(err)
		}
		for i := range results {
			results[i].Query = 0
		}
		return results
	}
	want := run(queries...)
	backwards := slices.Clone(queries)
	slices.Reverse(backwards)
	other := run(backwards...)
	slices.Reverse(other)
	net, err := stage.Reparameterise(context.Background(), m, query.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	known, shared, possible := &plan.NetworkMemory{}, &problem.Shared{}, 0
	for q := range queries {
		assignments, err := stage.Learn(ctx, net, queries[q:q+1], query.Settings{}, nil, known)
		if err != nil {
			t.Fatal(err)
		}
		values, err := stage.Contract(
			ctx, net, assignments, stage.Demands(net, queries[q:q+1]), []btn.Unit{{}},
			stage.ContractOptions{Shared: shared, Threads: 1 + q%3},
		)
		if err != nil {
			t.Fatal(err)
		}
		for what, got := range map[string]query.Result{
			"in another sequence": other[q], "alone": run(queries[q])[0],
			"by workers that know the network": stage.Aggregate("t", assignments, values)[0],
		} {
			if !reflect.DeepEqual(got, want[q]) {
				t.Errorf("query %d %s: %+v, want %+v", q, what, got, want[q])
			}
		}
		if !want[q].Exact || want[q].Status != "ok" || want[q].Plan == nil ||
			want[q].Plan.Flops > policy.JunctionFlops {
			t.Errorf("query %d: %+v", q, want[q])
		}
		if want[q].Zero {
			continue
		}
		possible++
		if !want[q].Zero && queries[q].Marginals && want[q].Marginals == nil {
			t.Errorf("query %d has no marginals", q)
		}
	}
	if possible < len(queries)/2 {
		t.Errorf("%d of %d queries are possible", possible, len(queries))
	}
}

// TestProgramsAnswerAsContractionsDo: alarm by its program and by the steps of Contract.
func TestProgramsAnswerAsContractionsDo(t *testing.T) {
	m := alarm(t)
	ctx := context.Background()
	net, err := stage.Reparameterise(context.Background(), m, query.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	queries := observed(rand.New(rand.NewPCG(8, 1)), m, 60, 20, true)
	assignments, err := stage.Learn(ctx, net, queries, query.Settings{}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	part := assignments[0].Plan.Estimates[0].Parts[0]
	for q := range queries {
		under, err := net.Condition(queries[q].Evidence)
		if err != nil {
			t.Fatal(err)
		}
		// A problem of a network by itself has no program.
		plain, err := contraction.Part(ctx, problem.New(under, problem.Options{}), part,
			btn.Want{Marginals: true})
		if err != nil {
			t.Fatal(err)
		}
		var own *problem.Shared
		whole, err := own.Problem(net, queries[q].Evidence, nil, problem.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := contraction.Part(ctx, whole, part, btn.Want{Marginals: true})
		if err != nil {
			t.Fatal(err)
		}
		near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-12*math.Abs(b) }
		if !near(got.Z.Div(plain.Z).Float64(), 1) && !(got.Z.IsZero() && plain.Z.IsZero()) {
			t.Errorf("query %d: Z = %v, %v by contraction", q, got.Z, plain.Z)
		}
		shift := int(got.Marginals.Exp - plain.Marginals.Exp)
		for i, x := range got.Marginals.Mant {
			if y := plain.Marginals.Mant[i]; math.Abs(math.Ldexp(x, shift)-y) > 1e-12 {
				t.Errorf("query %d, marginal %d: %v, %v by contraction",
					q, i, math.Ldexp(x, shift), y)
			}
		}
	}
}

// TestImpossibleEvidenceOnSmallModels:
// Z = 0 with its reason, and exact, with and without marginals.
func TestImpossibleEvidenceOnSmallModels(t *testing.T) {
	m := &factorgraph.Model{Domains: []int{2, 2, 2}}
	for _, scope := range [][]int{{0, 1}, {1, 2}, {0, 2}} {
		m.Factors = append(m.Factors,
			factorgraph.Factor{Scope: scope,
				Table: &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1, 0, 0, 1}}})
	}
	for _, marginals := range []bool{false, true} {
		q := []query.Query{
			{Evidence: factorgraph.Observe(map[int]int{0: 0, 2: 1}), Marginals: marginals},
			{Evidence: factorgraph.Observe(map[int]int{0: 0}), Marginals: marginals},
		}
		results, err := Run(context.Background(), Request{Job: "t", Model: m, Queries: q})
		if err != nil {
			t.Fatal(err)
		}
		if r := results[0]; !r.Zero || !r.Exact || len(r.Warnings) == 0 ||
			!strings.Contains(r.Warnings[0], "Z is 0") {
			t.Errorf("impossible: %+v", r)
		}
		if r := results[1]; r.Zero || !r.Exact || *r.LogZ != 0 || len(r.Warnings) != 0 {
			t.Errorf("possible: %+v", r)
		}
	}
}

// TestKnownNetworksAreAssignedTheSame: earlier questions, of this network or of others, change no assignment.
func TestKnownNetworksAreAssignedTheSame(t *testing.T) {
	known := &plan.NetworkMemory{}
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 9))
		m := modeltest.Small(rng,
			modeltest.SmallOptions{Variables: 6, Factors: 8, Zeros: 0.2 * float64(seed%2),
				Negative: seed%5 == 0})
		net, err := stage.Reparameterise(context.Background(), m, query.Settings{})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			queries := []query.Query{{Evidence: modeltest.Evidence(rng, m)}, {},
				{Evidence: modeltest.Evidence(rng, m), Marginals: true}}
			want, err := stage.Learn(context.Background(), net, queries, query.Settings{}, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := stage.Learn(context.Background(), net, queries, query.Settings{}, nil,
				known)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d: %+v, want %+v", seed, got, want)
			}
		}
	}
}
