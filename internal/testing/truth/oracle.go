package truth

// The true answers to queries.

import (
	"math"

	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

// Truth is the true answer to one query.
type Truth struct {
	Z         oracle.Number
	LnZ       float64     // nats; −Inf if Z is 0
	Marginals [][]float64 // P(x_i = a | evidence); nil if they are not asked for, or if Z is 0
	Joint     []float64   // the joint distribution of the variables that the query names, row-major
	// HasRatio says that LnRatio is a number: the query is asked over another one, and neither Z is 0.
	HasRatio bool
	LnRatio  float64 // ln(Z / Z of the other query)
	// Event says that the query's evidence is that of the other one and more, so that the ratio is the
	// probability of an event.
	Event bool
}

// Solve returns the true answers to queries about a model, by enumeration. Over of a query is the number, from 1 on, of another query to
// whose Z the ratio is asked; 0 stands for none.
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

// solve returns the true answer to one query, without its ratio. weights are those of all assignments without evidence, row-major.
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
			t.Marginals[v] = jointOf(m, conditioned, []int{v}, t.Z)
		}
	}

	if q.Joint != nil {
		t.Joint = jointOf(m, conditioned, q.Joint, t.Z)
	}
	return t
}

// condition returns the weights of all assignments under evidence: 0 if an observed variable has another value, and otherwise the given
// weight times the likelihoods of the values.
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

// total returns the sum of all weights.
func total(weights []oracle.Number) oracle.Number {
	sum := oracle.Number{}
	for _, w := range weights {
		sum = sum.Add(w)
	}
	return sum
}

// jointOf returns the joint distribution of some variables, row-major in their order. weights are those of all assignments of the model,
// and z is their sum.
func jointOf(m *factorgraph.Model, weights []oracle.Number, variables []int, z oracle.Number) []float64 {
	dims := make([]int, len(variables))
	for i, v := range variables {
		dims[i] = m.Domains[v]
	}

	// sums[cell] is the total weight of the assignments in a cell of the joint table.
	var sums []oracle.Number
	i := 0
	oracle.Each(m.Domains, func(x []int) {
		cell := 0
		for k, v := range variables {
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

// restricts reports whether event has all observations and likelihoods of given, and beside them only further observations and likelihoods
// of at most 1. Then Z under event is at most Z under given.
func restricts(event, given factorgraph.Evidence) bool {
	// Observations.
	hard := map[int]int{}
	for _, h := range event.Hard {
		hard[h.Var] = h.Value
	}
	for _, h := range given.Hard {
		if value, isObserved := hard[h.Var]; !isObserved || value != h.Value {
			return false
		}
	}

	// Likelihoods: those of given must all be in event, unchanged.
	soft := map[int][]float64{}
	for _, s := range given.Soft {
		soft[s.Var] = s.Weights
	}
	shared := 0
	for _, s := range event.Soft {
		givenWeights, isGiven := soft[s.Var]
		if isGiven {
			shared++
		}
		for x, w := range s.Weights {
			isChanged := isGiven && w != givenWeights[x]
			if isChanged || !isGiven && w > 1 {
				return false
			}
		}
	}

	return shared == len(soft)
}
