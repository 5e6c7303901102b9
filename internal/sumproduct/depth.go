package sumproduct

// How deep the entries of a table go: what products of them may lose.

import "github.com/basetensor/basetensor/pkg/scaled"

// Depth bounds the entries of a table from below: all but the zeros are 2^Low or more in size, Low ≤ 0. What products and divisions
// lost on the way to them is 2^Off at most in every entry, where Lost.
type Depth struct {
	Low      int
	Measured bool // Low was looked up, no better bound is to be had
	Lost     bool
	Off      int
}

// Measure looks the smallest entry of the table up, once.
func (d *Depth) Measure(data []float64) {
	if !d.Measured {
		_, low, _ := scaled.Extent(data)
		d.Low, d.Measured = min(low, 0), true
	}
}

// Lose adds 2^off to what an entry may be off by.
func (d *Depth) Lose(off int) {
	if d.Lost {
		off = max(off, d.Off) + 1
	}
	d.Lost, d.Off = true, off
}

const (
	// Cancelled is how many bits a sum of terms of both signs may be below the smallest of them without being 0: the bits of a term.
	Cancelled = 54
	// Smallest is the exponent of the least float64 that is not 0: no entry is deeper.
	Smallest = -1074
	// Floor is the exponent of what a product loses at most where float64 ends.
	Floor = -1022
	// BesideZ is how far, as an exponent of 2, all that is lost has to be below Z.
	BesideZ = 64
)
