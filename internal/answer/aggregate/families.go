package aggregate

// The judge across families: truncated legs, regions, sampled components and bounds say one thing about ln Z together.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// verdict is what the estimates of one family say: their best, −1 for none, and how far that is off.
type verdict struct {
	best        int
	uncertainty *float64 // of ln Z in nats; nil: not known
	moved       bool     // the best has a predecessor in its own track
	// credible says that the statement is about what the family has not seen, too. Sampled components of which few carry all the weight
	// say only that Z is at least so large: others that disagree with them are not less certain for it.
	credible bool
}

// judge chooses the answer so far and states its uncertainty.
//
//   - An estimate whose quality is known is the best, and has none.
//   - An estimate along a tree that dropped nothing above rounding is the best, within rounding.
//   - Else it is the best of the family that states least: judgeTrack, judgeSampled. None is off by more than the farther bound (reach);
//     a family that states nothing comes last without bounds, but for those whose statements bounds exclude.
//   - Few sampled components that carry all the weight are not the best beside a family that says more (surpassed).
//   - The value of belief propagation states nothing, and what few sampled components leave open where it is inside of that (besideFew).
//   - Phases of belief propagation that a family may have lost count (besidePhases).
//   - How far another family's best is away counts, less what that states of itself: one of both is further off than it says. It does not
//     count where bounds exclude all that the other states.
//   - What is known to hold has the last word (withinBounds).
func (g *sequence) judge() {
	g.best, g.uncertainty, g.moved, g.verdicts = -1, nil, false, nil
	g.outside, g.apart, g.proven = 0, 0, math.Inf(1)

	for i, r := range g.estimates {
		if r.of.Quality != nil && r.err == nil {
			g.best = i
			g.z = r.z
			return
		}
		if r.LogZ != nil && r.lossless() && !g.unsure {
			g.best = i
			g.z = r.z
			g.uncertainty = finite(max(r.rounding(), g.leastOfPhases()))
			return
		}
	}

	sampled := g.judgeSampled()
	legs := g.judgeTrack(btn.Linear)
	regions, sampled := besideFew(g, g.judgeTrack(btn.LogLinear), sampled)
	g.verdicts = []verdict{g.besideModes(legs, sampled), g.besideModes(regions, sampled), sampled}
	for k, v := range g.verdicts {
		g.verdicts[k] = g.besidePhases(v)
	}
	sound := slices.ContainsFunc(g.verdicts, func(v verdict) bool { return v.best >= 0 && v.uncertainty != nil && !g.excluded(v) })
	var chosen verdict
	least := math.Inf(1)
	for _, v := range g.verdicts {
		if v.best < 0 || sound && g.excluded(v) || v.best == sampled.best && g.surpassed(sampled) {
			continue
		}
		u := min(g.reach(*g.estimates[v.best].LogZ), math.MaxFloat64)
		if v.uncertainty != nil {
			u = min(u, *v.uncertainty)
		}
		if u < least {
			least, chosen = u, v
		}
	}
	if math.IsInf(least, 1) {
		return
	}

	g.best, g.uncertainty, g.moved = chosen.best, chosen.uncertainty, chosen.moved
	g.z = g.estimates[g.best].z
	if g.uncertainty != nil {
		g.apart = g.contradiction(chosen)
		if g.apart > 0 {
			g.uncertainty = finite(g.apart)
		}
	}
	g.withinBounds()
}

// surpassed reports whether sampled components of which few carry all the weight are below what another family states, within bounds: their
// mean is mostly too low, by more than its spread shows.
func (g *sequence) surpassed(sampled verdict) bool {
	if sampled.best < 0 || sampled.credible {
		return false
	}
	return slices.ContainsFunc(g.verdicts, func(v verdict) bool {
		return v.best >= 0 && v.credible && v.uncertainty != nil && !g.excluded(v) &&
			*g.estimates[v.best].LogZ > *g.estimates[sampled.best].LogZ
	})
}

// besideFew changes the verdicts of belief propagation alone and of sampled components beside it that are not believed. These leave an
// interval open, from their lower bound (Markov's inequality for their mean is one) up to their mean and its shift, and their mean is
// mostly too low: few draws miss the largest weights.
//
//   - A fixed point above the mean of fewer than ten that count, one of possible beliefs, is better than that: it is
//     uncertain by the distance of the farther end
//     of the interval, and the mean by so much more than its distance from it.
//   - Other values inside, and more so than the mean, are uncertain by the distance of the farther end.
func besideFew(g *sequence, v, sampled verdict) (bethe, mean verdict) {
	if v.best < 0 || g.estimates[v.best].of.Level >= 0 || v.uncertainty != nil || g.unsure ||
		sampled.best < 0 || sampled.credible || sampled.uncertainty == nil {
		return v, sampled
	}
	below, above, _ := g.between()
	value, few := *g.estimates[v.best].LogZ, *g.estimates[sampled.best].LogZ
	low, high := max(below.ln, few+math.Log(boundsDelta)), min(above.ln, few+*sampled.uncertainty)
	u := max(value-low, high-value)
	switch {
	case g.estimates[sampled.best].mean.Effective < policy.LeastEffective && few < value && value <= above.ln &&
		g.bp.Converged && !g.bp.Impossible && !g.bp.Signed:
		v.uncertainty, v.credible = finite(u), false
		sampled.uncertainty = finite(max(*sampled.uncertainty, value-few+u))
	case low <= value && value <= high && u < max(few-low, high-few):
		v.uncertainty, v.credible = finite(u), false
	}
	return v, sampled
}

// contradiction returns the uncertainty of an answer that another family contradicts, 0 if none does. Two families
// contradict each other if their distance exceeds the sum of their uncertainties. One of both is wrong: the uncertainty is
// the distance minus the other family's uncertainty, and at least half of the distance.
func (g *sequence) contradiction(chosen verdict) (u float64) {
	for _, v := range g.verdicts {
		if v.best < 0 || v.best == chosen.best || !v.credible || v.uncertainty == nil {
			continue
		}
		if g.excluded(v) && !g.excluded(chosen) {
			continue // bounds say which of both is wrong
		}
		if far := g.distance(v, chosen); far > *v.uncertainty+*chosen.uncertainty {
			u = max(u, far-*v.uncertainty, far/2)
		}
	}
	return u
}

// distance is the distance of the best estimates of two families, nats.
func (g *sequence) distance(v, w verdict) float64 {
	return math.Abs(*g.estimates[v.best].LogZ - *g.estimates[w.best].LogZ)
}

// excluded reports whether bounds exclude all that a family states.
func (g *sequence) excluded(v verdict) bool {
	if v.best < 0 || v.uncertainty == nil {
		return false
	}
	below, above, _ := g.between()
	ln := *g.estimates[v.best].LogZ
	return ln+*v.uncertainty < below.ln || ln-*v.uncertainty > above.ln
}

// withinBounds moves an answer outside what is known to bound ln Z to the bound, and is uncertain by how far that was, at least. Inside
// it is uncertain by the distance of the farther bound at most (reach), where there are both.
func (g *sequence) withinBounds() {
	below, above, _ := g.between()
	lower, upper := below.ln, above.ln
	v := *g.estimates[g.best].LogZ
	at := min(max(v, lower), upper)
	if at != v {
		g.z = scaled.FromLog(at)
		outside := math.Abs(at - v)
		if g.uncertainty == nil || outside > *g.uncertainty {
			g.outside = outside
		}
		if g.uncertainty != nil {
			g.uncertainty = finite(max(*g.uncertainty, outside))
		}
	}
	g.proven = max(upper-at, at-lower)
	if far := g.reach(at); isFinite(far) && (g.uncertainty == nil || *g.uncertainty > far) {
		g.uncertainty = finite(max(far, floor(at)))
	}
}

// judgeSampled is the verdict of sampled components: the mean of all of them, uncertain by two standard errors and its shift
// under log-normal weights (sampling.Mean). If few components carry all the weight, the distance from the mean down to its
// lower bound is the least uncertainty, and up to the upper bound where few are above 0.
func (g *sequence) judgeSampled() verdict {
	v := verdict{best: -1}
	for i, r := range g.estimates {
		if r.LogZ != nil && r.isPooled() {
			v.best = i
		}
	}
	if v.best < 0 {
		return v
	}
	r := g.estimates[v.best]
	v.credible = r.believed()
	u := 2 * r.mean.StandardError
	if r.mean.Zeros == 0 || !v.credible { // beside zeros the positive weights are skewed to small ones: the shift is too large
		u += max(r.mean.Shift, 0)
	}
	if lower := g.pool.lower.ln; !v.credible {
		if math.IsInf(lower, -1) { // every bundle has a zero: by Markov's inequality for the mean of all
			lower = r.mean.Ln + math.Log(boundsDelta)
		}
		u = max(u, r.mean.Ln-lower)
		if r.mean.Zeros > 0 && float64(r.mean.N-r.mean.Zeros) < policy.LeastEffective {
			_, above, _ := g.between() // the spread of so few does not say how far ln Z is above
			u = max(u, above.ln-r.mean.Ln)
		}
	}
	if isFinite(u) {
		v.uncertainty = finite(max(u, floor(r.mean.Ln)))
	}
	return v
}

// believed reports whether the standard error of sampled components is to be believed: by the tail index of their weights, and if enough
// of them count. Where most weigh 0 and the rest the same, the tail is thin and says nothing.
func (r *estimate) believed() bool {
	return r.mean.Settled() && r.mean.Effective >= policy.LeastEffective
}
