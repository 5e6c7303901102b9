package kernel

// Copies into another sequence.

// TileSide is the side of a tile of Tiles.
const TileSide = 4

// transposeArgs is a call of the assembly. The generator knows where the fields are.
type transposeArgs struct {
	to, from  *float64
	where, at *int // by tile
	tiles     int
	rows      [TileSide]int // bytes from the beginning of a tile to its rows in to
	columns   [TileSide]int // and in from
}

// Tiles copies tiles of four rows and columns: with s = at[k], from[s+columns[j]+i] goes to
// to[where[k]+rows[i]+j], for i, j < 4 and all k < len(at).
type Tiles struct {
	where, at     []int
	rows, columns [TileSide]int
	to, from      int // entries that both sides must have
}

// Set tells where the tiles are. It keeps the lists, which must stay as they are until the last Copy.
func (t *Tiles) Set(where, at []int, rows, columns *[TileSide]int) {
	*t = Tiles{where: where[:len(at)], at: at, rows: *rows, columns: *columns}
	if len(at) > 0 {
		t.to = beyond(t.where, rows[:]) + TileSide
		t.from = beyond(at, columns[:]) + TileSide
	}
}

// beyond is the largest sum of two places. It panics where one is below 0.
func beyond(x, y []int) int {
	low, high := 0, 0
	for _, at := range [][]int{x, y} {
		l, h := at[0], at[0]
		for _, v := range at {
			l, h = min(l, v), max(h, v)
		}
		low, high = low+l, high+h
	}
	if low < 0 {
		panic("kernel: a negative place")
	}
	return high
}

// Copy copies all tiles.
func (t *Tiles) Copy(to, from []float64) { t.copy(active, to, from) }

func (t *Tiles) copy(x set, to, from []float64) {
	if len(t.at) == 0 {
		return
	}
	if x == rounded || x == fused {
		for k, s := range t.at {
			y := to[t.where[k]:]
			for j, c := range t.columns {
				for i, v := range (*[TileSide]float64)(from[s+c:]) {
					y[t.rows[i]+j] = v
				}
			}
		}
		return
	}
	_, _ = to[t.to-1], from[t.from-1]
	a := transposeArgs{to: &to[0], from: &from[0], where: &t.where[0], at: &t.at[0], tiles: len(t.at)}
	for i := range TileSide {
		a.rows[i], a.columns[i] = 8*t.rows[i], 8*t.columns[i]
	}
	x.transposeVector(&a)
}

// scatterArgs is a call of the assembly. The generator knows where the fields are.
type scatterArgs struct {
	to, from  *float64
	where, at *int // by line
	lines     int
	places    [Columns]int // bytes from the beginning of a line in to
}

// Lines copies lines: entry j of the line that begins at from[at[k]] goes to to[where[k]+places[j]], for
// all k < len(at).
type Lines struct {
	where, at []int
	places    [Columns]int
	to, from  int // entries that both sides must have
}

// Set tells where the lines are. It keeps the lists, which must stay as they are until the last Copy.
func (l *Lines) Set(where, at []int, places *[Columns]int) {
	*l = Lines{where: where[:len(at)], at: at, places: *places}
	if len(at) > 0 {
		l.to = beyond(l.where, places[:]) + 1
		l.from = beyond(at, []int{0}) + Columns
	}
}

// Copy copies all lines.
func (l *Lines) Copy(to, from []float64) { l.copy(active, to, from) }

func (l *Lines) copy(x set, to, from []float64) {
	if len(l.at) == 0 {
		return
	}
	if x == rounded || x == fused {
		for k, d := range l.at {
			y := to[l.where[k]:]
			for j, v := range (*[Columns]float64)(from[d:]) {
				y[l.places[j]] = v
			}
		}
		return
	}
	_, _ = to[l.to-1], from[l.from-1]
	a := scatterArgs{to: &to[0], from: &from[0], where: &l.where[0], at: &l.at[0], lines: len(l.at)}
	for j, p := range l.places {
		a.places[j] = 8 * p
	}
	x.scatterVector(&a)
}
