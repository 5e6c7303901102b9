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

// PilotSearch searches for the count best assignments while a query is planned, and returns what it has found. The search ends after
// share of the budget, or at the end of its part of the time for planning (policy.PilotTime), which is no error. The result is nil if no
// assignment has a weight above 0.
//
// Errors: those of descent.PreparedOf and of branching.Solve.
func PilotSearch(ctx context.Context, j *proposal.Job, share float64, count int) (*Known, error) {
	p, err := descent.PreparedOf(ctx, j.Problem(), btn.AskMPE, nil)
	if err != nil || p.Terms().Scale.IsZero() {
		return nil, err
	}
	j.NoteMiss() // a search is repeated for every query
	searchCtx, cancel := proposal.PlanningContext(ctx, policy.PilotTime)
	defer cancel()
	o := solveOptions(searchSteps(share*j.Settings.Budget), j.Settings.Memory, count)
	r, err := branching.Solve(searchCtx, costNetwork(p.Terms()), o)
	if err != nil || r.Values == nil && r.Proved {
		return nil, err
	}
	return &Known{Found: weighResult(p, r, count), Start: r.Values, Flops: flopsSpent(r)}, ctx.Err() // nil at the end of searchCtx alone
}

// searchSteps returns the number of steps of a search, entries of tables looked at, that take that many flops. It is at least 1.
func searchSteps(flops float64) int64 { return max(1, int64(flops/policy.SearchFlops)) }

// Propose returns the plan of a search for the most probable assignment, and the state of the cache for it. The search takes share of the
// budget at most, and begins with the assignment of known if that is not nil.
//
// Errors: those of descent.PreparedOf; over_budget for tables that do not fit the memory.
func Propose(ctx context.Context, j *proposal.Job, share float64, known *Known) (*btn.Plan, string, error) {
	p, err := descent.PreparedOf(ctx, j.Problem(), btn.AskMPE, nil)
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
	// The plan itself takes no work, so it is not remembered.
	return proposal.ExactPlan(cost, &Search{Shape: p.Shape(), Work: searchSteps(cost.Flops), Known: known}), j.CacheState(), nil
}

// Both chosen.
const (
	firstEntries = 16.0    // limit of a product's entries in the smallest mini-buckets that are tried
	boundShare   = 1.0 / 8 // share of a search's work that its bound by mini-buckets may take
)

// ProposeMap returns the plan of a search for a marginal MAP assignment of the variables in set, and the state of the cache for it. The
// search takes share of the budget at most.
//
// Errors: those of descent.PreparedOf; over_budget for mini-buckets that do not fit the memory.
func ProposeMap(ctx context.Context, j *proposal.Job, share float64, set []int) (*btn.Plan, string, error) {
	p, err := descent.PreparedOf(ctx, j.Problem(), btn.AskMap, set)
	if err != nil {
		return nil, "", err
	}
	cost := query.Cost{Flops: share * j.Settings.Budget}
	work := searchSteps(cost.Flops)
	memory := float64(j.Settings.Memory)
	return j.Remember(ctx, fmt.Sprintf("search map work=%d memory=%g %s", work, memory, p.Shape()), p.Hypergraph(),
		func(computing context.Context) (*btn.Plan, error) {
			moves := int64(min(policy.MostFill, policy.FillShare*j.Settings.Budget))
			order, err := descent.SumsFirstOrder(computing, p, moves)
			if err != nil {
				return nil, err
			}
			const runs = 1 // the mini-buckets are computed once in the search
			// The mini-buckets that bound the search may take a quarter of the memory.
			plan, entries, err := largestMiniBuckets(p.Hypergraph(), order, boundShare*cost.Flops, runs, memory/4)
			if err != nil {
				return nil, err
			}
			cost := cost
			cost.Bytes = plan.Bytes + memory/2 // half of the memory is for the sums of one assignment
			return proposal.ExactPlan(cost, &Search{Shape: p.Shape(), Work: work, Map: &Marginal{Order: order, Entries: entries}}), nil
		})
}

// largestMiniBuckets returns the plan of the largest mini-buckets along an elimination order that fit the limits, and entryLimit, the most
// entries that a product of theirs may have. A bucket has the tables with a variable; it is split into mini-buckets if their product would
// be larger. The plan has to fit memory bytes, and runs times its flops with the work of matching has to be at most flops.
//
// It tries entry limits from firstEntries on, each twice the one before, until no bucket is split. The plan of the smallest entry limit may
// take more flops. Errors: over_budget if even that plan does not fit memory.
func largestMiniBuckets(
	h contractionorder.Hypergraph, order []int, flops, runs, memory float64,
) (best *minibuckets.Plan, entryLimit float64, err error) {
	for limit := firstEntries; limit <= policy.MostBucketEntries; limit *= 2 {
		p, err := minibuckets.NewPlan(h, order, limit)
		switch {
		case err != nil:
			return nil, 0, err
		case best == nil && p.Bytes > memory:
			return nil, 0, fault.New(fault.OverBudget, "search: mini-buckets need %.3g bytes, %.3g are allowed", p.Bytes, memory)
		case best != nil && runs*p.Flops+p.Matching > flops || p.Bytes > memory:
			return best, entryLimit, nil
		}
		best, entryLimit = p, limit
		if p.Split == 0 { // no bucket is split: larger limits change nothing
			break
		}
	}
	return best, entryLimit, nil
}
