package aggregate

import (
	"github.com/basetensor/basetensor/internal/network/additive"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Derivatives of the components, which add up as Z does (Lemma 5).

// reportDerivatives fills in ∂Z/∂θ = Σ_i α_i ∂Z_i/∂θ for every number θ of the model, where Z_i is the value of part i. If the query has a
// target, it also fills in Z_t, the sum of the terms of Z that have the target value, and ∂Z_t/∂θ. If the parts have no derivatives, it
// fills in nothing. It returns an error if the derivatives of parts do not fit together.
func (r *estimate) reportDerivatives(total *Total, want *btn.Want) *query.ErrorInfo {
	derivatives := make([]*btn.Derivatives, len(r.Parts))
	for i := range r.Parts {
		derivatives[i] = r.Parts[i].Derivatives
	}
	var err error
	if total.Derivatives, err = additive.Derivatives(r.alpha, derivatives); err != nil {
		return failure(fault.Internal, "%v", err)
	}
	if total.Derivatives == nil {
		return nil
	}
	total.Sizes = derivatives[0].Sizes
	if want.Target == nil {
		return nil
	}

	// Z_t, and its derivatives in the list of those of Z, which are not needed any more.
	z := make([]scaled.Number, len(r.Parts))
	for i := range r.Parts {
		t := r.Parts[i].Target
		if t == nil {
			return failure(fault.Internal, "component %d has no value with the target", i)
		}
		z[i], derivatives[i] = t.Z, t.Derivatives
	}
	total.Target = scaled.SumProducts(r.alpha, z)
	if total.TargetDerivatives, err = additive.Derivatives(r.alpha, derivatives); err != nil {
		return failure(fault.Internal, "with the target: %v", err)
	}
	if len(total.TargetDerivatives) != len(total.Derivatives) {
		return failure(fault.Internal, "%d derivatives with the target, %d without", len(total.TargetDerivatives), len(total.Derivatives))
	}
	return nil
}
