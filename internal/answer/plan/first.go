package plan

// The first answer: what a job with a deadline has before anything begins that may be late.

import (
	"context"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/query"
)

// AssignFirst answers a demand (what is wanted under one evidence) by the value of belief propagation and the bound that follows from its
// messages, without any planning. It passes messages on p, the network under the demand's evidence, until the context enough is done, and
// each message at least once. net is the network without evidence. It returns nil if the method of the settings does not answer by
// estimates, if estimates do not provide what is wanted, or if belief propagation has no value. Linear time.
func AssignFirst(
	ctx, enough context.Context, net *btn.Network, p *problem.Problem, d btn.Demand, s query.Settings,
) (*btn.Assignment, error) {
	s = s.WithDefaults()
	m := requested(s.Method) // nil for the methods exact and auto
	isAuto := (&proposal.Job{Settings: s}).IsAuto()
	answersByEstimates := m != nil && m.Grows || m == nil && isAuto // Grows: its plans are sequences of estimates
	wantsMore := d.WantsAssignments() || d.IsParametric() || len(d.Joint) > 0
	if !answersByEstimates || wantsMore {
		return nil, nil
	}
	assignment, err := methods.First(ctx, enough, p, s)
	if assignment == nil || err != nil {
		return nil, err
	}
	addDemand(assignment, net, d)
	return assignment, nil
}

// Insurance says how a job is insured by its first answer before its plans are contracted.
type Insurance int

const (
	Uninsured      Insurance = iota // all plans are exact and take no longer than one sweep of belief propagation
	InsuredBySweep                  // one sweep of belief propagation: all plans are exact and take a small share of the budget
	Insured                         // plans may be late
)

// Insure returns whether a job with these plans needs a first answer of belief propagation, in case that the plans end too late. It is
//
//   - Insured if an assignment has no plan, if a plan grows (it is a sequence of estimates), or if one takes more than InsuredShare of the
//     budget
//   - otherwise InsuredBySweep if a plan takes longer than one sweep of belief propagation over the network's tables
//   - Uninsured if no plan does: the answer is then there as soon as a first one would be.
func Insure(assignments []btn.Assignment, tables int, s query.Settings) Insurance {
	const leastTables = 1 // factors of one variable are no tables
	secondsOfSweep := policy.FirstSeconds * float64(max(leastTables, tables))
	sweepFlops := secondsOfSweep * policy.Rate
	insurance := Uninsured
	for _, a := range assignments {
		if a.Plan == nil || a.Plan.Grows() {
			return Insured
		}
		cost := &a.Plan.Estimates[0].Cost
		if a.Cost != nil { // the price under the evidence of the query
			cost = a.Cost
		}
		switch {
		case cost.Flops > proposal.InsuredShare*s.WithDefaults().Budget:
			return Insured
		case cost.Flops > sweepFlops:
			insurance = InsuredBySweep
		}
	}
	return insurance
}
