package aggregate

// What an approximate answer warns of.

import (
	"fmt"
	"strconv"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
)

// DeadlineCame is the warning of an answer that the deadline ended.
const DeadlineCame = "the deadline came before the estimates settled: this is the best one so far"

// warnings says in words what a number would hide.
func (g *sequence) warnings(a *btn.Assignment) []string {
	var out []string
	warn := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	failed := 0
	dropped := int64(0)
	for i := range g.estimates {
		if g.estimates[i].LogZ == nil {
			failed++
		}
		for _, v := range g.estimates[i].parts {
			if v.Region != nil {
				dropped += v.Region.NonPositive
			}
		}
	}

	if failed > 0 {
		warn(
			"%d of %d estimates failed: a total at or below 0, or no room for it", failed,
			len(g.estimates),
		)
	}
	if dropped > 0 {
		warn(
			"%d regions were left out because their ratio to belief propagation came out at or below 0",
			dropped,
		)
	}

	if g.best < 0 {
		return out
	}
	if g.ended == EndedDeadline {
		warn(DeadlineCame)
	}

	switch u := g.uncertainty; {
	case g.unsure && !g.estimates[g.best].isPooled():
		known := "nothing is known of the quality of this estimate"
		if u != nil {
			known = "this estimate is known by its bounds alone"
		}
		warn("the entries of the model span more than float64 holds side by side: terms may be lost, and %s", known)
	case u == nil && len(g.estimates) > 1+failed && g.plateau(g.estimates[g.best]):
		warn(
			"regions of constraints do not change with their size: " +
				"nothing is known of the quality of this estimate",
		)
	case u == nil:
		warn("this is a single estimate, and nothing is known of its quality")
	case g.ended != endedSettled:
		warn(
			"the estimates still move: by about %.2g nats, more than the accuracy asked for (%.2g)",
			*u, a.Plan.Accuracy,
		)
	}

	best := g.estimates[g.best]
	few := last(g.estimates, (*estimate).isPooled)
	if few != nil && !few.believed() && (best == few || best.isLogLinear() && best.of.Level < 0) {
		then := "ln Z may be above what they say by far"
		if best != few {
			then = "ln Z is the value of belief propagation, within what they leave open"
		}
		warn("not settled: %s of %d sampled components carry the weight, and %s",
			strconv.FormatFloat(few.mean.Effective, 'f', 1, 64), few.mean.N, then)
	}
	if best.isLogLinear() && g.uncertainty != nil && *g.uncertainty > a.Plan.Accuracy {
		if decay, known := g.decay(best); known && decay >= slowDecay {
			warn("regions do not converge with their size: their last change is %.2g times the one before, so loops of all lengths count, "+
				"as near a phase transition and beside other phases", decay)
		}
	}
	if g.apart > 0 {
		warn("the estimates of two families differ by more than both state: ln Z may be off by %.2g nats", g.apart)
	}
	if g.outside > wide(*g.estimates[g.best].LogZ) {
		warn("the best estimate is outside of the bounds by %.2g nats, and ln Z is given as the bound", g.outside)
	}

	if p := a.Propagation; p != nil {
		out = append(out, propagationWarnings(p, g.estimates[g.best])...)
	}
	return out
}

// propagationWarnings says what belief propagation found that the estimate does not show.
func propagationWarnings(p *query.Propagation, best *estimate) []string {
	var out []string
	if !p.Converged && best.isLogLinear() {
		out = append(
			out,
			fmt.Sprintf(
				"belief propagation did not converge (last change %.2g): regions stand on messages "+
					"that still move",
				p.Change,
			),
		)
	}

	if p.Impossible && best.isLogLinear() {
		out = append(out, "the beliefs of belief propagation contradict each other, with an entropy below 0: its ln Z may be far too high")
	}

	if len(p.Phases) > 1 {
		out = append(
			out,
			fmt.Sprintf(
				"competing phases: belief propagation has %d fixed points, ln Z from %.6g to %.6g; "+
					"regions correct the first, and add the values of those that hardly overlap with it",
				len(p.Phases),
				p.Phases[len(p.Phases)-1],
				p.Phases[0],
			),
		)
	}

	return out
}
