package structured

// Proposals: the exact way of networks that are functions of few linear statistics, which nobody declared.

import (
	"context"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/contractionorder"
	"github.com/basetensor/basetensor/internal/policy"
	"github.com/basetensor/basetensor/internal/proposal"
)

// contractions is the flops of contractions in the time of one of nodes, which are no large matrices: 0.75e9 a second and core, measured
// with four patterns of 100 spins, beside policy.Rate.
const contractions = 4

// Propose is the proposal of the sum over the nodes of a model's statistics, which are found once and remembered; nil where the model has
// none, or they take more than the exact way may. Where no elimination order is known it is asked of crowded networks alone; a known one
// has to take more.
func Propose(j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	if ask.Flops == 0 && !Crowded(j.Net) || ask.Flops > 0 && !Worth(j.Net) {
		return nil, nil
	}
	plan, hit, err := j.Remember("structured", contractionorder.Hypergraph{}, func(ctx context.Context) (*btn.Plan, error) {
		e, err := Plan(ctx, j.Net, j.Settings.Memory)
		if err != nil {
			return nil, err
		}
		none := &btn.Plan{Method: btn.MethodExact}
		if e != nil {
			none.Estimates = []btn.Estimate{*e}
		}
		return none, nil
	})
	if err != nil || len(plan.Estimates) == 0 {
		return nil, err
	}
	found := proposal.Priced(plan, hit)
	work := contractions * found.Cost.Flops
	if policy.ExactRate*work > proposal.Limit(j.Settings) || ask.Flops > 0 && work >= ask.Flops {
		return nil, nil
	}
	if len(ask.Joint) > 0 {
		cells := 1.0
		for _, v := range ask.Joint {
			cells *= float64(j.Net.Variables[v].Domain)
		}
		found.Cost.Flops *= 1 + cells
		found.Joint = ask.Joint
	}
	return found, nil
}

// Finding implements proposal.Finder.
func (*Nodes) Finding(_ *proposal.Job, parts []btn.Part, ask btn.Ask) ([]btn.Part, error) {
	return Asked(parts, ask), nil
}
