package btn

// Parts that find assignments, and their results.

import (
	"cmp"
	"math"
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

// Found is the best assignment of some slices.
type Found struct {
	Values []int         `msgpack:"v"` // of all variables, or of those asked for; empty where a search has found none
	Weight scaled.Number `msgpack:"w"` // of the assignment
	Unique bool          `msgpack:"u,omitempty"`
	// Close is the relative difference up to which weights count as equal: the bound of their factors' rounding.
	Close   float64 `msgpack:"c"`
	Relaxed bool    `msgpack:"r,omitempty"` // there may be a better one
	Bound   float64 `msgpack:"b,omitempty"` // ln of no less than the weight of any; where Relaxed or Bounded
	Bounded bool    `msgpack:"d,omitempty"` // by a search
	Upper   float64 `msgpack:"h,omitempty"` // ln of no less than Weight, where that is a bound from below alone; 0: it is the weight
	// Others are the next best ones in sequence, where several are asked for; Bound is of all that are not listed then. All says that no
	// other one is possible.
	Others []Other `msgpack:"o,omitempty"`
	All    bool    `msgpack:"l,omitempty"`
}

// Other is an assignment beside the best one.
type Other struct {
	Values []int         `msgpack:"v"`
	Weight scaled.Number `msgpack:"w"`
}

// Compare orders assignments: the heavier first, of equal ones the smaller in the order of the variables.
func (o Other) Compare(p Other) int {
	return cmp.Or(p.Weight.Cmp(o.Weight), slices.Compare(o.Values, p.Values))
}

// Or returns the better of two assignments of different slices, of equally good ones the smaller in
// the order of the variables. Others are those of both then, as far as both lists go. Either may be nil, for slices that are impossible.
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
	tied := best.Tied(other.Weight)
	if tied && slices.Compare(other.Values, best.Values) < 0 {
		best, other = other, best
	}
	both := *best
	both.Unique = best.Unique && !tied
	both.beside(other)
	return &both
}

// ProvedWithoutZ is the warning of an answer that is a proved assignment alone.
const ProvedWithoutZ = "Z is left open: the assignment was proved without it"

// Tolerance is the largest gap of an assignment that is said to be the best, nats: costs are rounded.
const Tolerance = 1e-6

// Searched returns the best assignment that several searches for the same one have found. It is nil if none has found any. Its Bound is the
// least of theirs. If they list several assignments, the best list is returned as it is.
func Searched(list []*Found) *Found {
	var best *Found
	bound := math.Inf(1)
	for _, f := range list {
		if len(f.Values) > 0 && (best == nil || f.compare(best) < 0) {
			best = f
		}
		bound = min(bound, f.Bound)
	}
	if best == nil || len(list) == 1 || best.Others != nil || best.All {
		return best
	}
	found := *best
	weight := found.Weight.LogAbs()
	found.Bound = max(bound, weight)
	found.Relaxed = found.Bound-weight > Tolerance
	return &found
}

// compare orders searches by what they list: the better one first, of equal ones the one with the lower bound.
func (f *Found) compare(g *Found) int {
	return cmp.Or(
		Other{f.Values, f.Weight}.Compare(Other{g.Values, g.Weight}), cmp.Compare(len(g.Others), len(f.Others)),
		slices.CompareFunc(f.Others, g.Others, Other.Compare), cmp.Compare(f.Bound, g.Bound),
	)
}

// Tied reports whether a weight that is not above the best one counts as equal to it.
func (f *Found) Tied(w scaled.Number) bool {
	return f.Weight.Sub(w).Cmp(f.Weight.Mul(scaled.FromFloat(f.Close))) <= 0
}

// Keep cuts the list to the best ones, so many with the first.
func (f *Found) Keep(best int) {
	if len(f.Others) >= best {
		f.Others, f.All = f.Others[:best-1], false
	}
}

// Last is the weight of the last one listed.
func (f *Found) Last() scaled.Number {
	if n := len(f.Others); n > 0 {
		return f.Others[n-1].Weight
	}
	return f.Weight
}

// beside adds another slice's assignments to f's list, as far as both go: one that is not complete has as many as are asked for.
func (f *Found) beside(g *Found) {
	if !f.All && f.Others == nil && !g.All && g.Others == nil {
		return
	}
	list := slices.Concat(f.Others, []Other{{g.Values, g.Weight}}, g.Others)
	slices.SortFunc(list, Other.Compare)
	for _, h := range []*Found{f, g} {
		if !h.All {
			list = list[:min(len(list), len(h.Others))]
		}
	}
	f.All = f.All && g.All
	f.Others = list
}

// Drawn are assignments drawn from some slices.
type Drawn struct {
	Weight scaled.Number `msgpack:"w"` // Z of the slices
	Values []int         `msgpack:"v"` // assignment by assignment, a value per variable
}
