package stage

// The first answer of a job with a deadline. It is there before anything begins that may be late, and stands where all else fails.

import (
	"context"
	"slices"
	"time"

	"github.com/basetensor/basetensor/internal/answer/aggregate"
	"github.com/basetensor/basetensor/internal/answer/plan"
	"github.com/basetensor/basetensor/internal/answer/questions"
	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// HeadStart returns how long planning may take before FirstResults begins: most exact answers have arrived by then. untilDeadline is the
// time until the deadline, and tables is the number of tables of the network. It returns 0 if one sweep of belief propagation takes longer
// than that: FirstResults then comes before planning.
func HeadStart(untilDeadline time.Duration, tables int) time.Duration {
	head := halfFirstTime(untilDeadline)
	if policy.FirstSeconds*float64(tables) > head.Seconds() {
		return 0
	}
	return head
}

// firstTime is the part of a deadline by which the first value is stored, or one sweep of belief propagation later: half of it
// is for plans that are there at once, the rest for belief propagation to converge.
// Chosen.
const firstTime = 0.1

// halfFirstTime returns half of the time by which the first answer is stored. untilDeadline is the time until the deadline.
func halfFirstTime(untilDeadline time.Duration) time.Duration {
	return time.Duration(firstTime / 2 * float64(untilDeadline))
}

// FirstResults answers queries by the value of belief propagation and the bound by its messages, without planning. untilDeadline is the
// time until the deadline. FirstResults answers one query after the other until halfFirstTime is over and one of them has a value. All
// other queries fail with code deadline: those that remain, those that have further demands, and those for which belief propagation has no
// value. It returns an error only if the context is done.
func FirstResults(
	ctx context.Context, job string, net *btn.Network, queries []query.Query, s query.Settings, untilDeadline time.Duration,
) ([]query.Result, error) {
	enough, cancel := context.WithTimeout(ctx, halfFirstTime(untilDeadline))
	defer cancel()
	late := errorInfo(fault.New(fault.Deadline, "stage: no time was left for a first value"), query.StageLearn)
	demands, asked := questions.Demands(contraction.Domains(net), queries)
	assignments := make([]btn.Assignment, len(demands))
	values := make([]btn.UnitValue, 0, 2*len(demands)) // the value of belief propagation and the bound of each
	for k := range demands {
		assignments[k] = btn.Assignment{Error: late, Cache: btn.CacheOff} // unless the demand gets a value below
		isTimeOver := enough.Err() != nil && len(values) > 0
		hasFurtherDemands := k < len(asked) && len(asked[k].Extra) > 0 // asked has the first demand of each query only
		if isTimeOver || hasFurtherDemands {
			continue
		}
		a, demandValues, err := propagateOne(ctx, enough, net, demands[k], s)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err != nil || a == nil {
			continue // the demand has no value, and its assignment stays late
		}
		assignments[k] = *a
		for _, v := range demandValues {
			v.Query = k
			values = append(values, v)
		}
	}
	noteAsked(assignments, asked) // results are made by the queries in the assignments
	return AggregateNow(job, assignments, values), nil
}

// propagateOne runs belief propagation for one demand (what is wanted under one evidence) until the context enough is done, on the part of
// the network that the demand depends on. It returns an assignment, whose plan has the value of belief propagation and its bound as parts,
// and the values of these parts. The assignment is nil if there is no such value, or an error. If a part fails, its error is in its value.
func propagateOne(
	ctx, enough context.Context, net *btn.Network, d btn.Demand, s query.Settings,
) (*btn.Assignment, []btn.UnitValue, error) {
	var nothingShared *problem.Shared // a nil Shared remembers nothing for other demands
	relevant, relevantDemand := nothingShared.Relevant(net, d)
	_, _, conditioned, err := relevant.UnderEvidence(relevantDemand.Evidence) // conditioned is relevant with the evidence put in
	if err != nil {
		return nil, nil, err
	}
	p := problem.New(conditioned, problem.Options{Memory: s.WithDefaults().Memory, Threads: 1})
	a, err := plan.AssignFirst(ctx, enough, net, p, d, s)
	if err != nil || a == nil {
		return nil, nil, err
	}
	values := make([]btn.UnitValue, a.Plan.PartCount())
	for i := range values {
		values[i].Part = i
		part, _ := a.Plan.Part(i) // the index is in range
		v, err := contraction.Part(ctx, p, part, btn.Want{Marginals: relevantDemand.Marginals})
		if err != nil {
			values[i].Error = errorInfo(err, query.StageContract)
			continue
		}
		if v.Marginals != nil {
			v.Marginals.Domains = contraction.Domains(relevant)
			v.Marginals = v.Marginals.Select(relevantDemand.Targets)
		}
		values[i].Value = v
	}
	return a, values, nil
}

// HasAnswer reports whether at least one of the results is an answer.
func HasAnswer(results []query.Result) bool {
	return slices.ContainsFunc(results, func(r query.Result) bool { return r.Status == query.StatusOK })
}

// ReplaceFailures returns a copy of results in which each failure is replaced by the result in first, a list of FirstResults, for the same
// query. The message of the failure becomes a warning. A failure stays if first has no answer to the query either, if the model or the
// question is at fault, or if somebody cancelled. If the lists have different lengths, results is returned as it is.
func ReplaceFailures(results, first []query.Result) []query.Result {
	if len(results) != len(first) {
		return results
	}
	replaced := slices.Clone(results)
	for q, r := range results {
		hasFailed := r.Status != query.StatusOK && r.Error != nil
		isInFirst := first[q].Status == query.StatusOK
		if !hasFailed || !isInFirst {
			continue
		}
		switch r.Error.Code {
		case fault.BadInput, fault.Cancelled:
			continue
		case fault.Deadline:
			replaced[q] = first[q]
			replaced[q].Ended = aggregate.EndedDeadline
		default:
			replaced[q] = first[q]
		}
		replaced[q].TimingsMS = r.TimingsMS // those of the run that failed
		replaced[q].Warnings = append(slices.Clone(first[q].Warnings), "there is the value of belief propagation only: "+r.Error.Message)
	}
	return replaced
}

// PlanningTime returns the time from the request to the end of planning: policy.PlanShare of the time until the deadline, or less if the
// first estimate of a network with that number of tables would not be done before the deadline otherwise.
func PlanningTime(deadline time.Duration, tables int) time.Duration {
	estimate := time.Duration(policy.FirstSeconds * float64(tables) * float64(time.Second))
	return min(time.Duration(policy.PlanShare*float64(deadline)), deadline-estimate)
}
