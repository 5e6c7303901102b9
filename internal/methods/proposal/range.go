package proposal

// Tables that an estimate may lose terms of.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// widestTable is the span of a table's entries, as an exponent of 2, beyond which truncations may
// drop terms that count in the end: they keep the 53 bits of every matrix. widestTogether is
// the same for the tables over one index, which meet in one tensor.
// Measured: of 84 reference models only proteins have a table beyond 35 bits (62 to 113), and
// none 400 together (constraints: 399).
const (
	widestTable    = 53
	widestTogether = 600
)

// BeyondRange reports whether the entries of tables span so much, each or those over one index together, that
// a contraction in float64 may lose terms.
func BeyondRange(e *sumproduct.Expression) bool {
	together := make([]float64, len(e.Dims))
	for _, t := range e.Tables {
		least, most := math.Inf(1), 0.0
		for _, x := range t.Data {
			if x = math.Abs(x); x > 0 {
				least, most = min(least, x), max(most, x)
			}
		}

		if most == 0 {
			continue
		}
		span := math.Log2(most) - math.Log2(least)
		if span > widestTable {
			return true
		}

		for _, i := range t.Scope {
			if together[i] += span; together[i] > widestTogether {
				return true
			}
		}
	}

	return false
}

// Forbids reports whether some table Forbids values of two indices or more together: simplification has removed the
// values that nothing allows, so that a zero is a constraint.
func Forbids(e *sumproduct.Expression) bool {
	return slices.ContainsFunc(e.Tables, func(t sumproduct.Table) bool {
		return len(t.Scope) > 1 && slices.Contains(t.Data, 0)
	})
}
