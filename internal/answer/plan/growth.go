package plan

// Approximate answers: the families whose estimates grow.

import (
	"slices"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/bounding"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/methods/regions"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/fault"
)

// approximate assigns estimates that grow, of the method's family or of those that auto chooses: see chosen. warnings say why the exact way
// was not taken. Under a deadline the value of belief propagation is first, and a bound by its messages.
func (a *assigner) approximate(d btn.Demand, warnings []string) (*btn.Assignment, error) {
	propose := a.chosen
	if m := a.method; m != nil {
		propose = func(d btn.Demand) (*btn.Assignment, error) { return a.orExact(m.Propose, d) }
	}
	found, err := propose(d)
	err = proposal.InBudget(a.Ctx, "estimates", err)
	if err == nil && proposal.Timed(a.Ctx) && found.Plan.Grows() && !hasRegions(found.Plan) {
		found, err = regions.First(a.Job, found)
	}
	if err != nil {
		return nil, err
	}
	if proposal.Timed(a.Ctx) && found.Plan.Grows() {
		found.Plan = bounding.AtOnce(a.Job, found.Plan)
	}

	found.Warnings = append(warnings, found.Warnings...)
	if a.Settings.NoExact && a.Auto() && found.Plan.Grows() {
		cheaper := ""
		err := a.Within(policy.ExactShare, "the price of the exact way", func(j *proposal.Job) (err error) {
			cheaper, err = a.under(j).cheaperExactly(d, found.Plan)
			return err
		})
		if err != nil && fault.CodeOf(err) != fault.OverBudget {
			return nil, err
		}
		if cheaper != "" {
			found.Warnings = append(found.Warnings, cheaper)
		}
	}
	return found, nil
}

// orExact is a proposal, or the exact way where that is as cheap.
func (a *assigner) orExact(propose proposal.Proposer, d btn.Demand) (*btn.Assignment, error) {
	if found, err := propose(a.Job, proposal.Ask{Marginals: d.Marginals, Targets: d.Targets}); found != nil || err != nil {
		return found, err
	}
	return a.exact(d)
}

// hasRegions reports whether some estimate of a plan is by regions.
func hasRegions(p *btn.Plan) bool {
	return slices.ContainsFunc(p.Estimates, func(e btn.Estimate) bool { return e.Rule == btn.LogLinear })
}
