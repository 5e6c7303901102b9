package sweeps

// One step on the chain: multiply an operator into a span of it, sum sites out, compress.
//
// With B the grown sites, L_b the part of the chain left of bond b and N_b the part right of it,
// already compressed, the best approximation of rank χ at bond b is by the leading right singular
// vectors V of R_b·N_b, where L_b = Q_b·R_b: N_b becomes (N_b·V)·Vᵀ, Vᵀ is the new site, and N_b·V
// is carried on to the left. Only the factors R_b are needed of the sweep to the right, and neither
// L_b nor any B is ever made: A and the sparse core meet R and N one after the other.

import (
	"slices"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// limits are what compression goes by, and what it has seen.
type limits struct {
	bond      int     // most values that a bond keeps
	cutoff    float64 // of singular values, relative to the largest
	discarded float64 // largest share of Σ s² that one truncation has dropped
	truncated bool    // bond was in the way
	largest   int     // bond after a truncation
	flops     float64
	held      float64 // bytes of tables, and of what is kept for later
	peak      float64
}

// shapeOf describes a span with the sizes that it really has.
func shapeOf(span []*site, cores []core, gone []bool) *spanShape {
	sh := &spanShape{s: []float64{1}, gone: gone}
	sh.index = 1
	for k, a := range span {
		sh.l = append(sh.l, float64(a.l))
		sh.d = append(sh.d, float64(a.d))
		sh.s = append(sh.s, float64(cores[k].right))
		sh.nonzero = append(sh.nonzero, float64(len(cores[k].entries)))
	}
	sh.l = append(sh.l, float64(span[len(span)-1].r))
	return sh
}

// factor is R of the part on the left of a bond: rows × (states·bond).
type factor struct {
	rows int
	data []float64
	exp  int64 // data is to be multiplied by 2^exp
}

// apply multiplies cores into the sites first, first+1, …,
// sums out the sites that gone names, and compresses. It returns false when the state is 0.
func (c *chain) apply(first int, cores []core, gone []bool, lim *limits) (bool, error) {
	last := first + len(cores) - 1
	moved, err := c.move(min(max(c.centre, first), last))
	if err != nil {
		return false, err
	}
	lim.flops += moved

	span := slices.Clone(c.sites[first : last+1])
	shape := shapeOf(span, cores, gone)

	flops, bytes, _ := shape.spanCost(float64(lim.bond), nil)
	lim.flops += flops
	lim.peak = max(lim.peak, lim.held+c.bytes()+bytes)

	factors, lead, err := c.sweepRight(span, cores, gone)
	if err != nil {
		return false, err
	}
	if lead == len(span) {
		return c.dissolve(first, len(span), factors[len(span)])
	}

	kept, exp, err := c.sweepLeft(span, cores, gone, factors, lead, lim)
	if err != nil || kept == nil {
		return false, err
	}

	c.sites = slices.Replace(c.sites, first, last+1, kept...)
	c.centre = first
	return c.normalise(kept[0].data, exp)
}

// sweepRight returns R for the bond on the left of every site,
// and after the last, up to where it is needed. lead is the first site that stays.
func (c *chain) sweepRight(
	span []*site, cores []core, gone []bool,
) (factors []factor, lead int, err error) {
	lead = slices.Index(gone, false)
	last := len(gone) - 1
	for lead >= 0 && last >= 0 && gone[last] {
		last--
	}

	if lead < 0 {
		lead, last = len(span), len(span)
	}

	factors = make([]factor, len(span)+1)
	n := span[0].l
	start := make([]float64, n*n)
	for i := range n {
		start[i*n+i] = 1
	}
	factors[0] = factor{rows: n, data: start}

	for k, a := range span {
		if k >= last {
			break
		}
		if factors[k+1], err = c.advance(factors[k], a, cores[k], gone[k], k >= lead); err != nil {
			return nil, 0, err
		}
	}
	return factors, lead, nil
}

// advance takes R past one site: R·B, and the R of that if it has more rows than columns.
func (c *chain) advance(f factor, a *site, o core, gone, reduce bool) (factor, error) {
	states := o.left
	width := a.d * a.r
	y := make([]float64, f.rows*states*width)
	c.w.Mul(y, f.data, a.data, f.rows*states, a.l, width)

	keep := a.d
	if gone {
		keep = 1
	}

	// m[q, x, t, r] = Σ_s core[s, x, t] · y[q, s, x, r], summed over x where the site is gone.
	rows := f.rows * keep
	cols := o.right * a.r
	m := make([]float64, rows*cols)
	for q := range f.rows {
		for _, e := range o.entries {
			row := q * keep
			if !gone {
				row += e.x
			}
			addScaled(m[row*cols+e.t*a.r:][:a.r], y[((q*states+e.s)*a.d+e.x)*a.r:][:a.r], e.v)
		}
	}

	exp := f.exp + rescale(m)
	if !reduce || rows <= cols {
		return factor{rows: rows, data: m, exp: exp}, nil
	}
	r := make([]float64, cols*cols)
	err := c.w.Upper(m, rows, cols, r)
	return factor{rows: cols, data: r, exp: exp}, err
}

// sweepLeft compresses from right to left and returns the sites that stay; nil when the state is 0.
func (c *chain) sweepLeft(
	span []*site, cores []core, gone []bool, factors []factor, lead int, lim *limits,
) (kept []*site, exp int64, err error) {
	cols := span[len(span)-1].r
	carried := make([]float64, cols*cols) // (states·bond) × cols
	for i := range cols {
		carried[i*cols+i] = 1
	}

	for k := len(span) - 1; k >= lead; k-- {
		a, o := span[k], cores[k]
		n := c.retreat(carried, a, o, gone[k], cols)
		exp += rescale(n)
		if gone[k] {
			carried = n
			continue
		}

		f := factors[k]
		rows := o.left * a.l
		width := a.d * cols
		g := n // R·N
		if k > 0 {
			g = make([]float64, f.rows*width)
			c.w.Mul(g, f.data, n, f.rows, rows, width)
		}

		if k == lead {
			exp += f.exp
			kept = append(kept, &site{index: a.index, l: f.rows, d: a.d, r: cols, data: g})
			break
		}

		v, rank, err := c.truncate(g, f.rows, width, lim)
		if err != nil || rank == 0 {
			return nil, 0, err
		}
		kept = append(kept, &site{index: a.index, l: rank, d: a.d, r: cols, data: v})
		carried = make([]float64, rows*rank)
		c.w.MulTB(carried, n, v, rows, width, rank)
		cols = rank
	}

	slices.Reverse(kept)
	return kept, exp, nil
}

// retreat takes N past one site: B·N, with rows (state, bond) and columns (value, column).
func (c *chain) retreat(carried []float64, a *site, o core, gone bool, cols int) []float64 {
	keep := a.d
	if gone {
		keep = 1
	}

	n := make([]float64, o.left*a.l*keep*cols)
	y := make([]float64, a.l*a.d*cols)

	// n[s, l, x, c] = Σ_{t, r} core[s, x, t] · A[l,
	// x, r] · carried[t, r, c], one t after the other.
	for t := range o.right {
		c.w.Mul(y, a.data, carried[t*a.r*cols:], a.l*a.d, a.r, cols)
		for _, e := range o.entries {
			if e.t != t {
				continue
			}
			x := e.x
			if gone {
				x = 0
			}
			for l := range a.l {
				addScaled(n[((e.s*a.l+l)*keep+x)*cols:][:cols], y[(l*a.d+e.x)*cols:][:cols], e.v)
			}
		}
	}
	return n
}

// truncate returns the leading right singular vectors of g as rows:
// those above the cutoff, and no more than the bond. Rank 0 says that g is 0.
func (c *chain) truncate(
	g []float64, rows, cols int, lim *limits,
) (v []float64, rank int, err error) {
	k := min(rows, cols)
	s := make([]float64, k)
	vt := make([]float64, k*cols)
	if err := c.w.RightSVD(g, rows, cols, s, vt); err != nil {
		return nil, 0, err
	}

	if s[0] == 0 {
		return nil, 0, nil
	}

	full := 0
	for full < k && s[full] > lim.cutoff*s[0] {
		full++
	}

	rank = min(full, lim.bond)
	lim.truncated = lim.truncated || rank < full
	lim.largest = max(lim.largest, rank)

	// From the smallest up: the squares of what is dropped are not lost beside the others.
	dropped, all := 0.0, 0.0
	for i := k - 1; i >= 0; i-- {
		x := s[i] / s[0]
		all += x * x
		if i == rank {
			dropped = all
		}
	}
	lim.discarded = max(lim.discarded, dropped/all)
	return vt[: rank*cols : rank*cols], rank, nil
}

// dissolve removes a span of which no site stays: what is left of it is a matrix on a bond.
func (c *chain) dissolve(first, n int, f factor) (bool, error) {
	m, rows := f.data, f.rows
	cols := len(m) / rows
	c.sites = slices.Delete(c.sites, first, first+n)
	switch {
	case len(c.sites) == 0:
		c.centre = 0
		if alive, err := c.normalise(m, f.exp); err != nil || !alive {
			return false, err
		}
		c.scale = c.scale.Mul(scaled.FromFloat(m[0]))
		return true, nil
	case first > 0:
		a := c.sites[first-1]
		data := make([]float64, a.l*a.d*cols)
		c.w.Mul(data, a.data, m, a.l*a.d, rows, cols)
		c.centre = first - 1
		c.sites[c.centre] = &site{index: a.index, l: a.l, d: a.d, r: cols, data: data}
		return c.normalise(data, f.exp)
	default:
		a := c.sites[first]
		data := make([]float64, rows*a.d*a.r)
		c.w.Mul(data, m, a.data, rows, cols, a.d*a.r)
		c.centre = first
		c.sites[c.centre] = &site{index: a.index, l: rows, d: a.d, r: a.r, data: data}
		return c.normalise(data, f.exp)
	}
}

// addScaled computes out += v·x.
func addScaled(out, x []float64, v float64) {
	x = x[:len(out)]
	for i := range out {
		out[i] += v * x[i]
	}
}

// qrFlops counts a QR decomposition whose orthonormal factor is not made.
func qrFlops(m, n float64) float64 {
	k := min(m, n)
	return 2 * k * k * (max(m, n) - k/3)
}

// svdFlops counts a singular value decomposition without left vectors, about.
func svdFlops(m, n float64) float64 {
	k := min(m, n)
	return 4*max(m, n)*k*k + 8*k*k*k
}
