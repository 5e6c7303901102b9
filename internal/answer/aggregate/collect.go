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

// partValue is the value of one part of the plan, or its error. The zero value stands for a value that has not arrived.
type partValue struct {
	value      btn.Value
	err        *query.ErrorInfo
	hasArrived bool
}

// collect returns the value of each of the n parts of a plan. It returns an error, with the values before it, if a value is of another
// query, of no part, or contradicts an earlier value of its part. The values are sorted, so the error does not depend on the order
// of arrival.
func collect(query, n int, sorted []btn.UnitValue) ([]partValue, *query.ErrorInfo) {
	parts := make([]partValue, n)
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
		case parts[c].hasArrived && areBothFromSearch(u, parts[c]):
			// The clock ended two runs of the search, and they may differ: the better assignment counts.
			if u.Value.Found.Weight.Cmp(parts[c].value.Found.Weight) > 0 {
				parts[c].value = u.Value
			}
		case parts[c].hasArrived && !isIdentical(u, parts[c]):
			return parts, failure(
				fault.Internal, "component %d arrived twice with different values, %s and %s",
				c, additive.Decimal(parts[c].value.Z), additive.Decimal(u.Value.Z),
			)
		default:
			parts[c] = partValue{value: u.Value, err: u.Error, hasArrived: true}
		}
	}
	return parts, nil
}

// isFromSearch reports whether f is an assignment that a search has found. It is false if f is nil.
func isFromSearch(f *btn.Found) bool { return f != nil && f.Bounded }

// areBothFromSearch reports whether a value and the one that has arrived for the same part before are assignments that a search has found.
func areBothFromSearch(u btn.UnitValue, p partValue) bool {
	return isFromSearch(u.Value.Found) && isFromSearch(p.value.Found)
}

// isIdentical reports whether a value and its error are, bit by bit, those that have arrived for the part before.
func isIdentical(u btn.UnitValue, p partValue) bool {
	return compareUnits(u, btn.UnitValue{Unit: u.Unit, Value: p.value, Error: p.err}) == 0
}

// firstPartError returns a copy of the error of the first part of a query that has one, from values that are sorted by query and part. It
// returns nil if no part has an error.
func firstPartError(query int, sorted []btn.UnitValue) *query.ErrorInfo {
	for _, u := range sorted {
		if u.Query == query && u.Error != nil {
			e := *u.Error
			return &e
		}
	}
	return nil
}

// sortedUnits returns the values in the order of compareUnits, and leaves arrived as it is.
func sortedUnits(arrived []btn.UnitValue) []btn.UnitValue {
	if len(arrived) < 2 {
		return arrived
	}
	sorted := slices.Clone(arrived)
	slices.SortFunc(sorted, compareUnits)
	return sorted
}

// compareUnits orders values by query, by part, by error (values without one come last), and by content. It returns 0 only for values that
// are identical bit by bit.
func compareUnits(a, b btn.UnitValue) int {
	if order := cmp.Or(cmp.Compare(a.Query, b.Query), cmp.Compare(a.Part, b.Part), compareErrors(a.Error, b.Error)); order != 0 {
		return order
	}
	return bytes.Compare(content(a.Value), content(b.Value))
}

// content returns the encoding of a value, which is the same for identical values, to compare them.
func content(v btn.Value) []byte {
	const isCanonical = true // empty lists of optional fields are left out, as if they were nil
	encoded, err := codec.Marshal("value", &v, isCanonical)
	if err != nil {
		panic(err) // only maps can fail, by their keys or their number, and no field of a value is a map
	}
	return encoded
}

// compareErrors orders errors by code, stage and message. A nil error comes last.
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
