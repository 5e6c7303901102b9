package pairwise

// The depth of a table's entries: the possible loss of their products.

import (
	"math"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// measureDepth sets Low to the exponent of the smallest entry of the table other than 0, unless it is known.
func (t *buffer) measureDepth() { t.Measure(t.data) }

// productDepth returns low, for which 2^low is a lower bound of the sizes of entries of the product a · b summed, other than 0. It
// follows from the lower bounds 2^a.Low and 2^b.Low of the entries of the tables, which are measured only if the product of the bounds is
// too small. loses is true if products of entries may be too small for a float64, so that terms may be lost.
func (r *run) productDepth(a, b *buffer) (low int, loses bool) {
	if a.Low+b.Low < floats.Lowest {
		a.measureDepth()
		b.measureDepth()
		loses = a.Low+b.Low < floats.Lowest
	}
	return max(r.sumDepth(a.Low+b.Low), sumproduct.Smallest), loses
}

// addLosses sets what may be missing from an entry of t, the product of a and b, in which an entry is a sum of at most 2^log2Terms
// products. If a table is Lost, 2^Off bounds what is missing from any of its entries: an entry is A where A + δA is right, |δA| ≤ 2^Off. So
// a product A·B lacks δA·B + δB·A + δA·δB. If loses is true, each product may itself lose up to 2^Floor.
func (t *buffer) addLosses(a, b *buffer, log2Terms int, loses bool) {
	if loses {
		t.AddLoss(sumproduct.Floor + log2Terms)
	}
	if a.Lost {
		t.AddLoss(a.Off + b.upperExponent() + log2Terms)
	}
	if b.Lost {
		t.AddLoss(b.Off + a.upperExponent() + log2Terms)
	}
	if a.Lost && b.Lost {
		t.AddLoss(a.Off + b.Off + log2Terms)
	}
}

// upperExponent returns an exponent e for which all entries of the table are below 2^e in size.
func (t *buffer) upperExponent() int {
	largest, _, _ := floats.Extent(t.data)
	return largest + 1
}

// isLossSignificant reports whether the missing part of a total is large enough to count: if it may be more than 2^−64 of the total. If
// there are terms of both signs, which may cancel, anything that may be missing counts.
func (r *run) isLossSignificant(total scaled.Number) bool {
	if r.missingBound.IsZero() {
		return false
	}
	negligible := total.Mul(scaled.Make(1, -sumproduct.BesideZ))
	return r.signed || r.missingBound.Cmp(negligible) > 0
}

// sumDepth returns an exponent e for which a sum of terms of size 2^low or more is at least 2^e in size, if it is not 0. Terms of both
// signs may cancel all but their last bits.
func (r *run) sumDepth(low int) int {
	if r.signed {
		return low - sumproduct.Cancelled
	}
	return low
}

// areNegligible reports whether so many terms of the adjoint of a table count for nothing in the value of the slice, even if all of them
// are lost. A lost term is at most 2^Floor in units of unit. Its share of the value is that times an entry of the table, at most
// 2^bounds[table]. The terms are negligible if
//
//	terms · 2^Floor · 2^bounds[table] · unit ≤ 2^−BesideZ · value
//
// The result is false if there are terms of both signs, since the value may then be what is left of larger terms.
func (r *run) areNegligible(table int, terms float64, unit scaled.Number) bool {
	z := r.valueScale.Mul(r.value)
	if r.signed || z.IsZero() || unit.IsZero() {
		return !r.signed // no term other than 0 has been lost on the way to a value of 0
	}

	log2Missing := float64(max(0, r.bounds[table])+sumproduct.Floor) + math.Log2(terms) // in units of unit
	return log2Missing+sumproduct.BesideZ <= float64(z.Exp-unit.Exp-1)                  // −1: mantissas are in [1, 2)
}
