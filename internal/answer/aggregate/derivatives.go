package aggregate

import (
	"github.com/basetensor/basetensor/internal/network/additive"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Derivatives of the components, which add up as Z does (Lemma 5).

// reportDerivatives fills in ∂Z/∂θ = Σ_i α_i ∂Z_i/∂θ of every number, and those of the terms with the target.
// It fills in nothing if the parts have no derivatives.
func (r *estimate) reportDerivatives(to *Total, want *btn.Want) *query.ErrorInfo {
	each := make([]*btn.Derivatives, len(r.Parts))
	for i := range r.Parts {
		each[i] = r.Parts[i].Derivatives
	}
	var err error
	if to.Derivatives, err = additive.Derivatives(r.alpha, each); err != nil {
		return failure(fault.Internal, "%v", err)
	}
	if to.Derivatives == nil {
		return nil
	}
	to.Sizes = each[0].Sizes
	if want.Target == nil {
		return nil
	}

	z := make([]scaled.Number, len(r.Parts))
	for i := range r.Parts {
		t := r.Parts[i].Target
		if t == nil {
			return failure(fault.Internal, "component %d has no value with the target", i)
		}
		z[i], each[i] = t.Z, t.Derivatives
	}
	to.Target = scaled.SumProducts(r.alpha, z)
	if to.TargetDerivatives, err = additive.Derivatives(r.alpha, each); err != nil {
		return failure(fault.Internal, "with the target: %v", err)
	}
	if len(to.TargetDerivatives) != len(to.Derivatives) {
		return failure(fault.Internal, "%d derivatives with the target, %d without", len(to.TargetDerivatives), len(to.Derivatives))
	}
	return nil
}
