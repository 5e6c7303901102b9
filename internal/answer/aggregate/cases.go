package aggregate

// Cases: the sum of their ln-likelihoods as a result.

import (
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
)

// reportCases fills in what the cases of a query add up to. There is no sum if a case is impossible.
func (r *estimate) reportCases(to *btn.Result) {
	if len(r.parts) != 1 || r.parts[0].Cases == nil {
		return
	}
	c := r.parts[0].Cases
	to.Likelihood = &query.Likelihood{Gradients: c.Gradients}
	if c.Impossible > 0 {
		row := c.Impossible - 1
		to.Likelihood.Impossible = &row
		return
	}
	to.LogZ = finite(c.Ln)
	to.Likelihood.Ln = to.LogZ
}
