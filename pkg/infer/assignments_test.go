package infer_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/nightly"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/internal/testing/truth"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// enumerated has the exact weight of every assignment of a model under evidence.
type enumerated struct {
	domains []int
	weights []oracle.Number
}

func enumerate(m *factorgraph.Model, e factorgraph.Evidence) enumerated {
	all := enumerated{m.Domains, truth.Weights(m)}
	for k := range all.weights {
		x := all.values(k)
		for _, h := range e.Hard {
			if x[h.Var] != h.Value {
				all.weights[k] = oracle.Number{}
			}
		}
		for _, s := range e.Soft {
			all.weights[k] = all.weights[k].Mul(oracle.FromFloat(s.Weights[x[s.Var]], 0))
		}
	}
	return all
}

// values returns the values of assignment k.
func (e enumerated) values(k int) []int {
	x := make([]int, len(e.domains))
	for v := len(x) - 1; v >= 0; v-- {
		x[v] = k % e.domains[v]
		k /= e.domains[v]
	}
	return x
}

// sums adds the weights up for every assignment of some variables, the last one fastest.
func (e enumerated) sums(set []int) []oracle.Number {
	n := 1
	for _, v := range set {
		n *= e.domains[v]
	}
	out := make([]oracle.Number, n)
	for k, w := range e.weights {
		x, at := e.values(k), 0
		for _, v := range set {
			at = at*e.domains[v] + x[v]
		}
		out[at] = out[at].Add(w)
	}
	return out
}

// best returns the first of the largest weights, ln of it, and the number of weights within 1e-12 of it; −1 where all are 0.
func best(weights []oracle.Number) (at int, ln float64, ties int) {
	at = -1
	for k, w := range weights {
		if w.Sign() > 0 && (at < 0 || w.LnOver(weights[at]) > 1e-12) {
			at = k
		}
	}
	if at < 0 {
		return
	}
	for _, w := range weights {
		if w.Sign() > 0 && math.Abs(w.LnOver(weights[at])) <= 1e-12 {
			ties++
		}
	}
	return at, weights[at].Ln(), ties
}

// ordinary draws a model whose entries are from a few numbers, so that ties are common, or any.
func ordinary(rng *rand.Rand) *factorgraph.Model {
	m := modeltest.Small(rng, modeltest.SmallOptions{
		Variables: 2 + rng.IntN(6), Factors: 1 + rng.IntN(9), MinDomain: 1 + rng.IntN(2),
		MaxDomain: 2 + rng.IntN(3), MaxArity: 1 + rng.IntN(6), MaxStates: 1 << 8,
		Constant: rng.IntN(4) == 0, Zeros: 0.15 * float64(rng.IntN(4)),
	})
	if rng.IntN(2) == 0 {
		few := []float64{0, 0.1, 0.2, 0.25, 0.3, 0.5, 1, 1, 1, 2, 3}
		for _, f := range m.Factors {
			if d, ok := f.Table.(*tensor.Dense); ok {
				for k := range d.Data {
					d.Data[k] = few[rng.IntN(len(few))]
				}
			}
		}
	}

	// A noisy-or: terms of both signs that make a factor above 0.
	if binary := slices.Repeat([]int{2}, len(m.Domains)); rng.IntN(2) == 0 && slices.Equal(m.Domains, binary) {
		p := make([]float64, 1+rng.IntN(len(m.Domains)-1))
		for i := range p {
			p[i] = []float64{0, 1, rng.Float64(), 1e-9}[rng.IntN(4)]
		}
		t, err := factorgraph.NoisyOr([]float64{0, rng.Float64()}[rng.IntN(2)], p...)
		if err != nil {
			panic(err)
		}
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: rng.Perm(len(m.Domains))[:len(p)+1], Table: t})
	}
	return m
}

// TestAssignmentsAgainstEnumeration: on models of all factor forms the most probable assignment, of all variables and of
// some, equals enumeration's, ties counted; BTN_RANDOM_MODELS is the number of models.
func TestAssignmentsAgainstEnumeration(t *testing.T) {
	models := nightly.Rounds(800, 5000)
	if s := os.Getenv("BTN_RANDOM_MODELS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatalf("BTN_RANDOM_MODELS: %v", err)
		}
		models = n
	}
	ways := []query.Settings{{}, {Method: query.MethodExact, Cores: query.CoresAreVariables}, {Seed: 3}}
	tied, zeros := 0, 0
	for seed := range uint64(models) {
		rng := rand.New(rand.NewPCG(seed, 23))
		m := ordinary(rng)
		asked := query.Query{
			Evidence:  modeltest.Evidence(rng, m),
			Marginals: rng.IntN(4) == 0,
			MPE:       true,
			Map:       rng.Perm(len(m.Domains))[:1+rng.IntN(len(m.Domains))],
			Samples:   2,
			Best:      []int{0, 2, 9, 400}[seed%4],
		}
		results, err := infer.Run(context.Background(), infer.Request{
			Job: "t", Model: m, Queries: []query.Query{asked}, Settings: ways[rng.IntN(len(ways))],
		})

		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		r, all := results[0], enumerate(m, asked.Evidence)
		at, ln, ties := best(all.weights)
		if r.Status != query.StatusOK || r.Zero != (at < 0) {
			t.Fatalf("seed %d: %s %+v, zero %v, want %v", seed, r.Status, r.Error, r.Zero, at < 0)
		}
		if at < 0 {
			zeros++
			if r.MPE != nil || r.Map != nil || r.Samples != nil {
				t.Fatalf("seed %d: an assignment of an impossible model", seed)
			}
			continue
		}
		if r.MPE == nil || !slices.Equal(r.MPE.Assignment, all.values(at)) ||
			math.Abs(r.MPE.LnWeight-ln) > 1e-12*(1+math.Abs(ln)) || r.MPE.Unique != (ties == 1) {
			t.Fatalf("seed %d: MPE %+v, want %v with ln %v, %d ties", seed, r.MPE, all.values(at), ln, ties)
		}
		if ties > 1 {
			tied++
		}
		checkOthers(t, seed, r.MPE, all, asked.Best)

		some := enumerated{domains: make([]int, len(asked.Map))}
		for k, v := range asked.Map {
			some.domains[k] = m.Domains[v]
		}
		at, ln, _ = best(all.sums(asked.Map))
		if r.Map == nil || !slices.Equal(r.Map.Assignment, some.values(at)) || !r.Map.Exact || r.Map.LnBound != nil ||
			math.Abs(r.Map.LnWeight-ln) > 1e-11*(1+math.Abs(ln)) || !slices.Equal(r.Map.Variables, asked.Map) {
			t.Fatalf("seed %d: MAP %+v, want %v with ln %v", seed, r.Map, some.values(at), ln)
		}
		for _, x := range samples(&r) {
			k := 0
			for v, a := range x {
				k = k*m.Domains[v] + a
			}
			if all.weights[k].Sign() <= 0 {
				t.Fatalf("seed %d: the sample %v has weight 0", seed, x)
			}
		}
		if len(samples(&r)) != asked.Samples {
			t.Fatalf("seed %d: %d samples", seed, len(samples(&r)))
		}
	}
	if tied < models/20 || zeros == 0 {
		t.Errorf("%d of %d models have ties, %d are impossible: the test sees too few", tied, models, zeros)
	}
}

// checkOthers compares the next best assignments with the weights of all.
func checkOthers(t *testing.T, seed uint64, found *query.Explanation, all enumerated, best int) {
	t.Helper()
	var lns []float64
	of := map[string]float64{}
	for k, w := range all.weights {
		if w.Sign() > 0 {
			lns = append(lns, w.Ln())
			of[fmt.Sprint(all.values(k))] = w.Ln()
		}
	}
	slices.Sort(lns)
	slices.Reverse(lns)
	if len(found.Others) != max(0, min(best, len(lns))-1) || found.All != (best > 1 && len(lns) <= best) {
		t.Fatalf("seed %d: %d others of %d assignments, the best %d are asked for; all: %v", seed, len(found.Others), len(lns), best, found.All)
	}
	delete(of, fmt.Sprint(found.Assignment))
	for k, o := range found.Others {
		ln, possible := of[fmt.Sprint(o.Assignment)]
		delete(of, fmt.Sprint(o.Assignment))
		slack := 1e-12 * (1 + math.Abs(ln))
		if !possible || math.Abs(o.LnWeight-ln) > slack || math.Abs(ln-lns[k+1]) > slack {
			t.Fatalf("seed %d: other %d is %+v: its ln weight is %v (possible and not listed yet: %v), at that place is %v",
				seed, k, o, ln, possible, lns[k+1])
		}
	}
}

// TestSamplesAreOfTheModel holds counts of drawn assignments against their probabilities, by χ², in
// one piece and in slices, with all factor forms.
func TestSamplesAreOfTheModel(t *testing.T) {
	const n = 20_000
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 29))
		m := ordinary(rng)
		asked := query.Query{Samples: n, Seed: seed + 1}
		all := enumerate(m, asked.Evidence)
		z := all.sums(nil)[0]
		if z.IsZero() {
			continue
		}
		results, err := infer.Run(context.Background(), infer.Request{
			Job: "t", Model: m, Queries: []query.Query{asked},
		})

		if err != nil || results[0].Status != query.StatusOK || len(samples(&results[0])) != n {
			t.Fatalf("seed %d: %v %+v", seed, err, results[0].Error)
		}
		counts := make([]float64, len(all.weights))
		for _, x := range samples(&results[0]) {
			k := 0
			for v, a := range x {
				k = k*m.Domains[v] + a
			}
			counts[k]++
		}

		// Cells of less than five expected are one.
		square, cells, rest, restSeen := 0.0, 0, 0.0, 0.0
		for k, w := range all.weights {
			expected := 0.0
			if !w.IsZero() {
				expected = n * w.Over(z)
			}
			if expected == 0 && counts[k] > 0 {
				t.Fatalf("seed %d: %v was drawn and has weight 0", seed, all.values(k))
			}
			if expected < 5 {
				rest, restSeen = rest+expected, restSeen+counts[k]
				continue
			}
			square += (counts[k] - expected) * (counts[k] - expected) / expected
			cells++
		}
		if rest >= 5 {
			square += (restSeen - rest) * (restSeen - rest) / rest
			cells++
		}
		free := float64(cells - 1)
		if cells > 1 && square > free+4*math.Sqrt(2*free)+8 { // a chance of some 1e-5 each
			t.Errorf("seed %d: χ² is %.1f in %d cells", seed, square, cells)
		}
	}
}

// TestExplanationWithoutElimination: where nothing else fits, the most probable assignments are a search's, with a bound and without Z,
// and the same every time.
func TestExplanationWithoutElimination(t *testing.T) {
	m := complete(60)
	var first *query.Explanation
	for range 2 {
		results, err := infer.Run(t.Context(), infer.Request{
			Model:    m,
			Queries:  []query.Query{{MPE: true, Marginals: true}, {MPE: true, Best: 5}},
			Settings: query.Settings{Method: query.MethodAuto, Budget: 1e9},
		})
		if err != nil {
			t.Fatal(err)
		}
		r := results[0]
		if r.Status != query.StatusOK || r.MPE == nil || r.LogZ != nil || r.Zero || r.Exact || r.Marginals != nil || len(r.Warnings) < 2 {
			t.Fatalf("%+v", r)
		}
		found := r.MPE
		switch {
		case len(found.Assignment) != 60 || found.LnBound == nil || found.Gap == nil || found.Optimal == nil:
			t.Fatalf("%+v", found)
		case *found.LnBound < found.LnWeight || *found.Gap != *found.LnBound-found.LnWeight || *found.Optimal && *found.Gap > 1e-6:
			t.Errorf("ln weight %v, bound %v, gap %v, optimal %v", found.LnWeight, *found.LnBound, *found.Gap, *found.Optimal)
		}
		if first == nil {
			first = found
		}
		if !slices.Equal(first.Assignment, found.Assignment) || *first.LnBound != *found.LnBound {
			t.Errorf("%+v, then %+v", first, found)
		}
		last := math.Inf(1)
		list := results[1].MPE
		for _, o := range list.Others {
			if o.LnWeight > last || o.LnWeight > list.LnWeight {
				t.Errorf("ln weight %v after %v", o.LnWeight, last)
			}
			last = o.LnWeight
		}
		if len(list.Others) != 4 || list.All || list.LnBound == nil || *list.LnBound < last || *list.Gap != *list.LnBound-last {
			t.Errorf("%+v, bound %v", list, list.LnBound)
		}
	}
}

// TestProofWithoutZ: a search that proves its assignment is the whole answer where an elimination takes more, with a deadline or without;
// where marginals are asked for as well, or by method exact, Z is there, and the assignment is the same.
func TestProofWithoutZ(t *testing.T) {
	m, err := generate.Grid(16, 16, generate.Ising{Delta: 0.3, Attractive: true, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	hurried := proposal.WithAnswerDeadline(t.Context(), time.Now().Add(time.Hour))
	var first []int
	for _, c := range []struct {
		ctx    context.Context
		asked  query.Query
		method query.Method
		open   bool
	}{
		{t.Context(), query.Query{MPE: true}, query.MethodExact, false},
		{t.Context(), query.Query{MPE: true}, query.MethodAuto, true},
		{hurried, query.Query{MPE: true}, query.MethodAuto, true},
		{hurried, query.Query{MPE: true, Marginals: true}, query.MethodAuto, false},
	} {
		settings := query.Settings{Budget: 3e8, Method: c.method}
		results, err := infer.Run(c.ctx, infer.Request{Model: m, Queries: []query.Query{c.asked}, Settings: settings})
		if err != nil || results[0].MPE == nil {
			t.Fatalf("%+v, %v", results, err)
		}
		r := results[0]
		if first == nil {
			first = r.MPE.Assignment
		}
		proved := r.MPE.Optimal != nil && *r.MPE.Optimal && r.Ended == "settled"
		if (r.LogZ == nil) != c.open || proved != c.open || !slices.Equal(r.MPE.Assignment, first) || (r.Marginals != nil) != c.asked.Marginals {
			t.Errorf("%+v: ln Z %v, ended %q, warnings %q", c.asked, r.LogZ, r.Ended, r.Warnings)
		}
		if ordered := r.Plan.Width > 0; ordered == c.open {
			t.Errorf("%+v: an order was looked for: %v", c.asked, ordered)
		}
	}
}

// TestMarginalMapWithoutElimination: where sums before maxima do not fit, a search has an assignment and a bound: with the weight where the
// rest fits, with bounds of it and without Z where it does not.
func TestMarginalMapWithoutElimination(t *testing.T) {
	grid, err := generate.Grid(12, 12, generate.Ising{Delta: 1, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	var half []int
	for v := range grid.Domains {
		if v%2 == 0 {
			half = append(half, v)
		}
	}
	for _, c := range []struct {
		m    *factorgraph.Model
		set  []int
		fits bool
	}{{grid, half, true}, {complete(30), []int{3, 1, 4, 15, 9}, false}} {
		results, err := infer.Run(t.Context(), infer.Request{
			Model: c.m, Queries: []query.Query{{Map: c.set}}, Settings: query.Settings{Budget: 3e8, Memory: 1 << 20},
		})
		if err != nil {
			t.Fatal(err)
		}
		r := results[0]
		if r.Status != query.StatusOK || r.Map == nil || (r.LogZ != nil) != c.fits || r.Map.Optimal == nil {
			t.Fatalf("%+v, error %+v", r, r.Error)
		}
		f := r.Map
		if len(f.Assignment) != len(c.set) || *f.LnBound < f.LnWeight || *f.Gap != *f.LnBound-f.LnWeight || *f.Optimal != f.Exact ||
			(f.LnUpper == nil) != c.fits || f.LnUpper != nil && *f.LnUpper < f.LnWeight || c.fits && f.LnWeight > *r.LogZ {
			t.Errorf("%+v, bound %v, Z %v", f, *f.LnBound, r.LogZ)
		}
	}
}

// samples returns the draws of a result, none if it has no samples.
func samples(r *query.Result) [][]int {
	if r.Samples == nil {
		return nil
	}
	return r.Samples.Assignments
}
