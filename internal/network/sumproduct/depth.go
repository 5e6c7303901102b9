package sumproduct

// The depth of a table's entries: the possible loss of their products.

import "github.com/basetensor/basetensor/internal/base/floats"

// Depth bounds the entries of a table from below: all but the zeros are 2^Low or more in size, Low
// ≤ 0. Where Lost, products and divisions on the way to the table have lost something: 2^Off at
// most in every entry.
type Depth struct {
	Low      int  // exponent of 2
	Measured bool // Low was looked up, no better bound is to be had
	Lost     bool // digits were lost on the way
	Off      int  // exponent of 2 of the error bound of an entry; of use where Lost
}

// Measure looks the smallest entry of the table up, once.
func (d *Depth) Measure(data []float64) {
	if !d.Measured {
		_, low, _ := floats.Extent(data)
		d.Low = min(low, 0)
		d.Measured = true
	}
}

// Lose adds 2^off to the error bound of an entry.
func (d *Depth) Lose(off int) {
	if d.Lost {
		off = max(off, d.Off) + 1
	}
	d.Lost = true
	d.Off = off
}

const (
	// Cancelled is the maximum distance in bits of a nonzero sum of terms of
	// both signs below the smallest of them: the bits of a term.
	Cancelled = 54
	// Smallest is the exponent of the least float64 that is not 0: no entry is deeper.
	Smallest = -1074
	// Floor is the exponent of a product's maximum loss where float64 ends.
	Floor = -1022
	// BesideZ is the required distance of the total loss below Z, as an exponent of 2.
	BesideZ = 64
)
