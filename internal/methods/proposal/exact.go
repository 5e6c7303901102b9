package proposal

// Proposals of exact families.

import (
	"math"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// Ask is a question to an exact family.
type Ask struct {
	Marginals bool
	Targets   []int // the variables whose marginals are wanted; none: all, where Marginals asks for them
	Joint     []int // the variables of a joint marginal; none: no joint marginal
	// Again says that the network was asked about before, or will be again.
	Again bool
	// Flops is the price of the cheapest elimination order that is known under the evidence, 0 where none was looked for.
	Flops float64
	// Next returns the proposal of the families after this one in the sequence. It may take as long as all of them together.
	Next func() (*btn.Assignment, error)
}

// A Proposer is the answer of an exact family: an assignment (Take makes it of a plan), or nil where the family has none for the
// query. A proposal that is over the budget is nil, too, or an error of code fault.OverBudget, with the price, where no later family
// is to be asked. Other errors end the query.
//
// The plan goes through Job.Remember, under settings that begin with a name of the family's own: the key has the digest of the
// model, so that the plan must not depend on the evidence unless the settings or the shape do. The price is
// looked at before anything expensive is made. The settings of the query say no more than Limit flops and Settings.Memory bytes.
type Proposer func(*Job, Ask) (*btn.Assignment, error)

// First returns the first proposal of some ways. It is over the budget where none of them has one.
func First(j *Job, ask Ask, families ...Way) (*btn.Assignment, error) {
	if len(families) == 0 {
		return nil, fault.New(fault.OverBudget, "plan: no exact way fits")
	}
	ask.Next = func() (*btn.Assignment, error) { return First(j, ask, families[1:]...) }
	if found, err := families[0].Ask(j, ask); found != nil || err != nil {
		return found, err
	}
	return ask.Next()
}

// Take returns the assignment of a remembered plan. hit is the state of the cache for it.
func Take(plan *btn.Plan, hit string) *btn.Assignment {
	return &btn.Assignment{Plan: plan, Cache: hit, LnLinks: math.Inf(-1)}
}

// Priced is Take where the price of the plan's first estimate is that under the evidence, too.
func Priced(plan *btn.Plan, hit string) *btn.Assignment {
	a := Take(plan, hit)
	cost := plan.Estimates[0].Cost
	a.Cost = &cost
	return a
}

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

// Bound returns k·count/chunks, rounded down, without overflow: chunks is below 2^11. Chunk k begins there.
func Bound(count, chunks, k int64) int64 { return count/chunks*k + count%chunks*k/chunks }

// Auto reports whether the planner chooses the way of a query.
func (j *Job) Auto() bool { return j.Settings.Method == query.MethodAuto }

// Planned reports whether the method is the planner's own: exact or auto.
func (j *Job) Planned() bool { return j.Auto() || j.Settings.Method == query.MethodExact }

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

// Finder is a part of exact plans whose family finds assignments along the same plan, too.
type Finder interface {
	btn.Part
	// Finding returns the parts that answer a question beside those of an estimate, of which this is the first; nil where the plan
	// has no answer.
	Finding(j *Job, parts []btn.Part, ask btn.Ask) ([]btn.Part, error)
}
