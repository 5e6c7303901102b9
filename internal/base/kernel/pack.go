package kernel

// Packing: the operands of Panel in the sequence in which it reads them.

// longSum is the number of values of the sum from which tiles are faster than single entries.
const longSum = 64

// PackRows writes the left operand S of Panel: entry (r, k) is table[rows[r]+sum[k]]. It takes
// len(rows)·len(sum) entries, in groups of a few rows, within a group value after value of the sum.
func PackRows(s, table []float64, rows, sum []int) { active.packRows(s, table, rows, sum) }

// packRows computes PackRows with the loops of the set x: entry (r, k), where k is the value that the sum of the product runs over, is
// table[rows[r]+sum[k]]. It takes the way that suits these places: across all rows if rows are closer together than values of the sum, by
// tiles if values of the sum follow one another, else entry by entry.
func (x loopSet) packRows(s, table []float64, rows, sum []int) {
	areRowsCloser := len(rows) > 1 && len(sum) > 1 && rows[1]-rows[0] < sum[1]-sum[0]
	if areRowsCloser {
		x.packAcross(s, table, rows, sum)
		return
	}
	usesTiles := len(sum) >= longSum && areRuns(sum, TileSide)
	groups := x.groups(len(rows))
	for g := range groups {
		group := rows[g*len(rows)/groups : (g+1)*len(rows)/groups]
		if usesTiles && len(group) >= TileSide {
			x.packTiles(s, table, group, sum)
		} else {
			packGroup(s, table, group, sum)
		}
		s = s[len(group)*len(sum):]
	}
}

// areRuns reports whether places, positions in a list, are in runs of n that follow one another, as 4, 5, 6, 7 and 0, 1, 2, 3 for n = 4.
// Places at the end that make no whole run do not count. It returns false if there is no run.
func areRuns(places []int, n int) bool {
	if len(places) < n {
		return false
	}
	for i := range places[:len(places)/n*n] {
		if i%n > 0 && places[i] != places[i-1]+1 {
			return false
		}
	}
	return true
}

// packGroup writes table[group[i]+sum[k]] for the rows i of a group, k by k, entry by entry.
func packGroup(s, table []float64, group, sum []int) {
	for _, offset := range sum {
		entries := table[offset:]
		for i, row := range group {
			s[i] = entries[row]
		}
		s = s[len(group):]
	}
}

// packTiles writes table[group[i]+sum[k]] for the rows i of a group of four or more, k by k. The values k of the sum must be in runs of
// four. It copies four rows by four values at a time. The last four rows may have some of those before. Values that make no run come last,
// entry by entry.
func (x loopSet) packTiles(s, table []float64, group, sum []int) {
	n := len(group)
	for i := 0; i < n; i += TileSide {
		i = min(i, n-TileSide)
		x.packFourRows(s[i:], table, n, (*[TileSide]int)(group[i:]), sum)
	}
	inRuns := len(sum) &^ (TileSide - 1)
	packGroup(s[inRuns*n:], table, group, sum[inRuns:])
}

// packFourRows copies table[rows[i]+sum[k]] to packed[k·step+i] for four rows i, and for all values k of the sum that are in runs of four.
func (x loopSet) packFourRows(packed, table []float64, step int, rows *[TileSide]int, sum []int) {
	const maxTiles = 64 // tiles that are copied at a time
	var targets, sources [maxTiles]int
	var tiles Tiles
	targetRows := [TileSide]int{0, step, 2 * step, 3 * step}
	for len(sum) >= TileSide {
		n := min(maxTiles, len(sum)/TileSide)
		for i := range n {
			targets[i], sources[i] = i*TileSide*step, sum[i*TileSide]
		}
		tiles.Set(targets[:n], sources[:n], &targetRows, rows)
		tiles.copy(x, packed, table)
		if sum = sum[n*TileSide:]; len(sum) >= TileSide { // else packed may end before
			packed = packed[n*TileSide*step:]
		}
	}
}

// nearSum is the number of values of the sum packed for all groups one after the other: their lines stay
// in the first-level cache.
const nearSum = 16

// packAcross writes table[rows[r]+sum[k]] group after group of rows r, and within a group k by k, for tables in which rows are close
// together. It does so for all groups and some values k of the sum, then for all groups and the next values, so that lines stay in the
// cache.
func (x loopSet) packAcross(s, table []float64, rows, sum []int) {
	groups := x.groups(len(rows))
	areNeighbours := areRuns(rows, len(rows)) && len(rows) >= groups*TileSide // packRuns needs groups of TileSide rows or more
	for k := 0; k < len(sum); k += nearSum {
		block := sum[k:min(k+nearSum, len(sum))]
		for g := range groups {
			begin, end := g*len(rows)/groups, (g+1)*len(rows)/groups
			packed := s[begin*len(sum)+k*(end-begin):]
			if areNeighbours {
				packRuns(packed, table[rows[begin]:], block, end-begin)
			} else {
				packGroup(packed, table, rows[begin:end], block)
			}
		}
	}
}

// packRuns copies the n entries from each place of sum on, one run after the other. n is at least four.
func packRuns(packed, table []float64, sum []int, n int) {
	for k, offset := range sum {
		source, target := table[offset:][:n], packed[k*n:][:n]
		for i := 0; i < n-TileSide; i += TileSide {
			copyFour(target[i:], source[i:])
		}
		copyFour(target[n-TileSide:], source[n-TileSide:]) // the last four, some perhaps again
	}
}

// copyFour copies four entries, without a call.
func copyFour(target, source []float64) {
	x, y := (*[TileSide]float64)(source), (*[TileSide]float64)(target)
	a, b, c, d := x[0], x[1], x[2], x[3]
	y[0], y[1], y[2], y[3] = a, b, c, d
}

// PackedColumns returns the number of entries that PackColumns writes for n columns and depth values of the sum.
func PackedColumns(n, depth int) int { return (n + Columns - 1) / Columns * Columns * depth }

// PackColumns writes the right operand V of Panel: entry (k, j) is table[sum[k]+columns[j]]. Panels of Columns columns follow one another,
// within a panel value after value of the sum; the last panel is filled with zeros. Panel takes it with vRows[k] = k·Columns and
// panelStep = len(sum)·Columns.
func PackColumns(v, table []float64, sum, columns []int) { active.packColumns(v, table, sum, columns) }

// packColumns computes PackColumns with the loops of the set x: entry (k, j), where k is the value that the sum of the product runs over,
// is table[sum[k]+columns[j]]. Whole panels of Columns columns are packed in the way that reads the table in its sequence: if columns are
// further apart than values of the sum, panel by panel, else value by value of the sum for all panels.
func (x loopSet) packColumns(v, table []float64, sum, columns []int) {
	inPanels := len(columns) &^ (Columns - 1) // columns in whole panels
	whole := columns[:inPanels]
	areColumnsApart := len(columns) > 1 && len(sum) > 1 && columns[1]-columns[0] > sum[1]-sum[0]
	switch {
	case areRuns(whole, Columns):
		packColumnRuns(v, table, sum, whole)
	case areColumnsApart && len(sum) >= longSum && areRuns(sum, TileSide):
		x.packColumnTiles(v, table, sum, whole)
	case areColumnsApart:
		packByPanel(v, table, sum, whole)
	default:
		packBySum(v, table, sum, whole)
	}

	if last := columns[inPanels:]; len(last) > 0 {
		packLastPanel(v[inPanels*len(sum):][:len(sum)*Columns], table, sum, last)
	}
}

// packColumnRuns packs panels of Columns columns that are neighbours: each row of a panel is copied as it is.
func packColumnRuns(v, table []float64, sum, columns []int) {
	for k, offset := range sum {
		packed, entries := v[k*Columns:], table[offset:]
		for j := 0; j < len(columns); j += Columns {
			*(*[Columns]float64)(packed[j*len(sum):]) = *(*[Columns]float64)(entries[columns[j]:])
		}
	}
}

// packColumnTiles packs panel by panel, in transposed tiles: for values of the sum that are in runs of TileSide neighbours. The last
// values, fewer than a run, are gathered.
func (x loopSet) packColumnTiles(v, table []float64, sum, columns []int) {
	inTiles := len(sum) &^ (TileSide - 1)
	for j := 0; j < len(columns); j += Columns {
		packed := v[j*len(sum):][:len(sum)*Columns]
		for i := 0; i < Columns; i += TileSide {
			x.packFourRows(packed[i:], table, Columns, (*[TileSide]int)(columns[j+i:]), sum)
		}
		packed = packed[inTiles*Columns:]
		for k, offset := range sum[inTiles:] {
			gather((*[Columns]float64)(packed[k*Columns:]), table[offset:], (*[Columns]int)(columns[j:]))
		}
	}
}

// packByPanel packs one panel after the other.
func packByPanel(v, table []float64, sum, columns []int) {
	for j := 0; j < len(columns); j += Columns {
		packed := v[j*len(sum):][:len(sum)*Columns]
		for k, offset := range sum {
			gather((*[Columns]float64)(packed[k*Columns:]), table[offset:], (*[Columns]int)(columns[j:]))
		}
	}
}

// packBySum packs one value of the sum after the other, for all panels.
func packBySum(v, table []float64, sum, columns []int) {
	for k, offset := range sum {
		for j := 0; j < len(columns); j += Columns {
			gather((*[Columns]float64)(v[j*len(sum)+k*Columns:]), table[offset:], (*[Columns]int)(columns[j:]))
		}
	}
}

// packLastPanel packs a panel of fewer columns than Columns, and fills it with zeros.
func packLastPanel(panel, table []float64, sum, columns []int) {
	clear(panel)
	for k, offset := range sum {
		entries := table[offset:]
		for i, column := range columns {
			panel[k*Columns+i] = entries[column]
		}
	}
}

// gather sets packed[i] to table[places[i]] for every i.
func gather(packed *[Columns]float64, table []float64, places *[Columns]int) {
	for i, place := range places {
		packed[i] = table[place]
	}
}
