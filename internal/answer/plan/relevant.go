package plan

// A query costs what it depends on: it is planned on the relevant part of a directed network.

import (
	"context"

	"github.com/basetensor/basetensor/internal/methods/exact"
	"github.com/basetensor/basetensor/internal/methods/learned"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/query"
)

// assigners are those of one job: of its network, and of the parts that queries depend on alone, each made when it is first needed.
type assigners struct {
	ctx      context.Context
	settings query.Settings // with defaults
	memo     proposal.Memo
	known    *Known
	problems *problem.Shared
	options  problem.Options
	alone    bool             // the job has one query
	method   *proposal.Method // nil: the planner's own
	of       map[*btn.Network]*assigner
}

// partTables is the number of tables up to which a question to a directed network is answered on the part that it depends on, if
// the network has more; of a larger part, and of a smaller network, the tree for all evidence is looked for first.
// Measured: a part of so many tables is planned in a millisecond.
const partTables = 128

// assign chooses the way of one query, on the relevant part of a directed network. A network with one contraction tree for all evidence is
// taken as it is where it is small, or the part is not: the tree serves all evidence, and takes less than planning for a part. So is one
// whose decomposition is learned. The choice depends on the network, the query and the settings alone.
func (as *assigners) assign(net *btn.Network, d btn.Demand) (*btn.Assignment, error) {
	if !net.Directed || d.IsParametric() || as.method == &learned.Method || len(net.Cores) <= partTables && as.on(net).hasTree() {
		return as.on(net).assign(d)
	}
	part, about := as.problems.Relevant(net, d)
	if part == net || len(part.Cores) > partTables && as.on(net).hasTree() {
		return as.on(net).assign(d)
	}
	a := as.on(part)
	a.isPart = true
	found, err := a.assign(about)
	if err != nil {
		return nil, err
	}
	found.Relevant = true
	return found, nil
}

// on returns the assigner of queries to a network.
func (as *assigners) on(net *btn.Network) *assigner {
	a := as.of[net]
	if a == nil {
		facts := as.known.factsOf(net)
		a = &assigner{facts: facts, exactly: new(exactly), alone: as.alone, method: as.method, Job: &proposal.Job{
			Ctx: as.ctx, Net: net, Settings: as.settings, Memo: as.memo, Facts: facts.Facts, Problems: as.problems, Options: as.options,
		}}
		as.of[net] = a
	}
	return a
}

// cacheState reports whether all plans that the job needed were remembered: off without a memo.
func (as *assigners) cacheState() string {
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

// hasTree reports whether the network has one contraction tree for all evidence.
func (a *assigner) hasTree() bool {
	shape, err := a.Facts.Shape(a.Ctx, a.Net)
	if err != nil {
		return false
	}
	plan, _, err := a.remembered(shape)
	return err == nil && exact.JunctionOf(plan) != nil
}
