// Package bounding is the method of bounds of Z: from above by mini-buckets, messages and determinants, from below by mini-buckets,
// modes and Bethe's value (docs/explanation/estimates.md). Its parts add nothing to Z.
package bounding

import (
	"math"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
)

// Parts that are no share of Z, but bound it.

// Bound is a part that bounds Z by the tables of the simplified network. Kind Messages uses the network without simplification.
type Bound struct {
	Kind  Kind   `msgpack:"kind"`
	Shape string `msgpack:"shape"` // digest of the simplified network's hypergraph
	// Masked states that the network was simplified without the evidence of the query, which sets entries to 0 afterwards (a mask).
	Masked bool `msgpack:"masked,omitempty"`
	// Order is the elimination order of mini-buckets, and Entries the largest number of entries of a table that they multiply out.
	Order   []int   `msgpack:"order,omitempty"`
	Entries float64 `msgpack:"entries,omitempty"`
	// Rounds is the largest number of rounds of all other kinds. For messages it is the largest number of updates, as in the part with the
	// value of belief propagation, or 0 for the default of package bp.
	Rounds int `msgpack:"rounds,omitempty"`
	// Slices is the largest number of bounds of slices that a determinant consists of. 0 counts as 1.
	Slices int `msgpack:"slices,omitempty"`
	// Start states that a determinant has no rounds, but only its beginning. Rounds does not count then.
	Start bool `msgpack:"start,omitempty"`
}

// Kind names how Z is bounded.
type Kind string

// The kinds of this version.
const (
	MiniBuckets Kind = "mini-buckets" // above and below, any tables
	Determinant Kind = "determinant"  // above, spins
	Bethe       Kind = "bethe"        // below, spins that attract each other
	Modes       Kind = "modes"        // below, any tables: the weight around a maximum
	Messages    Kind = "messages"     // above, any tables: reparameterised by messages of belief propagation
)

// MostSlices is the largest number of slices of a determinant.
const MostSlices = 1 << 14

// Class implements Part.
func (*Bound) Class() btn.Class { return btn.ClassBound }

// About implements btn.Part.
func (p *Bound) About() btn.About {
	return btn.About{Result: query.EstimateResult{Kind: string(p.Kind)}, Rule: btn.Bounding}
}

// Fits implements Part: it returns an error if the numbers of the part are impossible for its kind. Order and shape are checked by the
// contraction.
func (p *Bound) Fits(*btn.Network) error {
	switch p.Kind {
	case MiniBuckets:
		if !(p.Entries >= 1) || math.IsInf(p.Entries, 1) {
			return btn.Misfit("products of %v entries", p.Entries)
		}
	case Determinant, Bethe:
		if p.Rounds < 1 || p.Slices < 0 || p.Slices > MostSlices {
			return btn.Misfit("%d rounds and %d slices", p.Rounds, p.Slices)
		}
	case Modes, Messages: // they have no numbers that could be impossible
	default:
		return btn.Misfit("%.40q is no bound of this version", p.Kind)
	}
	return nil
}
