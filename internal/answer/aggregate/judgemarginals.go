package aggregate

// Marginals by several methods: they may come from a surer one than ln Z.

import (
	"math"

	"github.com/basetensor/basetensor/internal/methods/judge"
)

// judgeMarginals takes the marginals of the answer's method, or of another one with less than half of its uncertainty, which is that of
// the share of Z by which that method's ln Z is off the answer, at least (beside). The uncertainty of the result is at least the distance
// of a credible method's marginals minus twice their own uncertainty, since the largest of many errors exceeds two standard errors, and
// at least the share of Z that may be missing (missedShare).
func (g *sequence) judgeMarginals() judge.Marginals {
	chosen := g.judges.Of(g.best.Plan.Rule).Marginals(&g.best.Estimate)
	if g.answer.IsComplete {
		return chosen
	}
	all := []judge.Marginals{chosen}
	for _, s := range g.statements {
		if s.Best == &g.best.Estimate {
			continue
		}
		m := g.beside(s.Best)
		if m.P == nil {
			continue
		}
		isSurer := m.Uncertainty != nil && (chosen.Uncertainty == nil || judge.PlanDistanceFactor**m.Uncertainty < *chosen.Uncertainty)
		if chosen.P == nil || isSurer {
			chosen = m
		}
		if s.IsCredible {
			all = append(all, m)
		}
	}
	if (g.IsHard || g.HasHiddenModes()) && g.answer.Uncertainty == nil { // see missedShare
		chosen.Uncertainty = nil
	}
	if chosen.Uncertainty == nil {
		return chosen
	}
	u := *chosen.Uncertainty
	for _, m := range all {
		if m.P != nil && m.Uncertainty != nil {
			u = max(u, judge.LargestDifference(chosen.P, m.P)-judge.PlanDistanceFactor**m.Uncertainty)
		}
	}
	chosen.Uncertainty = finite(min(1, max(u, g.missedShare())))
	return chosen
}

// settledMarginals is the uncertainty at which probabilities settle even if ln Z needs a higher accuracy.
// Chosen: six digits are printed.
const settledMarginals = 1e-6

// marginalsSettled reports whether the marginals, if any, are certain to the accuracy or to settledMarginals.
func (g *sequence) marginalsSettled() bool {
	m := g.judgeMarginals()
	return m.P == nil || m.Uncertainty != nil && *m.Uncertainty <= max(g.Accuracy, settledMarginals)
}

// beside returns the marginals of an estimate of another method than the answer's. If the answer is right, that method has lost or
// invented 1 − e^−D of Z, D its distance from the answer, and all of that may have one value.
func (g *sequence) beside(e *judge.Estimate) judge.Marginals {
	m := g.judges.Of(e.Plan.Rule).Marginals(e)
	if m.P != nil && m.Uncertainty != nil {
		lost := -math.Expm1(-math.Abs(*e.LogZ - g.z.LogAbs()))
		m.Uncertainty = finite(max(*m.Uncertainty, lost))
	}
	return m
}

// missedShare bounds the error of probabilities by the share of Z that may be missing, since all of it may have one value: 1 − e^−D if
// the contradiction of methods is D nats. If tables forbid values together or chains miss modes, states of some
// values may never have been seen: then it is at least the uncertainty of ln Z, and none is stated if that is not known.
func (g *sequence) missedShare() float64 {
	u := -math.Expm1(-g.contradicted)
	if (g.IsHard || g.HasHiddenModes()) && g.answer.Uncertainty != nil {
		u = max(u, *g.answer.Uncertainty)
	}
	return min(1, u)
}
