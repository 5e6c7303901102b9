package plan

// The value of belief propagation before everything else: what a job with a deadline answers with if nothing
// better is there in time.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/bp"
	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/lower"
	"github.com/basetensor/basetensor/internal/policy"
)

func betheRung() btn.Rung { return btn.Rung{Family: btn.FamilyRegions, Kind: btn.KindBethe, Count: 1} }

// betheFirst puts a rung with the value of belief propagation before those of truncated legs; legs is why
// there are none, nil where there are. Where the first of them is cheap, or belief propagation has no value,
// nothing changes.
func (a *assigner) betheFirst(to *btn.Assignment, conditioned *btn.Network, legs error) error {
	from := -1
	if legs == nil {
		from = to.Decomposition
		if g := a.job.Decompositions[from].Growth; g == nil || len(g.Rungs) == 0 ||
			g.Rungs[0].Flops <= policy.SoonShare*a.settings.Budget {
			return nil
		}
	}
	e, err := lower.Build(a.ctx, conditioned)
	if err != nil {
		return err
	}
	if decided(e.Hypergraph()) {
		return legs
	}
	enough, cancel := planningContext(a.ctx, policy.MessageShare)
	defer cancel()
	short := a.settings
	short.Budget *= policy.BetheShare / policy.MessageShare
	states, err := bp.Propagate(a.ctx, e, bp.PropagateOptions{
		Seed:    a.settings.Seed,
		Updates: updatesFor(e, short),
		Starts:  1,
		Enough:  enough,
	})
	if err != nil {
		return err
	}
	p := report(states)
	if s := states[0]; p.LogZ == nil || s.Contradiction >= 0 && !s.Signed {
		return legs
	}
	if legs != nil {
		*to = btn.Assignment{Cache: a.cacheState(), LnLinks: math.Inf(-1), Hard: forbids(e), Unsure: beyondRange(e),
			Warnings: []string{"there is the value of belief propagation only: " + legs.Error()}}
	}
	to.Propagation, to.Messages, to.Decomposition = p, states[0].Messages(), a.afterBethe(from)
	return nil
}

// afterBethe returns the decomposition with the rungs of another one, −1 for none, behind the value of belief
// propagation.
func (a *assigner) afterBethe(from int) int {
	index, known := a.bethe[from]
	if known {
		return index
	}
	growth := btn.Growth{Accuracy: a.settings.Accuracy}
	if from >= 0 {
		growth = *a.job.Decompositions[from].Growth
	}
	growth.Rungs = append([]btn.Rung{betheRung()}, slices.Clone(growth.Rungs)...)
	if a.bethe == nil {
		a.bethe = map[int]int{}
	}
	a.bethe[from] = len(a.job.Decompositions)
	a.job.Decompositions = append(a.job.Decompositions, grown(btn.MethodTruncated, &growth))
	return a.bethe[from]
}
