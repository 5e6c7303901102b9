package aggregate

// Several modes: what contractions that converge say beside them.

import (
	"slices"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/policy"
)

// modes reports whether a pilot of sampled components has found modes that chains from elsewhere miss.
func (g *sequence) modes() bool {
	return slices.ContainsFunc(g.estimates, func(r *estimate) bool {
		q, ok := r.of.Parts[0].(*btn.Sampled)
		return ok && q.Along.Modes > 0
	})
}

// besideModes is what contractions state where there are such modes. A truncation may have lost the same share of one at every bond, which
// changes do not show: unless they have settled (policy.SettledBesideModes) they are as uncertain as they are far from components that are
// believed, and by one standard error of those at least.
func (g *sequence) besideModes(v, sampled verdict) verdict {
	if v.best < 0 || v.uncertainty == nil || *v.uncertainty <= policy.SettledBesideModes || !sampled.credible || !g.modes() {
		return v
	}
	v.uncertainty = finite(max(*v.uncertainty, g.distance(v, sampled), g.estimates[sampled.best].mean.StandardError))
	return v
}
