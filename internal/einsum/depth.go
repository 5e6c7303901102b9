package einsum

// How deep the entries of a table go: what products of them may lose.

import (
	"math"

	"github.com/basetensor/basetensor/internal/contractionorder"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// depth bounds the entries of a table from below: all but the zeros are 2^low or more in size, low ≤ 0.
type depth struct {
	low      int
	measured bool // low was looked up, no better bound is to be had
}

// cancelled is how many bits a sum of terms of both signs may be below the smallest of them without being 0: the bits of a term.
const cancelled = 54

// measure looks the smallest entry of a table up, once.
func (d *depth) measure(data []float64) {
	if !d.measured {
		_, low, _ := scaled.Extent(data)
		d.low, d.measured = min(low, 0), true
	}
}

// descend bounds the output of a step, and its products, by the depths of its inputs, but for the one at place but; by, if not
// nil, multiplies them besides. Bounds are multiplied; only where that leads too deep are the tables looked at. Where it
// still does, products may be lost.
func (c *contraction) descend(s *contractionorder.Step, but int, by *derivative) (low int, loses bool) {
	sum := func() int {
		low := 0
		if by != nil {
			low = by.low
		}
		for i, t := range s.In {
			if i != but {
				low += c.tables[t].low
			}
		}
		return low
	}
	if low = sum(); low < scaled.Lowest {
		if by != nil {
			by.measure(by.data)
		}
		for i, t := range s.In {
			if i != but {
				c.tables[t].measure(c.tables[t].data)
			}
		}
		low = sum()
		loses = low < scaled.Lowest
	}
	if c.signed {
		low -= cancelled
	}
	return low, loses
}

// rescale divides data by the power of two of its largest entry, given as bits, and returns that power, and whether entries may
// be lost.
func rescale(data []float64, top uint64, d *depth) (p scaled.Number, loses bool) {
	if exp := scaled.Exponent(top); d.low-exp < scaled.Lowest {
		d.measure(data)
		loses = d.low-exp < scaled.Lowest
	}
	p = scaled.Rescale(data, top)
	d.low -= int(p.Exp)
	return p, loses
}

const (
	// smallest is the exponent of the least float64 that is not 0: no entry is deeper.
	smallest = -1074
	// besideZ is how far, as an exponent of 2, all that is lost on the way back has to be below Z.
	besideZ = 64
)

// spares says whether so many terms of a derivative by table k, lost or rounded where a float64 has no more digits, are nothing
// beside Z. Each is 2^(up−1022) at most in units of 2^exp, and has a share of Z of that times an entry of the table.
func (c *contraction) spares(k int, terms float64, up int, exp int64) bool {
	if c.signed || c.scale.IsZero() {
		return !c.signed // no term that is not 0 has been lost on the way to a Z of 0
	}
	most := float64(up-1022+upper(c.tables[k].data)) + math.Log2(terms)
	return most+besideZ <= float64(c.scale.Exp-exp)
}

// upper is an exponent of 2 that all entries are below, at least 0.
func upper(data []float64) int {
	top, _, _ := scaled.Extent(data)
	return max(0, top+1)
}
