package proposal

// What proposals are made of, and what they may take.

import (
	"math"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/query"
)

// Approximate is Take for estimates of the network simplified to an expression.
func Approximate(plan *btn.Plan, hit string, e *sumproduct.Expression) *btn.Assignment {
	a := Take(plan, hit)
	a.Hard, a.Unsure = Forbids(e), BeyondRange(e)
	return a
}

// Exact returns the plan of an exact contraction, B = Σ parts: all α = 1. cost is that of all parts together, with the peak of one.
func Exact(cost query.Cost, parts ...btn.Part) *btn.Plan {
	return &btn.Plan{Method: query.MethodExact, Estimates: []btn.Estimate{{
		Rule:    btn.Linear,
		Slices:  1,
		Parts:   parts,
		Quality: &btn.Quality{Exact: true, LnNormError: math.Inf(-1), ConditionGram: 1},
		Cost:    cost,
	}}}
}

// InsuredShare is the part of the budget of a job with a deadline from which an exact answer has something before it that is there in time.
// Chosen.
const InsuredShare = 1.0 / 32

// Bound returns k·count/chunks, rounded down, without overflow: chunks is below 2^11. Chunk k begins there.
func Bound(count, chunks, k int64) int64 { return count/chunks*k + count%chunks*k/chunks }

// IsAuto reports whether the planner chooses the way of a query.
func (j *Job) IsAuto() bool { return j.Settings.Method == query.MethodAuto }

// IsPlanned reports whether the method is the planner's own: exact or auto.
func (j *Job) IsPlanned() bool { return j.IsAuto() || j.Settings.Method == query.MethodExact }

// AutoLimit is the work in flops above which method auto does not take the exact way: the worth of the budget, at
// most policy.AutoFlops.
func AutoLimit(s query.Settings) float64 {
	return min(policy.AutoFlops, policy.ExactRate*s.WithDefaults().Budget)
}

// Limit is the work in flops above which the exact way is not taken.
func Limit(s query.Settings) float64 {
	if s.Method == query.MethodAuto {
		return AutoLimit(s)
	}
	return policy.ExactFlops
}

// Moves bounds the moves of all searches of one query together: policy.PlanningShare of the budget, so
// that the plan is the same everywhere.
func Moves(s query.Settings) int64 {
	return max(1, int64(min(policy.PlanningShare*s.WithDefaults().Budget/policy.MoveFlops, float64(policy.MostMoves))))
}
