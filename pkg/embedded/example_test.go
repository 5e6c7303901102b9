package embedded_test

import (
	"context"
	"fmt"
	"math"

	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/pipeline"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// The whole pipeline in this process: a server, a cache, the four workers, and a client that asks them.
func Example() {
	ctx := context.Background()
	stack, err := embedded.Start(ctx, embedded.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stack.Close()
	go stack.Run(ctx, pipeline.Config{}) // until the stack is closed

	c, err := stack.Client()
	if err != nil {
		fmt.Println(err)
		return
	}
	agree := &factorgraph.Model{
		Domains: []int{2, 2},
		Factors: []factorgraph.Factor{{Scope: []int{0, 1}, Table: &tensor.Dense{Shape: []int{2, 2}, Data: []float64{2, 1, 1, 2}}}},
	}
	first := factorgraph.Observe(map[int]int{0: 1})
	answer, err := c.Ask(ctx, agree, query.Query{}, query.Query{Evidence: first, Marginals: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("Z = %.0f\n", math.Exp(*answer.Results[0].LogZ))
	fmt.Printf("P(x_1 = 1 | x_0 = 1) = %.3f\n", answer.Results[1].Marginals[1].P[1])
	// Output:
	// Z = 6
	// P(x_1 = 1 | x_0 = 1) = 0.667
}
