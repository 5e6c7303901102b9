package load

// Random evidence.

import (
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// sampler draws evidence for one model.
type sampler struct {
	domains []int
	tables  []table // conditional probability tables, parents first; nil if the model is no Bayesian network
}

// table is P(child | parents), its last index the child.
type table struct {
	scope []int
	data  []float64
}

// newSampler puts the tables of a Bayesian network in topological order. Where a model is none, or
// its tables are not dense with the child last, evidence is drawn evenly.
func newSampler(m *factorgraph.Model) *sampler {
	s := &sampler{domains: m.Domains}
	if !m.Bayes || len(m.Factors) != len(m.Domains) {
		return s
	}
	of := make([]*table, len(m.Domains))
	for _, f := range m.Factors {
		t, ok := f.Table.(*tensor.Dense)
		if !ok || len(f.Scope) == 0 || of[f.Scope[len(f.Scope)-1]] != nil {
			return s
		}
		of[f.Scope[len(f.Scope)-1]] = &table{scope: f.Scope, data: t.Data}
	}

	var ordered []table
	placed := make([]bool, len(of))
	for len(ordered) < len(of) {
		before := len(ordered)
		for v, t := range of {
			if !placed[v] && !slices.ContainsFunc(t.scope[:len(t.scope)-1], func(u int) bool { return !placed[u] }) {
				placed[v], ordered = true, append(ordered, *t)
			}
		}
		if len(ordered) == before { // a cycle
			return s
		}
	}

	s.tables = ordered
	return s
}

// evidence observes 0 to most variables, drawn evenly. In a Bayesian network their values are those
// of one sample of all variables, so that the evidence is possible; else they are drawn evenly as well.
func (s *sampler) evidence(r *rand.Rand, most int) factorgraph.Evidence {
	count := 0
	if most > 0 {
		count = r.IntN(min(most, len(s.domains)) + 1)
	}
	if count == 0 {
		return factorgraph.Evidence{}
	}
	x := s.sample(r)
	chosen := r.Perm(len(s.domains))[:count]
	slices.Sort(chosen)
	e := factorgraph.Evidence{Hard: make([]factorgraph.Observation, count)}
	for i, v := range chosen {
		e.Hard[i] = factorgraph.Observation{Var: v, Value: x[v]}
	}
	return e
}

// sample draws a value for every variable.
func (s *sampler) sample(r *rand.Rand) []int {
	x := make([]int, len(s.domains))
	if s.tables == nil {
		for v, d := range s.domains {
			x[v] = r.IntN(d)
		}
		return x
	}

	for _, t := range s.tables {
		at := 0
		for _, u := range t.scope {
			at = at*s.domains[u] + x[u] // the child is 0 still
		}
		child := t.scope[len(t.scope)-1]
		row := t.data[at : at+s.domains[child]]
		sum := 0.0
		for _, p := range row {
			sum += p
		}

		left := r.Float64() * sum
		for a, p := range row {
			if p > 0 {
				x[child] = a
				if left -= p; left < 0 {
					break
				}
			}
		}
	}

	return x
}
