package questions

// Doing: interventions on a Bayesian network, as evidence on variables of their own.

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// Intervenes reports whether a query sets a variable.
func Intervenes(queries []query.Query) bool {
	return slices.ContainsFunc(queries, func(q query.Query) bool { return len(q.Do) > 0 || q.Named != nil && q.Named.Do != "" })
}

// Intervene returns a model in which every variable X that a query sets has a switch S as a further parent, behind all variables of the
// model (Pearl's augmented network): at S = 0 X has its own table if a query leaves X alone, at S = k it has the k-th of the values that
// queries set it to, for certain. The queries say in Switches at which value each switch is. Switches have 2^p values with probability
// 2^−p; evidenceOf makes up for that, so that Z is P(evidence | do(…)). Errors: the model is no Bayesian network, or a query is about the
// numbers of its tables (bad_input); a table is too large or of a form without switches (unsupported). Linear time in the tables of the
// variables that are set, times their values.
func Intervene(m *factorgraph.Model, queries []query.Query) (*factorgraph.Model, []query.Query, error) {
	values := map[int][]int{} // by the variable that is set
	setters := map[int]int{}  // queries, by the variable
	for i := range queries {
		for _, set := range queries[i].Do {
			setters[set.Var]++
			if !slices.Contains(values[set.Var], set.Value) {
				values[set.Var] = append(values[set.Var], set.Value)
			}
		}
	}
	if len(values) == 0 {
		return m, queries, nil
	}
	for i := range queries {
		if d := Demand(&queries[i]); d.IsParametric() {
			return nil, nil, fault.New(fault.BadInput, "query %d: gradients, sensitivity and cases are about the tables of the model, and another "+
				"query of the job sets variables, which changes tables: they are jobs of their own", i)
		}
	}
	out := *m
	out.Domains, out.Factors = slices.Clone(m.Domains), slices.Clone(m.Factors)
	out.Names, out.States = slices.Clone(m.Names), slices.Clone(m.States)
	out.Aliases, out.Lines = slices.Clone(m.Aliases), slices.Clone(m.Lines)
	set := make([]int, 0, len(values))
	for v := range values {
		set = append(set, v)
	}
	slices.Sort(set)
	for _, v := range set {
		slices.Sort(values[v])
		if err := out.AddSwitch(v, values[v], 1<<bits.Len(uint(len(values[v]))), setters[v] < len(queries)); err != nil {
			return nil, nil, fault.Wrap(fault.CodeOf(err), err)
		}
	}

	queries = slices.Clone(queries)
	for i := range queries {
		q := &queries[i]
		if q.Marginals && len(q.Targets) == 0 {
			q.Targets = make([]int, len(m.Domains))
			for v := range q.Targets {
				q.Targets[v] = v
			}
		}
		q.Switches = make([]query.Switch, len(set))
		for k, v := range set {
			s := query.Switch{Var: len(m.Domains) + k, Of: v}
			if place, is := slices.BinarySearchFunc(q.Do, v, func(o factorgraph.Observation, v int) int { return cmp.Compare(o.Var, v) }); is {
				s.Value = 1 + slices.Index(values[v], q.Do[place].Value)
			}
			s.Values = out.Domains[s.Var]
			q.Switches[k] = s
		}
	}
	return &out, queries, nil
}

// evidenceOf returns the evidence of a query with its switches: each is observed, with the inverse of its probability as a weight.
func evidenceOf(q *query.Query) factorgraph.Evidence {
	e := q.Evidence
	if len(q.Switches) == 0 {
		return e
	}
	e = factorgraph.Evidence{Hard: slices.Clone(e.Hard), Soft: slices.Clone(e.Soft)}
	for _, s := range q.Switches {
		weights := make([]float64, s.Values)
		weights[s.Value] = float64(s.Values)
		e.Hard = append(e.Hard, factorgraph.Observation{Var: s.Var, Value: s.Value})
		e.Soft = append(e.Soft, factorgraph.Likelihood{Var: s.Var, Weights: weights})
	}
	return e
}

// withoutSwitches returns the values of an assignment of all variables of a network that are of the model.
func withoutSwitches(q *query.Query, values []int) []int {
	return values[:max(0, len(values)-len(q.Switches))]
}
