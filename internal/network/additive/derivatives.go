package additive

// Derivatives of the components, which add up as Z does.

import (
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Derivatives returns Σ_i α_i D^(i)[k] for all parameters. It returns nil if the components have no derivatives.
func Derivatives(alpha []scaled.Number, parts []*btn.Derivatives) ([]scaled.Number, error) {
	if len(parts) == 0 || parts[0] == nil {
		return nil, nil
	}
	total := 0
	for _, n := range parts[0].Sizes {
		if n < 0 || n > math.MaxInt-total {
			return nil, fmt.Errorf("component 0 has %d derivatives of a core", n)
		}
		total += n
	}
	for i, d := range parts {
		if d == nil || len(d.Mant) != total || len(d.Exp) != total || !slices.Equal(d.Sizes, parts[0].Sizes) {
			return nil, fmt.Errorf("the derivatives of component %d are missing or of another shape", i)
		}
	}

	terms := make([]scaled.Number, len(parts))
	sums := make([]scaled.Number, total)
	for k := range sums {
		for i, d := range parts {
			terms[i] = d.Number(k)
		}
		if sums[k] = scaled.SumProducts(alpha, terms); !sums[k].IsFinite() {
			return nil, fmt.Errorf("derivative %d is not finite", k)
		}
	}
	return sums, nil
}
