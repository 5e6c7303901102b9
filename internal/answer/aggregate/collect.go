package aggregate

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/basetensor/basetensor/internal/base/codec"
	"github.com/basetensor/basetensor/internal/network/additive"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// From the values that arrived, in any order and possibly more than once, to one value per part.

// part is the value of a part, once it has arrived.
type part struct {
	value btn.Value
	err   *query.ErrorInfo
	there bool
}

// collect returns the sorted values by their parts, of which the plan has n. A value that belongs
// elsewhere, or contradicts another one, is a failure. Which failure does not depend on the order
// of arrival, because the values are sorted.
func collect(query, n int, sorted []btn.UnitValue) ([]part, *query.ErrorInfo) {
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
				c, additive.Decimal(parts[c].value.Z), additive.Decimal(u.Value.Z),
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
func ownError(query int, sorted []btn.UnitValue) *query.ErrorInfo {
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

// compareUnits orders values by query and part, those with an error first, and then by content, bit by bit; 0 means identical.
func compareUnits(a, b btn.UnitValue) int {
	if place := cmp.Or(cmp.Compare(a.Query, b.Query), cmp.Compare(a.Part, b.Part), compareErrors(a.Error, b.Error)); place != 0 {
		return place
	}
	return bytes.Compare(content(a.Value), content(b.Value))
}

// content is all of a value in canonical bytes.
func content(v btn.Value) []byte {
	b, err := codec.Marshal("value", &v, true)
	if err != nil {
		panic(err) // no field of a value is a map
	}
	return b
}

// compareErrors orders errors by code, stage and message; no error comes last.
func compareErrors(a, b *query.ErrorInfo) int {
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
