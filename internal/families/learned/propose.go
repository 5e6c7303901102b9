// Package learned is the family of decompositions of a few components: the learner's (package frobenius), and closed forms
// where the cores' own ranks are small. Their parts are in package closed.
package learned

import (
	"context"
	"fmt"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/contractionorder"
	"github.com/basetensor/basetensor/internal/families/learned/frobenius"
	"github.com/basetensor/basetensor/internal/policy"
	"github.com/basetensor/basetensor/internal/proposal"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Method is method symmetry-cp.
var Method = proposal.Method{Name: btn.MethodSymmetryCP, Propose: Propose, Maps: true}

// Propose is the proposal of the paper's learned decomposition; a closed form with few enough terms is used where B has one.
func Propose(j *proposal.Job, _ proposal.Ask) (*btn.Assignment, error) {
	s := frobenius.Settings(j.Settings)
	if proposal.Timed(j.Ctx) {
		s.LearnFlops = min(s.LearnFlops, policy.LearnShare*j.Settings.Budget)
	}
	plan, hit, err := j.Remember(settingsKey(s), contractionorder.Hypergraph{},
		func(ctx context.Context) (*btn.Plan, error) {
			closed, ok, err := ClosedForm(ctx, j.Net, s.Components)
			if err != nil || ok {
				return closed, err
			}
			affordable, warning := afford(j.Net, s)
			learned, err := frobenius.Learn(ctx, j.Net, affordable)
			if err == nil && warning != "" {
				learned.Warnings = append(learned.Warnings, warning)
			}
			return learned, err
		})
	if err != nil {
		return nil, err
	}
	links, err := btn.LnLinks(j.Ctx, j.Conditioned)
	if err != nil {
		return nil, err
	}
	found := proposal.Take(plan, hit)
	found.LnLinks = links
	return found, nil
}

// settingsKey lists what a learned decomposition depends on beside the network.
func settingsKey(s btn.Settings) string {
	return fmt.Sprintf("%s components=%d seed=%d nonnegative=%t maps=%t sweeps=%d starts=%d flops=%g",
		s.Method, s.Components, s.Seed, s.NonNegative, s.LearnMaps, s.Sweeps, s.Starts, s.LearnFlops)
}

// ProposeClosed is the proposal of a closed form of several components where the network cannot even be laid out for
// elimination, which is the error that is returned without one.
func ProposeClosed(j *proposal.Job, why error) (*btn.Assignment, error) {
	if fault.CodeOf(why) != fault.OverBudget {
		return nil, why
	}
	closed, ok, err := ClosedForm(j.Ctx, j.Net, policy.MostClosedFormTerms)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, why
	}
	plan, hit, err := j.Remember("closed", contractionorder.Hypergraph{}, func(context.Context) (*btn.Plan, error) {
		return closed, nil
	})
	return proposal.Take(plan, hit), err
}
