package additive

// Derivatives of the components, which add up as Z does.

import (
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Derivatives returns Σ_i α_i D^(i)[k] for every parameter k, where D^(i)[k] is the derivative of component i by the parameter, and α_i the
// weight alpha[i]. It returns nil if the components have no derivatives.
func Derivatives(alpha []scaled.Number, parts []*btn.Derivatives) ([]scaled.Number, error) {
	if len(parts) == 0 || parts[0] == nil {
		return nil, nil
	}

	// Check that all components have the same parameters.
	parameterCount := 0
	for _, size := range parts[0].Sizes {
		if size < 0 || size > math.MaxInt-parameterCount {
			return nil, fmt.Errorf("component 0 has %d derivatives of a core", size)
		}
		parameterCount += size
	}
	for i, d := range parts {
		if d == nil || len(d.Mant) != parameterCount || len(d.Exp) != parameterCount || !slices.Equal(d.Sizes, parts[0].Sizes) {
			return nil, fmt.Errorf("the derivatives of component %d are missing or of another shape", i)
		}
	}

	terms := make([]scaled.Number, len(parts))
	sums := make([]scaled.Number, parameterCount)
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
