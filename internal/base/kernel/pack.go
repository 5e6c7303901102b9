package kernel

// Packing: the operands of Panel in the sequence in which it reads them.

// longSum is the number of values of the sum from which tiles are faster than single entries.
const longSum = 64

// PackRows writes the left operand S of Panel: entry (r, k) is from[rows[r]+sum[k]]. It takes
// len(rows)·len(sum) entries, in groups of a few rows, within a group value after value of the sum.
func PackRows(s, from []float64, rows, sum []int) { active.packRows(s, from, rows, sum) }

func (x set) packRows(s, from []float64, rows, sum []int) {
	across := len(rows) > 1 && len(sum) > 1 && rows[1]-rows[0] < sum[1]-sum[0]
	if across {
		x.packAcross(s, from, rows, sum)
		return
	}
	tiled := len(sum) >= longSum && follow(sum, TileSide)
	groups := x.groups(len(rows))
	for g := range groups {
		group := rows[g*len(rows)/groups : (g+1)*len(rows)/groups]
		if tiled && len(group) >= TileSide {
			x.packTiles(s, from, group, sum)
		} else {
			packGroup(s, from, group, sum)
		}
		s = s[len(group)*len(sum):]
	}
}

// follow says that places follow one another, within every so many of them that are whole.
func follow(at []int, every int) bool {
	if len(at) < every {
		return false
	}
	for i := range at[:len(at)/every*every] {
		if i%every > 0 && at[i] != at[i-1]+1 {
			return false
		}
	}
	return true
}

// packGroup writes a group entry by entry.
func packGroup(s, from []float64, group, sum []int) {
	for _, d := range sum {
		at := from[d:]
		for i, r := range group {
			s[i] = at[r]
		}
		s = s[len(group):]
	}
}

// packTiles writes a group of four rows or more where values of the sum follow one another in fours:
// four rows by four values at a time, the last rows with some of those before them.
func (x set) packTiles(s, from []float64, group, sum []int) {
	n := len(group)
	for i := 0; i < n; i += TileSide {
		i = min(i, n-TileSide)
		x.packTile(s[i:], from, n, (*[TileSide]int)(group[i:]), sum)
	}
	whole := len(sum) &^ (TileSide - 1)
	packGroup(s[whole*n:], from, group, sum[whole:])
}

// packTile writes four rows for as many values of the sum as there are fours; written rows are step
// apart.
func (x set) packTile(to, from []float64, step int, columns *[TileSide]int, sum []int) {
	const most = 64 // tiles at a time
	var where, at [most]int
	var tiles Tiles
	rows := [TileSide]int{0, step, 2 * step, 3 * step}
	for len(sum) >= TileSide {
		n := min(most, len(sum)/TileSide)
		for i := range n {
			where[i], at[i] = i*TileSide*step, sum[i*TileSide]
		}
		tiles.Set(where[:n], at[:n], &rows, columns)
		tiles.copy(x, to, from)
		if sum = sum[n*TileSide:]; len(sum) >= TileSide {
			to = to[n*TileSide*step:]
		}
	}
}

// nearSum is the number of values of the sum packed for all groups one after the other: their lines stay
// in the first-level cache.
const nearSum = 16

// packAcross is packRows for tables in which rows are close together: all groups for some values of the sum.
func (x set) packAcross(s, from []float64, rows, sum []int) {
	groups := x.groups(len(rows))
	neighbours := follow(rows, len(rows)) && len(rows) >= groups*TileSide
	for k := 0; k < len(sum); k += nearSum {
		near := sum[k:min(k+nearSum, len(sum))]
		for g := range groups {
			r0, r1 := g*len(rows)/groups, (g+1)*len(rows)/groups
			to := s[r0*len(sum)+k*(r1-r0):]
			if neighbours {
				packRuns(to, from[rows[r0]:], near, r1-r0)
			} else {
				packGroup(to, from, rows[r0:r1], near)
			}
		}
	}
}

// packRuns writes runs of n entries, four of them at least, one after the other.
func packRuns(to, from []float64, sum []int, n int) {
	for k, d := range sum {
		x, y := from[d:][:n], to[k*n:][:n]
		for i := 0; i < n-TileSide; i += TileSide {
			copyFour(y[i:], x[i:])
		}
		copyFour(y[n-TileSide:], x[n-TileSide:]) // with some of those before it
	}
}

// copyFour copies four entries, without a call.
func copyFour(to, from []float64) {
	x, y := (*[TileSide]float64)(from), (*[TileSide]float64)(to)
	a, b, c, d := x[0], x[1], x[2], x[3]
	y[0], y[1], y[2], y[3] = a, b, c, d
}

// PackedColumns is the number of entries that PackColumns writes for n columns and depth values.
func PackedColumns(n, depth int) int { return (n + Columns - 1) / Columns * Columns * depth }

// PackColumns writes the right operand V of Panel: entry (k, j) is from[sum[k]+run[j]]. Panels of
// Columns columns follow one another, within a panel value after value of the sum; the last panel is
// filled with zeros. Panel takes it with at[k] = k·Columns and step = len(sum)·Columns.
func PackColumns(v, from []float64, sum, run []int) { active.packColumns(v, from, sum, run) }

func (x set) packColumns(v, from []float64, sum, run []int) {
	step := len(sum) * Columns
	whole := len(run) &^ (Columns - 1)
	switch apart := len(run) > 1 && len(sum) > 1 && run[1]-run[0] > sum[1]-sum[0]; {
	case follow(run[:whole], Columns):
		for k, d := range sum {
			to, at := v[k*Columns:], from[d:]
			for j := 0; j < whole; j += Columns {
				*(*[Columns]float64)(to[j*len(sum):]) = *(*[Columns]float64)(at[run[j]:])
			}
		}
	case apart && len(sum) >= longSum && follow(sum, TileSide):
		rest := sum[len(sum)&^(TileSide-1):]
		for j := 0; j < whole; j += Columns {
			to := v[j*len(sum):][:step]
			for i := 0; i < Columns; i += TileSide {
				x.packTile(to[i:], from, Columns, (*[TileSide]int)(run[j+i:]), sum)
			}
			to = to[(len(sum)-len(rest))*Columns:]
			for k, d := range rest {
				gather((*[Columns]float64)(to[k*Columns:]), from[d:], (*[Columns]int)(run[j:]))
			}
		}
	case apart:
		for j := 0; j < whole; j += Columns {
			to := v[j*len(sum):][:step]
			for k, d := range sum {
				gather((*[Columns]float64)(to[k*Columns:]), from[d:], (*[Columns]int)(run[j:]))
			}
		}
	default:
		for k, d := range sum {
			for j := 0; j < whole; j += Columns {
				gather((*[Columns]float64)(v[j*len(sum)+k*Columns:]), from[d:], (*[Columns]int)(run[j:]))
			}
		}
	}
	if last := run[whole:]; len(last) > 0 {
		to := v[whole*len(sum):][:step]
		clear(to)
		for k, d := range sum {
			at := from[d:]
			for i, j := range last {
				to[k*Columns+i] = at[j]
			}
		}
	}
}

// gather copies the entries of a panel's row together.
func gather(to *[Columns]float64, from []float64, at *[Columns]int) {
	for i, j := range at {
		to[i] = from[j]
	}
}
