package kernel

// Products of matrices.

const (
	blockColumns = 256 // columns of the right operand that are packed at a time
	blockSum     = 256 // values of the sum
	blockRows    = 96  // rows of the left operand: a multiple of the rows of every tile
)

// Product multiplies matrices. It keeps its workspace, 0.8 MB at most beside three numbers for every row,
// column and value of the sum; the zero value works, for one goroutine.
type Product struct {
	packedA, packedB, tile []float64 // packed rows of a, packed columns of b, and a block of the result
	panelRows              []int     // where the rows of packedB begin in a panel
	// Places of Multiply: a[aRows[i]+aSum[l]] is entry (i, l) of the left operand, b[bSum[l]+bColumns[j]] entry (l, j) of the right one.
	aRows, aSum, bSum, bColumns []int
}

// Multiply computes c = a·b for row-major matrices, c of m × n. a is m × k, or k × m where transposedA;
// b is k × n, or n × k where transposedB. It takes 2·m·k·n flops.
func (p *Product) Multiply(c, a, b []float64, m, k, n int, transposedA, transposedB bool) {
	if k == 0 || m == 0 || n == 0 {
		clear(c[:m*n])
		return
	}
	p.prepare(m, k, n, transposedA, transposedB) // all fields of p: places, and memory for a packed block of each operand
	for j := 0; j < n; j += blockColumns {
		columns := p.bColumns[j:min(j+blockColumns, n)]
		for l := 0; l < k; l += blockSum {
			depth := min(blockSum, k-l)
			isFirst := l == 0 // else the block is added to c
			PackColumns(p.packedB, b, p.bSum[l:l+depth], columns)
			for i := 0; i < m; i += blockRows {
				rows := p.aRows[i:min(i+blockRows, m)]
				PackRows(p.packedA, a, rows, p.aSum[l:l+depth])
				Panel(c[i*n+j:], n, len(rows), len(columns), p.packedA[:len(rows)*depth], p.packedB,
					p.panelRows[:depth], depth*Columns, isFirst)
			}
		}
	}
}

// prepare sets the sizes of the workspace, and the places of the operands' rows, columns and values of the sum. Parameters are those of
// Multiply.
func (p *Product) prepare(m, k, n int, transposedA, transposedB bool) {
	depth := min(k, blockSum)
	p.panelRows = progression(p.panelRows, depth, Columns)
	p.packedA = resize(p.packedA, min(m, blockRows)*depth)
	p.packedB = resize(p.packedB, PackedColumns(min(n, blockColumns), depth))
	// Row i of a begins at i·k, and its entries are neighbours. If a is transposed, it begins at i, and its entries are m apart. So for b.
	if transposedA {
		p.aRows, p.aSum = progression(p.aRows, m, 1), progression(p.aSum, k, m)
	} else {
		p.aRows, p.aSum = progression(p.aRows, m, k), progression(p.aSum, k, 1)
	}
	if transposedB {
		p.bSum, p.bColumns = progression(p.bSum, k, 1), progression(p.bColumns, n, k)
	} else {
		p.bSum, p.bColumns = progression(p.bSum, k, n), progression(p.bColumns, n, 1)
	}
}

// resize returns a slice of n entries, which may have any values, in the memory of b if its capacity is enough.
func resize(b []float64, n int) []float64 {
	if cap(b) < n {
		return make([]float64, n)
	}
	return b[:n]
}

// progression returns the places 0, step, 2·step, …, n of them, in the memory of list.
func progression(list []int, n, step int) []int {
	list = list[:0]
	for i := range n {
		list = append(list, i*step)
	}
	return list
}
