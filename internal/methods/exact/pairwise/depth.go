package pairwise

// The depth of a table's entries: the possible loss of their products.

import (
	"math"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// measure looks the smallest entry of a table up, once.
func (t *buffer) measure() { t.Measure(t.data) }

// descend bounds the products of the entries of two tables. Bounds are multiplied; only where
// that leads too deep are the tables looked at. Where it still does, products may be lost.
func (r *run) descend(a, b *buffer) (low int, loses bool) {
	if a.Low+b.Low < floats.Lowest {
		a.measure()
		b.measure()
		loses = a.Low+b.Low < floats.Lowest
	}
	return max(r.cancelled(a.Low+b.Low), sumproduct.Smallest), loses
}

// inherit bounds the error of sums of so many products of a's and b's entries.
func (t *buffer) inherit(a, b *buffer, terms int, loses bool) {
	if loses {
		t.Lose(sumproduct.Floor + terms)
	}
	if a.Lost {
		t.Lose(a.Off + b.upper() + terms)
	}
	if b.Lost {
		t.Lose(b.Off + a.upper() + terms)
		if a.Lost {
			t.Lose(a.Off + b.Off + terms)
		}
	}
}

// upper is an exponent of 2 that all entries are below.
func (t *buffer) upper() int {
	top, _, _ := floats.Extent(t.data)
	return top + 1
}

// lossCounts reports whether the missing part of a total counts: for signed terms,
// which may cancel, whether anything may be missing.
func (r *run) lossCounts(total scaled.Number) bool {
	return !r.missing.IsZero() &&
		(r.signed || r.missing.Cmp(total.Mul(scaled.Make(1, -sumproduct.BesideZ))) > 0)
}

// cancelled bounds a sum of terms that are 2^low or more.
func (r *run) cancelled(low int) int {
	if r.signed {
		return low - sumproduct.Cancelled
	}
	return low
}

// spares says whether so many terms of an adjoint of a table, lost or rounded where a float64 has
// no more digits, are nothing beside the value of the slice. Each is 2^-1022 at most in units of a
// scale, and has a share of the value of that times an entry of the table.
func (r *run) spares(table int, terms float64, unit scaled.Number) bool {
	z := r.done.Mul(r.value)
	if r.signed || z.IsZero() || unit.IsZero() {
		return !r.signed // no term that is not 0 has been lost on the way to a value of 0
	}

	most := float64(max(0, r.bounds[table])+sumproduct.Floor) + math.Log2(terms)
	return most+sumproduct.BesideZ <= float64(z.Exp-unit.Exp-1)
}
