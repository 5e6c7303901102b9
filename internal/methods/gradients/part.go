package gradients

import "github.com/basetensor/basetensor/internal/network/btn"

// Parts that have derivatives.

// Adjoints are some slices of B with their derivatives by the entries of the cores: an elimination and the
// pass back over it. R is the indicator of the slices, α = 1 (Lemma 5).
type Adjoints struct {
	Plan *AdjointPlan `msgpack:"-"`
	From int64        `msgpack:"from,omitempty"` // From ≤ slice < To
	To   int64        `msgpack:"to"`
}

// AdjointPlan is how derivatives are computed.
type AdjointPlan struct {
	// indices of the network written with its own numbers, in the order in which they are summed
	Order  []int   `msgpack:"order"`
	Slices []int   `msgpack:"slices,omitempty"` // indices fixed per slice
	Count  int64   `msgpack:"count"`            // number of slices, 1 without
	Flops  float64 `msgpack:"flops"`            // predicted, of a slice
}

// Class implements btn.Part.
func (*Adjoints) Class() btn.Class { return btn.ClassAdjoints }

// About implements btn.Part: the part has derivatives, and keeps all terms in range.
func (p *Adjoints) About() btn.About {
	return btn.About{KeepsRange: true, Differentiates: true, Shared: &p.Plan}
}

// HasAllSlices reports whether the part has all slices of its plan.
func (p *Adjoints) HasAllSlices() bool { return p.From == 0 && p.To == p.Plan.Count }

// Fits implements btn.Part: it returns an error if the part is invalid. Contract checks whether order and slices match the network.
func (p *Adjoints) Fits(*btn.Network) error {
	switch plan := p.Plan; {
	case plan == nil:
		return btn.Misfit("it has no plan")
	case plan.Count < 1:
		return btn.Misfit("%d slices", plan.Count)
	case !(plan.Flops >= 0):
		return btn.Misfit("%v flops", plan.Flops)
	case p.From < 0 || p.To < p.From || p.To > plan.Count:
		return btn.Misfit("slices %d to %d of %d", p.From, p.To, plan.Count)
	}
	return nil
}
