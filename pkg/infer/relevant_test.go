package infer_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"github.com/basetensor/basetensor/internal/testing/nightly"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// directedModel is a random Bayesian network of few variables, whose tables the test enumerates, among many pairs of others, which
// make it too large for a program of its own. Tables are written with few digits, with zeros, or deterministic.
type directedModel struct {
	*factorgraph.Model
	few    []int       // the variables that are enumerated, by their numbers in the model
	tables [][]float64 // of the few: normalised by the test, the parents' values before the variable's
	scopes [][]int     // of the few: parents and the variable, as positions in few
}

// manyPairs is how many pairs of variables there are beside the few.
const manyPairs = 130

// newDirected draws a model.
func newDirected(rng *rand.Rand) *directedModel {
	n := 3 + rng.IntN(6)
	total := n + 2*manyPairs
	place := rng.Perm(total)
	d := &directedModel{Model: &factorgraph.Model{Bayes: true, Domains: make([]int, total)}, few: place[:n]}
	for _, v := range place {
		d.Domains[v] = 2 + rng.IntN(2)
	}
	digits := []int{2, 3, 6, 12, 17}[rng.IntN(5)]
	for k := range n {
		var scope []int
		for _, parent := range rng.Perm(k) {
			if len(scope) < 3 && rng.IntN(2) == 0 {
				scope = append(scope, parent)
			}
		}
		scope = append(scope, k)
		f, exact := d.table(rng, scope, digits)
		d.Factors, d.tables, d.scopes = append(d.Factors, f), append(d.tables, exact), append(d.scopes, scope)
	}
	for k := range manyPairs {
		a, b := place[n+2*k], place[n+2*k+1]
		d.Factors = append(d.Factors,
			factorgraph.Factor{Scope: []int{a}, Table: uniform(d.Domains[a])},
			factorgraph.Factor{Scope: []int{a, b}, Table: uniform(d.Domains[a], d.Domains[b])})
	}
	rng.Shuffle(len(d.Factors), func(i, j int) { d.Factors[i], d.Factors[j] = d.Factors[j], d.Factors[i] })
	return d
}

// uniform is a conditional probability table of its last variable.
func uniform(shape ...int) *tensor.Dense {
	size := 1
	for _, d := range shape {
		size *= d
	}
	return &tensor.Dense{Shape: shape, Data: slices.Repeat([]float64{1 / float64(shape[len(shape)-1])}, size)}
}

// table draws the factor of the last of some of the few, and returns its numbers divided by the sums of their rows beside it.
func (d *directedModel) table(rng *rand.Rand, scope []int, digits int) (factorgraph.Factor, []float64) {
	var f factorgraph.Factor
	var shape []int
	size := 1
	for _, k := range scope {
		f.Scope = append(f.Scope, d.few[k])
		shape = append(shape, d.Domains[d.few[k]])
		size *= d.Domains[d.few[k]]
	}
	last := shape[len(shape)-1]
	data, exact := make([]float64, size), make([]float64, size)
	for from := 0; from < size; from += last {
		row := data[from : from+last]
		switch rng.IntN(5) {
		case 0: // deterministic
			row[rng.IntN(last)] = 1
		case 1: // with a zero
			draw(rng, row[1:], digits)
		default:
			draw(rng, row, digits)
		}
		sum := 0.0
		for _, x := range row {
			sum += x
		}
		for x := range row {
			exact[from+x] = row[x] / sum
		}
	}
	f.Table = &tensor.Dense{Shape: shape, Data: data}
	return f, exact
}

// draw fills a row with probabilities of so many digits.
func draw(rng *rand.Rand, row []float64, digits int) {
	sum := 0.0
	for x := range row {
		row[x] = 0.1 + rng.Float64()
		sum += row[x]
	}
	for x := range row {
		row[x], _ = strconv.ParseFloat(strconv.FormatFloat(row[x]/sum, 'f', digits, 64), 64)
	}
}

// each calls visit with every assignment of the few of weight above 0 under evidence.
func (d *directedModel) each(e factorgraph.Evidence, visit func(x []int, weight float64)) {
	at := map[int]int{}
	for k, v := range d.few {
		at[v] = k
	}
	x := make([]int, len(d.few))
	var assign func(k int, weight float64)
	assign = func(k int, weight float64) {
		if weight == 0 {
			return
		}
		if k == len(x) {
			visit(x, weight)
			return
		}
		for x[k] = range d.Domains[d.few[k]] {
			cell := 0
			for _, i := range d.scopes[k] {
				cell = cell*d.Domains[d.few[i]] + x[i]
			}
			w := weight * d.tables[k][cell]
			for _, o := range e.Hard {
				if at[o.Var] == k && o.Value != x[k] {
					w = 0
				}
			}
			for _, s := range e.Soft {
				if at[s.Var] == k {
					w *= s.Weights[x[k]]
				}
			}
			assign(k+1, w)
		}
	}
	assign(0, 1)
}

// sums returns the total weight under evidence, by the values of some of the few.
func (d *directedModel) sums(e factorgraph.Evidence, set []int) (z float64, cells []float64) {
	size := 1
	for _, v := range set {
		size *= d.Domains[v]
	}
	cells = make([]float64, size)
	d.each(e, func(x []int, weight float64) {
		cell := 0
		for _, v := range set {
			cell = cell*d.Domains[v] + x[slices.Index(d.few, v)]
		}
		cells[cell] += weight
		z += weight
	})
	return z, cells
}

// some draws distinct ones of the few.
func (d *directedModel) some(rng *rand.Rand, most int) []int {
	n := 1 + rng.IntN(min(most, len(d.few)))
	set := make([]int, 0, n)
	for _, k := range rng.Perm(len(d.few))[:n] {
		set = append(set, d.few[k])
	}
	return set
}

// evidence draws observations and likelihoods of the few.
func (d *directedModel) evidence(rng *rand.Rand) factorgraph.Evidence {
	var hard []factorgraph.Observation
	var soft []factorgraph.Likelihood
	for _, v := range d.few {
		switch rng.IntN(6) {
		case 0, 1:
			hard = append(hard, factorgraph.Observation{Var: v, Value: rng.IntN(d.Domains[v])})
		case 2:
			weights := make([]float64, d.Domains[v])
			for x := range weights {
				weights[x] = float64(rng.IntN(4)) / 2
			}
			soft = append(soft, factorgraph.Likelihood{Var: v, Weights: weights})
		}
	}
	e, _ := factorgraph.NewEvidence(hard, soft)
	return e
}

// TestRelevantEqualsEnumeration: targets, joint marginals, events and marginal MAP of random Bayesian networks are those of an
// enumeration of all assignments, whether the model is restricted to what a question depends on or not. Samples ask about all
// variables, and are the same.
func TestRelevantEqualsEnumeration(t *testing.T) {
	models, impossible := nightly.Rounds(300, 3000), 0
	for seed := range uint64(models) {
		rng := rand.New(rand.NewPCG(seed, 11))
		d := newDirected(rng)
		given := d.evidence(rng)
		event, _ := factorgraph.NewEvidence(append(slices.Clone(given.Hard), unobserved(rng, d, given)...), given.Soft)
		queries := []query.Query{
			{Evidence: given}, {Evidence: event, Over: 1},
			{Evidence: given, Targets: d.some(rng, 3)}, {Evidence: given, Joint: d.some(rng, 3)}, {Evidence: given, Map: d.some(rng, 2)},
			{Evidence: given, Samples: 3, Seed: seed},
		}
		if rng.IntN(2) == 0 {
			queries[3].Marginals, queries[3].Targets = true, d.some(rng, 2)
		}
		s := query.Settings{Method: []query.Method{query.MethodAuto, query.MethodExact}[rng.IntN(2)]}
		with, err := infer.Run(t.Context(), infer.Request{Job: "j", Model: d.Model, Queries: queries, Settings: s})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		d.check(t, fmt.Sprintf("seed %d", seed), queries, with)
		if with[0].Zero {
			impossible++
		}
		if seed%4 > 0 {
			continue
		}
		whole, _ := d.Normalised()
		own := *whole
		own.Bayes = false
		without, err := infer.Run(t.Context(), infer.Request{Job: "j", Model: &own, Queries: queries, Settings: s})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		d.check(t, fmt.Sprintf("seed %d, whole", seed), queries, without)
		if !reflect.DeepEqual(with[5].Samples, without[5].Samples) {
			t.Errorf("seed %d: samples %v, of the whole %v", seed, with[5].Samples, without[5].Samples)
		}
		alone, err := infer.Run(t.Context(), infer.Request{Job: "j", Model: d.Model, Queries: queries[2:3], Settings: s})
		if err != nil || !reflect.DeepEqual(alone[0].Marginals, with[2].Marginals) {
			t.Errorf("seed %d: by itself %v, %v, among others %v", seed, alone[0].Marginals, err, with[2].Marginals)
		}
	}
	if impossible == 0 || impossible > models/2 {
		t.Errorf("%d of %d are impossible", impossible, models)
	}
}

// unobserved is an observation of one of the few that has none, if there is one.
func unobserved(rng *rand.Rand, d *directedModel, e factorgraph.Evidence) []factorgraph.Observation {
	for _, v := range d.some(rng, len(d.few)) {
		if !slices.ContainsFunc(e.Hard, func(o factorgraph.Observation) bool { return o.Var == v }) {
			return []factorgraph.Observation{{Var: v, Value: rng.IntN(d.Domains[v])}}
		}
	}
	return nil
}

// check compares the results of the queries with sums over all assignments.
func (d *directedModel) check(t *testing.T, name string, queries []query.Query, results []query.Result) {
	t.Helper()
	for k, q := range queries {
		r, what := results[k], fmt.Sprintf("%s, query %d", name, k)
		z, _ := d.sums(q.Evidence, nil)
		switch {
		case r.Status != query.StatusOK || !r.Exact:
			t.Errorf("%s: %+v", what, r)
			continue
		case z == 0:
			if !r.Zero {
				t.Errorf("%s: %+v, not 0", what, r)
			}
			continue
		case r.LogZ == nil:
			t.Errorf("%s: no ln Z: %+v", what, r)
			continue
		}
		agree(t, what+": ln Z", []float64{*r.LogZ}, []float64{math.Log(z)})
		if q.Over > 0 {
			given, _ := d.sums(queries[q.Over-1].Evidence, nil)
			agree(t, what+": the event", []float64{*r.Ratio.Ln}, []float64{math.Log(z) - math.Log(given)})
		}
		for i, v := range q.Targets {
			_, cells := d.sums(q.Evidence, []int{v})
			agree(t, fmt.Sprintf("%s: target %d", what, v), r.Marginals[i].P, over(cells, z))
		}
		if len(q.Joint) > 0 {
			_, cells := d.sums(q.Evidence, q.Joint)
			if !slices.Equal(r.Joint.Variables, q.Joint) {
				t.Errorf("%s: the joint marginal is of %v, want %v", what, r.Joint.Variables, q.Joint)
			}
			agree(t, what+": joint", r.Joint.P, over(cells, z))
		}
		if len(q.Map) > 0 {
			_, cells := d.sums(q.Evidence, q.Map)
			at := 0
			for i, v := range q.Map {
				at = at*d.Domains[v] + r.Map.Assignment[i]
			}
			best := math.Log(slices.Max(cells))
			agree(t, what+": map", []float64{r.Map.LnWeight, math.Log(cells[at])}, []float64{best, best})
			if !slices.Equal(r.Map.Variables, q.Map) {
				t.Errorf("%s: map of %v, want %v", what, r.Map.Variables, q.Map)
			}
		}
	}
}

// over divides numbers.
func over(list []float64, z float64) []float64 {
	out := make([]float64, len(list))
	for k, x := range list {
		out[k] = x / z
	}
	return out
}

// agree compares to 1e-12.
func agree(t *testing.T, what string, got, want []float64) {
	t.Helper()
	for k := range want {
		if len(got) != len(want) || !(math.Abs(got[k]-want[k]) <= 1e-12) {
			t.Errorf("%s: %v, want %v", what, got, want)
			return
		}
	}
}
