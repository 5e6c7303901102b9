package btn

// Parts that find assignments, and what they find.

import (
	"slices"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// Ask says which assignments a descent is to find.
type Ask string

// What may be asked.
const (
	AskMPE     Ask = "mpe"     // the most probable one
	AskMap     Ask = "map"     // the most probable one of some variables, the others summed out
	AskSamples Ask = "samples" // some, drawn with their probabilities
)

// Descent is some slices of B, eliminated along a path and gone back through. Its Z is 0: it comes
// beside the parts that Z is the sum of.
type Descent struct {
	Along *Path `msgpack:"-"`
	From  int64 `msgpack:"from,omitempty"` // From ≤ slice < To
	To    int64 `msgpack:"to"`
}

// Path is how a network's tables of terms are eliminated: along an order, or along a tree.
type Path struct {
	Ask    Ask    `msgpack:"ask"`
	Shape  string `msgpack:"shape"` // digest of the tables' hypergraph: the path fits no other
	Order  []int  `msgpack:"order,omitempty"`
	Tables int    `msgpack:"tables,omitempty"` // leaves of the tree
	Merges []int  `msgpack:"merges,omitempty"` // as of Tree
	Slices []int  `msgpack:"slices,omitempty"` // indices fixed per slice
	Count  int64  `msgpack:"count"`            // number of slices, 1 without
	// Relaxed says that maxima and sums come in a sequence that makes the total a bound.
	Relaxed bool `msgpack:"relaxed,omitempty"`
}

// Class implements Part.
func (*Descent) Class() Class { return ClassDescent }

// Common implements Sharer.
func (p *Descent) Common() any { return p.Along }

// Share implements Sharer.
func (p *Descent) Share(common any) (ok bool) {
	p.Along, ok = common.(*Path)
	return ok
}

// Fits implements Part. Whether the path is one through the network's tables is for the contraction
// to say.
func (p *Descent) Fits(n *Network) error {
	switch a := p.Along; {
	case a == nil:
		return misfit("it has no path")
	case n.Variables == nil:
		return misfit("the network has no variables to assign values to")
	case a.Ask != AskMPE && a.Ask != AskMap && a.Ask != AskSamples:
		return misfit("it asks for %.40q", a.Ask)
	case a.Count < 1:
		return misfit("%d slices", a.Count)
	case p.From < 0 || p.To < p.From || p.To > a.Count:
		return misfit("slices %d to %d of %d", p.From, p.To, a.Count)
	}
	return nil
}

// AskOf returns which assignments a part is to find; empty for a part that has a share of Z.
func AskOf(part Part) Ask {
	switch p := part.(type) {
	case *Descent:
		if p.Along != nil {
			return p.Along.Ask
		}
	case *Circuit:
		return p.Ask
	case *Counts:
		return p.Ask
	case *Cube:
		return p.Ask
	}
	return ""
}

// Found is the best assignment of some slices.
type Found struct {
	Values []int         `msgpack:"v"` // of all variables, or of those asked for
	Weight scaled.Number `msgpack:"w"` // of the assignment
	Unique bool          `msgpack:"u,omitempty"`
	// Close is the relative difference up to which weights are equal: what their factors' rounding
	// can make.
	Close   float64 `msgpack:"c"`
	Relaxed bool    `msgpack:"r,omitempty"` // there may be a better one
	Bound   float64 `msgpack:"b,omitempty"` // ln of no less than the weight of any; where Relaxed
}

// Or returns the better of two assignments of different slices, of equally good ones the smaller in
// the order of the variables. Either may be nil, for slices that are impossible.
func (f *Found) Or(g *Found) *Found {
	switch {
	case f == nil:
		return g
	case g == nil:
		return f
	}
	best, other := f, g
	if other.Weight.Cmp(best.Weight) > 0 {
		best, other = other, best
	}
	gap := best.Weight.Sub(other.Weight)
	if gap.Cmp(best.Weight.Mul(scaled.FromFloat(best.Close))) > 0 {
		return best
	}
	if slices.Compare(other.Values, best.Values) < 0 {
		best = other
	}
	tied := *best
	tied.Unique = false
	return &tied
}

// Drawn are assignments drawn from some slices.
type Drawn struct {
	Weight scaled.Number `msgpack:"w"` // Z of the slices
	Values []int         `msgpack:"v"` // assignment by assignment, a value per variable
}
