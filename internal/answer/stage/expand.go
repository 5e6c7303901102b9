package stage

import (
	"slices"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// Expand returns the queries and, after them, those that their questions take: for information about a target, per value one that
// observes the target there and has the marginals of the candidates. Learn and Contract take these.
func Expand(net *btn.Network, queries []query.Query) []query.Query {
	all := queries
	for i := range queries {
		q := &queries[i]
		if q.Information == nil {
			continue
		}
		if len(all) == len(queries) {
			all = slices.Clip(all)
		}
		candidates := q.Information.Of(contraction.Domains(net), q.Evidence)
		for x := range net.Variables[q.Information.Target].Domain {
			all = append(all, query.Query{
				Evidence:  observed(q.Evidence, q.Information.Target, x),
				Marginals: len(candidates) > 0,
				Targets:   candidates,
			})
		}
	}
	return all
}

// expanded notes in the assignments of expanded queries which of them belong to which.
func expanded(net *btn.Network, queries []query.Query, assignments []btn.Assignment) error {
	extras := 0
	for i := range queries {
		if ask := queries[i].Information; ask != nil {
			extras += net.Variables[ask.Target].Domain
		}
	}
	next := len(queries) - extras
	if next < 0 || next == 0 && extras > 0 {
		return fault.New(fault.Internal, "stage: %d queries, %d of them for the information of others", len(queries), extras)
	}
	for i := range assignments[next:] {
		assignments[next+i].Extra = true
	}
	for i := range queries {
		ask := queries[i].Information
		if ask == nil {
			continue
		}
		of := *ask
		of.Candidates = ask.Of(contraction.Domains(net), queries[i].Evidence)
		a := &assignments[i]
		a.Ask, a.First, a.Count = &of, next, net.Variables[ask.Target].Domain
		next += a.Count
	}
	return nil
}

// Asked returns the number of the assignments' queries that were asked, and have results.
func Asked(assignments []btn.Assignment) int {
	n := 0
	for i := range assignments {
		if !assignments[i].Extra {
			n++
		}
	}
	return n
}

// observed returns evidence with one more observation, of a variable that is not observed.
func observed(e factorgraph.Evidence, v, x int) factorgraph.Evidence {
	at, _ := slices.BinarySearchFunc(e.Hard, v, func(o factorgraph.Observation, v int) int { return o.Var - v })
	return factorgraph.Evidence{
		Hard: slices.Insert(slices.Clone(e.Hard), at, factorgraph.Observation{Var: v, Value: x}),
		Soft: e.Soft,
	}
}
