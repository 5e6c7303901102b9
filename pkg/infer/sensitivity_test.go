package infer

import (
	"context"
	"encoding/json"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// network draws a Bayesian network: tables of the last variable of their scope, some entries 0, some rows certain; and one factor
// that is no such table.
func network(t *testing.T, rng *rand.Rand) *factorgraph.Model {
	t.Helper()
	m := &factorgraph.Model{}
	n := 3 + rng.IntN(3)
	for v := range n {
		m.Domains = append(m.Domains, 2+rng.IntN(2))
		var scope, shape []int
		for u := range v {
			if rng.IntN(2) == 0 && len(scope) < 2 {
				scope = append(scope, u)
			}
		}
		scope = append(scope, v)
		size := 1
		for _, u := range scope {
			shape = append(shape, m.Domains[u])
			size *= m.Domains[u]
		}
		d := m.Domains[v]
		data := make([]float64, size)
		for from := 0; from < size; from += d {
			row := data[from : from+d]
			if rng.IntN(5) == 0 {
				row[rng.IntN(d)] = 1
				continue
			}
			sum := 0.0
			for x := range row {
				if rng.IntN(6) > 0 || x == d-1 {
					row[x] = 0.05 + rng.Float64()
				}
				sum += row[x]
			}
			for x := range row {
				row[x] /= sum
			}
		}
		table, err := factorgraph.Table(shape, data)
		if err != nil {
			t.Fatal(err)
		}
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: scope, Table: table})
	}
	data := make([]float64, m.Domains[0]*m.Domains[n-1])
	for k := range data {
		data[k] = 0.5 + 2*rng.Float64()
	}
	potential, err := factorgraph.Table([]int{m.Domains[0], m.Domains[n-1]}, data)
	if err != nil {
		t.Fatal(err)
	}
	m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{0, n - 1}, Table: potential})
	return m
}

// probability is the probability of a value by enumeration, −1 where the evidence is impossible.
func probability(m *factorgraph.Model, observed map[int]int, v, x int) float64 {
	z := oracle.Z(m, factorgraph.Observe(observed))
	if z.Sign() == 0 {
		return -1
	}
	if a, there := observed[v]; there && a != x {
		return 0
	}
	both := map[int]int{v: x}
	for u, a := range observed {
		both[u] = a
	}
	p, _ := new(big.Float).Quo(oracle.Z(m, factorgraph.Observe(both)), z).Float64()
	return p
}

// varied is the model with one number changed; the rest of its row keeps its proportions where it is one.
func varied(m *factorgraph.Model, f, k int, to float64, row bool) *factorgraph.Model {
	out := *m
	out.Factors = slices.Clone(m.Factors)
	t := m.Factors[f].Table.(*tensor.Dense)
	data := slices.Clone(t.Data)
	if d := t.Shape[len(t.Shape)-1]; row {
		from, was := k/d*d, data[k]
		for at := from; at < from+d; at++ {
			if was < 1 {
				data[at] *= (1 - to) / (1 - was)
			} else {
				data[at] = (1 - to) / float64(d-1)
			}
		}
	}
	data[k] = to
	out.Factors[f].Table = &tensor.Dense{Shape: t.Shape, Data: data}
	return &out
}

// TestSensitivityEqualsEnumeration: where P is at both ends of every number, the ranking, and all derivatives against
// differences of enumerations.
func TestSensitivityEqualsEnumeration(t *testing.T) {
	swings, certain := 0, 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 62))
		m := network(t, rng)
		v := rng.IntN(len(m.Domains))
		x := rng.IntN(m.Domains[v])
		observed := map[int]int{}
		for u, d := range m.Domains {
			if u != v && rng.IntN(3) == 0 {
				observed[u] = rng.IntN(d)
			}
		}
		share := []float64{0, 0.3}[seed%2]
		settings := query.Settings{Method: []query.Method{query.MethodExact, query.MethodCircuit}[seed/2%2]}
		results, err := Run(context.Background(), Request{Job: "s", Model: m, Settings: settings, Queries: []query.Query{{
			Evidence: factorgraph.Observe(observed), Sensitivity: &query.Sensitivity{Variable: v, Value: x, Range: share, Top: 1000},
		}}})

		if err != nil {
			t.Fatal(err)
		}
		r := results[0]
		p := probability(m, observed, v, x)
		if p < 0 {
			if !r.Zero || r.Sensitivity != nil {
				t.Errorf("seed %d: impossible, and %+v", seed, r.Sensitivity)
			}
			continue
		}
		s := r.Sensitivity
		if s == nil || !r.Exact || r.Gradients != nil || math.Abs(s.P-p) > 1e-12 {
			t.Fatalf("seed %d: %+v of P = %v, %v", seed, s, p, r.Error)
		}
		if share == 0 {
			share = query.DefaultRange
		}
		of := map[[2]int]query.Swing{}
		last := math.Inf(1)
		for _, w := range s.Tornado {
			if w.High-w.Low > last {
				t.Errorf("seed %d: %+v after a span of %v", seed, w, last)
			}
			last = w.High - w.Low
			of[[2]int{w.Factor, w.Number}] = w
		}
		for f := range m.Factors {
			row := f < len(m.Domains)
			if (s.Covaried[f] != nil) != row {
				t.Fatalf("seed %d, factor %d: with rows %t", seed, f, s.Covaried[f] != nil)
			}
			for k, theta := range m.Factors[f].Table.(*tensor.Dense).Data {
				const h = 1e-5
				differences(t, seed, s.Derivatives.By[f][k], p, probability(varied(m, f, k, theta+h, false), observed, v, x), h)
				from, to := theta*(1-share), theta*(1+share)
				if row {
					to = min(1, to)
					step := h
					if theta > 0.5 {
						step = -h
					}
					differences(t, seed, s.Covaried[f][k], p, probability(varied(m, f, k, theta+step, true), observed, v, x), step)
				}
				low, high := p, p
				for _, end := range []float64{from, to} {
					if q := probability(varied(m, f, k, end, row), observed, v, x); q >= 0 {
						low, high = min(low, q), max(high, q)
					}
				}
				w, there := of[[2]int{f, k}]
				if !there {
					w.Low, w.High = p, p
				} else {
					swings++
					if w.Theta != theta || !slices.Equal(w.Variables, m.Factors[f].Scope) || (w.Of != nil) != row {
						t.Errorf("seed %d: %+v is not number %d of factor %d", seed, w, k, f)
					}
				}
				if theta == 1 {
					certain++
				}
				if math.Abs(w.Low-low) > 1e-10 || math.Abs(w.High-high) > 1e-10 {
					t.Errorf("seed %d, factor %d, number %d = %v: [%v, %v], enumeration [%v, %v]", seed, f, k, theta, w.Low, w.High, low, high)
				}
			}
		}
	}
	if swings < 300 || certain < 30 {
		t.Errorf("%d swings, %d numbers that are 1: too few to say anything", swings, certain)
	}
}

// differences compares a derivative with a quotient of differences; −1 stands for evidence that became impossible.
func differences(t *testing.T, seed uint64, got, p, there, h float64) {
	t.Helper()
	if there < 0 {
		return
	}
	if want := (there - p) / h; math.Abs(got-want) > 1e-3*(1+math.Abs(want)) {
		t.Errorf("seed %d: derivative %v, differences %v", seed, got, want)
	}
}

// TestSensitivityThatCannotBe: targets and bounds, with the field.
func TestSensitivityThatCannotBe(t *testing.T) {
	m := network(t, rand.New(rand.NewPCG(1, 1)))
	for _, s := range []query.Sensitivity{
		{Variable: -1}, {Variable: 99}, {Value: 7}, {Range: 1.5}, {Range: math.NaN()}, {Top: -1}, {Top: 1 << 30},
	} {
		if _, err := Run(context.Background(), Request{Job: "s", Model: m, Queries: []query.Query{{Sensitivity: &s}}}); err == nil {
			t.Errorf("%+v was taken", s)
		}
	}
}

// TestRangesToNearlyNothing: where a number that is nearly all of Z goes to 0, P is the one of the rest, of tables, terms and counts.
func TestRangesToNearlyNothing(t *testing.T) {
	levels := countspace.TwoLevels([]int{2, 2})
	for name, table := range map[string]tensor.Tensor{
		"table": &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1e18, 0.3, 0.5, 0.7}},
		"range": &tensor.Dense{Shape: []int{2, 2}, Data: []float64{math.MaxFloat64, 3e250, 5e250, 7e250}},
		"cp": &tensor.CP{Shape: []int{2, 2}, Weights: []float64{1e20, 2, 3},
			Vectors: [][]float64{{1, 0, 2, 3, 5, 7}, {1, 0, 4, 1, 1, 9}}},
		"counts": &tensor.Symmetric{Shape: []int{2, 2}, Levels: levels, Values: scaled.Vector{Mant: []float64{1e17, 1, 2}}},
		"exponents": &tensor.Symmetric{Shape: []int{2, 2}, Levels: levels,
			Values: scaled.Vector{Mant: []float64{1, 1, 2}, Exp: []int64{0, -2000, -2000}}},
		"terms": &tensor.SymmetryCP{Shape: []int{2, 2}, Levels: levels, Terms: []tensor.SymmetryRankOne{
			{Alpha: 1e19, S: scaled.Vector{Mant: []float64{1, 0, 0}}, R: [][]float64{{1, 2}, nil}},
			{Alpha: 2, S: scaled.Vector{Mant: []float64{3, 5, 7}}, R: [][]float64{nil, {4, 1}}},
		}},
	} {
		m := &factorgraph.Model{Domains: []int{2, 2}, Factors: []factorgraph.Factor{
			{Scope: []int{0, 1}, Table: table}, {Scope: []int{1}, Table: &tensor.Dense{Shape: []int{2}, Data: []float64{2, 3}}},
		}}
		results, err := Run(t.Context(), Request{Job: "s", Model: m, Queries: []query.Query{{
			Sensitivity: &query.Sensitivity{Variable: 0, Value: 1, Range: 1, Top: 1000},
		}}})
		if err != nil || results[0].Sensitivity == nil || len(results[0].Sensitivity.Tornado)+len(results[0].Warnings) == 0 {
			t.Fatalf("%s: %+v, %v", name, results, err)
		}
		if _, err := json.Marshal(results[0]); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, s := range results[0].Sensitivity.Tornado {
			at := numbers(m.Factors[s.Factor].Table)[s.Number].at
			low, high, was := math.Inf(1), math.Inf(-1), *at
			for _, *at = range []float64{s.From, was, s.To} {
				if p := probability(m, nil, 0, 1); p >= 0 {
					low, high = min(low, p), max(high, p)
				}
			}
			*at = was
			if math.Abs(s.Low-low) > 1e-9 || math.Abs(s.High-high) > 1e-9 {
				t.Errorf("%s: %+v, enumeration [%v, %v]", name, s, low, high)
			}
		}
	}
}

// TestSensitivityOfNoProbability: of a model with numbers below 0 there is none where the target has no probability, and numbers for which
// it has none within their ranges are not ranked.
func TestSensitivityOfNoProbability(t *testing.T) {
	ask := func(m *factorgraph.Model) query.Result {
		results, err := Run(t.Context(), Request{Job: "s", Model: m, Queries: []query.Query{{
			Sensitivity: &query.Sensitivity{Variable: 0, Value: 0, Range: 1, Top: 1000},
		}}})
		if err != nil || results[0].Status != query.StatusOK {
			t.Fatalf("%+v, %v", results, err)
		}
		return results[0]
	}
	below := &factorgraph.Model{Domains: []int{2}, Factors: []factorgraph.Factor{
		{Scope: []int{0}, Table: &tensor.Dense{Shape: []int{2}, Data: []float64{-0.5, 1.5}}},
	}}
	if r := ask(below); r.Sensitivity != nil || len(r.Warnings) == 0 {
		t.Errorf("P(target) is -0.5: %+v, %v", r.Sensitivity, r.Warnings)
	}

	table := &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1, -0.3, 0.5, 2}}
	m := &factorgraph.Model{Domains: []int{2, 2}, Factors: []factorgraph.Factor{{Scope: []int{0, 1}, Table: table}}}
	r := ask(m)
	if r.Sensitivity == nil || len(r.Sensitivity.Tornado) != 3 || len(r.Warnings) == 0 {
		t.Fatalf("%+v, %v", r.Sensitivity, r.Warnings)
	}
	for _, s := range r.Sensitivity.Tornado {
		at, was := &table.Data[s.Number], s.Theta
		low, high := math.Inf(1), math.Inf(-1)
		for _, *at = range []float64{s.From, was, s.To} {
			p := probability(m, nil, 0, 0)
			low, high = min(low, p), max(high, p)
		}
		if *at = was; s.Number == 0 || math.Abs(s.Low-low) > 1e-9 || math.Abs(s.High-high) > 1e-9 {
			t.Errorf("%+v, enumeration [%v, %v]", s, low, high)
		}
	}
}

// TestSensitivityBeyondFloat64: without one of its numbers, 1e-340 of Z is left, all of it the target.
func TestSensitivityBeyondFloat64(t *testing.T) {
	low := func() factorgraph.Factor {
		return factorgraph.Factor{Scope: []int{0}, Table: &tensor.Dense{Shape: []int{2}, Data: []float64{1e-170, 2}}}
	}
	m := &factorgraph.Model{Domains: []int{2}, Factors: []factorgraph.Factor{low(), low()}}
	results, err := Run(t.Context(), Request{Job: "s", Model: m, Queries: []query.Query{{
		Sensitivity: &query.Sensitivity{Variable: 0, Value: 0, Range: 1, Top: 1000},
	}}})
	if err != nil || results[0].Status != query.StatusOK {
		t.Fatalf("%+v, %v", results, err)
	}
	if r := results[0]; r.Sensitivity == nil || len(r.Warnings) == 0 {
		t.Errorf("%+v, %v", r.Sensitivity, r.Warnings)
	}
	for _, s := range results[0].Sensitivity.Tornado {
		if s.Theta == 2 && s.High < 0.99 {
			t.Errorf("P reaches 1: %+v", s)
		}
	}
}
