package search

// Proposals: the most probable assignment by a search.

import (
	"context"
	"fmt"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/engine/minibuckets"
	"github.com/basetensor/basetensor/internal/methods/descent"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/methods/search/branching"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// Try searches for the best assignments while a query is planned, with a share of the budget, and returns what it has found by the end of
// its part of the time for planning; nil where there is nothing to find.
//
// Errors: those of descent.Of and of branching.Solve.
func Try(ctx context.Context, j *proposal.Job, share float64, best int) (*Known, error) {
	p, err := descent.Of(ctx, j.Problem(), btn.AskMPE, nil)
	if err != nil || p.Terms().Scale.IsZero() {
		return nil, err
	}
	j.NoteMiss() // a search is repeated for every query
	within, end := proposal.PlanningContext(ctx, policy.PilotTime)
	defer end()
	r, err := branching.Solve(within, network(p.Terms()), options(steps(share*j.Settings.Budget), j.Settings.Memory, best))
	if err != nil || r.Values == nil && r.Proved {
		return nil, err
	}
	return &Known{Found: foundBy(p, r, best), Start: r.Values, Flops: spent(r)}, ctx.Err()
}

// steps is the work of a search of so many flops.
func steps(flops float64) int64 { return max(1, int64(flops/policy.SearchFlops)) }

// Propose returns the plan of a search for the most probable assignment within a share of the budget that begins with what is known, and
// the state of the cache for it.
//
// Errors: those of descent.Of; over_budget for tables that do not fit the memory.
func Propose(ctx context.Context, j *proposal.Job, share float64, known *Known) (*btn.Plan, string, error) {
	p, err := descent.Of(ctx, j.Problem(), btn.AskMPE, nil)
	if err != nil {
		return nil, "", err
	}
	entries := 0
	for k := range p.Terms().Tables {
		entries += len(p.Terms().Tables[k].Data)
	}
	cost := query.Cost{Flops: share * j.Settings.Budget, Bytes: branching.EntryBytes * float64(entries)}
	if entries > branching.MostEntries || cost.Bytes > float64(j.Settings.Memory) {
		return nil, "", fault.New(fault.OverBudget, "search: tables of %d entries take %.3g bytes, %d are allowed",
			entries, cost.Bytes, j.Settings.Memory)
	}
	return proposal.Exact(cost, &Search{Shape: p.Shape(), Work: steps(cost.Flops), Known: known}), j.CacheState(), nil
}

// Products of mini-buckets have firstEntries at least; the bound of a search takes boundShare of its work. Chosen.
const (
	firstEntries = 16.0
	boundShare   = 1.0 / 8
)

// ProposeMap returns the plan of a search for a marginal MAP assignment within a share of the budget, and the state of the cache for it.
//
// Errors: those of descent.Of; over_budget for mini-buckets that do not fit the memory.
func ProposeMap(ctx context.Context, j *proposal.Job, share float64, set []int) (*btn.Plan, string, error) {
	p, err := descent.Of(ctx, j.Problem(), btn.AskMap, set)
	if err != nil {
		return nil, "", err
	}
	cost := query.Cost{Flops: share * j.Settings.Budget}
	work := steps(cost.Flops)
	memory := float64(j.Settings.Memory)
	return j.Remember(ctx, fmt.Sprintf("search map work=%d memory=%g %s", work, memory, p.Shape()), p.Hypergraph(),
		func(computing context.Context) (*btn.Plan, error) {
			moves := int64(min(policy.MostFill, policy.FillShare*j.Settings.Budget))
			order, err := descent.Constrained(computing, p, moves)
			if err != nil {
				return nil, err
			}
			plan, entries, err := buckets(p.Hypergraph(), order, boundShare*cost.Flops, 1, memory/4)
			if err != nil {
				return nil, err
			}
			cost := cost
			cost.Bytes = plan.Bytes + memory/2
			return proposal.Exact(cost, &Search{Shape: p.Shape(), Work: work, Map: &Marginal{Order: order, Entries: entries}}), nil
		})
}

// buckets returns the plan of the largest mini-buckets of which so many runs take so many flops at most, with the entries of a product.
// The smallest ones may take more. Errors: over_budget where these do not fit memory bytes.
func buckets(h contractionorder.Hypergraph, order []int, flops, runs, memory float64) (best *minibuckets.Plan, entries float64, err error) {
	for size := firstEntries; size <= policy.MostBucketEntries; size *= 2 {
		p, err := minibuckets.NewPlan(h, order, size)
		switch {
		case err != nil:
			return nil, 0, err
		case best == nil && p.Bytes > memory:
			return nil, 0, fault.New(fault.OverBudget, "search: mini-buckets need %.3g bytes, %.3g are allowed", p.Bytes, memory)
		case best != nil && runs*p.Flops+p.Matching > flops || p.Bytes > memory:
			return best, entries, nil
		}
		best, entries = p, size
		if p.Split == 0 {
			break
		}
	}
	return best, entries, nil
}
