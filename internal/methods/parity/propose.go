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
	// leastVariables is the number of variables below which elimination is cheap.
	leastVariables = 24
	// cheap is the work of a sum that is taken before an elimination order is looked for, flops.
	cheap = 1e8
)

// structure is the slot of hasParities.
type structure struct{}

// found is its content.
type found struct{ ok, isLong bool }

// Propose is the proposal of a sum over parities; nil if the factors are none of parities, or too many parities depend on each other. If
// no elimination order is known yet it is asked of networks with factors of three variables and more, and has to be cheap.
func Propose(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	if len(j.Net.Variables) < leastVariables || len(ask.Joint) > 0 {
		return nil, nil
	}
	has, err := proposal.Fact(j.Facts, structure{}, func() (found, error) {
		ok, long := hasParities(j.Net)
		return found{ok, long}, nil
	})
	if err != nil || !has.ok || ask.Flops == 0 && !has.isLong {
		return nil, err
	}
	f, err := formOf(ctx, j.Problem())
	if f == nil || err != nil {
		return nil, ctx.Err()
	}
	cost := query.Cost{Flops: f.work(ask.Marginals), Bytes: 16 * float64(f.states()), Log2Table: float64(len(f.dependent))}
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

// isWide reports whether an elimination of the factors as they are is out of reach in all likelihood: there are nearly as many as
// variables.
func (f *form) isWide() bool { return len(f.independent) > 100 && 4*len(f.factors) >= 3*f.n }
