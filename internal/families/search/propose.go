package search

// Proposals: the most probable assignment by a search.

import (
	"context"
	"fmt"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/engine/search"
	"github.com/basetensor/basetensor/internal/families/descent"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/proposal"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Propose returns the plan of a search for the most probable assignment within a share of the budget, and the state of the cache for it.
//
// Errors: those of descent.Of; over_budget for tables that do not fit the memory.
func Propose(j *proposal.Job, share float64) (*btn.Plan, string, error) {
	p, err := descent.Of(j.Ctx, j.Problem(), btn.AskMPE, nil)
	if err != nil {
		return nil, "", err
	}
	entries := 0
	for k := range p.Terms().Tables {
		entries += len(p.Terms().Tables[k].Data)
	}
	cost := btn.Cost{Flops: share * j.Settings.Budget, Bytes: search.EntryBytes * float64(entries)}
	if entries > search.MostEntries || cost.Bytes > float64(j.Settings.Memory) {
		return nil, "", fault.New(fault.OverBudget, "search: tables of %d entries take %.3g bytes, %d are allowed",
			entries, cost.Bytes, j.Settings.Memory)
	}
	work := max(1, int64(cost.Flops/policy.SearchFlops))
	return j.Remember(fmt.Sprintf("search work=%d", work), p.Hypergraph(), func(context.Context) (*btn.Plan, error) {
		return proposal.Exact(cost, &Search{Shape: p.Shape(), Work: work}), nil
	})
}
