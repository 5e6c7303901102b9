package aggregate

import (
	"cmp"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// From the values that arrived, in any order and possibly more than once, to one value per part.

// part is the value of a part, once it has arrived.
type part struct {
	value btn.Value
	err   *btn.ErrorInfo
	there bool
}

// collect returns the sorted values by their parts, of which the plan has n. A value that belongs
// elsewhere, or contradicts another one, is a failure. Which failure does not depend on the order
// of arrival, because the values are sorted.
func collect(query, n int, sorted []btn.UnitValue) ([]part, *btn.ErrorInfo) {
	parts := make([]part, n)
	for _, u := range sorted {
		switch c := u.Part; {
		case u.Query != query:
			return parts, failure(
				fault.Internal, "a value of query %d arrived for query %d", u.Query, query,
			)
		case c < 0 || c >= n:
			return parts, failure(
				fault.Internal, "a value of component %d arrived, the plan has %d", c, n,
			)
		case parts[c].there && bounded(u.Value.Found) && bounded(parts[c].value.Found):
			if u.Value.Found.Weight.Cmp(parts[c].value.Found.Weight) > 0 { // two runs, ended by the clock
				parts[c].value = u.Value
			}
		case parts[c].there && !identical(u, parts[c]):
			return parts, failure(
				fault.Internal, "component %d arrived twice with different values, %s and %s",
				c, decimal(parts[c].value.Z), decimal(u.Value.Z),
			)
		default:
			parts[c] = part{value: u.Value, err: u.Error, there: true}
		}
	}
	return parts, nil
}

// bounded reports whether a search has found an assignment.
func bounded(f *btn.Found) bool { return f != nil && f.Bounded }

// identical reports whether a value is the same, bit by bit, as the one that has arrived for its
// part.
func identical(u btn.UnitValue, p part) bool {
	return compareUnits(u, btn.UnitValue{Unit: u.Unit, Value: p.value, Error: p.err}) == 0
}

// ownError returns a copy of the error of the query's lowest part that has one.
func ownError(query int, sorted []btn.UnitValue) *btn.ErrorInfo {
	for _, u := range sorted {
		if u.Query == query && u.Error != nil {
			e := *u.Error
			return &e
		}
	}
	return nil
}

// sortedUnits returns the values in the order of compareUnits.
func sortedUnits(arrived []btn.UnitValue) []btn.UnitValue {
	if len(arrived) < 2 {
		return arrived
	}
	sorted := slices.Clone(arrived)
	slices.SortFunc(sorted, compareUnits)
	return sorted
}

// compareUnits orders values by query and part and then by content, bit by bit; 0 means identical.
func compareUnits(a, b btn.UnitValue) int {
	place := cmp.Or(cmp.Compare(a.Query, b.Query), cmp.Compare(a.Part, b.Part))
	value := cmp.Or(
		cmp.Compare(math.Float64bits(a.Value.Z.Mant), math.Float64bits(b.Value.Z.Mant)),
		cmp.Compare(a.Value.Z.Exp, b.Value.Z.Exp),
		cmp.Compare(math.Float64bits(a.Value.Flops), math.Float64bits(b.Value.Flops)),
		compareMarginals(a.Value.Marginals, b.Value.Marginals),
		compareMarginals(a.Value.Joint, b.Value.Joint),
		compareDerivatives(a.Value.Derivatives, b.Value.Derivatives),
		compareTargets(a.Value.Target, b.Value.Target),
		compareFound(a.Value.Found, b.Value.Found),
		compareDrawn(a.Value.Drawn, b.Value.Drawn),
		cmp.Compare(math.Float64bits(a.Value.Digits), math.Float64bits(b.Value.Digits)),
		cmp.Compare(a.Value.Doubt, b.Value.Doubt),
		compareConflicts(a.Value.Conflict, b.Value.Conflict),
		compareApproximate(a.Value, b.Value))
	return cmp.Or(place, compareErrors(a.Error, b.Error), value)
}

// compareMarginals orders marginals by content; none come first.
func compareMarginals(a, b *btn.Marginals) int {
	if a == nil || b == nil {
		return cmp.Compare(there(a != nil), there(b != nil))
	}

	return cmp.Or(
		cmp.Compare(a.Exp, b.Exp), slices.Compare(a.Domains, b.Domains),
		slices.CompareFunc(a.Mant, b.Mant, compareBits),
	)
}

// compareDerivatives orders derivatives by content; none come first.
func compareDerivatives(a, b *btn.Derivatives) int {
	if a == nil || b == nil {
		return cmp.Compare(there(a != nil), there(b != nil))
	}
	return cmp.Or(
		slices.Compare(a.Sizes, b.Sizes), slices.Compare(a.Exp, b.Exp), slices.CompareFunc(a.Mant, b.Mant, compareBits),
	)
}

// compareTargets orders values with a target by content; none come first.
func compareTargets(a, b *btn.TargetValue) int {
	if a == nil || b == nil {
		return cmp.Compare(there(a != nil), there(b != nil))
	}
	return cmp.Or(
		cmp.Compare(math.Float64bits(a.Z.Mant), math.Float64bits(b.Z.Mant)), cmp.Compare(a.Z.Exp, b.Z.Exp),
		compareDerivatives(a.Derivatives, b.Derivatives),
	)
}

// compareConflicts orders conflicts by content; none come first.
func compareConflicts(a, b *query.Conflict) int {
	if a == nil || b == nil {
		return cmp.Compare(there(a != nil), there(b != nil))
	}
	if a.Smallest != b.Smallest {
		return cmp.Compare(there(a.Smallest), there(b.Smallest))
	}
	value := func(o query.Observed) int {
		if o.Value == nil {
			return -1
		}
		return *o.Value
	}
	return slices.CompareFunc(a.Observations, b.Observations, func(x, y query.Observed) int {
		return cmp.Or(cmp.Compare(x.Variable, y.Variable), cmp.Compare(value(x), value(y)))
	})
}

// compareApproximate orders values by what only parts of approximate classes have.
func compareApproximate(a, b btn.Value) int {
	bits := compareBits
	order := cmp.Or(
		cmp.Compare(there(a.Truncation != nil), there(b.Truncation != nil)),
		cmp.Compare(there(a.Region != nil), there(b.Region != nil)),
		compareWeights(a.Weights, b.Weights),
		compareBounds(a.Bound, b.Bound),
	)
	if order == 0 && a.Truncation != nil {
		x, y := a.Truncation, b.Truncation
		order = cmp.Or(
			cmp.Compare(x.Bond, y.Bond), bits(x.Discarded, y.Discarded), bits(x.Bytes, y.Bytes),
			cmp.Compare(there(x.Truncated), there(y.Truncated)),
			cmp.Compare(there(x.Reused), there(y.Reused)), cmp.Compare(x.Relearned, y.Relearned),
		)
	}

	if order == 0 && a.Region != nil {
		x, y := a.Region, b.Region
		order = cmp.Or(
			bits(x.LnBethe, y.LnBethe),
			bits(x.LnSum, y.LnSum),
			bits(x.Linear.Mant, y.Linear.Mant),
			cmp.Compare(x.Linear.Exp, y.Linear.Exp),
			cmp.Compare(x.Regions, y.Regions),
			cmp.Compare(x.NonPositive, y.NonPositive),
			bits(x.Widest, y.Widest),
			cmp.Compare(there(x.Converged), there(y.Converged)),
		)
	}

	return order
}

// compareWeights orders weights by content; none come first.
func compareWeights(a, b *btn.Weights) int {
	if a == nil || b == nil {
		return cmp.Compare(there(a != nil), there(b != nil))
	}
	return cmp.Or(
		slices.CompareFunc(a.Ln, b.Ln, compareBits), compareBits(a.Top, b.Top), slices.Compare(a.Domains, b.Domains),
		comparePresent(a.LnMost, b.LnMost),
		slices.CompareFunc(a.Share, b.Share, compareBits), slices.CompareFunc(a.Squares, b.Squares, compareBits),
	)
}

// comparePresent orders numbers that may be absent; none comes first.
func comparePresent(a, b *float64) int {
	if a == nil || b == nil {
		return cmp.Compare(there(a != nil), there(b != nil))
	}
	return compareBits(*a, *b)
}

// compareBounds orders bounds by content; none come first.
func compareBounds(a, b *btn.BoundValue) int {
	if a == nil || b == nil {
		return cmp.Compare(there(a != nil), there(b != nil))
	}
	return cmp.Or(compareBits(a.Lower, b.Lower), compareBits(a.Upper, b.Upper), comparePresent(a.Least, b.Least))
}

// compareErrors orders errors by code, stage and message; no error comes last.
func compareErrors(a, b *btn.ErrorInfo) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return cmp.Or(
		cmp.Compare(a.Code, b.Code), cmp.Compare(a.Stage, b.Stage),
		cmp.Compare(a.Message, b.Message),
	)
}
