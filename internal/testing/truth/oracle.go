package truth

// The true answers to queries.

import (
	"math"

	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

// Truth is the answer to one query.
type Truth struct {
	Z         oracle.Number
	LnZ       float64     // nats; −Inf where Z is 0
	Marginals [][]float64 // P(x_i = a | evidence), where they are asked for and Z is not 0
	Joint     []float64   // of the query's set, the last variable fastest
	// HasRatio says that LnRatio is a number: the query is asked over another one, and neither Z is 0.
	HasRatio bool
	LnRatio  float64
	// Event says that the query's evidence only restricts the other one's, so that the ratio is a
	// probability.
	Event bool
}

// Solve answers the queries of a model by enumeration.
func Solve(m *factorgraph.Model, queries []query.Query) []Truth {
	weights := Weights(m)
	out := make([]Truth, len(queries))
	for q := range queries {
		out[q] = solve(m, weights, &queries[q])
	}
	for q := range queries {
		if queries[q].Over == 0 {
			continue
		}
		t, over := &out[q], queries[q].Over-1
		t.Event = restricts(queries[q].Evidence, queries[over].Evidence)
		if t.Z.Sign() > 0 && out[over].Z.Sign() > 0 {
			t.HasRatio, t.LnRatio = true, t.Z.LnOver(out[over].Z)
		}
	}
	return out
}

// solve answers one query by enumeration; weights are the weights of all assignments.
func solve(m *factorgraph.Model, weights []oracle.Number, q *query.Query) Truth {
	conditioned := condition(m, weights, q.Evidence)
	t := Truth{Z: total(conditioned), LnZ: math.Inf(-1)}
	if t.Z.IsZero() {
		return t
	}
	if t.Z.Sign() > 0 {
		t.LnZ = t.Z.Ln()
	}
	if q.Marginals {
		t.Marginals = make([][]float64, len(m.Domains))
		for v := range m.Domains {
			t.Marginals[v] = together(m, conditioned, []int{v}, t.Z)
		}
	}

	if q.Joint != nil {
		t.Joint = together(m, conditioned, q.Joint, t.Z)
	}
	return t
}

// condition multiplies every assignment's weight by the weight that the evidence gives it.
func condition(m *factorgraph.Model, weights []oracle.Number, ev factorgraph.Evidence) []oracle.Number {
	out := make([]oracle.Number, 0, len(weights))
	oracle.Each(m.Domains, func(x []int) {
		w := weights[len(out)]
		for _, h := range ev.Hard {
			if x[h.Var] != h.Value {
				w = oracle.Number{}
			}
		}
		for _, s := range ev.Soft {
			w = w.Mul(oracle.FromFloat(s.Weights[x[s.Var]], 0))
		}
		out = append(out, w)
	})
	return out
}

// total sums all weights.
func total(weights []oracle.Number) oracle.Number {
	sum := oracle.Number{}
	for _, w := range weights {
		sum = sum.Add(w)
	}
	return sum
}

// together is the joint distribution of the variables of set, in the order of set.
func together(m *factorgraph.Model, weights []oracle.Number, set []int, z oracle.Number) []float64 {
	dims := make([]int, len(set))
	for i, v := range set {
		dims[i] = m.Domains[v]
	}
	var sums []oracle.Number
	i := 0
	oracle.Each(m.Domains, func(x []int) {
		cell := 0
		for k, v := range set {
			cell = cell*dims[k] + x[v]
		}
		for len(sums) <= cell {
			sums = append(sums, oracle.Number{})
		}
		sums[cell] = sums[cell].Add(weights[i])
		i++
	})

	p := make([]float64, len(sums))
	for i, s := range sums {
		p[i] = s.Over(z)
	}
	return p
}

// restricts reports whether event is given and more: every observation and likelihood of given,
// further observations, and further likelihoods of at most 1.
func restricts(event, given factorgraph.Evidence) bool {
	hard := map[int]int{}
	for _, h := range event.Hard {
		hard[h.Var] = h.Value
	}
	for _, h := range given.Hard {
		if value, ok := hard[h.Var]; !ok || value != h.Value {
			return false
		}
	}

	soft := map[int][]float64{}
	for _, s := range given.Soft {
		soft[s.Var] = s.Weights
	}
	found := 0
	for _, s := range event.Soft {
		before, ok := soft[s.Var]
		if ok {
			found++
		}
		for x, w := range s.Weights {
			if ok && w != before[x] || !ok && w > 1 {
				return false
			}
		}
	}

	return found == len(soft)
}
