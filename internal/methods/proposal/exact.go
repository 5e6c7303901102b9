package proposal

// Plans of proposals, and limits of their work.

import (
	"math"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/query"
)

// NewApproximateAssignment returns the assignment of a plan whose estimates approximate the expression e, the simplified network under
// the evidence. It notes whether tables of e forbid combinations of values (Hard), and whether terms may be lost (Unsure). cacheState is
// the state of the cache for the plan.
func NewApproximateAssignment(plan *btn.Plan, cacheState string, e *sumproduct.Expression) *btn.Assignment {
	a := NewAssignment(plan, cacheState)
	a.Hard, a.Unsure = HasConstraint(e), ExceedsRange(e)
	return a
}

// ExactPlan returns a plan of one exact estimate: B is the sum of the parts, with all weights α = 1. cost has the flops of all parts
// together, and the peak memory of one.
func ExactPlan(cost query.Cost, parts ...btn.Part) *btn.Plan {
	return &btn.Plan{Method: query.MethodExact, Estimates: []btn.Estimate{{
		Rule:    btn.Linear,
		Slices:  1,
		Parts:   parts,
		Quality: &btn.Quality{Exact: true, LnNormError: math.Inf(-1), ConditionGram: 1},
		Cost:    cost,
	}}}
}

// InsuredShare is the largest share of the budget that an exact answer to a job with a deadline may take without an estimate before it that
// is there in time.
// Chosen.
const InsuredShare = 1.0 / 32

// ChunkStart returns the position of the first item of chunk k, if count items are divided into chunks of almost equal size:
// k·count/chunks, rounded down, computed without overflow. The number of chunks is below 2^11.
func ChunkStart(count, chunks, k int64) int64 { return count/chunks*k + count%chunks*k/chunks }

// IsAuto reports whether the request leaves the choice of the method to the planner (method auto).
func (j *Job) IsAuto() bool { return j.Settings.Method == query.MethodAuto }

// IsPlanned reports whether the method is auto or exact, under which the planner chooses the way to answer.
func (j *Job) IsPlanned() bool { return j.IsAuto() || j.Settings.Method == query.MethodExact }

// AutoFlopLimit returns the flops above which method auto does not answer exactly: what the budget is enough for at policy.ExactRate, at
// most policy.AutoFlops.
func AutoFlopLimit(s query.Settings) float64 {
	return min(policy.AutoFlops, policy.ExactRate*s.WithDefaults().Budget)
}

// ExactFlopLimit returns the flops above which no exact answer is proposed: AutoFlopLimit for method auto, else policy.ExactFlops.
func ExactFlopLimit(s query.Settings) float64 {
	if s.Method == query.MethodAuto {
		return AutoFlopLimit(s)
	}
	return policy.ExactFlops
}

// MoveLimit returns how many moves the searches for one query may make together: as many as policy.PlanningShare of the budget pays for.
// Moves are counted and not timed, so that the plan is the same on every machine.
func MoveLimit(s query.Settings) int64 {
	return max(1, int64(min(policy.PlanningShare*s.WithDefaults().Budget/policy.MoveFlops, float64(policy.MostMoves))))
}
