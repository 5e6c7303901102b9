package kernel

import (
	"math/rand/v2"
	"testing"
)

// TestBatchAgainstLoops: all lengths up to 40, odd numbers of rows and columns among others; nothing else is
// written.
func TestBatchAgainstLoops(t *testing.T) {
	for _, x := range inProcess() {
		rng := rand.New(rand.NewPCG(17, uint64(x)))
		for n := 1; n <= 40; n++ {
			rows, columns, terms := 1+rng.IntN(5), 1+rng.IntN(5), 1+rng.IntN(9)
			spread := func(count, apart int) (at []int) {
				for _, i := range rng.Perm(count) {
					at = append(at, i*apart)
				}
				return at
			}
			p := Places{
				OutRows: spread(rows, columns*(n+1)), OutColumns: spread(columns, n+1),
				ARows: spread(rows, n), ASum: spread(terms, rows*n),
				BColumns: spread(columns, terms*n+3), BSum: spread(terms, n),
			}
			a, b := random(rng, rows*terms*n), random(rng, columns*(terms*n+3))
			out := random(rng, rows*columns*(n+1))
			want := append([]float64(nil), out...)
			for r := range rows {
				for c := range columns {
					for j := range n {
						sum := 0.0
						for k := range terms {
							sum = step(x, 1, a[p.ARows[r]+p.ASum[k]+j], b[p.BColumns[c]+p.BSum[k]+j], sum)
						}
						want[p.OutRows[r]+p.OutColumns[c]+j] = sum
					}
				}
			}
			x.batch(out, a, b, n, &p)
			if err := same(out, want); err != nil {
				t.Fatalf("%s, %d × %d × %d, %d side by side: %v", names[x], rows, columns, terms, n, err)
			}
		}
	}
}
