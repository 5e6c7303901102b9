package kernel

// Tiles of a product with packed operands.

import "math"

// panelArgs is a call of the assembly: rows of out, panels of Columns columns each.
// The generator knows where the fields are.
type panelArgs struct {
	out    *float64
	v      *float64
	s      *float64
	at     *int
	panels int
	depth  int
	stride int // bytes between rows of out
	step   int // bytes between panels of v
	add    int // 1: sums begin with the entries of out, 0: with zero
	rows   int
}

// groups is the number of groups into which rows are cut; group g has the rows from
// g·rows/groups to (g+1)·rows/groups − 1.
func (s set) groups(rows int) int { return (rows + s.rows() - 1) / s.rows() }

// PackRows writes the left operand S of Panel: entry (r, k) is from[rows[r]+sum[k]]. It takes
// len(rows)·len(sum) entries, in groups of a few rows, within a group value after value of the sum.
func PackRows(s, from []float64, rows, sum []int) { active.packRows(s, from, rows, sum) }

func (x set) packRows(s, from []float64, rows, sum []int) {
	if len(rows) > 1 && len(sum) > 1 && rows[1]-rows[0] < sum[1]-sum[0] {
		x.packAcross(s, from, rows, sum)
		return
	}
	groups := x.groups(len(rows))
	for g := range groups {
		group := rows[g*len(rows)/groups : (g+1)*len(rows)/groups]
		for _, d := range sum {
			at := from[d:]
			for i, r := range group {
				s[i] = at[r]
			}
			s = s[len(group):]
		}
	}
}

// packAcross is packRows value after value of the sum, for tables in which rows are close together.
func (x set) packAcross(s, from []float64, rows, sum []int) {
	groups := x.groups(len(rows))
	for k, d := range sum {
		at := from[d:]
		for g := range groups {
			r0, r1 := g*len(rows)/groups, (g+1)*len(rows)/groups
			to := s[r0*len(sum)+k*(r1-r0):][:r1-r0]
			for i, r := range rows[r0:r1] {
				to[i] = at[r]
			}
		}
	}
}

// PackedColumns is the number of entries that PackColumns writes for n columns and depth values.
func PackedColumns(n, depth int) int { return (n + Columns - 1) / Columns * Columns * depth }

// PackColumns writes the right operand V of Panel: entry (k, j) is from[sum[k]+run[j]]. Panels of
// Columns columns follow one another, within a panel value after value of the sum; the last panel is
// filled with zeros. Panel takes it with at[k] = k·Columns and step = len(sum)·Columns.
func PackColumns(v, from []float64, sum, run []int) {
	if len(run) > 1 && len(sum) > 1 && run[1]-run[0] > sum[1]-sum[0] {
		for j := 0; j < len(run); j += Columns {
			columns := run[j:min(j+Columns, len(run))]
			for _, d := range sum {
				pack(v[:Columns], from[d:], columns)
				v = v[Columns:]
			}
		}
		return
	}
	step := len(sum) * Columns
	for k, d := range sum {
		for j := 0; j < len(run); j += Columns {
			pack(v[j/Columns*step+k*Columns:][:Columns], from[d:], run[j:min(j+Columns, len(run))])
		}
	}
}

// pack copies the entries of a panel's row together, and fills it with zeros.
func pack(to, from []float64, at []int) {
	if len(at) == Columns {
		gather((*[Columns]float64)(to), from, (*[Columns]int)(at))
		return
	}
	clear(to)
	for i, j := range at {
		to[i] = from[j]
	}
}

// gather copies the entries of a panel's row together.
func gather(to *[Columns]float64, from []float64, at *[Columns]int) {
	if contiguous(at) {
		*to = *(*[Columns]float64)(from[at[0]:])
		return
	}
	for i, j := range at {
		to[i] = from[j]
	}
}

// contiguous says that places follow one another.
func contiguous(at *[Columns]int) bool {
	first := at[0]
	return at[1] == first+1 && at[2] == first+2 && at[3] == first+3 && at[4] == first+4 &&
		at[5] == first+5 && at[6] == first+6 && at[7] == first+7
}

// Panel computes a block of a product,
//
//	out[r·stride+j] ← Σ_k S[r, k]·V[k, j], r < rows, j < n, k < len(at),
//
// or adds it to what out has unless first. S is as PackRows writes it. Row k of V begins at v[at[k]],
// and step entries further for each Columns columns: step is Columns where v is a table as it is, and
// len(at)·Columns where PackColumns wrote it. It takes 2·rows·n·len(at) flops.
func Panel(out []float64, stride, rows, n int, s, v []float64, at []int, step int, first bool) {
	active.panel(out, stride, rows, n, s, v, at, step, first)
}

func (x set) panel(
	out []float64, stride, rows, n int, s, v []float64, at []int, step int, first bool,
) {
	groups := x.groups(rows)
	depth := len(at)
	for g := range groups {
		r0, r1 := g*rows/groups, (g+1)*rows/groups
		x.group(out[r0*stride:], stride, r1-r0, n, s[r0*depth:r1*depth], v, at, step, first)
	}
}

// group is a panel of the rows of one group.
func (x set) group(
	out []float64, stride, rows, n int, s, v []float64, at []int, step int, first bool,
) {
	panels := n / Columns
	if panels > 0 {
		x.tiles(out, stride, rows, panels, s, v, at, step, first)
	}
	switch rest := n % Columns; {
	case rest == 0:
	case rest*rows*len(at) <= fewTerms:
		x.singles(out[panels*Columns:], stride, rows, rest, s, v[panels*step:], at, first)
	default:
		x.rest(out[panels*Columns:], stride, rows, rest, s, v[panels*step:], at, first)
	}
}

// fewTerms is the number of products up to which single entries are faster than a tile that is copied.
const fewTerms = 64

// singles computes entry after entry.
func (x set) singles(
	out []float64, stride, rows, n int, s, v []float64, at []int, first bool,
) {
	for r := range rows {
		for j := range n {
			sum := 0.0
			if !first {
				sum = out[r*stride+j]
			}
			for k, from := range at {
				if x == rounded {
					sum += float64(s[k*rows+r] * v[from+j])
				} else {
					sum = math.FMA(s[k*rows+r], v[from+j], sum)
				}
			}
			out[r*stride+j] = sum
		}
	}
}

// rest computes fewer than Columns columns, in a tile of its own.
func (x set) rest(
	out []float64, stride, rows, n int, s, v []float64, at []int, first bool,
) {
	var tile [12 * Columns]float64
	var columns [64 * Columns]float64
	var places [64]int
	if !first {
		for r := range rows {
			copy(tile[r*Columns:][:n], out[r*stride:])
		}
	}
	for len(at) > 0 {
		m := min(len(at), len(places))
		for k, from := range at[:m] {
			places[k] = k * Columns
			copy(columns[k*Columns:][:n], v[from:])
		}
		x.tiles(tile[:], Columns, rows, 1, s[:m*rows], columns[:], places[:m], Columns, first)
		s, at = s[m*rows:], at[m:]
		first = false
	}
	for r := range rows {
		copy(out[r*stride:][:n], tile[r*Columns:])
	}
}

// tiles computes whole panels.
func (x set) tiles(
	out []float64, stride, rows, panels int, s, v []float64, at []int, step int, first bool,
) {
	if x == rounded || x == fused {
		x.tilesInGo(out, stride, rows, panels, s, v, at, step, first)
		return
	}
	far := 0
	for _, k := range at {
		if k < 0 {
			panic("kernel: a negative place")
		}
		far = max(far, k)
	}
	_ = v[far+(panels-1)*step+Columns-1]
	_ = out[(rows-1)*stride+panels*Columns-1]
	_ = s[rows*len(at)-1]
	a := panelArgs{
		out:    &out[0],
		v:      &v[0],
		s:      &s[0],
		at:     &at[0],
		panels: panels,
		depth:  len(at),
		stride: 8 * stride,
		step:   8 * step,
		rows:   rows,
	}
	if !first {
		a.add = 1
	}
	x.panelVector(&a)
}

// tilesInGo is the loop in Go.
func (x set) tilesInGo(
	out []float64, stride, rows, panels int, s, v []float64, at []int, step int, first bool,
) {
	for p := range panels {
		for r := range rows {
			o := (*[Columns]float64)(out[r*stride+p*Columns:])
			if first {
				clear(o[:])
			}
			if x == fused {
				rowFused(o, s[r:], rows, v[p*step:], at)
			} else {
				rowRounded(o, s[r:], rows, v[p*step:], at)
			}
		}
	}
}
