package factorgraph_test

import (
	"fmt"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// A factor over many variables that no table could hold: an effect with forty causes, in a form linear in their number.
func ExampleNoisyOr() {
	activate := make([]float64, 40)
	scope := make([]int, 0, 41)
	m := &factorgraph.Model{}
	for i := range activate {
		activate[i] = 0.5
		scope = append(scope, i)
		m.Domains = append(m.Domains, 2)
		m.Factors = append(m.Factors, factorgraph.Factor{
			Scope: []int{i},
			Table: &tensor.Dense{Shape: []int{2}, Data: []float64{0.99, 0.01}},
		})
	}
	effect, err := factorgraph.NoisyOr(0.001, activate...)
	if err != nil {
		fmt.Println(err)
		return
	}
	m.Domains = append(m.Domains, 2)
	m.Factors = append(m.Factors, factorgraph.Factor{Scope: append(scope, 40), Table: effect})
	fmt.Println(m.Validate(), len(effect.Weights), "terms over", len(effect.Shape), "variables")

	m.Factors[0].Scope[0] = 41
	fmt.Println(m.Validate())
	// Output:
	// <nil> 2 terms over 41 variables
	// invalid model: factor 0: scope position 0: variable 41, the model has 41
}
