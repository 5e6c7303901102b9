package reparam_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// paperExample is the factor graph of the paper's section 3.1, φ_0(X_0, X_1, X_2) and φ_1(X_0, X_3,
// X_4), all binary.
func paperExample() *factorgraph.Model {
	return &factorgraph.Model{
		Domains: []int{2, 2, 2, 2, 2},
		Factors: []factorgraph.Factor{
			{
				Scope: []int{0, 1, 2},
				Table: &tensor.Dense{Shape: []int{2, 2, 2}, Data: []float64{1, 2, 3, 4, 5, 6, 7, 8}},
			},
			{
				Scope: []int{0, 3, 4},
				Table: &tensor.Dense{Shape: []int{2, 2, 2}, Data: []float64{8, 7, 6, 5, 4, 3, 2, 1}},
			},
		},
	}
}

// The paper's example: six incidences become six legs; X_0 is in both factors and links them.
func ExampleBuild() {
	net, err := reparam.Build(context.Background(), paperExample(), reparam.Options{Maps: query.MapOrthogonal})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("legs:", net.Dims)
	for j, core := range net.Cores {
		fmt.Printf("core %d, factor %d: legs %v\n", j, j, core.Legs)
	}
	for i, link := range net.Links {
		fmt.Printf("link %d, variable %d: legs %v\n", i, i, link.Legs)
	}
	// Output:
	// legs: [2 2 2 2 2 2]
	// core 0, factor 0: legs [0 1 2]
	// core 1, factor 1: legs [3 4 5]
	// link 0, variable 0: legs [0 3]
	// link 1, variable 1: legs [1]
	// link 2, variable 2: legs [2]
	// link 3, variable 3: legs [4]
	// link 4, variable 4: legs [5]
}

// TestPaperExample: Z = Σ_{x0} (Σ φ_0(x0, ·, ·)) (Σ φ_1(x0, ·, ·)) = 10·26 + 26·10.
func TestPaperExample(t *testing.T) {
	for _, maps := range []query.MapKind{query.MapIdentity, query.MapOrthogonal} {
		for _, cores := range []query.CoreChoice{query.CoresAreFactors, query.CoresAreVariables} {
			net, err := reparam.Build(context.Background(), paperExample(),
				reparam.Options{Maps: maps, Cores: cores})
			if err != nil {
				t.Fatal(err)
			}
			big, _ := oracle.NetworkZ(net)
			if z, _ := big.Float64(); math.Abs(z-520) > 1e-10 {
				t.Errorf("maps %s, cores %s: Z = %v, want 520", maps, cores, z)
			}
		}
	}
}

// TestPaperExampleVariableTensors: V^(0)[a, b] = Σ_x A^(0:0)[x, a] A^(0:1)[x, b], the copy tensor
// for identity maps.
func TestPaperExampleVariableTensors(t *testing.T) {
	net, err := reparam.Build(context.Background(), paperExample(), reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(oracle.Table(net.Links[0].T)); got != "[1 0 0 1]" {
		t.Errorf("V^(0) = %s", got)
	}
	if got := fmt.Sprint(oracle.Table(net.Links[1].T)); got != "[1 1]" {
		t.Errorf("V^(1) = %s", got)
	}
}
