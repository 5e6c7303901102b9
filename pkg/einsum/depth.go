package einsum

// How deep the entries of a table go: what products of them may lose.

import (
	"github.com/basetensor/basetensor/pkg/elimination"
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
// still does, the total may have lost terms.
func (c *contraction) descend(s *elimination.Step, but int, by *derivative) int {
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
	low := sum()
	if low < scaled.Lowest {
		if by != nil {
			by.measure(by.data)
		}
		for i, t := range s.In {
			if i != but {
				c.tables[t].measure(c.tables[t].data)
			}
		}
		low = sum()
		c.lost = c.lost || low < scaled.Lowest
	}
	if c.signed {
		low -= cancelled
	}
	return low
}

// rescale divides data by the power of two of its largest entry, given as bits, and returns that power.
func (c *contraction) rescale(data []float64, top uint64, d *depth) scaled.Number {
	if exp := scaled.Exponent(top); d.low-exp < scaled.Lowest {
		d.measure(data)
		c.lost = c.lost || d.low-exp < scaled.Lowest
	}
	p := scaled.Rescale(data, top)
	d.low -= int(p.Exp)
	return p
}
