package preprocess_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/preprocess"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

func network(
	t testing.TB, m *factorgraph.Model, ev factorgraph.Evidence, o reparam.Options,
) *btn.Network {
	t.Helper()
	net, err := reparam.Build(context.Background(), m, o)
	if err != nil {
		t.Fatal(err)
	}
	if net, err = net.Condition(ev); err != nil {
		t.Fatal(err)
	}
	return net
}

// TestExplainNamesTheContradiction: of a chain of implications with much beside it,
// only the two observations at its ends and the factors between them.
func TestExplainNamesTheContradiction(t *testing.T) {
	implies := &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1, 0.5, 0, 2}}
	noise := &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1, 2, 3, 4}}
	m := &factorgraph.Model{Domains: slices.Repeat([]int{2}, 12)}
	for i := range 11 {
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{i, i + 1}, Table: implies},
			factorgraph.Factor{Scope: []int{i + 1, (i + 5) % 12}, Table: noise})
	}
	ev := factorgraph.Evidence{Hard: []factorgraph.Observation{{Var: 1, Value: 1},
		{Var: 3, Value: 1}, {Var: 6, Value: 0}, {Var: 9, Value: 0}}}
	for _, maps := range []query.MapKind{query.MapIdentity, query.MapOrthogonal} {
		c, err := preprocess.Explain(context.Background(),
			network(t, m, ev, reparam.Options{Maps: maps}))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(c.Variables, []int{3, 6}) || !slices.Equal(c.Cores, []int{6, 8, 10}) ||
			c.Links != nil {
			t.Errorf("maps %s: %v", maps, c)
		}
		if got, want := c.String(), "variable 3 = 1; variable 6 = 0; the factor over variable 3, variable 4; "+
			"the factor over variable 4, variable 5; the factor over variable 5, variable 6 contradict each other"; got != want {
			t.Errorf("in words: %q, want %q", got, want)
		}
	}
	ev.Hard = ev.Hard[:2]
	if _, err := preprocess.Explain(context.Background(),
		network(t, m, ev, reparam.Options{})); !errors.Is(err, preprocess.ErrNotZero) {
		t.Errorf("a possible network: %v", err)
	}
}

// TestExplainIsMinimal: by enumeration, the named set is impossible and every part of it possible.
func TestExplainIsMinimal(t *testing.T) {
	const seed = 5
	rng := rand.New(rand.NewPCG(seed, 1))
	explained := 0
	for explained < 60 {
		m := modeltest.Small(rng,
			modeltest.SmallOptions{Variables: 7, Factors: 10, Zeros: 0.3,
				Kinds: []modeltest.Kind{modeltest.Dense}})
		ev := modeltest.Evidence(rng, m)
		if oracle.Z(m, ev).Sign() != 0 {
			continue
		}
		explained++
		for _, cores := range []query.CoreChoice{query.CoresAreFactors, query.CoresAreVariables} {
			c, err := preprocess.Explain(context.Background(),
				network(t, m, ev, reparam.Options{Cores: cores}))
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			factors := c.Cores
			if cores == query.CoresAreVariables {
				factors = c.Links
			}
			if !impossible(m, ev, c.Variables, factors) {
				t.Fatalf("seed %d: %v is possible", seed, c)
			}
			for k := range c.Variables {
				if impossible(m, ev, slices.Delete(slices.Clone(c.Variables), k, k+1), factors) {
					t.Errorf("seed %d: %v, variable %d is not needed", seed, c, c.Variables[k])
				}
			}
			for k := range factors {
				if impossible(m, ev, c.Variables, slices.Delete(slices.Clone(factors), k, k+1)) {
					t.Errorf("seed %d: %v, factor %d is not needed", seed, c, factors[k])
				}
			}
		}
	}
}

// impossible says whether Z is 0 with the weights of some
// variables and some factors of order two or more alone.
func impossible(m *factorgraph.Model, ev factorgraph.Evidence, variables, factors []int) bool {
	part := &factorgraph.Model{Domains: m.Domains}
	large := 0
	for _, f := range m.Factors {
		switch {
		case len(f.Scope) == 0:
			part.Factors = append(part.Factors, f)
		case len(f.Scope) == 1:
			if slices.Contains(variables, f.Scope[0]) {
				part.Factors = append(part.Factors, f)
			}
		default:
			if slices.Contains(factors, large) {
				part.Factors = append(part.Factors, f)
			}
			large++
		}
	}
	var some factorgraph.Evidence
	for _, h := range ev.Hard {
		if slices.Contains(variables, h.Var) {
			some.Hard = append(some.Hard, h)
		}
	}
	for _, s := range ev.Soft {
		if slices.Contains(variables, s.Var) {
			some.Soft = append(some.Soft, s)
		}
	}
	return oracle.Z(part, some).Sign() == 0
}
