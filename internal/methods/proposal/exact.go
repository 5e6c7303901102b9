package proposal

// Plans of proposals, and limits of their work.

import (
	"math"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/query"
)

// Approximate assigns a remembered plan whose estimates approximate the expression e, which is the simplified network under the evidence.
// It notes whether tables of e have zeros (Hard) and whether terms may be lost (Unsure). hit is the state of the cache for the plan.
func Approximate(plan *btn.Plan, hit string, e *sumproduct.Expression) *btn.Assignment {
	a := Take(plan, hit)
	a.Hard, a.Unsure = HasConstraint(e), ExceedsRange(e)
	return a
}

// Exact returns the plan of an exact contraction, B = Σ parts with all α = 1. cost has the flops of all parts together, and the peak
// memory of one.
func Exact(cost query.Cost, parts ...btn.Part) *btn.Plan {
	return &btn.Plan{Method: query.MethodExact, Estimates: []btn.Estimate{{
		Rule:    btn.Linear,
		Slices:  1,
		Parts:   parts,
		Quality: &btn.Quality{Exact: true, LnNormError: math.Inf(-1), ConditionGram: 1},
		Cost:    cost,
	}}}
}

// InsuredShare is a share of the budget. If an exact answer to a job with a deadline takes more than that, its plan has an estimate
// before it that is there in time.
// Chosen.
const InsuredShare = 1.0 / 32

// ChunkStart returns the start of chunk k if count items are divided into chunks of almost equal size: k·count/chunks, rounded down,
// without overflow. The number of chunks is below 2^11.
func ChunkStart(count, chunks, k int64) int64 { return count/chunks*k + count%chunks*k/chunks }

// IsAuto reports whether the request leaves the choice of the method to the planner (method auto).
func (j *Job) IsAuto() bool { return j.Settings.Method == query.MethodAuto }

// IsPlanned reports whether the method is auto or exact, under which the planner chooses the way to answer.
func (j *Job) IsPlanned() bool { return j.IsAuto() || j.Settings.Method == query.MethodExact }

// AutoLimit returns the flops above which method auto does not answer exactly: what the budget is enough for at policy.ExactRate, at most
// policy.AutoFlops.
func AutoLimit(s query.Settings) float64 {
	return min(policy.AutoFlops, policy.ExactRate*s.WithDefaults().Budget)
}

// Limit returns the flops above which no exact answer is proposed: AutoLimit for method auto, else policy.ExactFlops.
func Limit(s query.Settings) float64 {
	if s.Method == query.MethodAuto {
		return AutoLimit(s)
	}
	return policy.ExactFlops
}

// MoveLimit returns the largest number of moves of all searches of one query together, policy.PlanningShare of the budget. Moves are
// counted and not timed, so that the plan is the same on every machine.
func MoveLimit(s query.Settings) int64 {
	return max(1, int64(min(policy.PlanningShare*s.WithDefaults().Budget/policy.MoveFlops, float64(policy.MostMoves))))
}
