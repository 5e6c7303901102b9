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
	// cheap is the work of a sum that is taken before an elimination order is looked for, flops.
	cheap = 1e8
)

// paritySlot is the slot of the result of hasParities.
type paritySlot struct{}

// parityFact is the result of hasParities.
type parityFact struct{ ok, isLong bool }

// Propose proposes a sum over parities. It returns nil if the factors are no functions of parities, if too many parities depend on each
// other, or if the sum takes too long. If no elimination order is known yet (ask.Flops is 0), the network needs a factor of three variables
// or more, and the sum has to be cheap or an elimination out of reach.
func Propose(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	if len(j.Net.Variables) < minVariables || len(ask.Joint) > 0 {
		return nil, nil
	}
	has, err := proposal.Fact(ctx, j.Facts, paritySlot{}, func() (parityFact, error) {
		ok, long := hasParities(j.Net)
		return parityFact{ok, long}, nil
	})
	if err != nil || !has.ok || ask.Flops == 0 && !has.isLong {
		return nil, err
	}
	f, err := formOf(ctx, j.Problem())
	if f == nil || err != nil {
		return nil, ctx.Err()
	}
	cost := query.Cost{Flops: f.flops(ask.Marginals), Bytes: 16 * float64(f.states()), Log2Table: float64(len(f.dependent))}
	switch {
	case policy.ExactRate*cost.Flops > proposal.Limit(j.Settings) || cost.Bytes > float64(j.Settings.Memory):
		return nil, nil
	case ask.Flops > 0 && cost.Flops >= ask.Flops || ask.Flops == 0 && cost.Flops > cheap && !f.isWide():
		return nil, nil
	}
	plan, hit, err := j.Remember(ctx, "parity", contractionorder.Hypergraph{}, func(context.Context) (*btn.Plan, error) {
		return proposal.Exact(query.Cost{}, &Parities{}), nil
	})
	if err != nil {
		return nil, err
	}
	assignment := proposal.Take(plan, hit)
	assignment.Cost = &cost
	return assignment, nil
}

// isWide reports whether an elimination of the factors is out of reach in all likelihood: there are nearly as many factors as variables.
func (f *form) isWide() bool {
	return len(f.independent) > 100 && 4*len(f.factors) >= 3*f.variableCount
}
