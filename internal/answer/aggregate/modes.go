package aggregate

// Several modes: the uncertainty of converged contractions beside them.

import (
	"slices"
)

// modes reports whether a pilot of sampled components has found modes that chains from other starts miss.
func (g *sequence) modes() bool {
	return slices.ContainsFunc(g.estimates, func(r *estimate) bool {
		return r.of.Parts[0].About().Sample.Modes
	})
}

// settledBesideModes is the largest uncertainty, in nats, at which truncated legs and regions are believed beside modes
// that chains miss.
// Measured: where a mode was lost in part, they stated 9e-7 to 0.005 and were off by 0.0002 to 0.02.
const settledBesideModes = 1e-9

// besideModes returns the verdict of contractions beside such modes. A truncation may have lost the same share of a mode at
// every bond, which changes do not show. Unless contractions have settled (settledBesideModes), they are uncertain by
// their distance from credible sampled components and by one standard error of these, at least.
func (g *sequence) besideModes(v, sampled verdict) verdict {
	if v.best < 0 || v.uncertainty == nil || *v.uncertainty <= settledBesideModes || !sampled.credible || !g.modes() {
		return v
	}
	v.uncertainty = finite(max(*v.uncertainty, g.distance(v, sampled), g.estimates[sampled.best].mean.StandardError))
	return v
}
