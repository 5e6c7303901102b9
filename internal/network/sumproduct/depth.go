package sumproduct

// The depth of a table: a lower bound of its entries, which tells whether their products may be lost.

import "github.com/basetensor/basetensor/internal/base/floats"

// Depth bounds the entries of a table from below: the absolute value of each entry is 0, or 2^Low or more. Low ≤ 0. If Lost is true, each
// entry may be wrong by up to 2^Off, because of products and divisions that lost digits.
type Depth struct {
	Low      int  // exponent of 2
	Measured bool // Low is the exponent of the smallest entry and no mere bound of it
	Lost     bool // digits may have been lost
	Off      int  // exponent of 2 of the error bound of an entry, if Lost
}

// Measure sets Low to the binary exponent of the smallest entry of the table that is not 0, but at most 0. It does nothing if Low was
// measured already.
func (d *Depth) Measure(data []float64) {
	if !d.Measured {
		_, minExponent, _ := floats.Extent(data)
		d.Low = min(minExponent, 0)
		d.Measured = true
	}
}

// AddLoss records that products or divisions may have lost another 2^off in every entry.
func (d *Depth) AddLoss(off int) {
	if d.Lost {
		off = max(off, d.Off) + 1 // 2^a + 2^b ≤ 2^(max(a, b) + 1)
	}
	d.Lost = true
	d.Off = off
}

const (
	// Cancelled bounds how many bits a sum of terms of both signs may be below the smallest term, if it is not 0: the bits of a term.
	Cancelled = 54
	// Smallest is the exponent of the smallest float64 that is not 0: no entry is deeper.
	Smallest = -1074
	// Floor is the exponent of 2 of what a product loses at most, if it is below the normal numbers of float64.
	Floor = -1022
	// BesideZ is how far a total loss has to be below Z, in bits, so that it does not count.
	BesideZ = 64
)
