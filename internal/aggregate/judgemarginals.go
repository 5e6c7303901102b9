package aggregate

// The judge of marginals: the family that states least of them answers, whichever answers ln Z.

import (
	"math"

	"github.com/basetensor/basetensor/internal/policy"
)

// probabilities are the marginals of an estimate and what is stated of them.
type probabilities struct {
	p           [][]float64 // nil: none
	uncertainty *float64    // of the probability that is furthest off; nil: not known
	warning     string
}

// judgeMarginals chooses the marginals of the answer's family, or of another one that states less than half of what that states. How far
// another family's are away counts, less twice what that states of itself, since the furthest of many probabilities is off by more than two
// standard errors; and so does what ln Z may have missed.
func (g *sequence) judgeMarginals() probabilities {
	best := g.estimates[g.best]
	if best.lossless() && !g.unsure {
		p, warning := best.marginals(g.targets)
		return probabilities{p, finite(rounding), warning}
	}
	chosen := g.marginalsOf(g.best)
	all := []probabilities{chosen}
	for _, v := range g.verdicts {
		if v.best < 0 || v.best == g.best {
			continue
		}
		m := g.marginalsOf(v.best)
		if m.p == nil {
			continue
		}
		if chosen.p == nil || m.uncertainty != nil && (chosen.uncertainty == nil || policy.Apart**m.uncertainty < *chosen.uncertainty) {
			chosen = m
		}
		if v.credible {
			all = append(all, m)
		}
	}
	if chosen.uncertainty == nil {
		return chosen
	}
	u := *chosen.uncertainty
	for _, m := range all {
		if m.p != nil && m.uncertainty != nil {
			u = max(u, farthest(chosen.p, m.p)-policy.Apart**m.uncertainty)
		}
	}
	chosen.uncertainty = finite(min(1, max(u, g.missed())))
	return chosen
}

// marginalsSettled reports whether the marginals that there are, if any, are as certain as probabilities have to be.
func (g *sequence) marginalsSettled(accuracy float64) bool {
	m := g.judgeMarginals()
	return m.p == nil || m.uncertainty != nil && *m.uncertainty <= max(accuracy, policy.SettledMarginals)
}

// marginalsOf returns the marginals of the estimate at a position and what its own family says of them.
func (g *sequence) marginalsOf(at int) (m probabilities) {
	r := g.estimates[at]
	if r.isPooled() {
		m.p, m.uncertainty = r.sampledMarginals(g.targets)
		return m
	}
	if m.p, m.warning = r.marginals(g.targets); m.p != nil {
		m.uncertainty = g.marginalChange(at, m.p)
	}
	return m
}

// missed is what probabilities may be off by because of what Z may have missed: all of it may be of one value. Where tables forbid values
// together, or chains miss modes, states of some values may not have been seen at all; elsewhere what families disagree about counts.
func (g *sequence) missed() float64 {
	u := -math.Expm1(-g.apart)
	if (g.hard || g.modes()) && g.uncertainty != nil {
		u = max(u, *g.uncertainty)
	}
	return min(1, u)
}

// marginalChange returns how far the probabilities of an estimate by contraction are off at most: their largest change from the last
// estimate before that has marginals, of any track. Those of regions are in a track that is not monotone, and where belief propagation has
// several fixed points they are of one of them: all that others weigh may be elsewhere. It returns nil if there is no other estimate, if
// regions of constraints are the same, or if terms may be lost.
func (g *sequence) marginalChange(at int, p [][]float64) *float64 {
	of := g.estimates[at]
	if g.unsure {
		return nil
	}
	var before [][][]float64
	for i, r := range g.estimates {
		if i == at || r.LogZ == nil || of.isLogLinear() && (i > at || r.Regions == of.Regions) {
			continue
		}
		if q, _ := r.marginals(g.targets); q != nil {
			before = append(before, q)
		}
	}
	n := len(before)
	if n == 0 {
		return nil
	}
	change := farthest(p, before[n-1])
	if g.hard && change == 0 && of.isLogLinear() { // constraints that decide the same at every size say nothing of others
		return nil
	}
	if !of.isLogLinear() {
		if n > 1 {
			change = max(change, policy.Second*farthest(p, before[n-2]))
		}
		if g.hard && of.Discarded != nil {
			change *= policy.Branches
		}
		return finite(min(1, change))
	}
	if n > 1 {
		change = regionsNext(change, farthest(before[n-1], before[n-2]))
	}
	change = max(policy.ApartInRegions*change, -math.Expm1(-phases(g.bp)))
	return finite(min(1, change))
}

// farthest returns the largest difference of probabilities.
func farthest(p, q [][]float64) float64 {
	change := 0.0
	for v := range p {
		for x := range p[v] {
			change = max(change, math.Abs(p[v][x]-q[v][x]))
		}
	}
	return change
}
