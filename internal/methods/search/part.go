// Package search finds the most probable assignment if no elimination fits. It branches and bounds over soft local consistency (package
// branching) if all variables are wanted, and over mini-buckets if only some are. It has an assignment, and a bound of all others, whenever
// it ends.
package search

import (
	"slices"

	"github.com/basetensor/basetensor/internal/network/btn"
)

// Search is a search over the network's tables of terms. It has no share of Z.
type Search struct {
	Shape string `msgpack:"shape"` // digest of the tables' hypergraph
	// Work bounds the entries of tables that are looked at, so that the answer does not depend on a clock. 0: the value is Known.Found.
	Work int64 `msgpack:"work,omitempty"`
	// Map is there for a marginal MAP assignment, nil for the most probable one.
	Map *Marginal `msgpack:"map,omitempty"`
	// Known is what all of a plan's searches begin with; nil: nothing.
	Known *Known `msgpack:"-"`
}

// Known is what a search has found while the query was planned.
type Known struct {
	Found *btn.Found `msgpack:"found"`
	Start []int      `msgpack:"start"` // values of the tables' indices in the best assignment; nil: none was found
	Flops float64    `msgpack:"flops"` // of the search
}

// Part returns a part that does no search: its value is k.Found.
func (k *Known) Part() btn.Part { return &Search{Known: k} }

// isFor reports whether k fits the given variables: k.Found has an assignment of them, or none and a bound alone, and all other assignments
// in it are assignments of them, too. It does not check k.Start, which the search does.
func (k *Known) isFor(variables []btn.Variable) bool {
	if k.Found == nil {
		return false
	}
	isAssignment := func(values []int) bool {
		for v, x := range values {
			if v == len(variables) || x < 0 || x >= variables[v].Domain {
				return false
			}
		}
		return len(values) == len(variables)
	}
	isBoundAlone := len(k.Found.Values) == 0
	return (isBoundAlone || isAssignment(k.Found.Values)) &&
		!slices.ContainsFunc(k.Found.Others, func(o btn.Other) bool { return !isAssignment(o.Values) })
}

// Class implements btn.Part.
func (*Search) Class() btn.Class { return btn.ClassSearch }

// About implements btn.Part: a search finds the most probable assignment, or that of some variables if Map is set.
func (p *Search) About() btn.About {
	about := btn.About{Finds: btn.AskMPE, IsInterim: true, KeepsRange: true, Shared: &p.Known}
	if p.Map != nil {
		about.Finds = btn.AskMap
	}
	return about
}

// Fits implements btn.Part: it returns an error if the search is invalid for network n. Contract checks the shape of the tables.
func (p *Search) Fits(n *btn.Network) error {
	switch {
	case n.Variables == nil:
		return btn.Misfit("the network has no variables to assign values to")
	case p.Work < 0 || p.Work == 0 && p.Known == nil:
		return btn.Misfit("a search of %d steps", p.Work)
	case p.Known != nil && !p.Known.isFor(n.Variables):
		return btn.Misfit("what is known is no assignment of %d variables", len(n.Variables))
	case p.Map != nil && !(p.Map.Entries >= 1):
		return btn.Misfit("mini-buckets of %v entries", p.Map.Entries)
	}
	return nil
}
