// Package kernel has the innermost loops of contractions and matrix products on float64: tiles of a
// product with packed operands, sums of products of runs, scalar products. They are in assembly for
// AVX-512, AVX2 with FMA, and NEON, chosen when the program starts by the processor's features, and
// in Go for all others.
//
// All of them have one order of summation, so they give the same bits for every width of
// registers: an entry of a product is one chain of fused multiplications and additions,
//
//	c ← a_k·b_k + c, rounded once, for k = 0, 1, 2 …
//
// from 0 or from the entry's previous value, however the sum is cut into blocks; a scalar product
// is 32 such chains, over the entries ≡ l modulo 32, added up as a balanced tree. With n terms the
// error is at most n·2^−53 relative to the sum of the terms' absolute values, half the error of a
// chain of separate multiplications and additions.
//
// A processor without fused multiplication would take some twenty times as long for the same bits;
// it rounds twice instead, and Order tells it apart.
package kernel

//go:generate go run ./generate -dir .

// Columns is the width of a panel of the right operand: see PackColumns.
const Columns = 8

// loopSet is a set of loops for one kind of processor.
type loopSet uint8

const (
	rounded loopSet = iota // Go, products and sums rounded one after the other
	fused                  // Go, with math.FMA
	avx2
	avx512
	neon
)

var names = [...]string{"Go", "Go, fused", "AVX2", "AVX-512", "NEON"}

// active is the set in use. Only tests change it.
var active = choose()

// choose returns the best set of loops that the processor has. A set in assembly counts only if it gives the bits of the loops in Go on a
// fixed product.
func choose() loopSet {
	for _, s := range candidates() {
		if s == rounded || s == fused || s.agrees() {
			return s
		}
	}
	return rounded
}

// Vector returns the name of the loops in use: AVX-512, AVX2, NEON, or Go.
func Vector() string { return names[active] }

// Order returns the name of the loops' way of rounding, on which the last bits of results depend: "fused", which gives the same bits on all
// processors that have fused multiplication, or "rounded".
func Order() string {
	if active == rounded {
		return "rounded"
	}
	return "fused"
}

// rows returns the maximum number of rows of a tile.
func (s loopSet) rows() int {
	switch s {
	case avx512:
		return 12
	case rounded:
		return 2
	}
	return 6 // of AVX2 and NEON, and of the fused loops in Go
}

// agrees reports whether a set gives the bits of the loops in Go. It tries tiles of every number of rows, and one run, scalar product, copy
// and product side by side, all of an irregular length. It takes some 30 µs.
func (s loopSet) agrees() bool {
	const n, depth = 37, 5 // columns, and values of the sum
	v := make([]float64, depth*n)
	for i := range v {
		v[i] = 1/float64(i+3) - 0.01
	}
	rowsOfV := []int{0, n, 2 * n, 3 * n, 4 * n} // v as a table of 5 rows
	for rows := 1; rows <= s.rows(); rows++ {
		var out [2][]float64 // of the loops in Go, and of s: each call adds to it or overwrites some of it
		for i, x := range []loopSet{fused, s} {
			out[i] = make([]float64, rows*n)
			// Rows of S next to each other and overwriting out (true), then with a gap of one entry and adding to out (false).
			x.group(out[i], n, rows, n, v[3:], rows, v, rowsOfV, Columns, true)
			x.group(out[i], n, rows, n, v[7:], rows+1, v, rowsOfV, Columns, false)
			x.blend(out[i][:n], v, v[n:], rowsOfV[:4], rowsOfV[:4], nil, false)
			x.blend(out[i][:n], v, v[n:], rowsOfV[:4], rowsOfV[:4], v[2:6], false)
			out[i][0] += x.dot(v[1:], v[:len(v)-1])
			var tiles Tiles
			tiles.Set([]int{2}, rowsOfV[1:2], &[TileSide]int{0, 6, 12, 18}, (*[TileSide]int)(rowsOfV))
			tiles.copy(x, out[i], v)
			var lines Lines
			lines.Set([]int{1}, rowsOfV[1:2], &[Columns]int{3, 0, 1, 9, 4, 17, 8, 30})
			lines.copy(x, out[i], v)
			x.batch(out[i][4:], v, v[1:], 9, &Places{
				OutRows: []int{0, 18}[:min(rows, 2)], OutColumns: []int{0, 9},
				ARows: rowsOfV[:min(rows, 2)], ASum: rowsOfV[:3], BColumns: rowsOfV[1:3], BSum: rowsOfV[:3],
			})
		}
		for i, want := range out[0] {
			if out[1][i] != want {
				return false
			}
		}
	}
	return true
}
