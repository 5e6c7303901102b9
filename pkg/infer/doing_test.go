package infer_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// network is a Bayesian network of few variables, and the numbers of its tables by child.
type network struct {
	model   *factorgraph.Model
	parents [][]int
	tables  [][]float64 // parents row-major, the child fastest
}

// randomNetwork draws tables in which a third of the rows has zeros. One in four tables is a CP factor of the same entries.
func randomNetwork(rng *rand.Rand) network {
	n := 3 + rng.IntN(4)
	w := network{model: &factorgraph.Model{Bayes: true}, parents: make([][]int, n), tables: make([][]float64, n)}
	for v := range n {
		w.model.Domains = append(w.model.Domains, 2+rng.IntN(2))
		rows := 1
		for p := range v {
			if len(w.parents[v]) < 3 && rng.IntN(2) == 0 {
				w.parents[v] = append(w.parents[v], p)
				rows *= w.model.Domains[p]
			}
		}
		d := w.model.Domains[v]
		for range rows {
			row, sum := make([]float64, d), 0.0
			for x := range row {
				row[x] = 0.05 + rng.Float64()
			}
			if rng.IntN(3) == 0 {
				row[rng.IntN(d)] = 0
			}
			for _, p := range row {
				sum += p
			}
			for x := range row {
				row[x] /= sum
			}
			w.tables[v] = append(w.tables[v], row...)
		}
	}
	for v, parents := range w.parents {
		scope := append(append([]int{}, parents...), v)
		shape := make([]int, len(scope))
		for k, u := range scope {
			shape[k] = w.model.Domains[u]
		}
		dense := &tensor.Dense{Shape: shape, Data: w.tables[v]}
		var table tensor.Tensor = dense
		if rng.IntN(4) == 0 {
			table = asCP(dense)
		}
		w.model.Factors = append(w.model.Factors, factorgraph.Factor{Scope: scope, Table: table})
	}
	return w
}

// asCP is a table with a term for each entry.
func asCP(t *tensor.Dense) *tensor.CP {
	cp := &tensor.CP{Shape: t.Shape, Vectors: make([][]float64, len(t.Shape))}
	for entry, p := range t.Data {
		cp.Weights = append(cp.Weights, p)
		for l := len(t.Shape) - 1; l >= 0; l-- {
			vector := make([]float64, t.Shape[l])
			vector[entry%t.Shape[l]] = 1
			entry /= t.Shape[l]
			cp.Vectors[l] = append(cp.Vectors[l], vector...)
		}
	}
	return cp
}

// each calls f with every assignment and its weight, if the variables of set have their values from outside.
func (w network) each(set map[int]int, f func(x []int, weight float64)) {
	x := make([]int, len(w.parents))
	for {
		weight := 1.0
		for v, parents := range w.parents {
			if value, isSet := set[v]; isSet {
				if x[v] != value {
					weight = 0
				}
				continue
			}
			row := 0
			for _, p := range parents {
				row = row*w.model.Domains[p] + x[p]
			}
			weight *= w.tables[v][row*w.model.Domains[v]+x[v]]
		}
		f(x, weight)
		k := len(x) - 1
		for ; k >= 0; k-- {
			if x[k]++; x[k] < w.model.Domains[k] {
				break
			}
			x[k] = 0
		}
		if k < 0 {
			return
		}
	}
}

// TestDoingEqualsEnumeration: one or several variables set, with evidence, zeros, and others that only observe, in one request.
func TestDoingEqualsEnumeration(t *testing.T) {
	impossible, several := 0, 0
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 56))
		w := randomNetwork(rng)
		n := len(w.parents)
		set := map[int]int{}
		for range 1 + rng.IntN(2) {
			v := rng.IntN(n)
			set[v] = rng.IntN(w.model.Domains[v])
		}
		if len(set) > 1 {
			several++
		}
		e := factorgraph.Evidence{}
		seen := rng.IntN(n)
		if _, isSet := set[seen]; !isSet {
			e.Hard = []factorgraph.Observation{{Var: seen, Value: rng.IntN(w.model.Domains[seen])}}
		}
		other := map[int]int{seen: rng.IntN(w.model.Domains[seen])}
		queries := []query.Query{
			{Evidence: e, Do: factorgraph.Observe(set).Hard, Marginals: true, MPE: true, Samples: 3},
			{Evidence: e, Marginals: true},
			{Do: factorgraph.Observe(other).Hard, Joint: []int{n - 1, 0}},
		}
		results, err := infer.Run(context.Background(), infer.Request{Model: w.model, Queries: queries})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for q, doing := range []map[int]int{set, {}, other} {
			z, sums, best := 0.0, make([][]float64, n), 0.0
			joint := make([]float64, w.model.Domains[n-1]*w.model.Domains[0])
			for v := range sums {
				sums[v] = make([]float64, w.model.Domains[v])
			}
			w.each(doing, func(x []int, weight float64) {
				for _, o := range queries[q].Evidence.Hard {
					if x[o.Var] != o.Value {
						weight = 0
					}
				}
				z += weight
				best = max(best, weight)
				joint[x[n-1]*w.model.Domains[0]+x[0]] += weight
				for v := range x {
					sums[v][x[v]] += weight
				}
			})
			r := results[q]
			switch {
			case r.Error != nil || !r.Exact:
				t.Fatalf("seed %d, query %d: %+v, exact %t", seed, q, r.Error, r.Exact)
			case z == 0:
				impossible++
				if !r.Zero {
					t.Errorf("seed %d, query %d: ln Z %v of what is impossible", seed, q, r.LogZ)
				}
				continue
			case r.Zero || math.Abs(*r.LogZ-math.Log(z)) > 1e-12:
				t.Fatalf("seed %d, query %d: ln Z %v, want %v", seed, q, r.LogZ, math.Log(z))
			}
			if queries[q].Marginals && len(r.Marginals) != n {
				t.Fatalf("seed %d, query %d: %d marginals of %d variables", seed, q, len(r.Marginals), n)
			}
			for _, m := range r.Marginals {
				for x, p := range m.P {
					if math.Abs(p-sums[m.Variable][x]/z) > 1e-12 {
						t.Errorf("seed %d, query %d: P(x_%d = %d) is %v, want %v", seed, q, m.Variable, x, p, sums[m.Variable][x]/z)
					}
				}
			}
			if queries[q].Joint != nil {
				for cell, p := range r.Joint.P {
					if math.Abs(p-joint[cell]/z) > 1e-12 {
						t.Errorf("seed %d: cell %d is %v, want %v", seed, cell, p, joint[cell]/z)
					}
				}
			}
			if queries[q].MPE && (len(r.MPE.Assignment) != n || math.Abs(r.MPE.LnWeight-math.Log(best)) > 1e-12 ||
				len(r.Samples.Assignments) != 3 || len(r.Samples.Assignments[0]) != n) {
				t.Errorf("seed %d: explanation %+v, want ln weight %v; samples %+v", seed, r.MPE, math.Log(best), r.Samples)
			}
		}
	}
	if impossible < 10 || several < 100 {
		t.Errorf("%d impossible, %d with several set", impossible, several)
	}
}

// TestDoingNeedsCauses: models that are no Bayesian networks, and questions about tables, are refused.
func TestDoingNeedsCauses(t *testing.T) {
	w := randomNetwork(rand.New(rand.NewPCG(1, 1)))
	set := []factorgraph.Observation{{Var: 0, Value: 0}}
	field := *w.model
	field.Bayes = false
	for name, c := range map[string]struct {
		model *factorgraph.Model
		q     query.Query
	}{
		"no Bayesian network": {&field, query.Query{Do: set}},
		"gradients":           {w.model, query.Query{Do: set, Gradients: true}},
		"out of range":        {w.model, query.Query{Do: []factorgraph.Observation{{Var: 0, Value: 9}}}},
		"switches":            {w.model, query.Query{Switches: []query.Switch{{Var: 9, Values: 2}}}},
	} {
		_, err := infer.Run(context.Background(), infer.Request{Model: c.model, Queries: []query.Query{c.q}})
		if fault.CodeOf(err) != fault.BadInput {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, other := range []query.Query{{Gradients: true}, {Cases: &query.Cases{Variables: []int{1}, Rows: [][]int{{0}}}}} {
		_, err := infer.Run(context.Background(), infer.Request{Model: w.model, Queries: []query.Query{{Do: set}, other}})
		if fault.CodeOf(err) != fault.BadInput {
			t.Errorf("beside a query that sets variables: %+v: %v", other, err)
		}
	}
}

// TestBelievingEqualsEnumeration: by Jeffrey's rule, and by proportional fitting if several posteriors are believed.
func TestBelievingEqualsEnumeration(t *testing.T) {
	contradictions, several := 0, 0
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 57))
		w := randomNetwork(rng)
		n := len(w.parents)
		given := factorgraph.Evidence{}
		if rng.IntN(2) == 0 {
			given.Hard = []factorgraph.Observation{{Var: n - 1, Value: rng.IntN(w.model.Domains[n-1])}}
		}
		beliefs := map[int][]float64{}
		for range 1 + rng.IntN(3) {
			v := rng.IntN(n - 1)
			p, sum := make([]float64, w.model.Domains[v]), 0.0
			for x := range p {
				if p[x] = rng.Float64(); rng.IntN(8) == 0 {
					p[x] = 0
				}
				sum += p[x]
			}
			if sum > 0 {
				for x := range p {
					p[x] /= sum
				}
				beliefs[v] = p
			}
		}
		q := query.Query{Evidence: given, Marginals: true}
		for v := range n - 1 {
			if p := beliefs[v]; p != nil {
				q.Believe = append(q.Believe, factorgraph.Likelihood{Var: v, Weights: p})
			}
		}
		if len(q.Believe) == 0 {
			continue
		}
		event := factorgraph.Evidence{Hard: append([]factorgraph.Observation{}, given.Hard...)}
		if len(event.Hard) == 0 {
			event.Hard = []factorgraph.Observation{{Var: n - 1, Value: 0}}
		}
		queries := []query.Query{q, {Evidence: event, Over: 1, Believe: q.Believe}}
		results, err := infer.Run(context.Background(), infer.Request{Model: w.model, Queries: queries})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		// The weights of all assignments, scaled by each belief in turn until none changes them.
		var cells [][]int
		var weights []float64
		z := 0.0
		w.each(nil, func(x []int, weight float64) {
			for _, o := range given.Hard {
				if x[o.Var] != o.Value {
					weight = 0
				}
			}
			cells, weights, z = append(cells, append([]int{}, x...)), append(weights, weight), z+weight
		})
		r := results[0]
		if z == 0 {
			if !r.Zero {
				t.Errorf("seed %d: ln Z %v of what is impossible", seed, r.LogZ)
			}
			continue
		}
		missed := 1.0
		for round := 0; round < 3000 && missed > 1e-14; round++ {
			missed = 0
			for _, b := range q.Believe {
				have, total := make([]float64, len(b.Weights)), 0.0
				for k, x := range cells {
					have[x[b.Var]] += weights[k]
					total += weights[k]
				}
				for k, x := range cells {
					if weights[k] > 0 {
						weights[k] *= b.Weights[x[b.Var]] * total / have[x[b.Var]]
					}
				}
				for x, p := range b.Weights {
					missed = max(missed, math.Abs(p-have[x]/total))
				}
			}
		}
		if missed > 1e-6 {
			contradictions++
			if r.Belief != nil || r.Marginals != nil || len(r.Warnings) == 0 {
				t.Errorf("seed %d: %+v under beliefs that contradict each other, missed by %v", seed, r.Belief, missed)
			}
			continue
		}
		if missed > 1e-12 || r.Belief == nil {
			if r.Belief == nil && missed < 1e-12 {
				t.Errorf("seed %d: no answer: %q", seed, r.Warnings)
			}
			continue // the oracle has not converged either
		}
		if len(q.Believe) > 1 {
			several++
		}
		total, sums := 0.0, make([][]float64, n)
		for v := range sums {
			sums[v] = make([]float64, w.model.Domains[v])
		}
		inEvent := 0.0
		for k, x := range cells {
			total += weights[k]
			isIn := true
			for _, o := range event.Hard {
				isIn = isIn && x[o.Var] == o.Value
			}
			if isIn {
				inEvent += weights[k]
			}
			for v := range x {
				sums[v][x[v]] += weights[k]
			}
		}
		for _, m := range r.Marginals {
			for x, p := range m.P {
				if math.Abs(p-sums[m.Variable][x]/total) > 1e-9 {
					t.Errorf("seed %d: P(x_%d = %d) is %v, want %v", seed, m.Variable, x, p, sums[m.Variable][x]/total)
				}
			}
		}
		if len(r.Marginals) != n || math.Abs(*r.LogZ-math.Log(z)) > 1e-12 {
			t.Errorf("seed %d: %d marginals, ln Z %v, want %v", seed, len(r.Marginals), *r.LogZ, math.Log(z))
		}
		if ratio := results[1].Ratio; ratio == nil || math.Abs(*ratio.P-inEvent/total) > 1e-9 {
			t.Errorf("seed %d: P(event) %+v, want %v (%q)", seed, ratio, inEvent/total, results[1].Warnings)
		}
		// The weights that the answer states have the same effect as evidence.
		same := query.Query{Evidence: factorgraph.Evidence{Hard: given.Hard}, Marginals: true}
		for k, v := range r.Belief.Variables {
			same.Evidence.Soft = append(same.Evidence.Soft, factorgraph.Likelihood{Var: v, Weights: r.Belief.Likelihoods[k]})
		}
		again, err := infer.Run(context.Background(), infer.Request{Model: w.model, Queries: []query.Query{same}})
		if err != nil {
			t.Fatal(err)
		}
		for i, m := range again[0].Marginals {
			for x, p := range m.P {
				if math.Abs(p-r.Marginals[i].P[x]) > 1e-9 {
					t.Errorf("seed %d: P(x_%d = %d) is %v by the weights, %v by the beliefs", seed, m.Variable, x, p, r.Marginals[i].P[x])
				}
			}
		}
	}
	if contradictions < 10 || several < 100 {
		t.Errorf("%d contradict each other, %d of several beliefs", contradictions, several)
	}
}

// TestBeliefsOfTwoQueries: a probability of an event is under one set of beliefs, and of an event.
func TestBeliefsOfTwoQueries(t *testing.T) {
	w := randomNetwork(rand.New(rand.NewPCG(3, 3)))
	believe := func(v int, p float64) []factorgraph.Likelihood {
		weights := make([]float64, w.model.Domains[v])
		weights[0], weights[1] = p, 1-p
		return []factorgraph.Likelihood{{Var: v, Weights: weights}}
	}
	seen, other := factorgraph.Observe(map[int]int{2: 0}), factorgraph.Observe(map[int]int{2: 1})
	for name, queries := range map[string][]query.Query{
		"other variables": {{Believe: believe(0, 0.3)}, {Evidence: seen, Over: 1, Believe: believe(1, 0.3)}},
		"other numbers":   {{Believe: believe(0, 0.3)}, {Evidence: seen, Over: 1, Believe: believe(0, 0.4)}},
		"one alone":       {{Believe: believe(0, 0.3)}, {Evidence: seen, Over: 1}},
		"the other alone": {{}, {Evidence: seen, Over: 1, Believe: believe(0, 0.3)}},
		"no event":        {{Evidence: seen, Believe: believe(0, 0.3)}, {Evidence: other, Over: 1, Believe: believe(0, 0.3)}},
	} {
		results, err := infer.Run(context.Background(), infer.Request{Model: w.model, Queries: queries})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if r := results[1]; r.Ratio != nil || len(r.Warnings) == 0 {
			t.Errorf("%s: ratio %+v, warnings %q", name, r.Ratio, r.Warnings)
		}
	}
}

// TestEstimatesUnderBeliefs: what is not exact says so, and is a distribution.
func TestEstimatesUnderBeliefs(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 58))
		w := randomNetwork(rng)
		weights := make([]float64, w.model.Domains[0])
		weights[0], weights[1] = 0.5, 0.5
		believe := []factorgraph.Likelihood{{Var: 0, Weights: weights}}
		results, err := infer.Run(context.Background(), infer.Request{
			Model: w.model, Settings: query.Settings{Method: query.MethodSampled, Budget: 1e6},
			Queries: []query.Query{
				{Believe: believe, Marginals: true}, {Evidence: factorgraph.Observe(map[int]int{2: 0}), Over: 1, Believe: believe},
			},
		})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		r, event := results[0], results[1]
		if r.Belief != nil && !r.Belief.Exact && (len(r.Warnings) == 0 || r.Exact) {
			t.Errorf("seed %d: estimates under beliefs: exact %v, warnings %q", seed, r.Exact, r.Warnings)
		}
		for _, m := range r.Marginals {
			sum := 0.0
			for _, p := range m.P {
				sum += p
			}
			if math.Abs(sum-1) > 1e-9 {
				t.Errorf("seed %d: the marginals of x_%d sum to %v", seed, m.Variable, sum)
			}
		}
		if event.Ratio != nil && (!(*event.Ratio.P >= 0 && *event.Ratio.P <= 1) || !r.Belief.Exact && (len(event.Warnings) == 0 || event.Exact)) {
			t.Errorf("seed %d: P(event) %v, %q", seed, *event.Ratio.P, event.Warnings)
		}
	}
}

// TestTablesThatDoingReplaces: if every query sets a variable, its table has no say, and its sums no warning.
func TestTablesThatDoingReplaces(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 59))
		w := randomNetwork(rng)
		v := rng.IntN(len(w.parents))
		table := &w.model.Factors[v].Table
		if dense, ok := (*table).(*tensor.Dense); ok {
			dense.Data = slices.Repeat([]float64{0.4}, len(dense.Data))
		}
		value := rng.IntN(w.model.Domains[v])
		results, err := infer.Run(context.Background(), infer.Request{Model: w.model, Queries: []query.Query{
			{Do: []factorgraph.Observation{{Var: v, Value: value}}, Marginals: true},
			{Do: []factorgraph.Observation{{Var: v, Value: 1 - min(value, 1)}}},
		}})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		sums := make([]float64, len(w.parents))
		w.each(map[int]int{v: value}, func(x []int, weight float64) {
			for u := range sums {
				if x[u] == 0 {
					sums[u] += weight
				}
			}
		})
		for _, r := range results {
			if r.LogZ == nil || math.Abs(*r.LogZ) > 1e-12 || len(r.Warnings) > 0 {
				t.Errorf("seed %d: ln Z %v, warnings %q", seed, r.LogZ, r.Warnings)
			}
		}
		for _, m := range results[0].Marginals {
			if math.Abs(m.P[0]-sums[m.Variable]) > 1e-12 {
				t.Errorf("seed %d: P(x_%d = 0) is %v, want %v", seed, m.Variable, m.P[0], sums[m.Variable])
			}
		}
	}
}

// TestConflictsUnderDoing: of impossible evidence beside variables that are set, alone and beside a query that only observes, the named
// observations are impossible in the network whose tables are cut out, no fewer are, and the answer has what was set. By enumeration.
func TestConflictsUnderDoing(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 6))
	impossible, possibleWithout := 0, 0
	for round := range 400 {
		w := randomNetwork(rng)
		n := len(w.model.Domains)
		set, q := map[int]int{}, query.Query{Conflict: true}
		for v := range n {
			o := factorgraph.Observation{Var: v, Value: rng.IntN(w.model.Domains[v])}
			switch rng.IntN(4) {
			case 0:
				set[v] = o.Value
				q.Do = append(q.Do, o)
				if rng.IntN(2) == 0 {
					q.Evidence.Hard = append(q.Evidence.Hard, factorgraph.Observation{Var: v, Value: rng.IntN(w.model.Domains[v])})
				}
			case 1, 2:
				q.Evidence.Hard = append(q.Evidence.Hard, o)
			}
		}
		if len(q.Do) == 0 || w.probability(set, q.Evidence.Hard) > 0 {
			continue
		}
		impossible++
		queries := []query.Query{q}
		if round%2 == 0 {
			queries = append(queries, query.Query{Evidence: q.Evidence, Conflict: true})
		}
		results, err := infer.Run(t.Context(), infer.Request{Model: w.model, Queries: queries})
		if err != nil || !results[0].Zero || results[0].Conflict == nil {
			t.Fatalf("round %d: %+v, %v", round, results, err)
		}
		c := results[0].Conflict
		if len(c.Do) != len(q.Do) || *c.Do[0].Value != q.Do[0].Value || c.Do[0].Variable != q.Do[0].Var {
			t.Errorf("round %d: %+v is set, it says %+v", round, q.Do, c.Do)
		}
		var named []factorgraph.Observation
		for _, o := range c.Observations {
			if o.Variable >= n {
				t.Fatalf("round %d: variable %d is none of the model's", round, o.Variable)
			}
			named = append(named, factorgraph.Observation{Var: o.Variable, Value: *o.Value})
		}
		fewest := len(q.Evidence.Hard)
		for subset := range 1 << len(q.Evidence.Hard) {
			var some []factorgraph.Observation
			for k, o := range q.Evidence.Hard {
				if subset>>k&1 == 1 {
					some = append(some, o)
				}
			}
			if w.probability(set, some) == 0 {
				fewest = min(fewest, len(some))
			}
		}
		if w.probability(set, named) > 0 || len(named) != fewest || !c.Smallest {
			t.Errorf("round %d: %+v of %+v under %+v, the smallest have %d", round, named, q.Evidence.Hard, q.Do, fewest)
		}
		if w.probability(nil, named) > 0 {
			possibleWithout++
		}
	}
	if impossible < 50 || possibleWithout < 10 {
		t.Errorf("%d impossible, %d of them by what is set", impossible, possibleWithout)
	}
}

// probability is that of observations, if the variables of set have their values from outside.
func (w network) probability(set map[int]int, observed []factorgraph.Observation) (sum float64) {
	w.each(set, func(x []int, weight float64) {
		if !slices.ContainsFunc(observed, func(o factorgraph.Observation) bool { return x[o.Var] != o.Value }) {
			sum += weight
		}
	})
	return sum
}
