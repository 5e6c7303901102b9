package kernel

// Tiles of a product with packed operands.

import "math"

// panelArgs is a call of the assembly: rows of out, panels of Columns columns each.
// The generator knows where the fields are.
type panelArgs struct {
	out    *float64
	v      *float64
	s      *float64
	vRows  *int
	panels int
	depth  int
	stride int // bytes between rows of out
	step   int // bytes between panels of v
	add    int // 1: sums begin with the entries of out, 0: with zero
	rows   int
	skip   int // bytes of s that are not read after each value of the sum
}

// groups returns the number of groups into which rows are cut, of at most s.rows() each. Group g has the rows from g·rows/groups to
// (g+1)·rows/groups − 1.
func (s loopSet) groups(rows int) int { return (rows + s.rows() - 1) / s.rows() }

// Panel computes a block of a product of matrices,
//
//	out[r·stride+j] ← Σ_k S[r, k]·V[k, j], r < rows, j < n, k < len(vRows),
//
// or adds the sum to out unless isFirst is set. S is as PackRows writes it. Row k of V begins at v[vRows[k]]; its columns are in panels of
// Columns, which begin panelStep entries after each other. panelStep is Columns for a table as it is, and len(vRows)·Columns for one that
// PackColumns wrote. It takes 2·rows·n·len(vRows) flops.
func Panel(out []float64, stride, rows, n int, s, v []float64, vRows []int, panelStep int, isFirst bool) {
	active.panel(out, stride, rows, n, s, v, vRows, panelStep, isFirst)
}

// PanelOf is Panel for an S that is not packed: S[r, k] = s[k·sStride+r], so rows follow one another.
func PanelOf(out []float64, stride, rows, n int, s []float64, sStride int, v []float64, vRows []int, panelStep int, isFirst bool) {
	active.panelOf(out, stride, rows, n, s, sStride, v, vRows, panelStep, isFirst)
}

// panelOf computes out[r·stride+j] ← Σ_k s[k·sStride+r]·V[k, j] with the loops of the set x, one group of rows r after the other, or adds
// the sum unless isFirst is set. A group has at most as many rows as a tile (rows). Row k of V begins at v[vRows[k]], and its panels of
// Columns columns are panelStep entries apart.
func (x loopSet) panelOf(
	out []float64, stride, rows, n int, s []float64, sStride int, v []float64, vRows []int, panelStep int, isFirst bool,
) {
	groups := x.groups(rows)
	for g := range groups {
		begin, end := g*rows/groups, (g+1)*rows/groups
		x.group(out[begin*stride:], stride, end-begin, n, s[begin:], sStride, v, vRows, panelStep, isFirst)
	}
}

// panel computes out[r·stride+j] ← Σ_k S[r, k]·V[k, j] with the loops of the set x, one group of rows r after the other, or adds the sum
// unless isFirst is set. PackRows writes a group after the other, so S[r, k] of a group of m rows is at k·m+r. Row k of V begins at
// v[vRows[k]], and its panels of Columns columns are panelStep entries apart.
func (x loopSet) panel(
	out []float64, stride, rows, n int, s, v []float64, vRows []int, panelStep int, isFirst bool,
) {
	groups := x.groups(rows)
	depth := len(vRows)
	for g := range groups {
		begin, end := g*rows/groups, (g+1)*rows/groups
		x.group(out[begin*stride:], stride, end-begin, n, s[begin*depth:end*depth], end-begin, v, vRows, panelStep, isFirst)
	}
}

// group computes out[r·stride+j] ← Σ_k s[k·sStride+r]·V[k, j], or adds the sum unless isFirst is set, for the rows r of one group and n
// columns j. As for Panel, row k of V begins at v[vRows[k]], and its panels of Columns columns are panelStep entries apart. Whole panels
// are computed by tiles, and the columns that are left over in the way that is faster.
func (x loopSet) group(
	out []float64, stride, rows, n int, s []float64, sStride int, v []float64, vRows []int, panelStep int, isFirst bool,
) {
	panels := n / Columns
	if panels > 0 {
		x.tiles(out, stride, rows, panels, s, sStride, v, vRows, panelStep, isFirst)
	}
	switch remaining := n % Columns; {
	case remaining == 0:
	case remaining*rows*len(vRows) <= fewTerms:
		x.singleEntries(out[panels*Columns:], stride, rows, remaining, s, sStride, v[panels*panelStep:], vRows, isFirst)
	default:
		x.partialTile(out[panels*Columns:], stride, rows, remaining, s, sStride, v[panels*panelStep:], vRows, isFirst)
	}
}

// fewTerms is the number of products up to which single entries are faster than a tile that is copied.
const fewTerms = 64

// singleEntries computes out[r·stride+j] ← Σ_k s[k·sStride+r]·v[vRows[k]+j] entry after entry, for n columns j, or adds the sum unless
// isFirst is set.
func (x loopSet) singleEntries(
	out []float64, stride, rows, n int, s []float64, sStride int, v []float64, vRows []int, isFirst bool,
) {
	for r := range rows {
		for j := range n {
			sum := 0.0
			if !isFirst {
				sum = out[r*stride+j]
			}
			for k, begin := range vRows {
				if x == rounded {
					sum += float64(s[k*sStride+r] * v[begin+j])
				} else {
					sum = math.FMA(s[k*sStride+r], v[begin+j], sum)
				}
			}
			out[r*stride+j] = sum
		}
	}
}

// partialTile computes out[r·stride+j] ← Σ_k s[k·sStride+r]·v[vRows[k]+j], or adds the sum unless isFirst is set, for n < Columns columns
// j. It copies the columns of out and of V into tiles of Columns columns, some rows of V at a time, and the result back: whole tiles are
// faster than single entries.
func (x loopSet) partialTile(
	out []float64, stride, rows, n int, s []float64, sStride int, v []float64, vRows []int, isFirst bool,
) {
	const maxDepth = 64            // rows of V that are copied at a time
	var tile [12 * Columns]float64 // of out: at most 12 rows
	var columns [maxDepth * Columns]float64
	var columnRows [maxDepth]int
	if !isFirst {
		for r := range rows {
			copy(tile[r*Columns:][:n], out[r*stride:])
		}
	}
	for len(vRows) > 0 {
		depth := min(len(vRows), maxDepth)
		for k, begin := range vRows[:depth] {
			columnRows[k] = k * Columns
			copy(columns[k*Columns:][:n], v[begin:])
		}
		x.tiles(tile[:], Columns, rows, 1, s, sStride, columns[:], columnRows[:depth], Columns, isFirst)
		if vRows = vRows[depth:]; len(vRows) > 0 { // else s may end before
			s = s[depth*sStride:]
		}
		isFirst = false // further rows are added to the tile
	}
	for r := range rows {
		copy(out[r*stride:][:n], tile[r*Columns:])
	}
}

// tiles computes out[r·stride+j] ← Σ_k s[k·sStride+r]·V[k, j], or adds the sum unless isFirst is set, for the rows r of one group and the
// columns j of some panels. Row k of panel p of V is the Columns entries from v[vRows[k]+p·panelStep] on. It panics if a list is too short,
// since the assembly does not check.
func (x loopSet) tiles(
	out []float64, stride, rows, panels int, s []float64, sStride int, v []float64, vRows []int, panelStep int, isFirst bool,
) {
	if x == rounded || x == fused {
		x.tilesInGo(out, stride, rows, panels, s, sStride, v, vRows, panelStep, isFirst)
		return
	}

	// The last entries that are read and written.
	lastRow := 0
	for _, begin := range vRows {
		if begin < 0 {
			panic("kernel: a negative place")
		}
		lastRow = max(lastRow, begin)
	}
	_ = v[lastRow+(panels-1)*panelStep+Columns-1]
	_ = out[(rows-1)*stride+panels*Columns-1]
	_ = s[(len(vRows)-1)*sStride+rows-1]

	a := panelArgs{
		out:    &out[0],
		v:      &v[0],
		s:      &s[0],
		vRows:  &vRows[0],
		panels: panels,
		depth:  len(vRows),
		stride: 8 * stride, // in bytes, as step and skip
		step:   8 * panelStep,
		rows:   rows,
		skip:   8 * (sStride - rows),
	}
	if !isFirst {
		a.add = 1
	}
	x.panelVector(&a)
}

// tilesInGo computes out[r·stride+j] ← Σ_k s[k·sStride+r]·V[k, j] for rows r and the columns j of some panels, or adds the sum unless
// isFirst is set. It uses the loops in Go, fused or rounded. Row k of panel p of V begins at v[vRows[k]+p·panelStep].
func (x loopSet) tilesInGo(
	out []float64, stride, rows, panels int, s []float64, sStride int, v []float64, vRows []int, panelStep int, isFirst bool,
) {
	for p := range panels {
		for r := range rows {
			o := (*[Columns]float64)(out[r*stride+p*Columns:])
			if isFirst {
				clear(o[:])
			}
			if x == fused {
				rowFused(o, s[r:], sStride, v[p*panelStep:], vRows)
			} else {
				rowRounded(o, s[r:], sStride, v[p*panelStep:], vRows)
			}
		}
	}
}
