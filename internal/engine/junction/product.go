package junction

// The product of two tables: where the entries of its terms are.

import (
	"slices"
	"sync"

	"github.com/basetensor/basetensor/internal/base/kernel"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// product is out ← Σ a·b, as one product of matrices for each combination of values of the common indices, those of all three tables. The
// indices of out and a are the rows of the matrices, those of out and b their columns. All other indices are summed. An index of out that
// neither a nor b has is one of the rows.
//
// Positions are listed when it is first computed, and those in tables of all lanes when it is first computed in all lanes. Many products
// never are: those for derivatives, if a tree is not asked for marginals.
type product struct {
	dims      []int // by index: the number of its values
	out, a, b []int // scopes of the tables

	positionsOnce sync.Once     // calls listPositions
	blocks        []block       // the products of matrices
	single        kernel.Places // positions in tables of one lane; of columns, the first of every run
	isSwapped     bool          // a and b are exchanged: b has the rows, which are fewer than the columns
	terms         int           // of each sum
	columnRun     int           // each listed column stands for so many columns, which are neighbours in out and in b
	blockRun      int           // each listed block stands for so many blocks, which are neighbours in all three tables

	widePositionsOnce sync.Once     // calls listWidePositions
	wide              kernel.Places // positions in tables of all lanes
}

// block is the position in each of the three tables at which a product of matrices begins, in tables of one lane.
type block struct{ out, a, b int }

// listPositions finds the rows, columns, sums and blocks of the product, and lists where each is in the three tables. A block is a product
// of matrices, one for each combination of values of the indices that all tables have. If there are more rows than columns, a and b change
// places (isSwapped), so that there are no fewer columns, over which the fast loops run, than rows.
func (p *product) listPositions() {
	dims, out, a, b := p.dims, p.out, p.a, p.b
	common, rows, columns, sums := p.sortIndices()
	p.isSwapped = sumproduct.Size(dims, rows) > sumproduct.Size(dims, columns)
	if p.isSwapped {
		a, b, rows, columns = b, a, columns, rows
	}

	// Runs of neighbours are listed once, by their first entry.
	common, p.blockRun = splitOffRun(dims, common, out, a, b)
	p.columnRun = 1
	if sumproduct.Size(dims, rows) < minPacked { // else it is packed, which needs no runs (multiply)
		columns, p.columnRun = splitOffRun(dims, columns, out, b)
	}

	stride := make([]int, len(dims)) // by index, 0 between calls of places
	// places lists, for all combinations of values of the indices in axes, the positions in a table over scope at which all others are 0.
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
	outPlaces, aPlaces, bPlaces := places(out, common), places(a, common), places(b, common)
	p.blocks = make([]block, len(outPlaces))
	for k := range p.blocks {
		p.blocks[k] = block{outPlaces[k], aPlaces[k], bPlaces[k]}
	}
	p.terms = len(p.single.ASum)
}

// sortIndices divides the indices of the three tables by what they are in the product (product), each group in ascending sequence.
func (p *product) sortIndices() (common, rows, columns, sums []int) {
	for _, i := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(p.out, p.a, p.b)))) {
		isInOut, isInA, isInB := slices.Contains(p.out, i), slices.Contains(p.a, i), slices.Contains(p.b, i)
		switch {
		case isInOut && isInA && isInB:
			common = append(common, i)
		case isInOut && isInB:
			columns = append(columns, i)
		case isInOut:
			rows = append(rows, i)
		default:
			sums = append(sums, i)
		}
	}
	return common, rows, columns, sums
}

// longRun is the number of neighbouring entries from which a loop over them takes less time than one by one.
const longRun = 16

// splitOffRun finds the longest common end of all scopes that consists of the given indices. The entries for its combinations of values are
// neighbours in all tables: a run. It returns the other indices, and the length of the run. If the run is shorter than longRun, it returns
// all indices and 1.
//
// Example: for the indices 1, 2, 3 and the scopes (0 2 3) and (1 2 3) the run is over 2 and 3, and 1 is left.
func splitOffRun(dims, indices []int, scopes ...[]int) (others []int, runLength int) {
	first := scopes[0]
	runLength = 1
	shared := 0 // number of indices in the common end
	for ; shared < len(first); shared++ {
		index := first[len(first)-1-shared]
		differs := func(scope []int) bool { return len(scope) <= shared || scope[len(scope)-1-shared] != index }
		if !slices.Contains(indices, index) || slices.ContainsFunc(scopes, differs) {
			break
		}
		runLength *= dims[index]
	}
	if runLength < longRun {
		return indices, 1
	}
	inRun := first[len(first)-shared:]
	return slices.DeleteFunc(indices, func(i int) bool { return slices.Contains(inRun, i) }), runLength
}

// listWidePositions lists the positions of the product's entries in tables of all lanes. It needs those of listPositions.
func (p *product) listWidePositions() {
	p.wide = kernel.Places{
		OutRows: widePlaces(p.single.OutRows, 1), OutColumns: widePlaces(p.single.OutColumns, p.columnRun),
		ARows: widePlaces(p.single.ARows, 1), ASum: widePlaces(p.single.ASum, 1),
		BColumns: widePlaces(p.single.BColumns, p.columnRun), BSum: widePlaces(p.single.BSum, 1),
	}
}

// widePlaces returns positions in a table of all lanes from those in a table of one lane: for each listed entry, those of the entry and of
// the run-1 entries after it. Example: with 8 lanes and run 2, the entry 5 becomes 40 and 48. A lane is one of the queries that are
// computed side by side.
func widePlaces(entries []int, run int) []int {
	list := make([]int, 0, len(entries)*run)
	for _, entry := range entries {
		for k := range run {
			list = append(list, (entry+k)*Lanes)
		}
	}
	return list
}

// size returns the number of entries of out. It needs the positions of listPositions.
func (p *product) size() int {
	blocks := len(p.blocks) * p.blockRun
	rows, columns := len(p.single.ARows), len(p.single.BColumns)*p.columnRun
	return blocks * rows * columns
}

// multiplyWide computes the product in all lanes: out, a and b have Lanes numbers for each entry. A lane is one of the queries that are
// computed side by side.
func (p *product) multiplyWide(out, a, b []float64) {
	p.widePositionsOnce.Do(p.listWidePositions)
	if p.isSwapped { // the listed positions are for a and b exchanged
		a, b = b, a
	}
	for _, start := range p.blocks {
		kernel.Batch(out[start.out*Lanes:], a[start.a*Lanes:], b[start.b*Lanes:], p.blockRun*Lanes, &p.wide)
	}
}

// minPacked is the number of rows and of columns from which a product in one lane is packed.
const minPacked = 4

// multiply computes the product in one lane, to the same bits as multiplyWide in each lane. It picks the fastest loop: over neighbouring
// blocks, over runs of neighbouring columns, over rows and columns that are copied side by side (packed), or entry by entry.
func (p *product) multiply(m *kernel.Product, out, a, b []float64) {
	if p.isSwapped { // the listed positions are for a and b exchanged
		a, b = b, a
	}
	isPacked := min(len(p.single.ARows), len(p.single.BColumns)) >= minPacked
	for _, start := range p.blocks {
		out, a, b := out[start.out:], a[start.a:], b[start.b:]
		switch {
		case p.blockRun > 1:
			kernel.Batch(out, a, b, p.blockRun, &p.single)
		case p.columnRun > 1:
			m.MultiplyRuns(out, a, b, p.columnRun, &p.single)
		case isPacked:
			m.MultiplyAt(out, a, b, &p.single)
		default:
			p.multiplyEntries(out, a, b)
		}
	}
}

// multiplyEntries computes the product of matrices of one block, in one lane: each entry of out is the sum over k of the entries of a at
// ARows[r]+ASum[k] and of b at BColumns[c]+BSum[k]. It computes four columns at a time, and those left over one by one. A lane is one of
// the queries that are computed side by side.
func (p *product) multiplyEntries(out, a, b []float64) {
	s := &p.single
	for r, row := range s.ARows {
		out, a := out[s.OutRows[r]:], a[row:]
		c := 0
		for ; c+4 <= len(s.BColumns); c += 4 {
			var sums [4]float64
			kernel.Chains(&sums, a, b, (*[4]int)(s.BColumns[c:]), s.ASum, s.BSum)
			for k, x := range sums {
				out[s.OutColumns[c+k]] = x
			}
		}
		for ; c < len(s.BColumns); c++ {
			out[s.OutColumns[c]] = kernel.Chain(a, b[s.BColumns[c]:], s.ASum, s.BSum)
		}
	}
}
