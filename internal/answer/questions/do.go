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

// Intervenes reports whether any of the queries sets a variable, by number or by name.
func Intervenes(queries []query.Query) bool {
	return slices.ContainsFunc(queries, func(q query.Query) bool { return len(q.Do) > 0 || q.Named != nil && q.Named.Do != "" })
}

// Intervene returns a model with switches for the variables that queries set, and the queries with the value of each switch (Pearl's
// augmented network). A variable X that a query sets gets a switch S as a further parent, numbered behind all variables of the model:
//
//   - At S = 0 X has its own table, for queries that leave X alone, if there are any.
//   - At S = k X has the k-th of the values that queries set it to, for certain.
//
// A switch has 2^p values with probability 2^−p each. evidenceOf makes up for that factor, so that Z is P(evidence | do(…)). Where 2^p is
// above 1 + the number of values that are set, the values left over stand for nothing: every query observes the switch at another value.
//
// Errors: the model is no Bayesian network, or a query is about the numbers of its tables (bad_input); a table is too large or of a form
// without switches (unsupported). Linear time in the tables of the variables that are set, times their values. If no query sets a variable,
// model and queries are returned as they are.
func Intervene(m *factorgraph.Model, queries []query.Query) (*factorgraph.Model, []query.Query, error) {
	settings := settingsOf(queries)
	if len(settings) == 0 {
		return m, queries, nil
	}
	for i := range queries {
		if d := Demand(&queries[i]); d.IsParametric() {
			return nil, nil, fault.New(fault.BadInput, "query %d: gradients, sensitivity and cases are about the tables of the model, and another "+
				"query of the job sets variables, which changes tables: they are jobs of their own", i)
		}
	}
	augmented := *m
	augmented.Domains, augmented.Factors = slices.Clone(m.Domains), slices.Clone(m.Factors)
	augmented.Names, augmented.States = slices.Clone(m.Names), slices.Clone(m.States)
	augmented.Aliases, augmented.Lines = slices.Clone(m.Aliases), slices.Clone(m.Lines)
	for _, s := range settings {
		domain := 1 << bits.Len(uint(len(s.values))) // a power of two above the number of values
		isLeftAlone := s.queries < len(queries)      // by a query: only then S = 0 needs the variable's own table
		if err := augmented.AddSwitch(s.variable, s.values, domain, isLeftAlone); err != nil {
			return nil, nil, fault.Wrap(fault.CodeOf(err), err)
		}
	}

	queries = slices.Clone(queries)
	for i := range queries {
		q := &queries[i]
		if q.Marginals && len(q.Targets) == 0 { // all variables of the model, without the switches
			q.Targets = make([]int, len(m.Domains))
			for v := range q.Targets {
				q.Targets[v] = v
			}
		}
		q.Switches = make([]query.Switch, len(settings))
		for k, s := range settings {
			v := len(m.Domains) + k
			q.Switches[k] = query.Switch{Var: v, Of: s.variable, Value: s.switchValue(q), Values: augmented.Domains[v]}
		}
	}
	return &augmented, queries, nil
}

// setting is a variable that queries set.
type setting struct {
	variable int
	values   []int // that queries set it to, ascending and each once
	queries  int   // the number of queries that set it
}

// settingsOf returns the variables that queries set, in ascending order.
func settingsOf(queries []query.Query) []setting {
	byVariable := map[int]*setting{}
	for i := range queries {
		for _, set := range queries[i].Do {
			s := byVariable[set.Var]
			if s == nil {
				s = &setting{variable: set.Var}
				byVariable[set.Var] = s
			}
			s.queries++
			if !slices.Contains(s.values, set.Value) {
				s.values = append(s.values, set.Value)
			}
		}
	}
	settings := make([]setting, 0, len(byVariable))
	for _, s := range byVariable {
		slices.Sort(s.values)
		settings = append(settings, *s)
	}
	slices.SortFunc(settings, func(s, t setting) int { return cmp.Compare(s.variable, t.variable) })
	return settings
}

// switchValue returns the value of the switch of the setting's variable for a query: 0 if the query leaves the variable alone, or 1 + the
// position of the value that it sets. The list Do of a query is sorted by variable.
func (s *setting) switchValue(q *query.Query) int {
	k, isSet := slices.BinarySearchFunc(q.Do, s.variable, func(o factorgraph.Observation, v int) int { return cmp.Compare(o.Var, v) })
	if !isSet {
		return 0
	}
	return 1 + slices.Index(s.values, q.Do[k].Value)
}

// evidenceOf returns the evidence of a query, with an observation of each of its switches. The observed value of a switch with n values
// also has the weight n, the inverse of its probability, so that switches do not change Z.
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

// withoutSwitches returns the values of the model's variables from an assignment of all variables of the network. The switches are last.
func withoutSwitches(q *query.Query, values []int) []int {
	return values[:max(0, len(values)-len(q.Switches))]
}
