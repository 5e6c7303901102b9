package infer_test

import (
	"context"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// weighted asks for samples by chains of few rungs, so that weights differ.
func weighted(t *testing.T, seed uint64, n int, s query.Settings) (r query.Result, all enumerated) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 31))
	m := &factorgraph.Model{Domains: []int{2, 2, 2 + int(seed%2), 2, 2, 2 + int(seed/2%2), 2, 2}}
	for i := range m.Domains {
		for j := range i {
			table := &tensor.Dense{Shape: []int{m.Domains[j], m.Domains[i]}}
			for range m.Domains[j] * m.Domains[i] {
				x := math.Exp(0.4 * float64(1+seed%3) * rng.NormFloat64())
				if rng.Float64() < 0.02*float64(seed%4) {
					x = 0
				}
				table.Data = append(table.Data, x)
			}
			m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{j, i}, Table: table})
		}
	}
	ev := factorgraph.Evidence{
		Hard: []factorgraph.Observation{{Var: 1, Value: int(seed % 2)}},
		Soft: []factorgraph.Likelihood{{Var: 6, Weights: []float64{0.5, 3}}},
	}
	s.Seed = seed
	results, err := infer.Run(context.Background(), infer.Request{
		Job: "t", Model: m, Queries: []query.Query{{Evidence: ev, Samples: n, Seed: seed + 1, Marginals: true}}, Settings: s,
	})

	if err != nil {
		t.Fatal(err)
	}
	return results[0], enumerate(m, ev)
}

// TestWeightedSamplesAreOfTheModel holds shares of weights against probabilities by enumeration, cell by cell.
func TestWeightedSamplesAreOfTheModel(t *testing.T) {
	const n = 4000
	tested, cells, off, largest, least := 0, 0, 0.0, 0.0, 1.0
	for seed := range uint64(24) {
		s := query.Settings{Method: query.MethodSampled, Budget: 1e7}
		if seed%2 > 0 {
			s.Method, s.NoExact = query.MethodAuto, true
		}
		r, all := weighted(t, seed, n, s)
		z := all.sums(nil)[0]
		if z.Sign() <= 0 || r.Status != query.StatusOK || r.Exact {
			continue
		}
		tested++
		if len(r.Samples.Assignments) < n/3 || len(r.Samples.Assignments) < n && len(r.Warnings) == 0 ||
			len(r.Samples.Weights) != len(r.Samples.Assignments) || r.Samples.Effective == nil || r.Samples.Seed != seed+1 {
			t.Fatalf("seed %d: %d samples, %d weights, %v effective", seed, len(r.Samples.Assignments), len(r.Samples.Weights), r.Samples.Effective)
		}
		share, squares := make([]float64, len(all.weights)), make([]float64, len(all.weights))
		total, square := 0.0, 0.0
		for i, x := range r.Samples.Assignments {
			k := 0
			for v, a := range x {
				k = k*all.domains[v] + a
			}
			w := r.Samples.Weights[i]
			share[k] += w
			squares[k] += w * w
			total += w
			square += w * w
		}
		if math.Abs(total-1) > 1e-9 || math.Abs(*r.Samples.Effective*square-1) > 1e-9 {
			t.Errorf("seed %d: weights sum to %v, %v effective of %v", seed, total, *r.Samples.Effective, 1/square)
		}
		least = min(least, *r.Samples.Effective/float64(len(r.Samples.Assignments)))
		for k, w := range all.weights {
			p := 0.0
			if !w.IsZero() {
				p = w.Over(z)
			}
			if p == 0 && share[k] > 0 {
				t.Fatalf("seed %d: %v was drawn and has weight 0", seed, all.values(k))
			}
			if p**r.Samples.Effective < 20 {
				continue
			}
			cells++
			d := math.Abs(share[k]-p) / math.Sqrt(squares[k]*(1-2*p)+p*p*square)
			largest = max(largest, d)
			off += d * d
		}
	}
	if off /= float64(cells); tested < 12 || cells < 200 || largest > 5 || off > 1.25 || least > 0.9 {
		t.Errorf("%d models, %d cells, the largest deviation is %.1f of its own size, squared %.2f on average, %.2f effective at least",
			tested, cells, largest, off, least)
	}
}

// TestWeightedSamplesAreTheSameBits again, for any number of threads, and others with another seed.
func TestWeightedSamplesAreTheSameBits(t *testing.T) {
	s := query.Settings{Method: query.MethodSampled, Budget: 1e7}
	one, _ := weighted(t, 4, 100, s)
	two, _ := weighted(t, 4, 100, s)
	if one.Status != query.StatusOK || len(one.Samples.Assignments) != 100 {
		t.Fatalf("%+v", one.Error)
	}
	if !reflect.DeepEqual(one.Samples, two.Samples) {
		t.Error("the same samples have other bits")
	}
	for _, x := range one.Samples.Weights {
		if !(x > 0) {
			t.Errorf("a weight of %v", x)
		}
	}
}

// TestSamplesBeyondTheMemory: where exact samples need more than is allowed they have weights; exact ones have none.
func TestSamplesBeyondTheMemory(t *testing.T) {
	for _, c := range []struct {
		variables int
		weights   bool
	}{{6, false}, {40, true}} {
		m := &factorgraph.Model{Domains: slices.Repeat([]int{2}, c.variables)}
		for i := range m.Domains {
			for j := range i {
				table := &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1 + 0.01*float64(i*j%7), 1, 1, 1.2}}
				m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{j, i}, Table: table})
			}
		}
		results, err := infer.Run(context.Background(), infer.Request{
			Job: "t", Model: m, Queries: []query.Query{{Samples: 10}}, Settings: query.Settings{Budget: 1e8, Memory: 1 << 16},
		})

		if err != nil {
			t.Fatal(err)
		}
		r := results[0]
		if r.Status != query.StatusOK || len(r.Samples.Assignments) != 10 || (r.Samples.Weights != nil) != c.weights || r.Exact == c.weights {
			t.Errorf("%d variables: %+v, %d samples, weights %v, exact %v",
				c.variables, r.Error, len(r.Samples.Assignments), r.Samples.Weights, r.Exact)
		}
	}
}
