// Package learned is the family of decompositions into few components: closed forms where the cores' own ranks are small, learned
// densities that are drawn from (package sampled), and least squares of the plain objective (package frobenius). Their components are in
// package closed.
package learned

import (
	"context"
	"fmt"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/families/learned/frobenius"
	"github.com/basetensor/basetensor/internal/families/sampled"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/proposal"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// Method is method symmetry-cp.
var Method = proposal.Method{Name: query.MethodSymmetryCP, Propose: Propose, Maps: true}

// Propose is the proposal of a learned decomposition by its objective; a closed form with few enough terms is used where B has one.
// Entries below 0 and indices of more than 256 values leave the plain objective alone.
func Propose(j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	if j.Settings.Objective == query.ObjectiveFrobenius {
		return plain(j)
	}
	closed, hit, err := j.Remember(fmt.Sprint("closed form of ", j.Settings.Components), contractionorder.Hypergraph{},
		func(ctx context.Context) (*btn.Plan, error) {
			closed, ok, err := ClosedForm(ctx, j.Net, j.Settings.Components)
			if !ok {
				closed = &btn.Plan{Method: query.MethodSymmetryCP} // none
			}
			return closed, err
		})
	if err != nil {
		return nil, err
	}
	if len(closed.Estimates) > 0 {
		return certified(j, proposal.Take(closed, hit))
	}
	found, err := sampled.ProposeLearned(j, ask)
	if fault.CodeOf(err) != fault.Unsupported {
		return found, err
	}
	found, refused := plain(j)
	if refused != nil {
		return nil, refused
	}
	found.Warnings = append(found.Warnings, "components are learned by the plain objective: "+err.Error())
	return found, nil
}

// Cost returns the flops of learning by the objective of the settings: an estimate for the plain one, a bound for the other.
func Cost(net *btn.Network, s query.Settings) float64 {
	if s = s.WithDefaults(); s.Objective == query.ObjectiveFrobenius {
		return frobenius.Cost(net, s)
	}
	return sampled.LearningWork(s)
}

// plain is the proposal of the paper's decomposition, whose objective is ‖B − B̃‖.
func plain(j *proposal.Job) (*btn.Assignment, error) {
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
	return certified(j, proposal.Take(plan, hit))
}

// certified adds the norm of the links, from which the error of ‖B − B̃‖ bounds the error of Z.
func certified(j *proposal.Job, found *btn.Assignment) (*btn.Assignment, error) {
	links, err := btn.LnLinks(j.Ctx, j.Conditioned)
	if err != nil {
		return nil, err
	}
	found.LnLinks = links
	return found, nil
}

// settingsKey lists what a learned decomposition depends on beside the network.
func settingsKey(s query.Settings) string {
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
