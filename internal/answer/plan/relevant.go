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

// planners are those of one job: of its network, and of the parts that queries depend on alone, each made when it is first needed.
type planners struct {
	settings     query.Settings // with defaults
	memo         proposal.Memo
	known        *Known
	problems     *problem.Shared
	options      problem.Options
	hasOneDemand bool             // the job has one query
	method       *proposal.Method // nil: the planner's own
	of           map[*btn.Network]*planner
}

// partTables is the number of tables up to which a question to a directed network is answered on the part that it depends on, if
// the network has more; of a larger part, and of a smaller network, the tree for all evidence is looked for first.
// Measured: a part of so many tables is planned in a millisecond.
const partTables = 128

// assign chooses the way of one query, on the relevant part of a directed network. A network with one contraction tree for all evidence is
// taken as it is where it is small, or the part is not: the tree serves all evidence, and takes less than planning for a part. So is one
// whose decomposition is learned. The choice depends on the network, the query and the settings alone.
func (as *planners) assign(ctx context.Context, net *btn.Network, d btn.Demand) (*btn.Assignment, error) {
	isGlobal := as.method != nil && as.method.IsGlobal
	isSmall := len(net.Cores) <= partTables
	if !net.Directed || d.IsParametric() || isGlobal || isSmall && methods.HasTree(ctx, as.on(net, false).Job) {
		return as.on(net, false).assign(ctx, d)
	}
	part, about := as.problems.Relevant(net, d)
	if part == net || len(part.Cores) > partTables && methods.HasTree(ctx, as.on(net, false).Job) {
		return as.on(net, false).assign(ctx, d)
	}
	found, err := as.on(part, true).assign(ctx, about)
	if err != nil {
		return nil, err
	}
	found.Relevant = true
	return found, nil
}

// on returns the planner of queries to a network. isPart reports whether that is a relevant part of the job's.
func (as *planners) on(net *btn.Network, isPart bool) *planner {
	p := as.of[net]
	if p == nil {
		facts := as.known.factsOf(net)
		p = &planner{facts: facts, hasOneDemand: as.hasOneDemand, Job: &proposal.Job{
			Net: net, Settings: as.settings, Memo: as.memo, Facts: facts.Facts, Problems: as.problems, Options: as.options,
			Method: as.method, IsPart: isPart,
		}}
		as.of[net] = p
	}
	return p
}

// cacheState reports whether all plans that the job needed were remembered: off without a memo.
func (as *planners) cacheState() string {
	if as.memo == nil {
		return btn.CacheOff
	}
	for _, a := range as.of {
		if a.CacheState() == btn.CacheMiss {
			return btn.CacheMiss
		}
	}
	return btn.CacheHit
}
