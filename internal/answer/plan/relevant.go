package plan

// A query costs what it depends on: it is planned on the relevant part of a directed network.

import (
	"context"

	"github.com/basetensor/basetensor/internal/methods"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/query"
)

// jobPlanner plans the queries of one job, on its network or on the relevant part of it for a query.
type jobPlanner struct {
	settings     query.Settings // with defaults
	memo         proposal.Memo
	known        *NetworkMemory
	problems     *problem.Shared
	options      problem.Options
	hasOneDemand bool                      // the job has one query
	method       *proposal.Method          // nil: the planner's own
	planners     map[*btn.Network]*planner // of the networks that were planned on so far (plannerOf)
}

// partTables is the largest number of tables of a small network, or of a small relevant part.
// Measured: a part of so many tables is planned in a millisecond.
const partTables = 128

// assign chooses how one demand (what is wanted under one evidence) on net is answered. If net is a Bayesian network, the demand is planned
// on the relevant part of net, which lacks the variables that do not change the answer. There are exceptions:
//
//   - If the network is not directed, if derivatives are wanted, or if the method decomposes the complete network, it is planned on net.
//   - If net is small, or its relevant part is not, and if net has one contraction tree for all evidence, it is planned on net: the tree
//     takes less than planning for a part.
//
// The choice depends only on the network, the query and the settings.
func (j *jobPlanner) assign(ctx context.Context, net *btn.Network, d btn.Demand) (*btn.Assignment, error) {
	const isPart = true
	onWhole := func() *planner { return j.plannerOf(net, !isPart) }
	isGlobal := j.method != nil && j.method.IsGlobal
	needsWhole := !net.Directed || d.IsParametric() || isGlobal
	isSmall := len(net.Cores) <= partTables
	if needsWhole || isSmall && methods.HasTree(ctx, onWhole().Job) {
		return onWhole().assign(ctx, d)
	}
	part, partDemand := j.problems.Relevant(net, d) // net itself if all of it is relevant
	isPartLarge := len(part.Cores) > partTables
	if part == net || isPartLarge && methods.HasTree(ctx, onWhole().Job) {
		return onWhole().assign(ctx, d)
	}
	assignment, err := j.plannerOf(part, isPart).assign(ctx, partDemand)
	if err != nil {
		return nil, err
	}
	assignment.Relevant = true
	return assignment, nil
}

// plannerOf returns the planner of a network, which the first call makes. isPart reports whether the network is the relevant part of
// another one for a query.
func (j *jobPlanner) plannerOf(net *btn.Network, isPart bool) *planner {
	p := j.planners[net]
	if p == nil {
		facts := j.known.factsOf(net)
		p = &planner{facts: facts, hasOneDemand: j.hasOneDemand, Job: &proposal.Job{
			Net: net, Settings: j.settings, Memo: j.memo, Facts: facts.Facts, Problems: j.problems, Options: j.options,
			Method: j.method, IsPart: isPart,
		}}
		j.planners[net] = p
	}
	return p
}

// cacheState returns btn.CacheHit if all plans that the job needed were remembered, btn.CacheMiss if not, and btn.CacheOff without a memo.
func (j *jobPlanner) cacheState() string {
	if j.memo == nil {
		return btn.CacheOff
	}
	for _, p := range j.planners {
		if p.CacheState() == btn.CacheMiss {
			return btn.CacheMiss
		}
	}
	return btn.CacheHit
}
