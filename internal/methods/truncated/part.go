package truncated

import (
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
)

// Parts with truncated legs.

// Truncated is a part of a plan: one slice of B, contracted with truncated legs along a tree or a sweep.
type Truncated struct {
	Plan  *TruncatedPlan `msgpack:"-"`
	Bond  int            `msgpack:"bond"` // largest number of values that a leg keeps
	Slice btn.Slice      `msgpack:"slice"`
}

// TruncatedPlan is a tree or a pair of orders, held fixed while the bond grows.
type TruncatedPlan struct {
	Family query.Family `msgpack:"family"`           // mps or tree
	Number int          `msgpack:"number,omitempty"` // among the plan's trees and sweeps
	// digest of the simplified network's hypergraph: it fits no other
	Shape    string `msgpack:"shape"`
	Order    []int  `msgpack:"order,omitempty"`    // mps: indices in the order they are summed
	Position []int  `msgpack:"position,omitempty"` // mps: rank of every index in the chain
	// tree: the plan, as package trees writes it
	Tree [][]int `msgpack:"tree,omitempty"`
	// Masked: the network was simplified without evidence, which enters as masks, so that the plan serves any evidence. Otherwise it was
	// simplified under the evidence of the query.
	Masked bool `msgpack:"masked,omitempty"`
}

// Class implements Part.
func (*Truncated) Class() btn.Class { return btn.ClassTruncated }

// About implements btn.Part. It describes the result; parts along one plan share it.
func (p *Truncated) About() btn.About {
	about := btn.About{Shared: &p.Plan}
	if p.Plan != nil {
		about.Result = query.EstimateResult{Family: p.Plan.Family, Plan: p.Plan.Number, Bond: p.Bond}
	}
	return about
}

// Fits implements Part. It does not check that the plan fits the simplified network, which the contraction does.
func (p *Truncated) Fits(n *btn.Network) error {
	switch {
	case p.Plan == nil:
		return btn.Misfit("it has no tree and no sweep")
	case p.Plan.Family != query.FamilySweep && p.Plan.Family != query.FamilyTree:
		return btn.Misfit("%.40q is no family of this version", p.Plan.Family)
	case p.Bond < 1:
		return btn.Misfit("bond %d", p.Bond)
	}
	return p.Slice.Fits(n)
}
