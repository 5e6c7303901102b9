package aggregate

import (
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/pkg/btn"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Marginals from the unnormalised marginals of the components, which add up as Z does (Lemma 5).

// negativeMarginal is how far below 0 rounding may put a marginal; below it an estimate has none to show.
const negativeMarginal = 1e-9

// marginals returns P(x_v = a) = Σ_i α_i M^(i)_v(a) / Σ_a Σ_i α_i M^(i)_v(a) for every variable, each sum correctly
// rounded, from the marginals of the components in order. It returns nil and no warning where nobody asked, and nil with
// the reason where an estimate's marginals are negative or have no total.
func marginals(alpha []scaled.Number, parts []*btn.Marginals) (p [][]float64, warning string, err error) {
	if len(parts) == 0 || parts[0] == nil {
		return nil, "", nil
	}
	domains, size := parts[0].Domains, 0
	for _, d := range domains {
		size += d
	}
	for i, m := range parts {
		if m == nil || len(m.Mant) != size || !slices.Equal(m.Domains, domains) {
			return nil, "", fmt.Errorf("the marginals of component %d are missing or of another shape", i)
		}
	}
	terms, sums := make([]scaled.Number, len(parts)), make([]scaled.Number, size)
	for at := range sums {
		for i, m := range parts {
			terms[i] = scaled.Make(m.Mant[at], m.Exp)
		}
		sums[at] = scaled.SumProducts(alpha, terms)
		if !sums[at].IsFinite() {
			return nil, "", fmt.Errorf("marginal %d is not finite", at)
		}
	}
	at := 0
	for v, d := range domains {
		row := sums[at : at+d]
		at += d
		total := scaled.Sum(row)
		if total.Sign() <= 0 {
			return nil, fmt.Sprintf("no marginals: those of variable %d have no positive total", v), nil
		}
		q := make([]float64, d)
		for a := range q {
			q[a] = row[a].Div(total).Float64()
			if q[a] < -negativeMarginal || q[a] > 1+negativeMarginal {
				return nil, fmt.Sprintf("no marginals: the estimate of P(x_%d = %d) is %.3g", v, a, q[a]), nil
			}
			q[a] = math.Min(1, math.Max(0, q[a]))
		}
		p = append(p, q)
	}
	return p, "", nil
}
