package junction

// The product of two tables: where the entries of its terms are.

import (
	"slices"
	"sync"

	"github.com/basetensor/basetensor/internal/base/kernel"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// product is out ← Σ a·b. The indices of all three tables are its blocks, those of out and a its rows, those of out and b its columns,
// all others are summed. An index of out that neither a nor b has is one of the rows.
//
// It is laid out when it is first computed, for all lanes when that is: most products of a tree that is not asked for marginals never are.
type product struct {
	dims      []int
	out, a, b []int // scopes

	laid     sync.Once
	blocks   []block
	single   kernel.Places // in tables of one lane
	isTurned bool          // a and b are exchanged: b has the rows, which are fewer than the columns
	terms    int           // of each sum

	laidWide sync.Once
	wide     kernel.Places // in tables of all lanes
}

// block is where the tables begin in one block, in tables of one lane.
type block struct{ out, a, b int }

// lay lists the places of the product's entries.
func (p *product) lay() {
	dims, out, a, b := p.dims, p.out, p.a, p.b
	var common, rows, columns, sums []int
	for _, i := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(out, a, b)))) {
		inOut, inA, inB := slices.Contains(out, i), slices.Contains(a, i), slices.Contains(b, i)
		switch {
		case inOut && inA && inB:
			common = append(common, i)
		case inOut && inB:
			columns = append(columns, i)
		case inOut:
			rows = append(rows, i)
		default:
			sums = append(sums, i)
		}
	}
	p.isTurned = sumproduct.Size(dims, rows) > sumproduct.Size(dims, columns)
	if p.isTurned {
		a, b, rows, columns = b, a, columns, rows
	}
	stride := make([]int, len(dims))
	places := func(scope, axes []int) []int {
		sumproduct.Strides(stride, dims, scope)
		list := sumproduct.Offsets[int](nil, dims, axes, stride)
		for _, i := range scope {
			stride[i] = 0
		}
		return list
	}
	p.single = kernel.Places{
		OutRows: places(out, rows), OutColumns: places(out, columns),
		ARows: places(a, rows), ASum: places(a, sums),
		BColumns: places(b, columns), BSum: places(b, sums),
	}
	inOut, inA, inB := places(out, common), places(a, common), places(b, common)
	for k := range inOut {
		p.blocks = append(p.blocks, block{inOut[k], inA[k], inB[k]})
	}
	p.terms = len(p.single.ASum)
}

// layWide lists the places in tables of all lanes.
func (p *product) layWide() {
	p.wide = kernel.Places{
		OutRows: lanewise(p.single.OutRows), OutColumns: lanewise(p.single.OutColumns),
		ARows: lanewise(p.single.ARows), ASum: lanewise(p.single.ASum),
		BColumns: lanewise(p.single.BColumns), BSum: lanewise(p.single.BSum),
	}
}

// lanewise returns the places of entries in a table of all lanes.
func lanewise(entries []int) []int {
	list := make([]int, len(entries))
	for k, at := range entries {
		list[k] = at * Lanes
	}
	return list
}

// size is the number of entries of out. The product is laid out.
func (p *product) size() int { return len(p.blocks) * len(p.single.ARows) * len(p.single.BColumns) }

// multiplyWide computes the product in all lanes.
func (p *product) multiplyWide(out, a, b []float64) {
	p.laidWide.Do(p.layWide)
	if p.isTurned {
		a, b = b, a
	}
	for _, at := range p.blocks {
		kernel.Batch(out[at.out*Lanes:], a[at.a*Lanes:], b[at.b*Lanes:], Lanes, &p.wide)
	}
}

// packs is the number of rows, and of columns, from which a product in one lane is packed.
const packs = 4

// multiply computes the product in one lane, with the bits of multiplyWide.
func (p *product) multiply(m *kernel.Product, out, a, b []float64) {
	if p.isTurned {
		a, b = b, a
	}
	isPacked := min(len(p.single.ARows), len(p.single.BColumns)) >= packs
	for _, at := range p.blocks {
		if isPacked {
			m.MultiplyAt(out[at.out:], a[at.a:], b[at.b:], &p.single)
		} else {
			p.chain(out[at.out:], a[at.a:], b[at.b:])
		}
	}
}

// chain computes a block in one lane entry after entry.
func (p *product) chain(out, a, b []float64) {
	s := &p.single
	for r, from := range s.ARows {
		out, a := out[s.OutRows[r]:], a[from:]
		c := 0
		for ; c+4 <= len(s.BColumns); c += 4 {
			var four [4]float64
			kernel.Chains(&four, a, b, (*[4]int)(s.BColumns[c:]), s.ASum, s.BSum)
			for k, x := range four {
				out[s.OutColumns[c+k]] = x
			}
		}
		for ; c < len(s.BColumns); c++ {
			out[s.OutColumns[c]] = kernel.Chain(a, b[s.BColumns[c]:], s.ASum, s.BSum)
		}
	}
}
