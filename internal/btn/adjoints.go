package btn

// Parts that have derivatives.

import (
	"github.com/basetensor/basetensor/pkg/query"
)

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
	Order  []int `msgpack:"order"`
	Slices []int `msgpack:"slices,omitempty"` // indices fixed per slice
	Count  int64 `msgpack:"count"`            // number of slices, 1 without
	// Flops is predicted, of a slice; Any says that it is without evidence, as small networks are
	// compiled.
	Flops float64 `msgpack:"flops"`
	Any   bool    `msgpack:"any,omitempty"`
}

// Class implements Part.
func (*Adjoints) Class() Class { return ClassAdjoints }

// Whole reports whether the part is all slices.
func (p *Adjoints) Whole() bool { return p.From == 0 && p.To == p.Plan.Count }

// Common implements Sharer.
func (p *Adjoints) Common() any { return p.Plan }

// Share implements Sharer.
func (p *Adjoints) Share(common any) (ok bool) {
	p.Plan, ok = common.(*AdjointPlan)
	return ok
}

// Fits implements Part. Whether order and slices are those of the network is for the contraction to say.
func (p *Adjoints) Fits(*Network) error {
	switch t := p.Plan; {
	case t == nil:
		return misfit("it has no plan")
	case t.Count < 1:
		return misfit("%d slices", t.Count)
	case !(t.Flops >= 0):
		return misfit("%v flops", t.Flops)
	case p.From < 0 || p.To < p.From || p.To > t.Count:
		return misfit("slices %d to %d of %d", p.From, p.To, t.Count)
	}
	return nil
}

// Parametric reports whether a query asks for derivatives by the numbers of the model: its network has
// every factor as a core of its own.
func Parametric(q query.Query) bool { return q.Gradients || q.Sensitivity != nil }

// Sensitivity is what the probability of a target is asked of, and the numbers of the model that it may depend on, by core.
type Sensitivity struct {
	Target query.Sensitivity `msgpack:"target"`
	Alone  bool              `msgpack:"alone,omitempty"` // gradients are not asked for
	Cores  []CoreNumbers     `msgpack:"cores"`
}

// CoreNumbers are the numbers of a core.
type CoreNumbers struct {
	Numbers []float64 `msgpack:"n"`           // as lower.ParameterSizes counts them
	Scope   []int     `msgpack:"s,omitempty"` // of a table: its variables
	Shape   []int     `msgpack:"d,omitempty"` // and their domains
	// Row is 0, or 1 + the mode that the rows of a conditional probability table are over.
	Row int `msgpack:"r,omitempty"`
}
