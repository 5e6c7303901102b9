package ladder

// Proposals: truncated legs along the model's own plans, or along plans for what the evidence leaves.

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/exact"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/methods/truncated"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// Method is method truncated.
var Method = proposal.Method{Name: query.MethodTruncated, Propose: Propose, Grows: true}

// Propose is the proposal of the model's own plans, under which evidence enters as masks, or plans for what the
// query's evidence leaves where those are cheaper by far. A network that simplification decides is contracted
// exactly: there is nothing to truncate.
func Propose(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	marginals := ask.Marginals
	own, err := prepare(ctx, j, marginals)
	if err != nil {
		return nil, err
	}
	if own.Decided() {
		return exact.ProposeTree(ctx, j, ask)
	}

	if err := own.Expression().Fits(); err != nil {
		return nil, fmt.Errorf("plan: truncated legs: %w", err)
	}
	if n := len(own.Expression().Tables); n > policy.MostTables {
		return nil, fault.New(fault.OverBudget, "plan: truncated legs are for up to %d tables, %d are left",
			policy.MostTables, n)
	}

	model, err := ofModel(ctx, j, marginals)
	if j.Evidence.IsEmpty() && !errors.Is(err, truncated.ErrNoMask) {
		return model, err
	}
	if ctxErr := ctx.Err(); ctxErr != nil {
		return model, ctxErr
	}

	why := ""
	if err != nil {
		why = "plans of truncated legs: the model's do not serve: " + err.Error()
	} else if why = serves(ctx, j, model, own); why == "" {
		return model, ctx.Err()
	}

	// Of the evidence these plans depend on no more than the shape that it leaves and the variables that its
	// indices are, for slices.
	kind := fmt.Sprint("truncated under evidence, variables ", own.Indices(), truncated.Signs(own))
	plan, hit, err := j.RememberComplete(ctx, j.GrowthKey(kind, marginals), own.Hypergraph(),
		func(computing context.Context) (*btn.Plan, bool, error) {
			return Plan(computing, own, j.Settings, false, marginals)
		})
	if err != nil {
		return nil, err
	}
	found := proposal.Approximate(plan, hit, own.Expression())
	found.Relearned = why
	return found, nil
}

// prepare simplifies the network under a query's evidence; where regions are left to answer with,
// for half of the time.
func prepare(ctx context.Context, j *proposal.Job, marginals bool) (own *truncated.Prepared, err error) {
	if !j.IsAuto() {
		return truncated.Of(ctx, j.Problem(), marginals)
	}
	err = proposal.Within(ctx, policy.PrepareShare, "the simplification for truncated legs", func(ctx context.Context) error {
		own, err = truncated.Of(ctx, j.Problem(), marginals)
		return err
	})
	return own, err
}

// ofModel is the proposal of the plans that depend on the model alone.
func ofModel(ctx context.Context, j *proposal.Job, marginals bool) (*btn.Assignment, error) {
	p, err := truncated.OfBase(ctx, j.Problem())
	if err != nil {
		return nil, err
	}
	if _, err := p.Mask(j.Evidence); err != nil {
		return nil, err
	}
	if p.Decided() || p.Expression().Unfit != "" {
		return nil, truncated.ErrNoMask
	}
	plan, hit, err := j.RememberComplete(ctx, j.GrowthKey("truncated"+truncated.Signs(p), marginals), p.Hypergraph(),
		func(computing context.Context) (*btn.Plan, bool, error) {
			return Plan(computing, p, j.Settings, true, marginals)
		})
	if err != nil {
		return nil, err
	}
	return proposal.Approximate(plan, hit, p.Expression()), nil
}

// misfit is the ratio of the flops of the model's own plan to a plan for a query's evidence above
// which the query gets its own, researchFlops the work of a contraction below which a plan of its
// own is not worth the search.
// Measured: a quarter and four times of misfit change 1 and 3 of 24 queries, of researchFlops
// none, decision 20.
const (
	misfit        = 8
	researchFlops = 2e8
)

// serves says why the model's plans are not good enough for what a query's evidence leaves; empty where they are.
func serves(ctx context.Context, j *proposal.Job, model *btn.Assignment, own *truncated.Prepared) string {
	last := &model.Plan.Estimates[len(model.Plan.Estimates)-1]
	bond := Bond(last)
	if last.Cost.Flops < researchFlops {
		return ""
	}
	quick, err := own.Quick(ctx, bond, j.Settings.Memory, j.Settings.Seed)
	if err != nil || last.Cost.Flops <= misfit*quick.Flops { // what cannot be planned is no better
		return ""
	}
	return fmt.Sprintf("plans of truncated legs: the model's takes %.2g flops at bond %d, one for what "+
		"the evidence leaves %.2g",
		last.Cost.Flops, bond, quick.Flops)
}

// Masked reports whether a plan of truncated legs is the model's own, under which evidence enters as masks.
func Masked(p *btn.Plan) bool {
	legs := LegsOf(&p.Estimates[0])
	return legs != nil && legs.Along.Masked
}

// A Verdict is what a trial of truncated legs says: whether it took place, whether there was no time for it, whether nothing at all is
// truncated, the share of the weight that is left out, and the share from which the model is not resolved, +Inf if the trial cannot tell.
type Verdict struct {
	Tried, Late, Lossless bool
	Discarded, Unresolved float64
}

// trialTime is the part of the remaining time that a trial of theirs may take.
// Chosen: pilots need the rest.
const trialTime = 1.0 / 3

// trialShare is the part of a budget that a contraction of truncated legs may take while plans are chosen.
// Chosen: firstShare, and some room where no smaller bond makes it so.
const trialShare = 1.0 / 12

// bondPower is the power of FirstBond over the bond by which Unresolved is larger at a smaller one.
// Measured: a grid of 40×40 leaves out 0.14 at bond 2 and 3e-3 at 4, a three-dimensional model 0.2 and 0.1, decision 26.
const bondPower = 4

// Trial contracts along the first plan of truncated legs, without marginals, at policy.FirstBond or the largest smaller one that takes
// a small part of the budget. If half of the budget holds a larger one, what the trial leaves out does not say that the model is not
// resolved: bond 4 leaves out 0.024 of a planar glass of 60×60 and 0.017 of a Boltzmann machine, bond 8 1e-5 and 0.005.
func Trial(ctx context.Context, j *proposal.Job, p *btn.Plan, marginals bool) (Verdict, error) {
	first := &p.Estimates[0]
	legs := LegsOf(first)
	if legs == nil {
		return Verdict{}, nil
	}
	planning, cancel := proposal.PlanningContext(ctx, trialTime)
	defer cancel()
	prepared, err := preparedFor(planning, j, legs.Along.Masked, marginals)
	if err != nil {
		return Verdict{Late: planning.Err() != nil}, ctx.Err() // the estimate will say why
	}
	if c, err := prepared.Price(ctx, legs.Along, legs.Bond, marginals); err == nil && c.Lossless && len(p.Estimates) == 1 {
		return Verdict{Tried: true, Lossless: true}, nil
	}
	isShort := false // of budget alone: the estimates may reach the first bond
	for bond := policy.FirstBond; bond > 1; bond /= 2 {
		c, err := prepared.Price(ctx, legs.Along, bond, false)
		if err != nil || c.Bytes > float64(j.Settings.Memory) {
			continue
		}
		if c.Flops > trialShare*j.Settings.Budget {
			isShort = isShort || c.Flops <= j.Settings.Budget/2
			continue
		}
		answer, err := prepared.Contract(planning, legs.Along, bond, j.Settings.Memory, false)
		if err != nil {
			return Verdict{Late: planning.Err() != nil}, ctx.Err()
		}
		v := Verdict{Tried: true, Discarded: answer.Truncation.Discarded, Unresolved: policy.Unresolved}
		v.Unresolved *= math.Pow(float64(policy.FirstBond)/float64(bond), bondPower)
		if isShort {
			v.Unresolved = math.Inf(1)
		}
		return v, nil
	}
	return Verdict{}, nil
}

// preparedFor returns the network that legs are truncated in, under the evidence as a mask or simplified for it.
func preparedFor(ctx context.Context, j *proposal.Job, masked, marginals bool) (*truncated.Prepared, error) {
	if !masked {
		return truncated.Of(ctx, j.Problem(), marginals)
	}
	prepared, err := truncated.OfBase(ctx, j.Problem())
	if err != nil {
		return nil, err
	}
	return prepared.Mask(j.Evidence)
}
