package tensor_test

import (
	"fmt"

	"github.com/basetensor/basetensor/pkg/tensor"
)

// A noisy-or with two parents and a leak is a sum of two rank-one terms, as with any number of parents.
func ExampleLowRank() {
	q := []float64{0.5, 0.25}
	t := &tensor.Dense{Shape: []int{2, 2, 2}}
	for x := range 4 {
		off := 0.75 // the leak
		for i, f := range q {
			if x>>(1-i)&1 == 1 {
				off *= f
			}
		}
		t.Data = append(t.Data, off, 1-off)
	}
	c, _, ok := tensor.LowRank(t, 2)
	fmt.Println(ok, len(c.Weights))
	fmt.Printf("%.4f %.4f\n",
		tensor.At(c, []int{1, 1, 0}).Float64(), tensor.At(c, []int{1, 1, 1}).Float64())
	// Output:
	// true 2
	// 0.0938 0.9062
}

// The count polynomial of a pair table: value 1 of either leg is counted by z.
func ExampleCountPoly() {
	t := &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1, 2, 3, 4}}
	leg := tensor.LegWeights{1, 0, 0, 1} // value 0 at level 0, value 1 at level 1
	p, err := tensor.CountPoly(t, []tensor.LegWeights{leg, leg}, 2, nil)
	fmt.Println(p.Coef.At(0).Float64(), p.Coef.At(1).Float64(), p.Coef.At(2).Float64(), err)
	// Output: 1 5 4 <nil>
}
