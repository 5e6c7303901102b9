package logic_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/circuits"
	"github.com/basetensor/basetensor/internal/methods/circuits/circuit"
	"github.com/basetensor/basetensor/internal/methods/circuits/logic"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/enginetest"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// model draws a model of any form, with many zeros.
func model(rng *rand.Rand) *factorgraph.Model {
	return modeltest.Small(rng, modeltest.SmallOptions{
		Variables: 1 + rng.IntN(7), Factors: rng.IntN(8), MaxDomain: 3, MaxArity: 4, MaxStates: 1 << 8,
		Zeros: []float64{0, 0.3, 0.6}[rng.IntN(3)], Constant: rng.IntN(2) == 0,
	})
}

// TestCompiledNetworksAnswerAsEnumerationDoes: Z and all marginals, of a circuit compiled without evidence and of one compiled
// under it.
func TestCompiledNetworksAnswerAsEnumerationDoes(t *testing.T) {
	asked := 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 30))
		m := model(rng)
		ev := modeltest.Evidence(rng, m)
		p := enginetest.NewProblem(t, m, ev, reparam.Options{}, seed)
		given := rng.IntN(2) == 0
		net := p.Base
		if given {
			net = p.Network
		}
		var of *circuit.Compiled
		var err error
		if seed%2 == 1 {
			of, err = logic.Eliminate(t.Context(), net, logic.Options{Probes: int(seed % 3)}) // 0: without a bound of its own
		}
		if of == nil && err == nil {
			of, _, err = logic.Search(t.Context(), net, logic.Options{})
		}
		if fault.CodeOf(err) == fault.Unsupported && err != nil {
			continue
		}
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		asked++
		checkCircuit(t, of)
		part := &circuits.Circuit{Of: of}
		v, err := contraction.Part(t.Context(), problem.New(p.Network, problem.Options{}), part, btn.Want{Marginals: true})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		want := oracle.Z(m, ev)
		if off := oracle.ScaledError(v.Z.Mant, v.Z.Exp, want, want); off > 1e-12 || want.Sign() == 0 != v.Z.IsZero() {
			t.Fatalf("seed %d: Z = %v, enumeration %v", seed, v.Z, want)
		}
		if v.Z.IsZero() {
			continue
		}
		at := 0
		for i, row := range oracle.Marginals(m, ev) {
			for a, want := range row {
				got := scaled.Make(v.Marginals.Mant[at], v.Marginals.Exp).Div(v.Z).Float64()
				if math.Abs(got-want) > 1e-11 {
					t.Fatalf("seed %d: P(x_%d = %d) = %v, enumeration %v", seed, i, a, got, want)
				}
				at++
			}
		}
	}
	if asked < 200 {
		t.Errorf("%d models were compiled", asked)
	}
}

// checkCircuit: it is smooth and decomposable, and deterministic where maxima may be asked for.
func checkCircuit(t *testing.T, of *circuit.Compiled) {
	t.Helper()
	c, err := of.Circuit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Check(context.Background()); err != nil {
		t.Fatal(err)
	}
	if ok, err := c.IsDeterministic(t.Context()); err != nil || of.Functional && !ok {
		t.Fatalf("deterministic: %t, %v", ok, err)
	}
}

func TestCompiledFormsAreTheSame(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 31))
	p := enginetest.NewProblem(t, model(rng), factorgraph.Evidence{}, reparam.Options{}, 1)
	var forms [2][]byte
	for k := range forms {
		of, err := logic.Eliminate(t.Context(), p.Base, logic.Options{})
		if err != nil {
			t.Fatal(err)
		}
		forms[k] = of.Form
	}
	if !bytes.Equal(forms[0], forms[1]) {
		t.Error("a network has two circuits")
	}
}

func TestRefusals(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 31))
	m := &factorgraph.Model{Domains: make([]int, 40)}
	for v := range m.Domains {
		m.Domains[v] = 2
	}
	for range 100 {
		data := []float64{1, 1, 1, 1, 1, 1, 1, 1}
		data[rng.IntN(8)] = 0
		m.Factors = append(m.Factors, factorgraph.Factor{
			Scope: rng.Perm(40)[:3], Table: &tensor.Dense{Shape: []int{2, 2, 2}, Data: data},
		})
	}
	p := enginetest.NewProblem(t, m, factorgraph.Evidence{}, reparam.Options{}, 1)
	if _, _, err := logic.Search(t.Context(), p.Base, logic.Options{Work: 10}); fault.CodeOf(err) != fault.OverBudget {
		t.Errorf("ten steps: %v", err)
	}
	if _, _, err := logic.Search(t.Context(), p.Base, logic.Options{Bytes: 1 << 13}); fault.CodeOf(err) != fault.OverBudget ||
		!errors.Is(err, logic.ErrCircuit) || !strings.Contains(err.Error(), "of the search done") {
		t.Errorf("8 KiB: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, _, err := logic.Search(ended, p.Base, logic.Options{}); fault.CodeOf(err) != fault.Cancelled {
		t.Errorf("a context that has ended: %v", err)
	}
	if !logic.IsLogical(p.Base, 1) {
		t.Error("all factors have a zero")
	}
}

// TestLogical: long clauses count as much as short ones, whose tables have a larger share of zeros.
func TestLogical(t *testing.T) {
	const vars, long, positive = 10, 5, 15
	rng := rand.New(rand.NewPCG(8, 9))
	m := &factorgraph.Model{}
	for range vars {
		m.Domains = append(m.Domains, 2)
	}
	add := func(legs, zeros int) {
		table := &tensor.Dense{Data: make([]float64, 1<<legs)}
		for range legs {
			table.Shape = append(table.Shape, 2)
		}
		for i := range table.Data {
			table.Data[i] = 1 + rng.Float64()
		}
		for range zeros {
			table.Data[rng.IntN(len(table.Data))] = 0
		}
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: rng.Perm(vars)[:legs], Table: table})
	}
	for range long {
		add(8, 1)
	}
	clauses := enginetest.NewProblem(t, m, factorgraph.Evidence{}, reparam.Options{}, 1).Base
	for range positive {
		add(2, 0)
	}
	some := enginetest.NewProblem(t, m, factorgraph.Evidence{}, reparam.Options{}, 1).Base
	if !logic.IsLogical(clauses, 1) || !logic.IsLogical(some, 0.25) || logic.IsLogical(some, 0.26) {
		t.Errorf("%d of %d factors have a zero", long, long+positive)
	}
}
