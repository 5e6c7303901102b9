package btn

// Parts that find assignments, and their results.

import (
	"cmp"
	"math"
	"slices"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// Ask names a kind of assignments that a descent is to find.
type Ask string

// The kinds of assignments.
const (
	AskMPE     Ask = "mpe"     // the most probable assignment of all variables
	AskMap     Ask = "map"     // the most probable assignment of some variables, the others summed out
	AskSamples Ask = "samples" // some assignments, drawn with their probabilities
)

// Found is the best assignment of some slices, or the best that a search has found in them.
type Found struct {
	Values []int         `msgpack:"v"`           // of all variables, or of those asked for; empty if a search has found no assignment
	Weight scaled.Number `msgpack:"w"`           // of the assignment; if Upper is not 0, a bound from below of its weight
	Unique bool          `msgpack:"u,omitempty"` // no other assignment is as good
	// Close is the relative difference up to which weights count as equal: the bound of their factors' rounding.
	Close   float64 `msgpack:"c"`
	Relaxed bool    `msgpack:"r,omitempty"` // there may be a better assignment
	Bound   float64 `msgpack:"b,omitempty"` // upper bound of ln of the weight of every assignment; set if Relaxed or Bounded
	Bounded bool    `msgpack:"d,omitempty"` // a search has set Bound
	Upper   float64 `msgpack:"h,omitempty"` // upper bound of ln of the assignment's weight; 0: Weight is the weight itself
	// Others are the next best assignments, the best first, if several are asked for. Then Bound is for all assignments that are not
	// listed. All reports whether no assignment is possible but those listed.
	Others []Other `msgpack:"o,omitempty"`
	All    bool    `msgpack:"l,omitempty"`
}

// Other is an assignment that is listed after the best one.
type Other struct {
	Values []int         `msgpack:"v"`
	Weight scaled.Number `msgpack:"w"`
}

// Compare returns a negative number if o comes before other: the heavier assignment first, and of equally heavy ones that with the smaller
// values in the order of the variables.
func (o Other) Compare(other Other) int {
	return cmp.Or(other.Weight.Cmp(o.Weight), slices.Compare(o.Values, other.Values))
}

// Better returns the heavier of two assignments: f is the best of some slices, and g the best of other slices. A slice is all assignments
// in which some variables have given values. If they tie, it returns the one with the smaller values, compared variable by variable in
// sequence. Its list Others of next best assignments is merged from f, g and their lists. A nil receiver or argument stands for slices
// without a possible assignment. It does not change f and g.
func (f *Found) Better(g *Found) *Found {
	switch {
	case f == nil:
		return g
	case g == nil:
		return f
	}
	best, second := f, g
	if second.Weight.Cmp(best.Weight) > 0 {
		best, second = second, best
	}
	isTie := best.Tied(second.Weight) // equal but for rounding
	if isTie && slices.Compare(second.Values, best.Values) < 0 {
		best, second = second, best
	}
	merged := *best // a copy, so that best stays as it is
	merged.Unique = best.Unique && !isTie
	merged.addOthers(second)
	return &merged
}

// ProvedWithoutZ is the warning of an answer that is a proved assignment alone.
const ProvedWithoutZ = "Z is left open: the assignment was proved without it"

// Tolerance is the largest gap in nats between the bound of all weights and the weight of an assignment that still counts as proved the
// best: costs are rounded.
const Tolerance = 1e-6

// BestOfSearches returns the best assignment among the results of several searches for the same question, with the smallest of their
// bounds: a bound of one search is true for all assignments. It returns nil if no search has found an assignment. If the best result is a
// list of several assignments, it returns that result unchanged.
func BestOfSearches(results []*Found) *Found {
	var best *Found
	bound := math.Inf(1)
	for _, f := range results {
		hasAssignment := len(f.Values) > 0
		if hasAssignment && (best == nil || f.compareFound(best) < 0) { // below 0: f is better
			best = f
		}
		bound = min(bound, f.Bound)
	}
	if best == nil || len(results) == 1 {
		return best
	}
	if isList := best.Others != nil || best.All; isList {
		return best
	}

	// The smallest bound is true for the best assignment, too. By rounding it may be below the weight itself. The assignment is Relaxed,
	// not proved the best, if there is a gap between the two.
	bounded := *best
	lnWeight := bounded.Weight.LogAbs()
	bounded.Bound = max(bound, lnWeight)
	bounded.Relaxed = bounded.Bound-lnWeight > Tolerance
	return &bounded
}

// compareFound compares two results of searches: it is negative if f is better. The better one has the better assignment; of equal ones the
// longer list of next best assignments, then the better list, then the lower bound.
func (f *Found) compareFound(other *Found) int {
	return cmp.Or(
		Other{f.Values, f.Weight}.Compare(Other{other.Values, other.Weight}), cmp.Compare(len(other.Others), len(f.Others)),
		slices.CompareFunc(f.Others, other.Others, Other.Compare), cmp.Compare(f.Bound, other.Bound),
	)
}

// Tied reports whether w, which is not above f.Weight, counts as equal to it: the difference is at most the share Close of f.Weight.
func (f *Found) Tied(w scaled.Number) bool {
	return f.Weight.Sub(w).Cmp(f.Weight.Mul(scaled.FromFloat(f.Close))) <= 0
}

// Shorten shortens the list of assignments to the best ones. count is the number that stays, including the first one, which is f itself.
func (f *Found) Shorten(count int) {
	if len(f.Others) >= count {
		f.Others, f.All = f.Others[:count-1], false
	}
}

// LastWeight returns the weight of the last assignment in the list, which is f itself if there are no others.
func (f *Found) LastWeight() scaled.Number {
	if n := len(f.Others); n > 0 {
		return f.Others[n-1].Weight
	}
	return f.Weight
}

// addOthers merges the assignments of g, which are of other slices, into f.Others, the list of next best assignments. f is not worse than
// g, so f itself stays the best. If only one assignment was asked for, it does nothing.
//
// A list is complete (All) if it has all possible assignments of its slices. Another list has as many assignments as were asked for; its
// slices may have further ones, which are not better than its last. So the merged list is cut to the length of each list that is not
// complete: what would follow may not be the next best.
func (f *Found) addOthers(g *Found) {
	isOneAskedFor := !f.All && f.Others == nil && !g.All && g.Others == nil
	if isOneAskedFor {
		return
	}
	merged := slices.Concat(f.Others, []Other{{g.Values, g.Weight}}, g.Others)
	slices.SortFunc(merged, Other.Compare)
	for _, list := range []*Found{f, g} {
		if !list.All {
			merged = merged[:min(len(merged), len(list.Others))]
		}
	}
	f.All = f.All && g.All
	f.Others = merged
}

// Drawn are assignments drawn from some slices.
type Drawn struct {
	Weight scaled.Number `msgpack:"w"` // Z of the slices
	Values []int         `msgpack:"v"` // assignment by assignment, a value per variable
}
