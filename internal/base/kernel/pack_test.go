package kernel

import (
	"math/rand/v2"
	"testing"
)

// axis lists places of a table: runs of so many neighbours, apart from each other.
func axis(count, neighbours, step, apart int) []int {
	var at []int
	for i := range count {
		at = append(at, i%neighbours*step+i/neighbours*apart)
	}
	return at
}

// TestPackingAgainstItsDefinition: every entry is where the panels read it, for rows, columns and sums that
// follow one another in runs of several lengths, and zeros fill the last panel.
func TestPackingAgainstItsDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 1))
	from := random(rng, 80*80*4)
	for _, x := range inProcess() {
		for range 3000 {
			n, depth := 1+rng.IntN(40), 1+rng.IntN(40)
			if rng.IntN(4) == 0 {
				depth += 300
			}
			neighbours := []int{1, 2, 3, 4, 8, 500}
			first := axis(n, neighbours[rng.IntN(len(neighbours))], 1, depth+1)
			second := axis(depth, neighbours[rng.IntN(len(neighbours))], 1, n+3)
			if rng.IntN(2) == 0 {
				first = axis(n, neighbours[rng.IntN(len(neighbours))], 2, 37)
			}
			for i := range first {
				first[i] %= 80 * 80 * 2
			}
			for i := range second {
				second[i] %= 80 * 80 * 2
			}

			s := make([]float64, n*depth)
			x.packRows(s, from, first, second)
			want := make([]float64, 0, n*depth)
			groups := (n + x.rows() - 1) / x.rows()
			for g := range groups {
				for _, d := range second {
					for r := g * n / groups; r < (g+1)*n/groups; r++ {
						want = append(want, from[first[r]+d])
					}
				}
			}
			if err := same(s, want); err != nil {
				t.Fatalf("%s, rows %v, sum %v: %v", names[x], first, second, err)
			}

			v := random(rng, PackedColumns(n, depth))
			x.packColumns(v, from, second, first)
			want = make([]float64, len(v))
			for k, d := range second {
				for j, r := range first {
					want[j/Columns*depth*Columns+k*Columns+j%Columns] = from[r+d]
				}
			}
			if err := same(v, want); err != nil {
				t.Fatalf("%s, columns %v, sum %v: %v", names[x], first, second, err)
			}
		}
	}
}

// TestTilesAgainstLoops: some tiles in any sequence; nothing else is written.
func TestTilesAgainstLoops(t *testing.T) {
	for _, x := range inProcess() {
		rng := rand.New(rand.NewPCG(19, uint64(x)))
		for tiles := range 9 {
			var rows, columns [TileSide]int
			for i := range TileSide {
				rows[i], columns[i] = 5*((i+tiles)%TileSide), 7*((i+2*tiles)%TileSide)
			}
			where, at := rng.Perm(tiles), rng.Perm(tiles)
			for k := range at {
				where[k] *= 20
				at[k] *= 3
			}
			from, to := random(rng, 3*tiles+22), random(rng, 20*tiles+1)
			want := append([]float64(nil), to...)
			for k := range at {
				for i := range TileSide {
					for j := range TileSide {
						want[where[k]+rows[i]+j] = from[at[k]+columns[j]+i]
					}
				}
			}
			var list Tiles
			list.Set(where, at, &rows, &columns)
			list.copy(x, to, from)
			if err := same(to, want); err != nil {
				t.Fatalf("%s, %d tiles: %v", names[x], tiles, err)
			}
		}
	}
}

// TestLinesAgainstLoops: some lines in any sequence; nothing else is written.
func TestLinesAgainstLoops(t *testing.T) {
	for _, x := range inProcess() {
		rng := rand.New(rand.NewPCG(21, uint64(x)))
		for lines := range 9 {
			from, to := random(rng, 9*lines+8), random(rng, 30*lines+30)
			want := append([]float64(nil), to...)
			at, where := rng.Perm(lines), rng.Perm(lines)
			places := (*[Columns]int)(rng.Perm(30))
			for k := range at {
				at[k], where[k] = 9*at[k], 30*where[k]
				for j, p := range places {
					want[where[k]+p] = from[at[k]+j]
				}
			}
			var list Lines
			list.Set(where, at, places)
			list.copy(x, to, from)
			if err := same(to, want); err != nil {
				t.Fatalf("%s, %d lines: %v", names[x], lines, err)
			}
		}
	}
}
