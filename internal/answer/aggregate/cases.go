package aggregate

import (
	"github.com/basetensor/basetensor/pkg/query"
)

// reportCases fills in what the cases of a query add up to.
func (r *estimate) reportCases(to *query.Result) {
	if len(r.parts) != 1 || r.parts[0].Cases == nil {
		return
	}
	c := r.parts[0].Cases
	to.Likelihood = &query.Likelihood{Ln: c.Ln, Gradients: c.Gradients}
	if c.Impossible > 0 {
		at := c.Impossible - 1
		to.Likelihood.Impossible = &at
		return
	}
	to.LogZ = finite(c.Ln)
}
