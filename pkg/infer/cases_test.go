package infer

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// drawCases draws cases of a model: complete ones, ones without any observation, and others.
func drawCases(rng *rand.Rand, m *factorgraph.Model, rows int) *query.Cases {
	c := &query.Cases{Variables: rng.Perm(len(m.Domains))}
	for range rows {
		missing := []float64{0, 0.3, 1}[rng.IntN(3)]
		row := make([]int, len(c.Variables))
		for k, v := range c.Variables {
			if row[k] = rng.IntN(m.Domains[v]); rng.Float64() < missing {
				row[k] = -1
			}
		}
		c.Rows, c.Weights = append(c.Rows, row), append(c.Weights, float64(rng.IntN(5))-0.5)
	}
	return c
}

// TestCasesEqualEnumeration: the sums of ln Z and of its derivatives over cases, for models in any form, with zeros, with numbers below 0
// and with entries further apart than a tree takes; and the first case that is impossible.
func TestCasesEqualEnumeration(t *testing.T) {
	rounds := 200
	if testing.Short() {
		rounds = 40
	}
	asked, impossible := 0, 0
	for seed := range uint64(rounds) {
		rng := rand.New(rand.NewPCG(seed, 71))
		m := modeltest.Small(rng, modeltest.SmallOptions{
			Variables: 2 + rng.IntN(4), Factors: 1 + rng.IntN(5), MinDomain: 1 + rng.IntN(2), MaxDomain: 3, MaxArity: 3,
			MaxStates: 1 << 7, Constant: seed%2 == 0, Negative: seed%10 == 1, Zeros: []float64{0, 0.05, 0.2}[seed%3],
		})
		if table, ok := m.Factors[0].Table.(*tensor.Dense); ok && seed%7 == 3 {
			table.Data[0] *= 0x1p-700
		}
		settings := query.Settings{}
		if seed%11 == 5 { // no tree fits
			settings.Memory = 8 << 10
		}
		c := drawCases(rng, m, 1+rng.IntN(20))
		first, isSigned := -1, false
		ln := 0.0
		for row := range c.Rows {
			z := oracle.Z(m, oracle.ObservedEvidence(c.Variables, c.Rows[row]))
			switch isSigned = isSigned || z.Sign() < 0; {
			case z.Sign() > 0:
				ln += c.Weights[row] * oracle.Ln(z)
			case first < 0:
				first = row
			}
		}
		results, err := Run(context.Background(), Request{
			Job: "t", Model: m, Settings: settings, Queries: []query.Query{{Cases: c, Gradients: true}, {Cases: c}},
		})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if isSigned {
			continue
		}
		for q, r := range results {
			l := r.Likelihood
			switch {
			case r.Error != nil || l == nil || !r.Exact || r.Zero != (first >= 0):
				t.Fatalf("seed %d: %+v, %+v, exact %t, %q", seed, r.Error, l, r.Exact, r.Warnings)
			case first >= 0:
				impossible++
				if l.Impossible == nil || *l.Impossible != first || l.Ln != nil || l.Gradients != nil || r.LogZ != nil {
					t.Errorf("seed %d: case %d is impossible: %+v", seed, first, l)
				}
			case l.Ln == nil || l.Impossible != nil || (l.Gradients != nil) != (q == 0):
				t.Errorf("seed %d: no case is impossible: %+v", seed, l)
			case math.Abs(*l.Ln-ln) > 1e-9*(1+math.Abs(ln)) || *r.LogZ != *l.Ln:
				t.Errorf("seed %d: ln %v, enumeration %v", seed, *l.Ln, ln)
			}
		}
		if first >= 0 {
			continue
		}
		for f := range m.Factors {
			for k, n := range numbers(m.Factors[f].Table) {
				want, size := 0.0, 0.0
				for row := range c.Rows {
					ev := oracle.ObservedEvidence(c.Variables, c.Rows[row])
					by, each := enumerated(m, ev, n, oracle.Z(m, ev))
					want, size = want+c.Weights[row]*by, size+math.Abs(c.Weights[row])*each
				}
				if asked++; math.Abs(results[0].Likelihood.Gradients[f][k]-want) > 1e-9*(size+math.Abs(want)) {
					t.Errorf("seed %d, factor %d (%T), number %d: %v, enumeration %v",
						seed, f, m.Factors[f].Table, k, results[0].Likelihood.Gradients[f][k], want)
				}
			}
		}
	}
	if t.Logf("%d derivatives, %d impossible", asked, impossible); asked < 500 || impossible == 0 {
		t.Errorf("%d derivatives, %d impossible", asked, impossible)
	}
}

// TestCasesHaveTheSameBits: for any number of threads, with cases beyond the tree among them.
func TestCasesHaveTheSameBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 72))
	m := modeltest.Small(rng, modeltest.SmallOptions{Variables: 8, Factors: 9, Kinds: []modeltest.Kind{modeltest.Dense}})
	c := drawCases(rng, m, 700)
	want := ""
	for range 3 {
		results, err := Run(t.Context(), Request{Job: "t", Model: m, Queries: []query.Query{{Cases: c, Gradients: true}}})
		if err != nil || results[0].Likelihood == nil {
			t.Fatal(err, results)
		}
		l := results[0].Likelihood
		if l.Ln == nil {
			t.Fatalf("case %d is impossible", *l.Impossible)
		}
		got := fmt.Sprintf("%x %x", *l.Ln, l.Gradients)
		if want == "" {
			want = got
		}
		if got != want {
			t.Errorf("%s, then %s", want, got)
		}
	}
}

// TestCasesThatAreRefused: with the place and the reason.
func TestCasesThatAreRefused(t *testing.T) {
	m := &factorgraph.Model{Domains: []int{2, 3}, Factors: []factorgraph.Factor{
		{Scope: []int{0, 1}, Table: &tensor.Dense{Shape: []int{2, 3}, Data: []float64{1, 2, 3, 4, 5, 6}}},
	}}
	both := []int{0, 1}
	of := func(weights []float64, variables []int, rows ...[]int) query.Query {
		return query.Query{Cases: &query.Cases{Variables: variables, Rows: rows, Weights: weights}}
	}
	beside, evidence := of(nil, both, []int{0, 0}), of(nil, both, []int{0, 0})
	beside.Marginals, evidence.Evidence = true, factorgraph.Observe(map[int]int{0: 1})
	for want, q := range map[string]query.Query{
		"cases: they have the place":                     beside,
		"cases: they have the place of evidence":         evidence,
		"cases.rows: 0 rows":                             of(nil, both),
		"cases.rows[1]: 1 values of 2 variables":         of(nil, both, []int{0, 0}, []int{0}),
		"cases.rows[0]: variable 1 = 3 is out of range":  of(nil, both, []int{0, 3}),
		"cases.rows[0]: variable 0 = -2 is out of range": of(nil, both, []int{-2, 0}),
		"cases.variables: variable 1 twice":              of(nil, []int{1, 1}, []int{0, 0}),
		"cases.variables: variable 2, the model has 2":   of(nil, []int{2}, []int{0}),
		"cases.weights: 2 weights of 1 rows":             of([]float64{1, 2}, both, []int{0, 0}),
		"cases.weights[0]: NaN is no number of times":    of([]float64{math.NaN()}, both, []int{0, 0}),
	} {
		_, err := Run(t.Context(), Request{Job: "t", Model: m, Queries: []query.Query{q}})
		if fault.CodeOf(err) != fault.BadInput || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	r, err := Run(t.Context(), Request{Job: "t", Model: m, Settings: query.Settings{Method: query.MethodSampled},
		Queries: []query.Query{of(nil, both, []int{0, 0})}})
	if err != nil || r[0].Error == nil || r[0].Error.Code != fault.Unsupported {
		t.Errorf("by samples: %v, %+v", err, r)
	}
}
