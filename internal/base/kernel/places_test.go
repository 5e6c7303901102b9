package kernel

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestProductsOfScatteredEntries: operands and results whose entries are anywhere have the bits of one chain per entry, whichever of
// their blocks are packed together; nothing else is written.
func TestProductsOfScatteredEntries(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 1))
	spread := func(count, apart int) (at []int) {
		for _, i := range rng.Perm(count) {
			at = append(at, i*apart)
		}
		return at
	}
	var p Product
	for _, size := range [][3]int{{1, 1, 1}, {3, 5, 2}, {4, 8, 7}, {13, 17, 70}, {100, 300, 3}, {5, 9, 9000}} {
		rows, columns, terms := size[0], size[1], size[2]
		x := Places{
			OutRows: spread(rows, columns+1), OutColumns: spread(columns, 1),
			ARows: spread(rows, terms), ASum: spread(terms, 1),
			BColumns: spread(columns, 1), BSum: spread(terms, columns),
		}
		a, b := random(rng, rows*terms), random(rng, columns*terms)
		out := random(rng, rows*(columns+1))
		want := slices.Clone(out)
		for r, row := range x.OutRows {
			for c, column := range x.OutColumns {
				want[row+column] = Chain(a[x.ARows[r]:], b[x.BColumns[c]:], x.ASum, x.BSum)
			}
		}
		p.MultiplyAt(out, a, b, &x)
		if err := same(out, want); err != nil {
			t.Errorf("%d × %d × %d: %v", rows, columns, terms, err)
		}
	}
}

// TestProductsOfRuns: runs of columns that follow one another have the bits of one chain per entry.
func TestProductsOfRuns(t *testing.T) {
	rng := rand.New(rand.NewPCG(29, 1))
	var p Product
	for _, size := range [][4]int{{1, 1, 1, 2}, {3, 2, 17, 5}, {2, 5, 8, 1}, {1, 3, 1000, 2}} {
		rows, columns, run, terms := size[0], size[1], size[2], size[3]
		x := Places{ASum: rng.Perm(terms)}
		for r := range rows {
			x.OutRows, x.ARows = append(x.OutRows, r*columns*run), append(x.ARows, r*terms)
		}
		for _, c := range rng.Perm(columns) {
			x.OutColumns, x.BColumns = append(x.OutColumns, c*run), append(x.BColumns, c*run)
		}
		for _, k := range rng.Perm(terms) {
			x.BSum = append(x.BSum, k*columns*run)
		}
		a, b, out := random(rng, rows*terms), random(rng, terms*columns*run), make([]float64, rows*columns*run)
		p.MultiplyRuns(out, a, b, run, &x)
		for r, row := range x.OutRows {
			for c, column := range x.OutColumns {
				for j := range run {
					if want := Chain(a[x.ARows[r]:], b[x.BColumns[c]+j:], x.ASum, x.BSum); out[row+column+j] != want {
						t.Fatalf("%v, row %d, column %d of run %d: %v, want %v", size, r, j, c, out[row+column+j], want)
					}
				}
			}
		}
	}
}
