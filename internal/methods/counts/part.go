package counts

import (
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Parts in count space.

// Counts is B, or a term of it, in count space (Lemmas 3 and 4): one term each of some symmetric cores, which are functions of their
// counts. Every core has count variables of its own. How all else becomes polynomials in these variables follows from the network under its
// evidence.
type Counts struct {
	Cores []int `msgpack:"cores"` // ascending
	Terms []int `msgpack:"terms"` // the term of each: 0 for a plain symmetric tensor
	// Ask is empty for a part that Z is the sum of. Otherwise it says which assignments are to be found, MPE or samples, and the part's
	// Z is 0.
	Ask btn.Ask `msgpack:"ask,omitempty"`
}

// Class implements btn.Part.
func (*Counts) Class() btn.Class { return btn.ClassCounts }

// About implements btn.Part.
func (p *Counts) About() btn.About { return btn.About{Finds: p.Ask, KeepsRange: true} }

// Fits implements btn.Part: it returns an error unless the part's cores are symmetric cores of the network that have the given terms, and
// every core of the network has legs.
func (p *Counts) Fits(n *btn.Network) error {
	if len(p.Cores) == 0 || len(p.Terms) != len(p.Cores) {
		return btn.Misfit("%d cores in count space, %d terms", len(p.Cores), len(p.Terms))
	}
	if p.Ask != "" && p.Ask != btn.AskMPE && p.Ask != btn.AskSamples {
		return btn.Misfit("it asks for %.40q", p.Ask)
	}
	previous := -1
	for k, c := range p.Cores {
		if c <= previous || c >= len(n.Cores) {
			return btn.Misfit("core %d after %d, the network has %d", c, previous, len(n.Cores))
		}
		previous = c
		terms := 0
		switch t := n.Cores[c].T.(type) {
		case *tensor.Symmetric:
			terms = 1
		case *tensor.SymmetryCP:
			terms = len(t.Terms)
		}
		if p.Terms[k] < 0 || p.Terms[k] >= terms {
			return btn.Misfit("term %d of core %d, which has %d in count space", p.Terms[k], c, terms)
		}
	}
	for c := range n.Cores {
		if len(n.Cores[c].Legs) == 0 {
			return btn.Misfit("core %d has no legs", c)
		}
	}
	return nil
}
