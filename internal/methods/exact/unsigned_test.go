package exact_test

import (
	"context"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/exact"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// TestClausesDoNotCancel: long clauses that hold with a probability of 1e-5 each, which as differences would lose most
// digits in float64, are contracted without signs: every digit is right and none was lost.
func TestClausesDoNotCancel(t *testing.T) {
	const n = 15
	m := &factorgraph.Model{Domains: slices.Repeat([]int{2}, n)}
	for v := range n {
		table, err := factorgraph.Table([]int{2}, []float64{1, 1e-6 * float64(v+1)})
		if err != nil {
			t.Fatal(err)
		}
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{v}, Table: table})
	}
	for _, first := range []int{0, 5} {
		scope := make([]int, 10)
		for k := range scope {
			scope[k] = first + k
		}
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: scope, Table: factorgraph.Clause(slices.Repeat([]bool{true}, 10)...)})
	}
	net, err := reparam.Build(context.Background(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ready, err := exact.Prepare(context.Background(), net, true)
	if err != nil {
		t.Fatal(err)
	}
	tree, _, err := ready.PlanWithin(context.Background(), exact.PlanOptions{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	a, err := ready.AnswerSlices(context.Background(), tree, exact.Options{To: tree.Count})
	if err != nil {
		t.Fatal(err)
	}
	if want := oracle.Z(m, factorgraph.Evidence{}); oracle.RelativeError(a.Z.Mant, a.Z.Exp, want) > 1e-14 || a.Digits != 0 || a.Doubt != "" {
		t.Errorf("%v, %v digits lost, %s; want %v", a.Z, a.Digits, a.Doubt, want)
	}
	for v, row := range oracle.Marginals(m, factorgraph.Evidence{}) {
		got := a.Rows[v][1]
		if d := got - row[1]; d > 1e-12 || d < -1e-12 {
			t.Errorf("variable %d: %v, want %v", v, got, row[1])
		}
	}
}
