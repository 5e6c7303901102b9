package plan

// A query costs what it depends on: it is planned on the relevant part of a directed network.

import (
	"slices"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/families/exact"
	"github.com/basetensor/basetensor/internal/families/learned"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/proposal"
	"github.com/basetensor/basetensor/pkg/query"
)

// assignRelevant is assign on the relevant part of a directed network. A network that is small enough for a program of its own is taken
// as it is: the program serves all evidence, and takes less than planning for a part. So is one whose decomposition is learned.
// The choice depends on the network, the query and the settings alone.
func (a *assigner) assignRelevant(q query.Query) (*btn.Assignment, error) {
	if !a.Net.Directed || a.method == &learned.Method || a.hasProgram() {
		return a.assign(q)
	}
	part, about := a.Problems.Relevant(a.Net, q)
	if part == a.Net {
		return a.assign(q)
	}
	found, err := a.on(part).assign(about)
	if err != nil {
		return nil, err
	}
	found.Relevant = true
	if len(found.Joint) > 0 {
		found.Joint = q.Joint
	}
	if found.Descents != nil {
		asked := *found.Descents
		asked.Map = q.Map
		found.Descents = &asked
	}
	return found, nil
}

// hasProgram reports whether the whole network is compiled for any evidence.
func (a *assigner) hasProgram() bool {
	if len(a.Net.Cores) > policy.ProgramTables {
		return false
	}
	shape, err := a.Facts.Shape(a.Ctx, a.Net)
	if err != nil {
		return false
	}
	plan, _, err := a.exactly(shape)
	if err != nil {
		return false
	}
	order := exact.OrderOf(plan)
	return order != nil && order.Flops <= policy.ProgramFlops
}

// on returns the assigner of queries to a part of the network: the same one for the same part.
func (a *assigner) on(part *btn.Network) *assigner {
	if own := a.parts[part]; own != nil {
		return own
	}
	facts := a.known.factsOf(part)
	own := &assigner{facts: facts, alone: a.alone, method: a.method, known: a.known, Job: &proposal.Job{
		Ctx: a.Ctx, Net: part, Settings: a.Settings, Memo: a.Memo, Facts: facts.Facts, Problems: a.Problems, Options: a.Options,
	}}
	if a.parts == nil {
		a.parts = map[*btn.Network]*assigner{}
	}
	a.parts[part] = own
	return own
}

// cacheState is that of the job and of all parts.
func (a *assigner) cacheState() string {
	states := []string{a.CacheState()}
	for _, own := range a.parts {
		states = append(states, own.CacheState())
	}
	if slices.Contains(states, btn.CacheMiss) {
		return btn.CacheMiss
	}
	return states[0]
}
