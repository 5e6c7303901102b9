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
// It is laid out when it is first computed, and for all lanes when it is first computed in all lanes. Many products never are: those for
// derivatives, if a tree is not asked for marginals.
type product struct {
	dims      []int
	out, a, b []int // scopes

	laid     sync.Once
	blocks   []block
	single   kernel.Places // positions in tables of one lane; of columns, the first of every run
	isTurned bool          // a and b are exchanged: b has the rows, which are fewer than the columns
	terms    int           // of each sum
	run      int           // each listed column stands for so many columns, which are neighbours in out and in b
	together int           // each listed block stands for so many blocks, which are neighbours in all three tables

	laidWide sync.Once
	wide     kernel.Places // positions in tables of all lanes
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
	common, p.together = withoutRun(dims, common, out, a, b)
	p.run = 1
	if sumproduct.Size(dims, rows) < minPacked {
		columns, p.run = withoutRun(dims, columns, out, b)
	}
	stride := make([]int, len(dims))
	places := func(scope, axes []int) []int {
		sumproduct.Strides(stride, dims, scope)
		list := sumproduct.Offsets(make([]int, 0, sumproduct.Size(dims, axes)), dims, axes, stride)
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
	p.blocks = make([]block, len(inOut))
	for k := range inOut {
		p.blocks[k] = block{inOut[k], inA[k], inB[k]}
	}
	p.terms = len(p.single.ASum)
}

// longRun is the number of entries from which a run of them takes less than they do one by one.
const longRun = 16

// withoutRun splits off the indices with which all scopes end in the same sequence: their combinations of values are neighbours in all
// tables. It returns the other indices, and the number of combinations. If that is below longRun, it returns all indices and 1.
func withoutRun(dims, indices []int, scopes ...[]int) (others []int, run int) {
	first := scopes[0]
	run = 1
	n := 0
	for ; n < len(first); n++ {
		last := first[len(first)-1-n]
		if !slices.Contains(indices, last) || slices.ContainsFunc(scopes, func(s []int) bool {
			return len(s) <= n || s[len(s)-1-n] != last
		}) {
			break
		}
		run *= dims[last]
	}
	if run < longRun {
		return indices, 1
	}
	inRun := first[len(first)-n:]
	return slices.DeleteFunc(indices, func(i int) bool { return slices.Contains(inRun, i) }), run
}

// layWide lists the positions of the product's entries in tables of all lanes. The product is laid out already.
func (p *product) layWide() {
	p.wide = kernel.Places{
		OutRows: widePlaces(p.single.OutRows, 1), OutColumns: widePlaces(p.single.OutColumns, p.run),
		ARows: widePlaces(p.single.ARows, 1), ASum: widePlaces(p.single.ASum, 1),
		BColumns: widePlaces(p.single.BColumns, p.run), BSum: widePlaces(p.single.BSum, 1),
	}
}

// widePlaces returns the positions of entries in a table of all lanes, from those in a table of one lane: every entry listed, and the run-1
// entries after it.
func widePlaces(entries []int, run int) []int {
	list := make([]int, 0, len(entries)*run)
	for _, entry := range entries {
		for k := range run {
			list = append(list, (entry+k)*Lanes)
		}
	}
	return list
}

// size returns the number of entries of out. The product is laid out already.
func (p *product) size() int {
	return len(p.blocks) * p.together * len(p.single.ARows) * len(p.single.BColumns) * p.run
}

// multiplyWide computes the product in all lanes.
func (p *product) multiplyWide(out, a, b []float64) {
	p.laidWide.Do(p.layWide)
	if p.isTurned {
		a, b = b, a
	}
	for _, start := range p.blocks {
		kernel.Batch(out[start.out*Lanes:], a[start.a*Lanes:], b[start.b*Lanes:], p.together*Lanes, &p.wide)
	}
}

// minPacked is the number of rows and of columns from which a product in one lane is packed.
const minPacked = 4

// multiply computes the product in one lane, with the bits of multiplyWide. The loops differ only in speed: over neighbouring blocks, over
// runs of columns, over packed rows and columns, or entry by entry.
func (p *product) multiply(m *kernel.Product, out, a, b []float64) {
	if p.isTurned {
		a, b = b, a
	}
	isPacked := min(len(p.single.ARows), len(p.single.BColumns)) >= minPacked
	for _, start := range p.blocks {
		out, a, b := out[start.out:], a[start.a:], b[start.b:]
		switch {
		case p.together > 1:
			kernel.Batch(out, a, b, p.together, &p.single)
		case p.run > 1:
			m.MultiplyRuns(out, a, b, p.run, &p.single)
		case isPacked:
			m.MultiplyAt(out, a, b, &p.single)
		default:
			p.multiplyEntries(out, a, b)
		}
	}
}

// multiplyEntries computes a block in one lane, entry after entry.
func (p *product) multiplyEntries(out, a, b []float64) {
	s := &p.single
	for r, row := range s.ARows {
		out, a := out[s.OutRows[r]:], a[row:]
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
