package aggregate

// Marginals by several methods: they may come from a surer one than ln Z.

import (
	"math"

	"github.com/basetensor/basetensor/internal/methods/judge"
)

// judgeMarginals returns the marginals of the answer, with their uncertainty. They are those of the answer's method, or those of another
// method that is less than half as uncertain about them (surestMarginals). The uncertainty is at least
//
//   - the distance from the marginals of each credible method, minus twice the uncertainty of these: the largest of many errors exceeds two
//     standard errors
//   - the share of Z that may be missing (missedShare).
//
// If the answer's estimate dropped nothing, it has its own marginals and uncertainty.
func (g *sequence) judgeMarginals() judge.Marginals {
	if g.answer.IsComplete {
		return g.ownMarginals()
	}
	chosen, witnesses := g.surestMarginals()
	isMissedShareUnknown := g.mayMissStates() && g.answer.Uncertainty == nil
	if isMissedShareUnknown {
		chosen.Uncertainty = nil
	}
	if chosen.Uncertainty == nil {
		return chosen
	}
	u := *chosen.Uncertainty
	for _, m := range witnesses {
		if m.P != nil && m.Uncertainty != nil {
			u = max(u, judge.LargestDifference(chosen.P, m.P)-judge.PlanDistanceFactor**m.Uncertainty)
		}
	}
	chosen.Uncertainty = finite(min(1, max(u, g.missedShare())))
	return chosen
}

// surestMarginals returns the marginals of the answer's method. If it has none, or if another method is less than half as uncertain, it
// returns those of the other method. witnesses are the marginals of the answer's method and of all credible methods.
func (g *sequence) surestMarginals() (chosen judge.Marginals, witnesses []judge.Marginals) {
	chosen = g.ownMarginals()
	witnesses = []judge.Marginals{chosen}
	for _, s := range g.statements {
		if s.Best == &g.best.Estimate { // the answer's method itself
			continue
		}
		m := g.marginalsOfOther(s.Best)
		if m.P == nil {
			continue
		}
		// PlanDistanceFactor is 2: less than half as uncertain.
		isSurer := m.Uncertainty != nil && (chosen.Uncertainty == nil || judge.PlanDistanceFactor**m.Uncertainty < *chosen.Uncertainty)
		if chosen.P == nil || isSurer {
			chosen = m
		}
		if s.IsCredible {
			witnesses = append(witnesses, m)
		}
	}
	return chosen, witnesses
}

// ownMarginals returns the marginals of the best estimate, as its own judge states them.
func (g *sequence) ownMarginals() judge.Marginals {
	return g.judges.ForRule(g.best.Plan.Rule).Marginals(&g.best.Estimate)
}

// marginalsOfOther returns the marginals of an estimate by another method than that of the answer. Let D be the distance of their ln Z. If
// the answer is right, the other method has lost or invented 1 − e^−D of Z. All of that may have one value of a variable, so the marginals
// are at least that uncertain.
func (g *sequence) marginalsOfOther(e *judge.Estimate) judge.Marginals {
	m := g.judges.ForRule(e.Plan.Rule).Marginals(e)
	if m.P != nil && m.Uncertainty != nil {
		share := -math.Expm1(-math.Abs(*e.LogZ - g.answerZ.LogAbs()))
		m.Uncertainty = finite(max(*m.Uncertainty, share))
	}
	return m
}

// settledMarginals is the uncertainty at which probabilities settle even if ln Z needs a higher accuracy.
// Chosen: six digits are printed.
const settledMarginals = 1e-6

// areMarginalsSettled reports whether the uncertainty of the marginals is at most the accuracy or settledMarginals. It is true if there are
// no marginals.
func (g *sequence) areMarginalsSettled() bool {
	m := g.judgeMarginals()
	return m.P == nil || m.Uncertainty != nil && *m.Uncertainty <= max(g.Accuracy, settledMarginals)
}

// missedShare returns the share of Z that may be missing from the marginals of the answer: all of it may have one value of a variable, so
// no probability is more certain.
//
//   - If another method contradicts the answer by D nats, it is 1 − e^−D.
//   - If states of some values may never have been seen (mayMissStates), it is at least the uncertainty of ln Z. If that is not known
//     either, judgeMarginals states nothing.
func (g *sequence) missedShare() float64 {
	u := -math.Expm1(-g.contradicted)
	if g.mayMissStates() && g.answer.Uncertainty != nil {
		u = max(u, *g.answer.Uncertainty)
	}
	return min(1, u)
}

// mayMissStates reports whether states of some values may never have been seen: tables forbid values together, or chains miss modes.
func (g *sequence) mayMissStates() bool { return g.IsHard || g.HasHiddenModes() }
