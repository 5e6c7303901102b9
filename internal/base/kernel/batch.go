package kernel

// Products of matrices side by side.

import "slices"

// batchArgs is a call of the assembly: two rows, two columns. The generator knows where the fields are.
type batchArgs struct {
	out    [4]*float64 // of row 0 and column 0, row 0 and column 1, row 1 …
	a      [2]*float64 // by row
	b      [2]*float64 // by column
	atA    *int
	atB    *int
	terms  int
	blocks int // of Columns matrices
}

// Batch computes n products of matrices that lie side by side,
//
//	out[OutRows[r]+OutColumns[c]+j] ← Σ_k a[ARows[r]+ASum[k]+j]·b[BColumns[c]+BSum[k]+j], j < n.
//
// It takes 2·n·rows·columns·terms flops.
func Batch(out, a, b []float64, n int, p *Places) { active.batch(out, a, b, n, p) }

// batch computes n products of matrices that lie side by side (see Batch), with the loops of the set x: entry (r, c) of all n products is
// the n entries of out from OutRows[r] + OutColumns[c] on. The assembly takes two rows, two columns and whole blocks of Columns matrices at
// a time; blend computes what is left over: the last row or column of an odd number, and the last matrices.
func (x loopSet) batch(out, a, b []float64, n int, p *Places) {
	inAssembly := n &^ (Columns - 1)                    // matrices that the assembly computes
	if x == rounded || x == fused || len(p.ASum) == 0 { // loops in Go, or no terms
		inAssembly = 0
	}
	bSum := p.BSum[:len(p.ASum)]
	bColumns, outColumns := p.BColumns, p.OutColumns[:len(p.BColumns)]
	evenRows, evenColumns := 0, 0 // rows and columns that the assembly computes
	if inAssembly > 0 {
		evenRows, evenColumns = len(p.ARows)&^1, len(bColumns)&^1
		// The assembly does not check places: these panic if a list is too short.
		checkReach(out, n, p.OutRows, outColumns)
		checkReach(a, n, p.ARows, p.ASum)
		checkReach(b, n, bColumns, bSum)
		x.batchPairs(out, a, b, inAssembly, evenRows, evenColumns, p)
	}

	for r, aRow := range p.ARows {
		for c, bColumn := range bColumns {
			first := 0 // the first matrix that is left
			if r < evenRows && c < evenColumns {
				first = inAssembly
			}
			if first < n {
				const isFirst = true // out is overwritten
				o := p.OutRows[r] + outColumns[c]
				x.blend(out[o+first:o+n], a[aRow+first:], b[bColumn+first:], p.ASum, bSum, nil, isFirst)
			}
		}
	}
}

// batchPairs computes the products of the first rows and columns, which are even numbers of both, for the first n matrices, a multiple of
// Columns. It does not check that the places are within the lists.
func (x loopSet) batchPairs(out, a, b []float64, n, rows, columns int, p *Places) {
	for r := 0; r < rows; r += 2 {
		for c := 0; c < columns; c += 2 {
			args := batchArgs{atA: &p.ASum[0], atB: &p.BSum[0], terms: len(p.ASum), blocks: n / Columns}
			for i := range 2 {
				args.a[i] = &a[p.ARows[r+i]]
				args.b[i] = &b[p.BColumns[c+i]]
				for j := range 2 {
					args.out[2*i+j] = &out[p.OutRows[r+i]+p.OutColumns[c+j]]
				}
			}
			x.batchVector(&args)
		}
	}
}

// checkReach panics unless list has n entries from the place x_i + y_j on, for all i and j.
func checkReach(list []float64, n int, x, y []int) {
	_ = list[slices.Min(x)+slices.Min(y)]
	_ = list[slices.Max(x)+slices.Max(y)+n-1]
}
