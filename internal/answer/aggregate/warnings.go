package aggregate

// What an approximate answer warns of.

import (
	"cmp"
	"fmt"

	"github.com/basetensor/basetensor/internal/methods/judge"
)

// DeadlineCame is the warning of an answer that the deadline ended.
const DeadlineCame = "the deadline came before the estimates settled: this is the best one so far"

// warnings returns what a person has to know of an approximate answer: first failed estimates, then how far the answer is to be believed,
// then what each method adds.
func (g *sequence) warnings() (list []string) {
	warn := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	failed := 0
	for _, r := range g.evaluated {
		if r.LogZ == nil {
			failed++
		}
	}
	if failed > 0 {
		warn("%d of %d estimates failed: a total at or below 0, or no room for it", failed, len(g.evaluated))
	}
	if g.best != nil {
		g.warnOfAnswer(warn)
	}
	var best *judge.Estimate
	if g.best != nil {
		best = &g.best.Estimate
	}
	for _, j := range g.judges.All {
		list = append(list, j.Warnings(best, g.answer.Uncertainty)...)
	}
	return list
}

// warnOfAnswer warns if the deadline came, if the uncertainty of the answer is not known or has not settled, if methods contradict each
// other, and if the answer was moved into bounds.
func (g *sequence) warnOfAnswer(warn func(format string, args ...any)) {
	if g.ended == EndedDeadline {
		warn(DeadlineCame)
	}
	switch u := g.answer.Uncertainty; {
	case g.IsUnsure && !g.best.Plan.KeepsRange(): // IsUnsure: the entries span too much; KeepsRange: the plan loses no terms even then
		known := "nothing is known of the quality of this estimate"
		if u != nil {
			known = "this estimate is known by its bounds alone"
		}
		warn("the entries of the model span more than float64 holds side by side: terms may be lost, and %s", known)
	case u == nil:
		warn("%s", cmp.Or(g.answer.Unknown, "this is a single estimate, and nothing is known of its quality"))
	case g.ended != endedSettled:
		warn("the estimates still move: by about %.2g nats, more than the accuracy asked for (%.2g)", *u, g.Accuracy)
	}
	if g.contradicted > 0 {
		warn("the estimates of two families differ by more than both state: ln Z may be off by %.2g nats", g.contradicted)
	}
	if g.outside > judge.RoundingMargin(*g.best.LogZ) {
		warn("the best estimate is outside of the bounds by %.2g nats, and ln Z is given as the bound", g.outside)
	}
}
