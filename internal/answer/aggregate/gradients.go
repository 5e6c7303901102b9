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

// Gradients from the derivatives of the components, which add up as Z does (Lemma 5).

// reportGradients fills in ∂ ln Z/∂θ = Σ_i α_i ∂Z_i/∂θ / Z for every parameter, as far as the parts have
// derivatives.
func (r *estimate) reportGradients(to *query.Result, alpha []scaled.Number, s *btn.Sensitivity) *query.ErrorInfo {
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
	if to.Gradients, to.ScaledGradients = gradients(by, each[0].Sizes, r.z); to.ScaledGradients != nil {
		to.Warnings = append(to.Warnings, "a gradient is beyond float64: scaled_gradients has all of them, as mantissas and exponents")
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

// gradients divides derivatives by Z, core by core: into numbers with exponents where one is beyond float64.
func gradients(by []scaled.Number, sizes []int, z scaled.Number) ([][]float64, *query.ScaledGradients) {
	out := make([][]float64, len(sizes))
	at := 0
	for c, n := range sizes {
		out[c] = make([]float64, n)
		for k := range n {
			if out[c][k] = by[at].Div(z).Float64(); math.IsInf(out[c][k], 0) {
				return nil, scaledGradients(by, sizes, z)
			}
			at++
		}
	}
	return out, nil
}

// scaledGradients is gradients for numbers of any range.
func scaledGradients(by []scaled.Number, sizes []int, z scaled.Number) *query.ScaledGradients {
	out := &query.ScaledGradients{Mantissas: make([][]float64, len(sizes)), Exponents: make([][]int64, len(sizes))}
	for c, n := range sizes {
		out.Mantissas[c], out.Exponents[c] = make([]float64, n), make([]int64, n)
		for k := range n {
			x := by[k].Div(z)
			out.Mantissas[c][k], out.Exponents[c][k] = x.Mant, x.Exp
		}
		by = by[n:]
	}
	return out
}
