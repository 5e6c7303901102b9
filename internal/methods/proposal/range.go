package proposal

// Tables whose terms an approximate contraction may lose.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// widestTable is the largest span of a table's entries, log2 of largest over smallest, for which truncations are trusted. They keep 53 bits
// of every matrix, so that beyond it they may drop terms that count in the end. widestTogether is the same limit for the sum of the spans
// of all tables over one index, which meet in one tensor.
// Measured: of 84 reference models only proteins have a table beyond 35 bits (62 to 113), and
// none 400 together (constraints: 399).
const (
	widestTable    = 53
	widestTogether = 600
)

// ExceedsRange reports whether a contraction of e in float64 may lose terms: the entries of one table, or of all tables over one index
// together, span too many orders of magnitude. Zeros do not count.
func ExceedsRange(e *sumproduct.Expression) bool {
	spanOfIndex := make([]float64, len(e.Dims))
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
			if spanOfIndex[i] += span; spanOfIndex[i] > widestTogether {
				return true
			}
		}
	}

	return false
}

// HasConstraint reports whether a table over two indices or more has a zero. Simplification has removed the values that no term allows,
// so that such a zero is a constraint.
func HasConstraint(e *sumproduct.Expression) bool {
	return slices.ContainsFunc(e.Tables, func(t sumproduct.Table) bool {
		return len(t.Scope) > 1 && slices.Contains(t.Data, 0)
	})
}
