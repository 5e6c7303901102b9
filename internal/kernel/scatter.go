package kernel

// Copies into another sequence.

// TileSide is the side of a tile of Transpose.
const TileSide = 4

// transposeArgs is a call of the assembly. The generator knows where the fields are.
type transposeArgs struct {
	to, from  *float64
	where, at *int // by tile
	tiles     int
	rows      [TileSide]int // bytes from the beginning of a tile to its rows in to
	columns   [TileSide]int // and in from
}

// Transpose copies tiles of four rows and columns: with s = at[k], from[s+columns[j]+i] goes to
// to[where[k]+rows[i]+j], for i, j < 4 and all k < len(at).
func Transpose(to, from []float64, where, at []int, rows, columns *[TileSide]int) {
	active.transpose(to, from, where, at, rows, columns)
}

func (x set) transpose(to, from []float64, where, at []int, rows, columns *[TileSide]int) {
	if len(at) == 0 {
		return
	}
	where = where[:len(at)]
	if x == rounded || x == fused {
		for k, s := range at {
			y := to[where[k]:]
			for j, c := range columns {
				for i, v := range (*[TileSide]float64)(from[s+c:]) {
					y[rows[i]+j] = v
				}
			}
		}
		return
	}
	reach(to, TileSide, where, rows[:])
	reach(from, TileSide, at, columns[:])
	a := transposeArgs{to: &to[0], from: &from[0], where: &where[0], at: &at[0], tiles: len(at)}
	for i := range TileSide {
		a.rows[i], a.columns[i] = 8*rows[i], 8*columns[i]
	}
	x.transposeVector(&a)
}

// Scatter copies lines: entry j of the line that begins at from[at[k]] goes to to[where[k]+places[j]], for
// all k < len(at).
func Scatter(to, from []float64, at, where []int, places *[Columns]int) {
	p0, p1, p2, p3 := places[0], places[1], places[2], places[3]
	p4, p5, p6, p7 := places[4], places[5], places[6], places[7]
	where = where[:len(at)]
	for k, d := range at {
		x, y := (*[Columns]float64)(from[d:]), to[where[k]:]
		y[p0] = x[0]
		y[p1] = x[1]
		y[p2] = x[2]
		y[p3] = x[3]
		y[p4] = x[4]
		y[p5] = x[5]
		y[p6] = x[6]
		y[p7] = x[7]
	}
}
