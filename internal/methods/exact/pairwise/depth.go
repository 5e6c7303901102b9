package pairwise

// The depth of a table's entries: the possible loss of their products.

import (
	"math"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// measureDepth looks the smallest entry of a table up, unless it is known.
func (t *buffer) measureDepth() { t.Measure(t.data) }

// productDepth returns a lower bound, as an exponent of 2, of the sums of products of entries of two tables. loses is true if products may
// be lost, since they may be too small for a float64. It multiplies the bounds of the tables. Only if the product is too small, it looks at
// the entries.
func (r *run) productDepth(a, b *buffer) (low int, loses bool) {
	if a.Low+b.Low < floats.Lowest {
		a.measureDepth()
		b.measureDepth()
		loses = a.Low+b.Low < floats.Lowest
	}
	return max(r.sumDepth(a.Low+b.Low), sumproduct.Smallest), loses
}

// addLosses adds to the losses of t, the product of a and b, what it inherits from them and, if loses is true, what its products lose. Each
// entry is a sum of at most 2^log2Terms products.
func (t *buffer) addLosses(a, b *buffer, log2Terms int, loses bool) {
	if loses {
		t.Lose(sumproduct.Floor + log2Terms)
	}
	if a.Lost {
		t.Lose(a.Off + b.upperExponent() + log2Terms)
	}
	if b.Lost {
		t.Lose(b.Off + a.upperExponent() + log2Terms)
		if a.Lost {
			t.Lose(a.Off + b.Off + log2Terms)
		}
	}
}

// upperExponent returns an exponent of 2 that all entries are below in size.
func (t *buffer) upperExponent() int {
	largest, _, _ := floats.Extent(t.data)
	return largest + 1
}

// isLossSignificant reports whether the missing part of a total is large enough to count. For signed terms, which may cancel, anything that
// may be missing counts.
func (r *run) isLossSignificant(total scaled.Number) bool {
	return !r.missingBound.IsZero() &&
		(r.signed || r.missingBound.Cmp(total.Mul(scaled.Make(1, -sumproduct.BesideZ))) > 0)
}

// sumDepth returns a lower bound, as an exponent of 2, of a sum of terms that are 2^low or more in size. Signed terms may cancel.
func (r *run) sumDepth(low int) int {
	if r.signed {
		return low - sumproduct.Cancelled
	}
	return low
}

// areNegligible reports whether some terms of an adjoint of a table are nothing compared with the value of the slice, if they are lost, or
// rounded because a float64 has no more digits. Each is at most 2^-1022 in units of unit, and its share of the value is that times an entry
// of the table.
func (r *run) areNegligible(table int, terms float64, unit scaled.Number) bool {
	z := r.valueScale.Mul(r.value)
	if r.signed || z.IsZero() || unit.IsZero() {
		return !r.signed // no term that is not 0 has been lost on the way to a value of 0
	}

	log2Largest := float64(max(0, r.bounds[table])+sumproduct.Floor) + math.Log2(terms)
	return log2Largest+sumproduct.BesideZ <= float64(z.Exp-unit.Exp-1)
}
