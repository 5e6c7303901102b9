package aggregate

import (
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Gradients from the derivatives of the components, which add up as Z does (Lemma 5).

// reportGradients fills in ∂ ln Z/∂θ = Σ_i α_i ∂Z_i/∂θ / Z for every parameter, as far as the parts have
// derivatives.
func (r *estimate) reportGradients(to *btn.Result, alpha []scaled.Number, s *btn.Sensitivity) *btn.ErrorInfo {
	each := make([]*btn.Derivatives, len(r.parts))
	for i := range r.parts {
		each[i] = r.parts[i].Derivatives
	}
	by, err := sumDerivatives(alpha, each)
	if err != nil {
		return failure(fault.Internal, "%v", err)
	}
	if by == nil {
		return nil
	}
	if s != nil {
		if failed := r.reportSensitivity(to, alpha, by, s); failed != nil || s.Alone {
			return failed
		}
	}
	var warning string
	if to.Gradients, warning = gradients(by, each[0].Sizes, r.z); warning != "" {
		to.Warnings = append(to.Warnings, warning)
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

// gradients divides derivatives by Z, core by core. It returns nil, and a warning, where one is beyond
// float64.
func gradients(by []scaled.Number, sizes []int, z scaled.Number) (out [][]float64, warning string) {
	out = make([][]float64, len(sizes))
	for c, n := range sizes {
		out[c] = make([]float64, n)
		for k := range n {
			x := by[k].Div(z).Float64()
			if math.IsInf(x, 0) {
				return nil, fmt.Sprintf("no gradients: the one by number %d of factor %d is beyond float64", k, c)
			}
			out[c][k] = x
		}
		by = by[n:]
	}
	return out, ""
}
