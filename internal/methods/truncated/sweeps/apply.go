package sweeps

// One step on the chain: multiply an operator into a span of it, sum sites out, compress.
//
// With B the grown sites, L_b the part of the chain left of bond b and N_b the part right of it, already compressed, the best
// approximation of rank χ at bond b is by the leading right singular vectors V of R_b·N_b, where L_b = Q_b·R_b: N_b becomes (N_b·V)·Vᵀ,
// Vᵀ is the new site, and N_b·V is carried on to the left. Only the factors R_b are needed of the pass to the right, and neither L_b nor
// any B is ever made: A and the sparse core meet R and N one after the other.

import (
	"slices"

	"github.com/basetensor/basetensor/internal/methods/truncated/legs"
)

// limits are the bounds of compression, and the account of it.
type limits struct {
	bond    float64 // most values that a bond keeps
	cutoff  float64 // of singular values, relative to the largest
	held    float64 // bytes of tables, and of sites kept for later
	largest float64 // bond of a price
	value   legs.Value
}

// factor is R of the part on the left of a bond: rows × (states·bond), times 2^exp.
type factor struct {
	rows int
	data []float64
	exp  int64
}

// apply multiplies an operator into the sites from first on, sums out those that gone marks, and compresses. It returns false when the
// state is 0.
func (c *chain) apply(first int, o operator, gone []bool, lim *limits) (bool, error) {
	end := first + len(gone)
	flops, err := c.move(min(max(c.centre, first), end-1))
	if err != nil {
		return false, err
	}
	span := slices.Clone(c.sites[first:end])
	more, bytes, after := spanCost(span, o, gone, lim.bond)
	v := &lim.value
	v.Flops = min(v.Flops+(flops+more), hugeCost)
	v.PeakBytes = min(max(v.PeakBytes, lim.held+(c.bytes()+bytes)), hugeCost)
	lead := slices.Index(gone, false)
	var kept []*site
	var exp int64
	switch {
	case c.w == nil:
		kept = c.resize(span, gone, after)
		lim.largest = max(lim.largest, slices.Max(after))
		if lead < 0 {
			return c.dissolve(first, len(span), span[0].l, span[len(span)-1].r, factor{})
		}
	default:
		factors, err := c.passRight(span, o.cores, gone, lead)
		if err != nil {
			return false, err
		}
		if lead < 0 {
			return c.dissolve(first, len(span), span[0].l, span[len(span)-1].r, factors[len(span)])
		}
		if kept, exp, err = c.passLeft(span, o.cores, gone, factors, lead, lim); err != nil || kept == nil {
			return false, err
		}
	}
	c.sites = slices.Replace(c.sites, first, end, kept...)
	c.centre = first
	if c.w == nil {
		return true, nil
	}
	return c.normalise(kept[0].data, exp)
}

// resize returns the sites that stay with the bonds between them, of a price: new ones if other chains share the old ones.
func (c *chain) resize(span []*site, gone []bool, bonds []float64) []*site {
	kept := make([]*site, 0, len(span))
	var fresh []site
	if c.shared {
		fresh = make([]site, len(span))
	}
	for k, a := range span {
		if gone[k] {
			continue
		}
		n := len(kept)
		if c.shared {
			fresh[n] = *a
			a = &fresh[n]
		}
		a.l, a.r = bonds[n], bonds[n+1]
		kept = append(kept, a)
	}
	return kept
}

// lastKept is the last site that stays; all of them where none does.
func lastKept(gone []bool) int {
	for k, g := range slices.Backward(gone) {
		if !g {
			return k
		}
	}
	return len(gone)
}

// passRight returns R for the bond on the left of every site, and after the last, up to the last site that stays.
func (c *chain) passRight(span []*site, cores []core, gone []bool, lead int) (factors []factor, err error) {
	factors = make([]factor, len(span)+1)
	n := int(span[0].l)
	factors[0] = factor{rows: n, data: unit(n)}
	for k := range lastKept(gone) {
		if factors[k+1], err = c.advance(factors[k], span[k], cores[k], gone[k], lead >= 0 && k >= lead); err != nil {
			return nil, err
		}
	}
	return factors, nil
}

// unit is the identity of n × n.
func unit(n int) []float64 {
	out := make([]float64, n*n)
	for i := range n {
		out[i*n+i] = 1
	}
	return out
}

// advance takes R past one site: R·B, and the R of that if it has more rows than columns.
func (c *chain) advance(f factor, a *site, o core, gone, reduce bool) (factor, error) {
	states := o.left
	l, d, r := a.sizes()
	y := make([]float64, f.rows*states*d*r)
	c.w.Mul(y, f.data, a.data, f.rows*states, l, d*r)
	keep := d
	if gone {
		keep = 1
	}
	// m[q, x, t, r] = Σ_s core[s, x, t] · y[q, s, x, r], summed over x where the site is gone.
	rows, cols := f.rows*keep, o.right*r
	m := make([]float64, rows*cols)
	for q := range f.rows {
		for _, e := range o.entries {
			row := q * keep
			if !gone {
				row += e.x
			}
			addScaled(m[row*cols+e.t*r:][:r], y[((q*states+e.s)*d+e.x)*r:][:r], e.v)
		}
	}
	exp, _ := legs.Rescale(m)
	exp += f.exp
	if !reduce || rows <= cols {
		return factor{rows: rows, data: m, exp: exp}, nil
	}
	upper := make([]float64, cols*cols)
	err := c.w.Upper(m, rows, cols, upper)
	return factor{rows: cols, data: upper, exp: exp}, err
}

// passLeft compresses from right to left and returns the sites that stay; nil when the state is 0.
func (c *chain) passLeft(
	span []*site, cores []core, gone []bool, factors []factor, lead int, lim *limits,
) (kept []*site, exp int64, err error) {
	cols := int(span[len(span)-1].r)
	carried := unit(cols) // (states·bond) × cols
	for k := len(span) - 1; k >= lead; k-- {
		a, o := span[k], cores[k]
		n := c.retreat(carried, a, o, gone[k], cols)
		by, _ := legs.Rescale(n)
		exp += by
		if gone[k] {
			carried = n
			continue
		}
		f := factors[k]
		rows, width := o.left*int(a.l), a.d*cols
		g := n // R·N
		if k > 0 {
			g = make([]float64, f.rows*width)
			c.w.Mul(g, f.data, n, f.rows, rows, width)
		}
		if k == lead {
			exp += f.exp
			kept = append(kept, &site{index: a.index, d: a.d, l: float64(f.rows), r: float64(cols), data: g})
			break
		}
		small := min(f.rows, width)
		s, vt := make([]float64, small), make([]float64, small*width)
		if err := c.w.RightSVD(g, f.rows, width, s, vt); err != nil {
			return nil, 0, err
		}
		rank := lim.value.ChooseRank(s, int(lim.bond), lim.cutoff)
		if rank == 0 {
			return nil, 0, nil
		}
		v := vt[: rank*width : rank*width]
		kept = append(kept, &site{index: a.index, d: a.d, l: float64(rank), r: float64(cols), data: v})
		carried = make([]float64, rows*rank)
		c.w.MulTB(carried, n, v, rows, width, rank)
		cols = rank
	}
	slices.Reverse(kept)
	return kept, exp, nil
}

// retreat takes N past one site: B·N, with rows (state, bond) and columns (value, column).
func (c *chain) retreat(carried []float64, a *site, o core, gone bool, cols int) []float64 {
	rows, d, r := a.sizes()
	keep := d
	if gone {
		keep = 1
	}
	n := make([]float64, o.left*rows*keep*cols)
	y := make([]float64, rows*d*cols)
	// n[s, l, x, c] = Σ_{t, r} core[s, x, t] · A[l, x, r] · carried[t, r, c], one t after the other.
	for t := range o.right {
		c.w.Mul(y, a.data, carried[t*r*cols:], rows*d, r, cols)
		for _, e := range o.entries {
			if e.t != t {
				continue
			}
			x := e.x
			if gone {
				x = 0
			}
			for l := range rows {
				addScaled(n[((e.s*rows+l)*keep+x)*cols:][:cols], y[(l*d+e.x)*cols:][:cols], e.v)
			}
		}
	}
	return n
}

// spanCost is the cost of apply, in the sequence of passRight and passLeft, with bonds of at most bond after it. It returns the bonds
// between the sites that stay too, the outer ones included.
func spanCost(span []*site, o operator, gone []bool, bond float64) (flops, bytes float64, after []float64) {
	n := len(span)
	lead, last := slices.Index(gone, false), lastKept(gone)
	if lead < 0 {
		lead = n
	}
	rows, entries := make([]float64, n+1), make([]float64, n)
	rows[0] = span[0].l
	stored, top := 8*rows[0]*rows[0], 0.0 // bytes of the factors and the operator
	for k, a := range span {
		entries[k] = o.entries(k, a.d)
		stored += entryBytes * entries[k]
	}
	for k := range last {
		f, m, q := advanceCost(span[k], o.bonds[k], o.bonds[k+1], entries[k], rows[k], gone[k], k >= lead)
		rows[k+1] = q
		flops += f
		stored += 8 * q * o.bonds[k+1] * span[k].r
		top = max(top, stored+m)
	}
	cols := span[n-1].r
	after = append(make([]float64, 0, n+1), cols)
	if lead == n {
		return flops, top, []float64{rows[n], cols}
	}
	kept, carried := 0.0, cols*cols // bytes of the sites that stay
	for k := n - 1; k >= lead; k-- {
		a, keep := span[k], float64(span[k].d)
		d := keep
		if gone[k] {
			keep = 1
		}
		left := o.bonds[k] * a.l
		flops += 2*o.bonds[k+1]*a.l*d*a.r*cols + 2*entries[k]*a.l*cols
		live := carried + left*keep*cols + a.l*d*cols
		if gone[k] {
			carried = left * cols
			top = max(top, stored+kept+8*live)
			continue
		}
		width := keep * cols
		if k > 0 {
			flops += 2 * rows[k] * left * width
			live += rows[k] * width
		}
		if k == lead {
			after = append(after, rows[k])
			top = max(top, stored+(kept+8*rows[k]*width)+8*live)
			break
		}
		small := min(rows[k], width)
		rank := min(small, bond)
		flops += svdFlops(rows[k], width) + 2*left*width*rank
		top = max(top, stored+kept+8*(live+small*(rows[k]+2*width)+rows[k]*width+left*rank))
		kept += 8 * rank * width
		carried, cols = left*rank, rank
		after = append(after, rank)
	}
	slices.Reverse(after)
	return flops, top, after
}

// advanceCost is the cost of advance at a site, by the operator's states on both sides of it and its entries there, and the rows of its
// factor.
func advanceCost(a *site, left, right, entries, rows float64, gone, reduce bool) (flops, bytes, next float64) {
	width := float64(a.d) * a.r
	m := rows
	if !gone {
		m *= float64(a.d)
	}
	flops = 2*rows*left*a.l*width + 2*rows*entries*a.r
	cols := right * a.r
	bytes = 8 * (rows*left*width + m*cols)
	if reduce && m > cols {
		return flops + qrFlops(m, cols), bytes + 16*cols*cols, cols
	}
	return flops, bytes, m
}
