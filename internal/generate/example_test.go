package generate_test

import (
	"context"
	"fmt"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/generate"
)

// A thousand spins, every two of them coupled: treewidth 999, and Z is known.
func ExampleCurieWeiss() {
	p, err := generate.CurieWeiss(context.Background(), 1000, 0, 1, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("variables:", len(p.Model.Domains))
	fmt.Println("pairs:", len(p.Model.Factors)-len(p.Network.Links))
	fmt.Println("core has", p.Network.Cores[0].T.Dims()[0], "values a leg,",
		len(p.Estimate.Parts[0].(*btn.SymmetryRankOne).S.Coef.Mant), "counts")
	// Output:
	// variables: 1000
	// pairs: 499500
	// core has 2 values a leg, 1001 counts
}
