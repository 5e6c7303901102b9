// Package learned is the method of decompositions into few components: closed forms if the ranks of the cores are small, and learned ones
// by two objectives. The variance of the stated estimate, the default, learns densities that are drawn from: package sampled, by package
// mixture. The plain objective ‖B − B̃‖, section "Base Tensor Frobenius Norm Minimisation" of Hamid and Braun, is here, to be read as
//
//	objective.go     ‖B‖² + αᵀGα − 2αᵀb, in count space
//	weights.go       α ≥ 0 of fixed components
//	updates.go       R and S of one component, in closed form
//	maps.go          orthogonal maps on the legs, in closed form
//	sweeps.go        greedy components, cyclic sweeps, starts
//	certificate.go   ρ and the certificate, rounding included
//
// with environments.go, corewalks.go and shortpieces.go for the passes of a sweep over the legs. Nothing of it materialises B: norms
// multiply over the cores, scalar products are contractions in count space with exponents, so that 10,000 legs neither overflow nor
// underflow. It never sees the links: evidence and unary factors change no number of it. Components are in package closed.
package learned

import (
	"context"
	"fmt"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/methods/sampled"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// Method is method symmetry-cp.
var Method = proposal.Method{Name: query.MethodSymmetryCP, Propose: Propose, ReadsMaps: true, IsGlobal: true}

// Propose proposes a closed form if B has one with few enough terms, or else a decomposition that is learned by the objective of the
// settings. The variance objective does not apply if entries are below 0 or an index has more than 256 values. Then it proposes the plain
// objective, with a warning.
func Propose(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	if j.Settings.Objective == query.ObjectiveFrobenius {
		return proposePlain(ctx, j)
	}
	closed, hit, err := j.Remember(ctx, fmt.Sprint("closed form of ", j.Settings.Components), contractionorder.Hypergraph{},
		func(computing context.Context) (*btn.Plan, error) {
			closed, ok, err := ClosedForm(computing, j.Net, j.Settings.Components)
			if !ok {
				closed = &btn.Plan{Method: query.MethodSymmetryCP} // without estimates: it is remembered that there is no closed form
			}
			return closed, err
		})
	if err != nil {
		return nil, err
	}
	if len(closed.Estimates) > 0 {
		return certify(ctx, j, proposal.NewAssignment(closed, hit))
	}

	// Learn by the variance, or by the plain objective if that does not apply.
	assignment, err := sampled.ProposeLearned(ctx, j, ask)
	if fault.CodeOf(err) != fault.Unsupported {
		return assignment, err
	}
	assignment, plainErr := proposePlain(ctx, j)
	if plainErr != nil {
		return nil, plainErr
	}
	assignment.Warnings = append(assignment.Warnings, "components are learned by the plain objective: "+err.Error())
	return assignment, nil
}

// learnShare is the share of the budget for learning by the plain objective. countRate is the number of flops of truncated legs in the
// time of a multiply-add in count space.
const (
	learnShare = 0.25
	countRate  = 16
)

// LearningWork returns the flops that learning may take under some settings.
func LearningWork(settings query.Settings) float64 {
	settings = settings.WithDefaults()
	if settings.Objective == query.ObjectiveFrobenius {
		return learnShare * settings.Budget
	}
	return sampled.LearningWork(settings)
}

// proposePlain proposes a closed form if B has one, or else a decomposition that is learned by the plain objective ‖B − B̃‖.
func proposePlain(ctx context.Context, j *proposal.Job) (*btn.Assignment, error) {
	settings := j.Settings
	settings.Method, settings.Objective = query.MethodSymmetryCP, query.ObjectiveFrobenius
	// The plan is remembered by all that it depends on beside the network.
	key := fmt.Sprintf("plain components=%d seed=%d maps=%s budget=%g", settings.Components, settings.Seed, settings.Maps, settings.Budget)
	plan, hit, err := j.Remember(ctx, key, contractionorder.Hypergraph{}, func(computing context.Context) (*btn.Plan, error) {
		closed, ok, err := ClosedForm(computing, j.Net, settings.Components)
		if err != nil || ok {
			return closed, err
		}
		return Learn(computing, j.Net, settings)
	})
	if err != nil {
		return nil, err
	}
	return certify(ctx, j, proposal.NewAssignment(plan, hit))
}

// certify adds the norm of the links to an assignment: ‖B − B̃‖ times that norm bounds the error of Z.
func certify(ctx context.Context, j *proposal.Job, assignment *btn.Assignment) (*btn.Assignment, error) {
	lnLinks, err := btn.LnLinks(ctx, j.Conditioned)
	if err != nil {
		return nil, err
	}
	assignment.LnLinks = lnLinks
	return assignment, nil
}

// ProposeClosedForm proposes a closed form of several components for a network that is too large to prepare for an elimination. cause is
// the error that says so, over budget; it is returned if there is no closed form. Any other cause is returned at once.
func ProposeClosedForm(ctx context.Context, j *proposal.Job, cause error) (*btn.Assignment, error) {
	if fault.CodeOf(cause) != fault.OverBudget {
		return nil, cause
	}
	closed, ok, err := ClosedForm(ctx, j.Net, policy.MostClosedFormTerms)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, cause
	}
	plan, hit, err := j.Remember(ctx, "closed", contractionorder.Hypergraph{}, func(context.Context) (*btn.Plan, error) {
		return closed, nil
	})
	return proposal.NewAssignment(plan, hit), err
}
