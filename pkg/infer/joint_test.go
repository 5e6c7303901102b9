package infer

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// jointByEnumeration is P(x_v, v in set | ev):
// one Z per cell, nil where all are 0. Observed values that contradict a cell make it 0.
func jointByEnumeration(
	t *testing.T, m *factorgraph.Model, ev factorgraph.Evidence, set []int,
) []float64 {
	t.Helper()
	z := oracle.Z(m, ev)
	if z.Sign() == 0 {
		return nil
	}
	var p []float64
	values := make([]int, len(set))
	var descend func(k int)
	descend = func(k int) {
		if k < len(set) {
			for values[k] = range m.Domains[set[k]] {
				descend(k + 1)
			}
			return
		}
		cell := make([]factorgraph.Observation, len(set))
		for i, v := range set {
			cell[i] = factorgraph.Observation{Var: v, Value: values[i]}
		}
		both, err := factorgraph.NewEvidence(slices.Concat(ev.Hard, cell), ev.Soft)
		if err != nil { // contradictory
			p = append(p, 0)
			return
		}
		num := oracle.Z(m, both)
		q, _ := num.Quo(num, z).Float64()
		p = append(p, q)
	}
	descend(0)
	return p
}

func TestJointMarginalsEqualBruteForce(t *testing.T) {
	for seed := uint64(0); seed < 60; seed++ {
		rng := rand.New(rand.NewPCG(seed, 11))
		m := modeltest.Small(
			rng,
			modeltest.SmallOptions{Variables: 6, Factors: 7, MaxArity: 4, MaxStates: 400,
				Constant: seed%3 == 0, Zeros: 0.15 * float64(seed%4)},
		)
		if seed%5 == 0 { // variables that the network forces to be equal
			m = &factorgraph.Model{Domains: []int{2, 2, 3, 2}, Factors: []factorgraph.Factor{
				{Scope: []int{0, 1}, Table: &tensor.Dense{Shape: []int{2, 2},
					Data: []float64{0.3, 0, 0, 0.9}}},
				{Scope: []int{1, 2}, Table: &tensor.Dense{Shape: []int{2, 3},
					Data: []float64{1, 2, 0, 4, 5, rng.Float64()}}},
			}}
		}
		ev := modeltest.Evidence(rng, m)
		if seed%2 == 0 {
			ev.Hard = nil
		}
		set := rng.Perm(len(m.Domains))[:1+rng.IntN(len(m.Domains))]
		for _, s := range []query.Settings{{Method: query.MethodExact}, {},
			{Cores: query.CoresAreVariables}} {
			asked := query.Query{Evidence: ev, Joint: set, Marginals: seed%3 == 1}
			results, err := Run(context.Background(),
				Request{Job: "t", Model: m, Queries: []query.Query{asked, {Evidence: ev}},
					Settings: s})

			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			r, want := results[0], jointByEnumeration(t, m, ev, set)
			switch {
			case r.Status != "ok":
				t.Fatalf("seed %d, %+v: %+v", seed, s, r.Error)
			case want == nil:
				if !r.Zero || r.Joint != nil {
					t.Errorf("seed %d, %+v: Z is 0, got %+v", seed, s, r.Joint)
				}
				continue
			case r.Joint == nil || len(r.Joint.P) != len(want) ||
				!slices.Equal(r.Joint.Variables, set) || results[1].Joint != nil:
				t.Fatalf("seed %d, %+v: joint %+v of %v", seed, s, r.Joint, set)
			}
			if lnZ, _ := oracle.LogZ(m,
				ev); math.Abs(*r.LogZ-lnZ) > exactTolerance*(1+math.Abs(lnZ)) {
				t.Errorf("seed %d, %+v: ln Z %v, want %v", seed, s, *r.LogZ, lnZ)
			}
			for x := range want {
				if math.Abs(r.Joint.P[x]-want[x]) > 1e-12 {
					t.Errorf("seed %d, %+v: cell %d of %v: %v, want %v",
						seed, s, x, set, r.Joint.P[x], want[x])
				}
			}
			if (r.Marginals != nil) != asked.Marginals {
				t.Errorf("seed %d: marginals %v", seed, r.Marginals)
			}
			if asked.Marginals {
				for v, row := range oracle.Marginals(m, ev) {
					for a := range row {
						if math.Abs(r.Marginals[v].P[a]-row[a]) > 1e-12 {
							t.Errorf("seed %d: P(x_%d = %d) = %v, want %v",
								seed, v, a, r.Marginals[v].P[a], row[a])
						}
					}
				}
			}
		}
	}
}

func TestSlicedJointMarginals(t *testing.T) {
	m := ising(14)
	set := []int{7, 0, 12}
	asked := query.Query{Joint: set, Evidence: factorgraph.Observe(map[int]int{3: 1})}
	want := jointByEnumeration(t, m, asked.Evidence, set)
	for memory, sliced := range map[int64]bool{1 << 30: false, 1 << 15: true} {
		for _, marginals := range []bool{false, true} {
			asked.Marginals = marginals
			results, err := Run(
				context.Background(),
				Request{Job: "t", Model: m, Queries: []query.Query{asked},
					Settings: query.Settings{Method: query.MethodExact, Memory: memory}})

			if err != nil {
				t.Fatal(err)
			}
			r := results[0]
			if r.Status != "ok" || (r.Plan.Slices > 1) != sliced || r.Plan.Bytes > float64(memory) {
				t.Fatalf("%d bytes: %+v, plan %+v", memory, r.Error, r.Plan)
			}
			if r.Run.Slices != max(1, r.Plan.Slices) {
				t.Errorf("%d bytes: %v slices run, %v planned", memory, r.Run.Slices, r.Plan.Slices)
			}
			for x := range want {
				if math.Abs(r.Joint.P[x]-want[x]) > 1e-11 {
					t.Errorf("%d bytes: cell %d is %v, want %v", memory, x, r.Joint.P[x], want[x])
				}
			}
		}
	}
}

func TestJointMarginalsThatCannotBe(t *testing.T) {
	run := func(s query.Settings, variables int, set ...int) (query.Result, error) {
		results, err := Run(
			context.Background(),
			Request{Job: "t", Model: ising(variables), Queries: []query.Query{{Joint: set}},
				Settings: s})

		if err != nil {
			return query.Result{}, err
		}
		return results[0], nil
	}
	all := make([]int, 21)
	for v := range all {
		all[v] = v
	}
	for name, c := range map[string]struct {
		set  []int
		want string
	}{
		"range": {
			[]int{1, 30}, "variable 30, the model has 24",
		}, "negative": {[]int{-1}, "variable -1"}, "twice": {[]int{2, 3, 2}, "variable 2 twice"},
		"cells": {all, "more than 1048576 cells with variable 20"},
	} {
		if _, err := run(query.Settings{}, 24, c.set...); fault.CodeOf(err) != fault.BadInput ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if r, err := run(query.Settings{Method: query.MethodSymmetryCP}, 6, 1, 2); err != nil ||
		r.Error == nil || r.Error.Code != fault.Unsupported {
		t.Errorf("symmetry-cp: %v %+v", err, r.Error)
	}
	for _, method := range []query.Method{query.MethodExact, query.MethodAuto} {
		r, err := run(query.Settings{Method: method, Memory: 1 << 20}, 24, all[:16]...)
		if err != nil || r.Error == nil || r.Error.Code != fault.OverBudget ||
			!strings.Contains(r.Error.Message, "65536 cells needs 16777216 bytes") {
			t.Errorf("%s: %v %+v", method, err, r.Error)
		}
	}
}

// TestJointMarginalsInEverySequence: queries under the same evidence that ask for the same variables in another sequence
// have cells of their own, though they share contractions.
func TestJointMarginalsInEverySequence(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 17))
	m := &factorgraph.Model{Domains: []int{2, 3, 2}, Factors: []factorgraph.Factor{
		{Scope: []int{0, 1}, Table: modeltest.Tensor(rng, modeltest.Dense, []int{2, 3},
			modeltest.SmallOptions{})},
		{Scope: []int{1, 2}, Table: modeltest.Tensor(rng, modeltest.Dense, []int{3, 2},
			modeltest.SmallOptions{})},
	}}
	sets := [][]int{{0, 2}, {2, 0}, {1, 2}, {0, 2}, {2, 1}}
	var queries []query.Query
	for _, set := range sets {
		queries = append(queries, query.Query{Joint: set})
	}
	results, err := Run(t.Context(), Request{Model: m, Queries: queries})
	if err != nil {
		t.Fatal(err)
	}
	for q, set := range sets {
		want := jointByEnumeration(t, m, factorgraph.Evidence{}, set)
		for cell, p := range results[q].Joint.P {
			if math.Abs(p-want[cell]) > 1e-12 {
				t.Errorf("variables %v, cell %d: %v, want %v", set, cell, p, want[cell])
			}
		}
	}
}
