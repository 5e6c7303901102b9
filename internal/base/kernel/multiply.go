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
	s, v, tile                []float64
	row, column, inA, inB, at []int
}

// Multiply computes c = a·b for row-major matrices, c of m × n. a is m × k, or k × m where transposedA;
// b is k × n, or n × k where transposedB. It takes 2·m·k·n flops.
func (p *Product) Multiply(c, a, b []float64, m, k, n int, transposedA, transposedB bool) {
	if k == 0 || m == 0 || n == 0 {
		clear(c[:m*n])
		return
	}
	p.lay(m, k, n, transposedA, transposedB)
	for j := 0; j < n; j += blockColumns {
		columns := p.column[j:min(j+blockColumns, n)]
		for l := 0; l < k; l += blockSum {
			depth := min(blockSum, k-l)
			PackColumns(p.v, b, p.inB[l:l+depth], columns)
			for i := 0; i < m; i += blockRows {
				rows := p.row[i:min(i+blockRows, m)]
				PackRows(p.s, a, rows, p.inA[l:l+depth])
				Panel(c[i*n+j:], n, len(rows), len(columns), p.s[:len(rows)*depth], p.v,
					p.at[:depth], depth*Columns, l == 0)
			}
		}
	}
}

// lay makes room and lists where the operands have rows, columns and values of the sum.
func (p *Product) lay(m, k, n int, transposedA, transposedB bool) {
	depth := min(k, blockSum)
	p.at = progression(p.at, depth, Columns)
	p.s = room(p.s, min(m, blockRows)*depth)
	p.v = room(p.v, PackedColumns(min(n, blockColumns), depth))
	if transposedA {
		p.row, p.inA = progression(p.row, m, 1), progression(p.inA, k, m)
	} else {
		p.row, p.inA = progression(p.row, m, k), progression(p.inA, k, 1)
	}
	if transposedB {
		p.inB, p.column = progression(p.inB, k, 1), progression(p.column, n, k)
	} else {
		p.inB, p.column = progression(p.inB, k, n), progression(p.column, n, 1)
	}
}

// room returns n entries, in b where there are as many.
func room(b []float64, n int) []float64 {
	if cap(b) < n {
		return make([]float64, n)
	}
	return b[:n]
}

// progression lists n places that are step apart, in the memory of a list.
func progression(list []int, n, step int) []int {
	list = list[:0]
	for i := range n {
		list = append(list, i*step)
	}
	return list
}
