package reparam_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/preprocess"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// tree is the Bayesian network 3 → 1 → 4, 3 → 0, 2 alone; its tables are (0.25, 0.75) whatever the parent, or a copy of the parent.
func tree() *factorgraph.Model {
	prior := func(v int) factorgraph.Factor {
		return factorgraph.Factor{Scope: []int{v}, Table: &tensor.Dense{Shape: []int{2}, Data: []float64{0.25, 0.75}}}
	}
	copied := func(parent, v int) factorgraph.Factor {
		return factorgraph.Factor{Scope: []int{parent, v}, Table: &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1, 0, 0, 1}}}
	}
	return &factorgraph.Model{Bayes: true, Domains: []int{2, 2, 2, 2, 2},
		Factors: []factorgraph.Factor{copied(3, 0), copied(1, 4), prior(3), copied(3, 1), prior(2)}}
}

// TestRelevant: the ancestors of what is asked and observed, and no others.
func TestRelevant(t *testing.T) {
	net, err := reparam.Build(t.Context(), tree(), reparam.Options{})
	if err != nil || !net.Directed {
		t.Fatalf("%v, %+v", err, net)
	}
	for name, c := range map[string]struct {
		q    btn.Demand
		want []int // nil: all
	}{
		"nothing":       {btn.Demand{}, []int{}},
		"a root":        {btn.Demand{Want: btn.Want{Targets: []int{2}, Marginals: true}}, []int{2}},
		"a leaf":        {btn.Demand{Want: btn.Want{Targets: []int{4}, Marginals: true}}, []int{1, 3, 4}},
		"an event":      {btn.Demand{Evidence: factorgraph.Observe(map[int]int{0: 1})}, []int{0, 3}},
		"a joint":       {btn.Demand{Want: btn.Want{Joint: []int{2, 1}}}, []int{1, 2, 3}},
		"a map":         {btn.Demand{Want: btn.Want{Map: []int{3}}}, []int{3}},
		"all":           {btn.Demand{Want: btn.Want{Marginals: true}}, nil},
		"samples":       {btn.Demand{Want: btn.Want{Samples: 1}}, nil},
		"mpe":           {btn.Demand{Want: btn.Want{Best: 1}}, nil},
		"derivatives":   {btn.Demand{Want: btn.Want{Derivatives: true}}, nil},
		"a wrong query": {btn.Demand{Want: btn.Want{Targets: []int{5}, Marginals: true}}, nil},
	} {
		got, all := net.Relevant(c.q)
		if all != (c.want == nil) || !all && !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %t; want %v", name, got, all, c.want)
		}
		if all {
			continue
		}
		part := net.Restrict(got)
		if err := part.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		under, err := part.Condition(net.RenumberDemand(part, c.q).Evidence)
		if err != nil {
			t.Fatal(err)
		}
		z, _ := oracle.NetworkZ(under)
		want := oracle.Z(tree(), c.q.Evidence)
		if z.Cmp(want) != 0 {
			t.Errorf("%s: Z of the part is %v, of the whole %v", name, z, want)
		}
		if under.Directed && !c.q.Evidence.IsEmpty() {
			t.Errorf("%s: a network under evidence is called directed", name)
		}
	}
	m := tree()
	m.Bayes = false
	if net, err := reparam.Build(t.Context(), m, reparam.Options{}); err != nil || net.Directed {
		t.Errorf("not called a Bayesian network: %v, directed %t", err, net.Directed)
	}
	if net, err := reparam.Build(t.Context(), tree(), reparam.Options{Cores: query.CoresAreVariables}); err != nil || net.Directed {
		t.Errorf("variables as cores: %v, directed %t", err, net.Directed)
	}
}

// TestPartsNameVariablesOfTheWhole: contradictions found in a part are told by the numbers in the whole.
func TestPartsNameVariablesOfTheWhole(t *testing.T) {
	net, err := reparam.Build(t.Context(), tree(), reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	q := btn.Demand{Evidence: factorgraph.Observe(map[int]int{1: 0, 4: 1})}
	variables, _ := net.Relevant(q)
	part := net.Restrict(variables)
	under, err := part.Condition(net.RenumberDemand(part, q).Evidence)
	if err != nil {
		t.Fatal(err)
	}
	conflict, err := preprocess.Explain(context.Background(), under)
	if err != nil {
		t.Fatal(err)
	}
	if got := conflict.String(); !strings.HasPrefix(got, "variable 1 = 0; variable 4 = 1; the factor over variable 1, variable 4") {
		t.Error(got)
	}
}

// TestDirectedNetworksAreValid: cores that cannot be tables of one variable each are refused.
func TestDirectedNetworksAreValid(t *testing.T) {
	for name, change := range map[string]func(*btn.Network){
		"two tables": func(n *btn.Network) { n.Cores[0].Legs[0], n.Cores[0].Legs[1] = n.Cores[0].Legs[1], n.Cores[0].Legs[0] },
		"no legs":    func(n *btn.Network) { n.Cores = append(n.Cores, btn.Core{T: &tensor.Dense{Data: []float64{1}}}) },
		"a link":     func(n *btn.Network) { n.Links = append(n.Links, btn.Link{T: &tensor.Dense{Data: []float64{1}}}) },
	} {
		m := tree()
		m.Factors = append(m.Factors[:2], m.Factors[3], factorgraph.Factor{Scope: []int{4, 3}, Table: m.Factors[0].Table})
		m.Factors[0], m.Factors[3] = m.Factors[3], m.Factors[0]
		net, err := reparam.Build(t.Context(), m, reparam.Options{})
		if err != nil {
			t.Fatal(err)
		}
		net.Directed = true
		if err := net.Validate(); err != nil {
			t.Fatalf("%s, before: %v", name, err)
		}
		change(net)
		if err := net.Validate(); err == nil || name == "a link" && !strings.Contains(err.Error(), "directed") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
