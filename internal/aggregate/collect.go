package aggregate

import (
	"cmp"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/pkg/fault"
)

// From the values that arrived, in any order and possibly more than once, to one value per component.

// collect returns the value of each of n components, or the one error that the query fails with. That error does not
// depend on the order of arrival either: a unit's own error comes before a broken set of values, the lowest component
// before others.
func collect(query, n int, arrived []btn.UnitValue) ([]btn.Value, *btn.ErrorInfo) {
	sorted := sortedUnits(arrived)
	for _, u := range sorted {
		if u.Query == query && u.Error != nil {
			e := *u.Error
			return nil, &e
		}
	}
	z, seen := make([]btn.Value, n), make([]bool, n)
	for i, u := range sorted {
		switch c := u.Component; {
		case u.Query != query:
			return nil, failure(fault.Internal, "a value of query %d arrived for query %d", u.Query, query)
		case c < 0 || c >= n:
			return nil, failure(fault.Internal, "a value of component %d arrived, the decomposition has %d", c, n)
		case seen[c] && compareUnits(u, sorted[i-1]) != 0:
			return nil, failure(fault.Internal, "component %d arrived twice with different values, %s and %s", c,
				decimal(z[c].Z), decimal(u.Value.Z))
		default:
			z[c], seen[c] = u.Value, true
		}
	}
	if missing := slices.Index(seen, false); missing >= 0 {
		return nil, failure(fault.Internal, "the value of component %d of %d is missing", missing, n)
	}
	return z, nil
}

func sortedUnits(arrived []btn.UnitValue) []btn.UnitValue {
	sorted := slices.Clone(arrived)
	slices.SortFunc(sorted, compareUnits)
	return sorted
}

// compareUnits orders units by place and then by content, bit by bit; 0 means identical.
func compareUnits(a, b btn.UnitValue) int {
	place := cmp.Or(cmp.Compare(a.Query, b.Query), cmp.Compare(a.Component, b.Component))
	value := cmp.Or(
		cmp.Compare(math.Float64bits(a.Value.Z.Mant), math.Float64bits(b.Value.Z.Mant)),
		cmp.Compare(a.Value.Z.Exp, b.Value.Z.Exp),
		cmp.Compare(math.Float64bits(a.Value.Flops), math.Float64bits(b.Value.Flops)),
		compareMarginals(a.Value.Marginals, b.Value.Marginals),
		compareMarginals(a.Value.Joint, b.Value.Joint),
		cmp.Compare(math.Float64bits(a.Value.Digits), math.Float64bits(b.Value.Digits)),
		cmp.Compare(a.Value.Doubt, b.Value.Doubt),
		compareApproximate(a.Value, b.Value))
	return cmp.Or(place, compareErrors(a.Error, b.Error), value)
}

func compareMarginals(a, b *btn.Marginals) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	}
	bits := func(x, y float64) int { return cmp.Compare(math.Float64bits(x), math.Float64bits(y)) }
	return cmp.Or(cmp.Compare(a.Exp, b.Exp), slices.Compare(a.Domains, b.Domains), slices.CompareFunc(a.Mant, b.Mant, bits))
}

// compareApproximate compares what only components of approximate classes have.
func compareApproximate(a, b btn.Value) int {
	bits := func(x, y float64) int { return cmp.Compare(math.Float64bits(x), math.Float64bits(y)) }
	there := func(x bool) int {
		if x {
			return 1
		}
		return 0
	}
	order := cmp.Or(cmp.Compare(there(a.Truncation != nil), there(b.Truncation != nil)), cmp.Compare(there(a.Region != nil), there(b.Region != nil)))
	if order == 0 && a.Truncation != nil {
		x, y := a.Truncation, b.Truncation
		order = cmp.Or(cmp.Compare(x.Bond, y.Bond), bits(x.Discarded, y.Discarded), bits(x.Bytes, y.Bytes),
			cmp.Compare(there(x.Truncated), there(y.Truncated)), cmp.Compare(there(x.Reused), there(y.Reused)), cmp.Compare(x.Relearned, y.Relearned))
	}
	if order == 0 && a.Region != nil {
		x, y := a.Region, b.Region
		order = cmp.Or(bits(x.LnBethe, y.LnBethe), bits(x.LnSum, y.LnSum), bits(x.Linear.Mant, y.Linear.Mant), cmp.Compare(x.Linear.Exp, y.Linear.Exp),
			cmp.Compare(x.Regions, y.Regions), cmp.Compare(x.NonPositive, y.NonPositive), bits(x.Widest, y.Widest), cmp.Compare(there(x.Converged), there(y.Converged)))
	}
	return order
}

func compareErrors(a, b *btn.ErrorInfo) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return cmp.Or(cmp.Compare(a.Code, b.Code), cmp.Compare(a.Stage, b.Stage), cmp.Compare(a.Message, b.Message))
}
