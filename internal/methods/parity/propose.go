package parity

// Proposals: sums over parities that depend on each other.

import (
	"context"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/pkg/query"
)

const (
	// minVariables is the number of variables below which elimination is cheap.
	minVariables = 24
	// cheapFlops is the work of a sum that is taken before an elimination order is looked for, flops.
	cheapFlops = 1e8
)

// paritySlot is the slot of the result of hasParities.
type paritySlot struct{}

// parityFact is the result of hasParities.
type parityFact struct{ ok, isLong bool }

// Propose proposes a sum over parities. It returns nil if the factors are no functions of parities, if too many parities depend on each
// other, or if the sum takes too long. ask.Flops is the work of the best known elimination order, which the sum has to beat. If it is 0, no
// order is known: then the network needs a factor of three variables or more, and the sum has to be cheap or an elimination out of reach.
func Propose(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	if len(j.Net.Variables) < minVariables || len(ask.Joint) > 0 {
		return nil, nil
	}
	fact, err := proposal.Fact(ctx, j.Facts, paritySlot{}, func() (parityFact, error) {
		ok, isLong := hasParities(j.Net)
		return parityFact{ok, isLong}, nil
	})
	needsLongFactor := ask.Flops == 0
	if err != nil || !fact.ok || needsLongFactor && !fact.isLong {
		return nil, err
	}
	f, err := formOf(ctx, j.Problem())
	if f == nil || err != nil { // without a form there is nothing to propose; the only error is the context's
		return nil, ctx.Err()
	}
	// 16 bytes: two lists of float64 by state. There are 2^len(f.dependent) states.
	cost := query.Cost{Flops: f.flops(ask.Marginals), Bytes: 16 * float64(f.states()), Log2Table: float64(len(f.dependent))}

	isOverLimit := policy.ExactRate*cost.Flops > proposal.ExactFlopLimit(j.Settings) || cost.Bytes > float64(j.Settings.Memory)
	isOrderCheaper := ask.Flops > 0 && cost.Flops >= ask.Flops
	mayOrderBeCheaper := ask.Flops == 0 && cost.Flops > cheapFlops && !f.isWide() // wide: an elimination is out of reach
	if isOverLimit || isOrderCheaper || mayOrderBeCheaper {
		return nil, nil
	}

	// The remembered plan serves the network under any evidence. What depends on the evidence is not in it: the assignment has the cost, and
	// a contraction finds the form itself, so Parities has no fields.
	plan, cacheState, err := j.Remember(ctx, "parity", contractionorder.Hypergraph{}, func(context.Context) (*btn.Plan, error) {
		return proposal.ExactPlan(query.Cost{}, &Parities{}), nil
	})
	if err != nil {
		return nil, err
	}
	assignment := proposal.NewAssignment(plan, cacheState)
	assignment.Cost = &cost
	return assignment, nil
}

// isWide reports whether an elimination of the factors is probably out of reach: there are many independent factors, and nearly as many
// factors as variables.
func (f *form) isWide() bool {
	return len(f.independent) > 100 && 4*len(f.factors) >= 3*f.variableCount // three factors for four variables
}
