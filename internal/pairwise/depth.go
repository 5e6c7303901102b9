package pairwise

// How deep the entries of a table go: what products of them may lose.

import (
	"math"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// depth bounds the entries of a table from below: all but the zeros are 2^low or more in size, low ≤ 0. What products and divisions
// lost on the way to them is 2^off at most in every entry.
type depth struct {
	low      int
	measured bool // low was looked up, no better bound is to be had
	lost     bool // else off is none
	off      int
}

// lose adds 2^off to what an entry may be off by.
func (d *depth) lose(off int) {
	if d.lost {
		off = max(off, d.off) + 1
	}
	d.lost, d.off = true, off
}

// cancelledBits is how much a sum of terms of both signs may be below the smallest of them without being 0: the bits of a term.
const cancelledBits = 54

// measure looks the smallest entry of a table up, once.
func (t *buffer) measure() {
	if !t.measured {
		_, low, _ := scaled.Extent(t.data)
		t.low, t.measured = min(low, 0), true
	}
}

// descend bounds the products of the entries of two tables. Bounds are multiplied; only where that leads too deep are the
// tables looked at. Where it still does, products may be lost.
func (r *run) descend(a, b *buffer) (low int, loses bool) {
	if a.low+b.low < scaled.Lowest {
		a.measure()
		b.measure()
		loses = a.low+b.low < scaled.Lowest
	}
	return max(r.cancelled(a.low+b.low), smallest), loses
}

// inherit says how far sums of so many products of a's and b's entries may be off.
func (d *depth) inherit(a, b *buffer, terms int, loses bool) {
	if loses {
		d.lose(floor + terms)
	}
	if a.lost {
		d.lose(a.off + b.upper() + terms)
	}
	if b.lost {
		d.lose(b.off + a.upper() + terms)
		if a.lost {
			d.lose(a.off + b.off + terms)
		}
	}
}

// upper is an exponent of 2 that all entries are below.
func (t *buffer) upper() int {
	top, _, _ := scaled.Extent(t.data)
	return top + 1
}

// short says whether what is missing of a total counts: for signed terms, which may cancel, whether anything may be.
func (r *run) short(total scaled.Number) bool {
	return !r.missing.IsZero() && (r.signed || r.missing.Cmp(total.Mul(scaled.Make(1, -besideZ))) > 0)
}

// cancelled bounds a sum of terms that are 2^low or more.
func (r *run) cancelled(low int) int {
	if r.signed {
		return low - cancelledBits
	}
	return low
}

const (
	// smallest is the exponent of the least float64 that is not 0: no entry is deeper.
	smallest = -1074
	// floor is the exponent of what a product loses at most where float64 ends.
	floor = -1022
	// besideZ is how far, as an exponent of 2, all that is lost has to be below Z.
	besideZ = 64
)

// spares says whether so many terms of an adjoint of a table, lost or rounded where a float64 has no more digits, are nothing beside
// the value of the slice. Each is 2^-1022 at most in units of a scale, and has a share of the value of that times an entry of the table.
func (r *run) spares(table int, terms float64, unit scaled.Number) bool {
	z := r.done.Mul(r.value)
	if r.signed || z.IsZero() || unit.IsZero() {
		return !r.signed // no term that is not 0 has been lost on the way to a value of 0
	}
	most := float64(max(0, r.bounds[table])+floor) + math.Log2(terms)
	return most+besideZ <= float64(z.Exp-unit.Exp-1)
}
