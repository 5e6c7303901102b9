package kernel

// Products of matrices side by side.

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

func (x set) batch(out, a, b []float64, n int, p *Places) {
	whole := n &^ (Columns - 1)
	if x == rounded || x == fused || len(p.ASum) == 0 {
		whole = 0
	}
	bSum := p.BSum[:len(p.ASum)]
	bColumns, outColumns := p.BColumns, p.OutColumns[:len(p.BColumns)]
	rows, columns := 0, 0
	if whole > 0 {
		rows, columns = len(p.ARows)&^1, len(bColumns)&^1
		reach(out, n, p.OutRows, outColumns)
		reach(a, n, p.ARows, p.ASum)
		reach(b, n, bColumns, bSum)
	}
	for r := 0; r < rows; r += 2 {
		for c := 0; c < columns; c += 2 {
			args := batchArgs{atA: &p.ASum[0], atB: &bSum[0], terms: len(p.ASum), blocks: whole / Columns}
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
	for r, from := range p.ARows {
		for c, at := range bColumns {
			done := 0
			if r < rows && c < columns {
				done = whole
			}
			if done < n {
				o := p.OutRows[r] + outColumns[c]
				x.blend(out[o+done:o+n], a[from+done:], b[at+done:], p.ASum, bSum, nil, true)
			}
		}
	}
}

// reach panics unless a list has n entries from every sum of two places.
func reach(list []float64, n int, x, y []int) {
	_ = list[least(x)+least(y)]
	_ = list[most(x)+most(y)+n-1]
}

// least is the smallest of some places.
func least(list []int) int {
	m := list[0]
	for _, x := range list[1:] {
		m = min(m, x)
	}
	return m
}

// most is the largest of some places.
func most(list []int) int {
	m := list[0]
	for _, x := range list[1:] {
		m = max(m, x)
	}
	return m
}
