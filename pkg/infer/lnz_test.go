package infer_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// sprinkler is a network of three binary variables: rain, sprinkler, wet grass.
func sprinkler() *factorgraph.Model {
	return &factorgraph.Model{
		Domains: []int{2, 2, 2},
		Factors: []factorgraph.Factor{
			{Scope: []int{0}, Table: &tensor.Dense{Shape: []int{2}, Data: []float64{0.8, 0.2}}},
			{Scope: []int{0, 1}, Table: &tensor.Dense{Shape: []int{2, 2},
				Data: []float64{0.6, 0.4, 0.99, 0.01}}},
			{Scope: []int{0, 1, 2},
				Table: &tensor.Dense{Shape: []int{2, 2, 2},
					Data: []float64{1, 0, 0.1, 0.9, 0.2, 0.8, 0.01, 0.99}}},
		},
	}
}

// The probability of the evidence.
func ExampleLnZ() {
	wet := factorgraph.Observe(map[int]int{2: 1})
	lnZ, err := infer.LnZ(context.Background(), sprinkler(), wet)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("P(wet) = %.5f\n", math.Exp(lnZ))
	// Output: P(wet) = 0.44838
}

// The probability of every cause given the evidence.
func ExampleMarginals() {
	wet := factorgraph.Observe(map[int]int{2: 1})
	p, err := infer.Marginals(context.Background(), sprinkler(), wet)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("P(rain | wet) = %.4f, P(sprinkler | wet) = %.4f\n", p[0][1], p[1][1])
	// Output: P(rain | wet) = 0.3577, P(sprinkler | wet) = 0.6467
}

// Several queries on one model, by the method that fits, with the uncertainty of the answers.
func ExampleRun() {
	results, err := infer.Run(context.Background(), infer.Request{
		Job:   "lawn",
		Model: sprinkler(),
		Queries: []query.Query{
			{Evidence: factorgraph.Observe(map[int]int{2: 1})},
			{Evidence: factorgraph.Observe(map[int]int{0: 1, 2: 1}), Over: 1},
		},
		Settings: query.Settings{Method: query.MethodAuto},
	})

	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range results {
		fmt.Printf("ln Z = %.4f, exact %v\n", *r.LogZ, r.Exact)
	}
	fmt.Printf("P(rain | wet) = %.4f\n", math.Exp(*results[1].Ratio.Ln))
	// Output:
	// ln Z = -0.8021, exact true
	// ln Z = -1.8302, exact true
	// P(rain | wet) = 0.3577
}

// TestLnZ: Z = 0 is −Inf, impossible evidence has no marginals, and every refusal has its code.
func TestLnZ(t *testing.T) {
	ctx := t.Context()
	m := sprinkler()
	m.Factors[0].Table = &tensor.Dense{Shape: []int{2}, Data: []float64{1, 0}}
	rain := factorgraph.Observe(map[int]int{0: 1})
	if lnZ, err := infer.LnZ(ctx, m, rain); err != nil || !math.IsInf(lnZ, -1) {
		t.Errorf("impossible: %v, %v", lnZ, err)
	}
	if p, err := infer.Marginals(ctx, m, rain); !errors.Is(err, infer.ErrImpossible) ||
		fault.CodeOf(err) != fault.BadInput {
		t.Errorf("impossible: %v, %v", p, err)
	}
	if _, err := infer.LnZ(ctx, m,
		factorgraph.Observe(map[int]int{3: 0})); fault.CodeOf(err) != fault.BadInput {
		t.Errorf("a variable that there is not: %v", err)
	}
	if _, err := infer.LnZ(ctx, complete(60),
		factorgraph.Evidence{}); fault.CodeOf(err) != fault.OverBudget {
		t.Errorf("a complete graph over domains of 8: %v", err)
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := infer.LnZ(over, m, rain); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// complete is a complete graph of n variables of domain 8 with tables at random.
func complete(n int) *factorgraph.Model {
	rng := rand.New(rand.NewPCG(1, 2))
	m := &factorgraph.Model{}
	for i := range n {
		m.Domains = append(m.Domains, 8)
		for j := range i {
			data := make([]float64, 64)
			for k := range data {
				data[k] = rng.Float64()
			}
			m.Factors = append(m.Factors,
				factorgraph.Factor{Scope: []int{j, i},
					Table: &tensor.Dense{Shape: []int{8, 8}, Data: data}})
		}
	}
	return m
}
