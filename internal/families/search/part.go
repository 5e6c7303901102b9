// Package search finds the most probable assignment where no elimination fits: by branch and bound over soft local consistency (package
// engine/search), of some variables alone over mini-buckets (package engine/minibuckets). There is an assignment and a bound of all others
// whenever it ends.
package search

import "github.com/basetensor/basetensor/internal/network/btn"

// Search is a search over the network's tables of terms. It has no share of Z.
type Search struct {
	Shape string `msgpack:"shape"` // digest of the tables' hypergraph
	// Work bounds the entries of tables that are looked at, so that the answer does not depend on a clock.
	Work int64 `msgpack:"work"`
	// Cubes says that this is one of so many that share the search, number Cube from 0. 1 is a whole one before them, 0 one that is alone.
	Cube  int `msgpack:"cube,omitempty"`
	Cubes int `msgpack:"cubes,omitempty"`
	// Map is there for a marginal MAP assignment, nil for the most probable one.
	Map *Marginal `msgpack:"map,omitempty"`
}

// share is the number of parts that share the search, 0 for a whole one.
func (p *Search) share() int {
	if p.Cubes > 1 {
		return p.Cubes
	}
	return 0
}

// Class implements Part.
func (*Search) Class() btn.Class { return btn.ClassSearch }

// Asks implements btn.Asker.
func (p *Search) Asks() btn.Ask {
	if p.Map != nil {
		return btn.AskMap
	}
	return btn.AskMPE
}

// Interim implements btn.Interim.
func (*Search) Interim() {}

// Fits implements Part. Whether the tables have this shape is for the contraction to say.
func (p *Search) Fits(n *btn.Network) error {
	switch {
	case n.Variables == nil:
		return btn.Misfit("the network has no variables to assign values to")
	case p.Work < 1:
		return btn.Misfit("a search of %d steps", p.Work)
	case p.Cubes < 0 || p.Cubes > MostCubes || p.Cube < 0 || p.Cube >= max(p.Cubes, 1):
		return btn.Misfit("cube %d of %d", p.Cube, p.Cubes)
	case p.Map != nil && !(p.Map.Entries >= 1):
		return btn.Misfit("mini-buckets of %v entries", p.Map.Entries)
	}
	return nil
}

// KeepsRange implements btn.Ranged.
func (*Search) KeepsRange() bool { return true }
