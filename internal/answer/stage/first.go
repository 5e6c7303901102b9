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

// HeadStart is how long planning may take before First begins where so much time is left until a deadline: most exact answers are there
// by then. It is 0 for a network of so many tables that one sweep takes longer than that: First comes before planning.
func HeadStart(left time.Duration, tables int) time.Duration {
	head := half(left)
	if policy.FirstSeconds*float64(tables) > head.Seconds() {
		return 0
	}
	return head
}

// firstTime is the part of a deadline by which the first value is stored, or one sweep of belief propagation later: half of it
// is for plans that are there at once, the rest for belief propagation to converge.
// Chosen.
const firstTime = 0.1

// half is half of the time by which the first answer is to be there.
func half(left time.Duration) time.Duration {
	return time.Duration(firstTime / 2 * float64(left))
}

// First answers queries by the value of belief propagation and the bound by its messages: as many as the other
// half of firstTime holds of the time left, and one at least. The rest fails with code deadline. It plans nothing. Its errors are
// the context's.
func First(
	ctx context.Context, job string, net *btn.Network, queries []query.Query, s query.Settings, left time.Duration,
) ([]query.Result, error) {
	enough, cancel := context.WithTimeout(ctx, half(left))
	defer cancel()
	late := errorInfo(fault.New(fault.Deadline, "stage: no time was left for a first value"), query.StageLearn)
	demands, asked := questions.Demands(contraction.Domains(net), queries)
	assignments := make([]btn.Assignment, len(demands))
	values := make([]btn.UnitValue, 0, 2*len(demands))
	for k := range demands {
		assignments[k] = btn.Assignment{Error: late, Cache: btn.CacheOff}
		if enough.Err() != nil && len(values) > 0 || k < len(asked) && len(asked[k].Extra) > 0 {
			continue
		}
		a, own, err := firstOf(ctx, enough, net, demands[k], s)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err != nil || a == nil {
			continue
		}
		assignments[k] = *a
		for _, v := range own {
			v.Query = k
			values = append(values, v)
		}
	}
	note(assignments, asked)
	return AggregateNow(job, assignments, values), nil
}

// firstOf returns the assignment and the values of a demand's first answer; nil if it has none.
func firstOf(
	ctx, enough context.Context, net *btn.Network, d btn.Demand, s query.Settings,
) (*btn.Assignment, []btn.UnitValue, error) {
	on, about := (*problem.Shared)(nil).Relevant(net, d)
	_, _, conditioned, err := on.Given(about.Evidence)
	if err != nil {
		return nil, nil, err
	}
	p := problem.New(conditioned, problem.Options{Memory: s.WithDefaults().Memory, Threads: 1})
	a, err := plan.First(ctx, enough, net, p, d, s)
	if err != nil || a == nil {
		return nil, nil, err
	}
	values := make([]btn.UnitValue, a.Plan.Len())
	for i := range values {
		values[i].Part = i
		part, _ := a.Plan.Part(i)
		v, err := contraction.Part(ctx, p, part, btn.Want{Marginals: about.Marginals})
		if err != nil {
			values[i].Error = errorInfo(err, query.StageContract)
			continue
		}
		if v.Marginals != nil {
			v.Marginals.Domains = contraction.Domains(on)
			v.Marginals = v.Marginals.Of(about.Targets)
		}
		values[i].Value = v
	}
	return a, values, nil
}

// Answered reports whether some query has an answer.
func Answered(results []query.Result) bool {
	return slices.ContainsFunc(results, func(r query.Result) bool { return r.Status == query.StatusOK })
}

// OrFirst puts the results of First in the place of those that failed, and says why they stand there. Where the model or the question is at
// fault, or somebody cancelled, the failure stays.
func OrFirst(results, first []query.Result) []query.Result {
	if len(results) != len(first) {
		return results
	}
	out := slices.Clone(results)
	for q, r := range results {
		if r.Status == query.StatusOK || first[q].Status != query.StatusOK || r.Error == nil {
			continue
		}
		switch r.Error.Code {
		case fault.BadInput, fault.Cancelled:
			continue
		case fault.Deadline:
			out[q] = first[q]
			out[q].Ended = aggregate.EndedDeadline
		default:
			out[q] = first[q]
		}
		out[q].TimingsMS = r.TimingsMS
		out[q].Warnings = append(slices.Clone(first[q].Warnings), "there is the value of belief propagation only: "+r.Error.Message)
	}
	return out
}

// PlanningTime returns the time from the request to the end of planning. It leaves a part of the deadline, and the time of the first
// estimate for a network of that number of tables.
func PlanningTime(deadline time.Duration, tables int) time.Duration {
	first := time.Duration(policy.FirstSeconds * float64(tables) * float64(time.Second))
	return min(time.Duration(policy.PlanShare*float64(deadline)), deadline-first)
}
