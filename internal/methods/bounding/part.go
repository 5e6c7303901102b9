// Package bounding is the family of bounds of Z: from above by mini-buckets, messages and determinants, from below by mini-buckets,
// modes and Bethe's value (docs/explanation/estimates.md). Its parts add nothing to Z.
package bounding

import (
	"math"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
)

// Parts that are no share of Z, but bound it.

// Bound is a part that bounds Z by the tables of the simplified network. Messages uses the network without simplification.
type Bound struct {
	Kind  Kind   `msgpack:"kind"`
	Shape string `msgpack:"shape"` // digest of the simplified network's hypergraph
	// Masked says that the network was simplified without the query's evidence, which enters as a mask.
	Masked bool `msgpack:"masked,omitempty"`
	// Of mini-buckets: an order of its indices, and the most entries of a product.
	Order   []int   `msgpack:"order,omitempty"`
	Entries float64 `msgpack:"entries,omitempty"`
	// Of the others: rounds at most; by messages, updates of belief propagation as of the part of its value, 0: its own bound.
	Rounds int `msgpack:"rounds,omitempty"`
	// Of a determinant: the maximum number of bounded slices; the largest ones are divided further. 0: 1.
	Slices int `msgpack:"slices,omitempty"`
	// Start says that a determinant ends where its first round would begin.
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

// MostSlices is how many slices there are bounds of at most.
const MostSlices = 1 << 14

// Class implements Part.
func (*Bound) Class() btn.Class { return btn.ClassBound }

// About implements btn.Part.
func (p *Bound) About() btn.About {
	return btn.About{Result: query.EstimateResult{Kind: string(p.Kind)}, Rule: btn.Bounding}
}

// Fits implements Part. Whether order and shape are the simplified network's is for the contraction to say.
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
	case Modes, Messages:
	default:
		return btn.Misfit("%.40q is no bound of this version", p.Kind)
	}
	return nil
}
