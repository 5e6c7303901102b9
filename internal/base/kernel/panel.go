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
	skip   int // bytes of s that are not read after each value of the sum
}

// groups is the number of groups into which rows are cut; group g has the rows from
// g·rows/groups to (g+1)·rows/groups − 1.
func (s set) groups(rows int) int { return (rows + s.rows() - 1) / s.rows() }

// Panel computes a block of a product,
//
//	out[r·stride+j] ← Σ_k S[r, k]·V[k, j], r < rows, j < n, k < len(at),
//
// or adds it to out unless first. S is as PackRows writes it. Row k of V begins at v[at[k]], and step
// entries further for each Columns columns: step is Columns where v is a table as it is, and
// len(at)·Columns where PackColumns wrote it. It takes 2·rows·n·len(at) flops.
func Panel(out []float64, stride, rows, n int, s, v []float64, at []int, step int, first bool) {
	active.panel(out, stride, rows, n, s, v, at, step, first)
}

// PanelOf is Panel with S as it is: rows follow one another, values of the sum are apart entries from each
// other, S[r, k] = s[k·apart+r].
func PanelOf(out []float64, stride, rows, n int, s []float64, apart int, v []float64, at []int, step int, first bool) {
	active.panelOf(out, stride, rows, n, s, apart, v, at, step, first)
}

func (x set) panelOf(
	out []float64, stride, rows, n int, s []float64, apart int, v []float64, at []int, step int, first bool,
) {
	groups := x.groups(rows)
	for g := range groups {
		r0, r1 := g*rows/groups, (g+1)*rows/groups
		x.group(out[r0*stride:], stride, r1-r0, n, s[r0:], apart, v, at, step, first)
	}
}

func (x set) panel(
	out []float64, stride, rows, n int, s, v []float64, at []int, step int, first bool,
) {
	groups := x.groups(rows)
	depth := len(at)
	for g := range groups {
		r0, r1 := g*rows/groups, (g+1)*rows/groups
		x.group(out[r0*stride:], stride, r1-r0, n, s[r0*depth:r1*depth], r1-r0, v, at, step, first)
	}
}

// group is a panel of the rows of one group, whose values of the sum are apart from each other in s.
func (x set) group(
	out []float64, stride, rows, n int, s []float64, apart int, v []float64, at []int, step int, first bool,
) {
	panels := n / Columns
	if panels > 0 {
		x.tiles(out, stride, rows, panels, s, apart, v, at, step, first)
	}
	switch rest := n % Columns; {
	case rest == 0:
	case rest*rows*len(at) <= fewTerms:
		x.singles(out[panels*Columns:], stride, rows, rest, s, apart, v[panels*step:], at, first)
	default:
		x.rest(out[panels*Columns:], stride, rows, rest, s, apart, v[panels*step:], at, first)
	}
}

// fewTerms is the number of products up to which single entries are faster than a tile that is copied.
const fewTerms = 64

// singles computes entry after entry.
func (x set) singles(
	out []float64, stride, rows, n int, s []float64, apart int, v []float64, at []int, first bool,
) {
	for r := range rows {
		for j := range n {
			sum := 0.0
			if !first {
				sum = out[r*stride+j]
			}
			for k, from := range at {
				if x == rounded {
					sum += float64(s[k*apart+r] * v[from+j])
				} else {
					sum = math.FMA(s[k*apart+r], v[from+j], sum)
				}
			}
			out[r*stride+j] = sum
		}
	}
}

// rest computes fewer than Columns columns, in a tile of its own.
func (x set) rest(
	out []float64, stride, rows, n int, s []float64, apart int, v []float64, at []int, first bool,
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
		x.tiles(tile[:], Columns, rows, 1, s, apart, columns[:], places[:m], Columns, first)
		if at = at[m:]; len(at) > 0 {
			s = s[m*apart:]
		}
		first = false
	}
	for r := range rows {
		copy(out[r*stride:][:n], tile[r*Columns:])
	}
}

// tiles computes whole panels.
func (x set) tiles(
	out []float64, stride, rows, panels int, s []float64, apart int, v []float64, at []int, step int, first bool,
) {
	if x == rounded || x == fused {
		x.tilesInGo(out, stride, rows, panels, s, apart, v, at, step, first)
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
	_ = s[(len(at)-1)*apart+rows-1]
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
		skip:   8 * (apart - rows),
	}
	if !first {
		a.add = 1
	}
	x.panelVector(&a)
}

// tilesInGo is the loop in Go.
func (x set) tilesInGo(
	out []float64, stride, rows, panels int, s []float64, apart int, v []float64, at []int, step int, first bool,
) {
	for p := range panels {
		for r := range rows {
			o := (*[Columns]float64)(out[r*stride+p*Columns:])
			if first {
				clear(o[:])
			}
			if x == fused {
				rowFused(o, s[r:], apart, v[p*step:], at)
			} else {
				rowRounded(o, s[r:], apart, v[p*step:], at)
			}
		}
	}
}
