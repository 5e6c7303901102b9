package einsum

// The depth of a table's entries: the possible loss of their products.

import (
	"math"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// descend bounds the output of a step, and its products, by the depths of its inputs, but for the one at place but; by, if not
// nil, multiplies them besides. Bounds are multiplied; only where that leads too deep are the tables looked at. Where it
// still does, products may be lost.
func (c *contraction) descend(s *contractionorder.Step, but int, by *derivative) (low int, loses bool) {
	sum := func() int {
		low := 0
		if by != nil {
			low = by.Low
		}
		for i, t := range s.In {
			if i != but {
				low += c.tables[t].Low
			}
		}
		return low
	}
	if low = sum(); low < floats.Lowest {
		if by != nil {
			by.Measure(by.data)
		}
		for i, t := range s.In {
			if i != but {
				c.tables[t].Measure(c.tables[t].data)
			}
		}
		low = sum()
		loses = low < floats.Lowest
	}
	if c.signed {
		low -= sumproduct.Cancelled
	}
	return low, loses
}

// rescale divides data by the power of two of its largest entry, given as bits, and returns that power, and whether entries may
// be lost.
func rescale(data []float64, top uint64, d *sumproduct.Depth) (p scaled.Number, loses bool) {
	if exp := floats.Exponent(top); d.Low-exp < floats.Lowest {
		d.Measure(data)
		loses = d.Low-exp < floats.Lowest
	}
	p = floats.Rescale(data, top)
	d.Low -= int(p.Exp)
	return p, loses
}

// spares says whether so many terms of a derivative by table k, lost or rounded where a float64 has no more digits, are nothing
// beside Z. Each is 2^(up−1022) at most in units of 2^exp, and has a share of Z of that times an entry of the table.
// Where derivatives themselves are wanted, every entry counts, however small it is beside Z.
func (c *contraction) spares(k int, terms float64, up int, exp int64) bool {
	if c.tape.wanted != nil {
		return false
	}
	if c.signed || c.scale.IsZero() {
		return !c.signed // no term that is not 0 has been lost on the way to a Z of 0
	}
	most := float64(up+sumproduct.Floor+upper(c.tables[k].data)) + math.Log2(terms)
	return most+sumproduct.BesideZ <= float64(c.scale.Exp-exp)
}

// upper is an exponent of 2 that all entries are below, at least 0.
func upper(data []float64) int {
	top, _, _ := floats.Extent(data)
	return max(0, top+1)
}
