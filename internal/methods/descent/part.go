package descent

import "github.com/basetensor/basetensor/internal/network/btn"

// Parts that find assignments.

// Descent is some slices of B, eliminated along a path and gone back through. Its Z is 0: it comes
// beside the parts that Z is the sum of.
type Descent struct {
	Along *Path `msgpack:"-"`
	From  int64 `msgpack:"from,omitempty"` // From ≤ slice < To
	To    int64 `msgpack:"to"`
}

// Path is how a network's tables of terms are eliminated: along an order, or along a tree.
type Path struct {
	Ask    btn.Ask `msgpack:"ask"`
	Shape  string  `msgpack:"shape"` // digest of the tables' hypergraph: the path fits no other
	Order  []int   `msgpack:"order,omitempty"`
	Tables int     `msgpack:"tables,omitempty"` // leaves of the tree
	Merges []int   `msgpack:"merges,omitempty"` // as of Tree
	Slices []int   `msgpack:"slices,omitempty"` // indices fixed per slice
	Count  int64   `msgpack:"count"`            // number of slices, 1 without
	// Relaxed says that maxima and sums come in a sequence that makes the total a bound.
	Relaxed bool `msgpack:"relaxed,omitempty"`
}

// Class implements btn.Part.
func (*Descent) Class() btn.Class { return btn.ClassDescent }

// About implements btn.Part: the part finds the assignments that its path is for.
func (p *Descent) About() btn.About {
	about := btn.About{KeepsRange: true, Shared: &p.Along}
	if p.Along != nil {
		about.Finds = p.Along.Ask
	}
	return about
}

// Fits implements btn.Part: it returns an error if the part is invalid. Contract checks whether the path is one through the network's
// tables.
func (p *Descent) Fits(n *btn.Network) error {
	switch path := p.Along; {
	case path == nil:
		return btn.Misfit("it has no path")
	case n.Variables == nil:
		return btn.Misfit("the network has no variables to assign values to")
	case path.Ask != btn.AskMPE && path.Ask != btn.AskMap && path.Ask != btn.AskSamples:
		return btn.Misfit("it asks for %.40q", path.Ask)
	case path.Count < 1:
		return btn.Misfit("%d slices", path.Count)
	case p.From < 0 || p.To < p.From || p.To > path.Count:
		return btn.Misfit("slices %d to %d of %d", p.From, p.To, path.Count)
	}
	return nil
}
