package aggregate

import (
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Derivatives of the components, which add up as Z does (Lemma 5).

// reportDerivatives fills in ∂Z/∂θ = Σ_i α_i ∂Z_i/∂θ of every number, and those of the terms with the target.
// It fills in nothing if the parts have no derivatives.
func (r *estimate) reportDerivatives(to *Total, want *btn.Want) *query.ErrorInfo {
	each := make([]*btn.Derivatives, len(r.parts))
	for i := range r.parts {
		each[i] = r.parts[i].Derivatives
	}
	var err error
	if to.Derivatives, err = sumDerivatives(r.alpha, each); err != nil {
		return failure(fault.Internal, "%v", err)
	}
	if to.Derivatives == nil {
		return nil
	}
	to.Sizes = each[0].Sizes
	if want.Target == nil {
		return nil
	}

	z := make([]scaled.Number, len(r.parts))
	for i := range r.parts {
		t := r.parts[i].Target
		if t == nil {
			return failure(fault.Internal, "component %d has no value with the target", i)
		}
		z[i], each[i] = t.Z, t.Derivatives
	}
	to.Target = scaled.SumProducts(r.alpha, z)
	if to.TargetDerivatives, err = sumDerivatives(r.alpha, each); err != nil {
		return failure(fault.Internal, "with the target: %v", err)
	}
	if len(to.TargetDerivatives) != len(to.Derivatives) {
		return failure(fault.Internal, "%d derivatives with the target, %d without", len(to.TargetDerivatives), len(to.Derivatives))
	}
	return nil
}

// sumDerivatives returns Σ_i α_i D^(i)[k] for all parameters; nil where there are no derivatives.
func sumDerivatives(alpha []scaled.Number, parts []*btn.Derivatives) ([]scaled.Number, error) {
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
