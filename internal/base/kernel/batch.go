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

// batch computes Batch with the loops of x. The assembly takes two rows, two columns and whole blocks of Columns matrices at a time; what
// is left over is computed by blend.
func (x loopSet) batch(out, a, b []float64, n int, p *Places) {
	inAssembly := n &^ (Columns - 1) // matrices that the assembly computes
	if x == rounded || x == fused || len(p.ASum) == 0 {
		inAssembly = 0
	}
	bSum := p.BSum[:len(p.ASum)]
	bColumns, outColumns := p.BColumns, p.OutColumns[:len(p.BColumns)]
	evenRows, evenColumns := 0, 0
	if inAssembly > 0 {
		evenRows, evenColumns = len(p.ARows)&^1, len(bColumns)&^1
		checkReach(out, n, p.OutRows, outColumns)
		checkReach(a, n, p.ARows, p.ASum)
		checkReach(b, n, bColumns, bSum)
	}

	for r := 0; r < evenRows; r += 2 {
		for c := 0; c < evenColumns; c += 2 {
			args := batchArgs{atA: &p.ASum[0], atB: &bSum[0], terms: len(p.ASum), blocks: inAssembly / Columns}
			for i := range 2 {
				args.a[i] = &a[p.ARows[r+i]]
				args.b[i] = &b[bColumns[c+i]]
				for j := range 2 {
					args.out[2*i+j] = &out[p.OutRows[r+i]+outColumns[c+j]]
				}
			}
			x.batchVector(&args)
		}
	}

	for r, aRow := range p.ARows {
		for c, bColumn := range bColumns {
			done := 0
			if r < evenRows && c < evenColumns {
				done = inAssembly
			}
			if done < n {
				const isFirst = true
				o := p.OutRows[r] + outColumns[c]
				x.blend(out[o+done:o+n], a[aRow+done:], b[bColumn+done:], p.ASum, bSum, nil, isFirst)
			}
		}
	}
}

// checkReach panics unless list has n entries from the place x_i + y_j on, for all i and j.
func checkReach(list []float64, n int, x, y []int) {
	_ = list[slices.Min(x)+slices.Min(y)]
	_ = list[slices.Max(x)+slices.Max(y)+n-1]
}
