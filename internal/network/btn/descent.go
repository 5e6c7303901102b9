package btn

// Parts that find assignments, and their results.

import (
	"slices"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// Ask says which assignments a descent is to find.
type Ask string

// Kinds of question.
const (
	AskMPE     Ask = "mpe"     // the most probable one
	AskMap     Ask = "map"     // the most probable one of some variables, the others summed out
	AskSamples Ask = "samples" // some, drawn with their probabilities
)

// Asker is a part that may find assignments in place of a share of Z.
type Asker interface {
	Part
	Asks() Ask // which; empty for a part that has a share of Z
}

// AskOf returns which assignments a part is to find; empty for a part that has a share of Z.
func AskOf(part Part) Ask {
	if p, ok := part.(Asker); ok {
		return p.Asks()
	}
	return ""
}

// Interim is a part whose value is an answer of its own where the deadline comes before the other parts.
type Interim interface {
	Asker
	Interim()
}

// IsInterim reports whether a part is one.
func IsInterim(part Part) bool {
	_, is := part.(Interim)
	return is
}

// Found is the best assignment of some slices.
type Found struct {
	Values []int         `msgpack:"v"` // of all variables, or of those asked for
	Weight scaled.Number `msgpack:"w"` // of the assignment
	Unique bool          `msgpack:"u,omitempty"`
	// Close is the relative difference up to which weights count as equal: the bound of their factors' rounding.
	Close   float64 `msgpack:"c"`
	Relaxed bool    `msgpack:"r,omitempty"` // there may be a better one
	Bound   float64 `msgpack:"b,omitempty"` // ln of no less than the weight of any; where Relaxed or Bounded
	Bounded bool    `msgpack:"d,omitempty"` // by a search
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
