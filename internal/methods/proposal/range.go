package proposal

// Tables whose terms an approximate contraction may lose.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// The span of a table is log2 of the ratio of its largest to its smallest entry, without signs and zeros. widestTable is the largest span
// for which truncations are trusted: they keep 53 bits of every matrix, so that beyond it they may drop terms that count in the end.
// widestTogether is the same limit for the sum of the spans of all tables over one index, which meet in one tensor.
// Measured: of 84 reference models only proteins have a table beyond 35 bits (62 to 113), and none 400 together (constraints: 399).
const (
	widestTable    = 53
	widestTogether = 600
)

// ExceedsRange reports whether a contraction of e in float64 may lose terms, since entries span too many orders of magnitude: log2 of the
// ratio of the largest to the smallest entry of a table is above widestTable, or the sum of that over all tables with one index is above
// widestTogether. Zeros do not count.
func ExceedsRange(e *sumproduct.Expression) bool {
	spanOfIndex := make([]float64, len(e.Dims)) // by index: the sum of the spans of its tables so far
	for _, t := range e.Tables {
		smallest, largest := math.Inf(1), 0.0
		for _, x := range t.Data {
			if x = math.Abs(x); x > 0 {
				smallest, largest = min(smallest, x), max(largest, x)
			}
		}
		if largest == 0 {
			continue
		}

		span := math.Log2(largest) - math.Log2(smallest)
		if span > widestTable {
			return true
		}
		for _, i := range t.Scope {
			spanOfIndex[i] += span
			if spanOfIndex[i] > widestTogether {
				return true
			}
		}
	}

	return false
}

// HasConstraint reports whether a table over two indices or more has an entry of 0, which forbids a combination of values. e is a
// simplified expression, from which values that no term allows were removed, so that such a zero is a constraint and no observation.
func HasConstraint(e *sumproduct.Expression) bool {
	return slices.ContainsFunc(e.Tables, func(t sumproduct.Table) bool {
		return len(t.Scope) > 1 && slices.Contains(t.Data, 0)
	})
}
