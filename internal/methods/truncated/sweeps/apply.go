package sweeps

// One step on the chain: multiply an operator into a span of it, sum sites out, compress.
//
// The operator has a sparse core for each site of the span. A grown site B is a site A times its core; its bonds are pairs (state of the
// operator, bond of A). Let L_b be the part of the chain left of bond b, and N_b the part right of it, already compressed. The best
// approximation of rank χ at bond b is by the leading right singular vectors V of R_b·N_b, where L_b = Q_b·R_b: N_b becomes (N_b·V)·Vᵀ,
// Vᵀ is the new site, and N_b·V is carried on to the left. Only the factors R_b are needed of the pass to the right, and neither L_b nor
// any B is ever made: A and the sparse core are multiplied into R and N one after the other.

import (
	"slices"

	"github.com/basetensor/basetensor/internal/methods/truncated/legs"
)

// account has the bounds of compression, what is held in memory, and what compression dropped and cost so far.
type account struct {
	bond        float64 // most values that a bond keeps
	cutoff      float64 // of singular values, relative to the largest
	held        float64 // bytes of tables, and of sites kept for later
	largestBond float64 // so far; only of a price
	value       legs.Value
}

// factor is R of the part left of a bond: a matrix of rows × (states·bond), times 2^exp.
type factor struct {
	rows int
	data []float64
	exp  int64
}

// apply multiplies an operator into the sites from first on, one core for each entry of summed. It sums out the sites that summed marks,
// compresses the others and makes the first of them the centre. It returns false if the state is 0.
func (c *chain) apply(first int, o operator, summed []bool, acc *account) (isNonzero bool, err error) {
	end := first + len(summed)
	flops, err := c.moveCentre(min(max(c.centre, first), end-1))
	if err != nil {
		return false, err
	}
	span := slices.Clone(c.sites[first:end])
	spanFlops, spanBytes, bonds := priceSpan(span, o, summed, acc.bond)
	v := &acc.value
	v.Flops = min(v.Flops+(flops+spanFlops), hugeCost)
	v.PeakBytes = min(max(v.PeakBytes, acc.held+(c.bytes()+spanBytes)), hugeCost)
	firstKept := slices.Index(summed, false) // −1 if all sites are summed out
	if c.isPrice() {
		sites := c.resize(span, summed, bonds)
		acc.largestBond = max(acc.largestBond, slices.Max(bonds))
		if firstKept < 0 {
			return c.removeSpan(first, len(span), span[0].left, span[len(span)-1].right, factor{})
		}
		c.replaceSpan(first, end, sites)
		return true, nil
	}
	factors, err := c.factorsFromLeft(span, o.cores, summed, firstKept)
	if err != nil {
		return false, err
	}
	if firstKept < 0 {
		return c.removeSpan(first, len(span), span[0].left, span[len(span)-1].right, factors[len(span)])
	}
	sites, exp, err := c.compressFromRight(span, o.cores, summed, factors, firstKept, acc)
	if err != nil || sites == nil {
		return false, err
	}
	c.replaceSpan(first, end, sites)
	return c.normalise(sites[0].data, exp)
}

// replaceSpan puts sites in the place of those from first to end, and makes the first of them the centre.
func (c *chain) replaceSpan(first, end int, sites []*site) {
	c.sites = slices.Replace(c.sites, first, end, sites...)
	c.centre = first
}

// resize returns the sites of a price's span that are not summed out, with the given bonds between them. It changes the sites, or makes
// new ones if other chains share the old ones.
func (c *chain) resize(span []*site, summed []bool, bonds []float64) []*site {
	sites := make([]*site, 0, len(span))
	var copies []site // one array for all new sites
	if c.isShared {
		copies = make([]site, len(span))
	}
	for k, a := range span {
		if summed[k] {
			continue
		}
		n := len(sites)
		if c.isShared {
			copies[n] = *a
			a = &copies[n]
		}
		a.left, a.right = bonds[n], bonds[n+1]
		sites = append(sites, a)
	}
	return sites
}

// lastKept returns the last site that is not summed out, or the number of sites if all are.
func lastKept(summed []bool) int {
	for k, isSummed := range slices.Backward(summed) {
		if !isSummed {
			return k
		}
	}
	return len(summed)
}

// factorsFromLeft returns the factor R for the bond left of every site up to the last that is kept. If no site is kept, factors[len(span)]
// is the whole span. Other factors beyond the last site that is kept are zero values.
func (c *chain) factorsFromLeft(span []*site, cores []core, summed []bool, firstKept int) (factors []factor, err error) {
	factors = make([]factor, len(span)+1)
	n := int(span[0].left)
	factors[0] = factor{rows: n, data: identity(n)}
	for k := range lastKept(summed) {
		mayReduce := firstKept >= 0 && k >= firstKept
		if factors[k+1], err = c.extendFactor(factors[k], span[k], cores[k], summed[k], mayReduce); err != nil {
			return nil, err
		}
	}
	return factors, nil
}

// identity returns the identity of n × n.
func identity(n int) []float64 {
	out := make([]float64, n*n)
	for i := range n {
		out[i*n+i] = 1
	}
	return out
}

// extendFactor returns the factor of the next bond: R·B for the grown site B of a and its core o, summed over the site if it is summed
// out. If mayReduce is true and R·B has more rows than columns, it returns the R of a QR decomposition of R·B instead.
func (c *chain) extendFactor(f factor, a *site, o core, isSummed, mayReduce bool) (factor, error) {
	states := o.leftStates
	l, d, r := a.sizes()
	y := make([]float64, f.rows*states*d*r) // R·A
	c.work.Mul(y, f.data, a.data, f.rows*states, l, d*r)
	values := d // of the site that are rows of the result
	if isSummed {
		values = 1
	}
	// m[q, x, t, r] = Σ_s core[s, x, t] · y[q, s, x, r], summed over x if the site is summed out.
	rows, cols := f.rows*values, o.rightStates*r
	m := make([]float64, rows*cols)
	for q := range f.rows {
		for _, e := range o.entries {
			row := q * values
			if !isSummed {
				row += e.x
			}
			addScaled(m[row*cols+e.t*r:][:r], y[((q*states+e.s)*d+e.x)*r:][:r], e.v)
		}
	}
	exp, _ := legs.Rescale(m)
	exp += f.exp
	if !mayReduce || rows <= cols {
		return factor{rows: rows, data: m, exp: exp}, nil
	}
	upper := make([]float64, cols*cols)
	err := c.work.Upper(m, rows, cols, upper)
	return factor{rows: cols, data: upper, exp: exp}, err
}

// compressFromRight returns the new sites in the place of those that are kept, whose product is to be multiplied by 2^exp. It goes from
// right to left, and truncates the bonds between them. The sites are nil if the state is 0.
func (c *chain) compressFromRight(
	span []*site, cores []core, summed []bool, factors []factor, firstKept int, acc *account,
) (sites []*site, exp int64, err error) {
	cols := int(span[len(span)-1].right) // bond on the right of the next new site
	carried := identity(cols)            // (states·bond) × cols
	for k := len(span) - 1; k >= firstKept; k-- {
		a, o := span[k], cores[k]
		n := c.extendCompressed(carried, a, o, summed[k], cols)
		stepExp, _ := legs.Rescale(n)
		exp += stepExp
		if summed[k] {
			carried = n
			continue
		}
		f := factors[k]
		rows, width := o.leftStates*int(a.left), a.dim*cols
		rn := n // R·N
		if k > 0 {
			rn = make([]float64, f.rows*width)
			c.work.Mul(rn, f.data, n, f.rows, rows, width)
		}
		if k == firstKept {
			exp += f.exp
			sites = append(sites, &site{index: a.index, dim: a.dim, left: float64(f.rows), right: float64(cols), data: rn})
			break
		}
		count := min(f.rows, width) // of singular values
		s, vt := make([]float64, count), make([]float64, count*width)
		if err := c.work.RightSVD(rn, f.rows, width, s, vt); err != nil {
			return nil, 0, err
		}
		rank := acc.value.ChooseRank(s, int(acc.bond), acc.cutoff)
		if rank == 0 {
			return nil, 0, nil
		}
		v := vt[: rank*width : rank*width]
		sites = append(sites, &site{index: a.index, dim: a.dim, left: float64(rank), right: float64(cols), data: v})
		carried = make([]float64, rows*rank) // N·V
		c.work.MulTB(carried, n, v, rows, width, rank)
		cols = rank
	}
	slices.Reverse(sites)
	return sites, exp, nil
}

// extendCompressed returns N for the bond left of a site: B·carried for the grown site B of a and its core o. Its rows are (left state,
// left bond), its columns (value, column of carried), or only the columns of carried if the site is summed out.
func (c *chain) extendCompressed(carried []float64, a *site, o core, isSummed bool, cols int) []float64 {
	rows, d, r := a.sizes()
	values := d // of the site that are columns of the result
	if isSummed {
		values = 1
	}
	n := make([]float64, o.leftStates*rows*values*cols)
	y := make([]float64, rows*d*cols)
	// n[s, l, x, c] = Σ_{t, r} core[s, x, t] · A[l, x, r] · carried[t, r, c], one t after the other.
	for t := range o.rightStates {
		c.work.Mul(y, a.data, carried[t*r*cols:], rows*d, r, cols)
		for _, e := range o.entries {
			if e.t != t {
				continue
			}
			x := e.x
			if isSummed {
				x = 0
			}
			for l := range rows {
				addScaled(n[((e.s*rows+l)*values+x)*cols:][:cols], y[(l*d+e.x)*cols:][:cols], e.v)
			}
		}
	}
	return n
}

// priceSpan returns the cost of apply on a span, in the sequence of factorsFromLeft and compressFromRight, with bonds of at most bond
// after it. bonds are those between the sites that are kept, the outer ones included. If no site is kept, they are the outer ones only.
func priceSpan(span []*site, o operator, summed []bool, bond float64) (flops, bytes float64, bonds []float64) {
	n := len(span)
	firstKept, last := slices.Index(summed, false), lastKept(summed)
	if firstKept < 0 {
		firstKept = n
	}
	rows, entries := make([]float64, n+1), make([]float64, n) // of the factor left of a site; of the site's core
	rows[0] = span[0].left
	stored, peak := 8*rows[0]*rows[0], 0.0 // bytes of the factors and the operator; most bytes so far
	for k, a := range span {
		entries[k] = o.maxEntries(k, a.dim)
		stored += entryBytes * entries[k]
	}
	for k := range last {
		f, scratch, nextRows := priceFactor(span[k], o.bonds[k], o.bonds[k+1], entries[k], rows[k], summed[k], k >= firstKept)
		rows[k+1] = nextRows
		flops += f
		stored += 8 * nextRows * o.bonds[k+1] * span[k].right
		peak = max(peak, stored+scratch)
	}
	cols := span[n-1].right
	bonds = append(make([]float64, 0, n+1), cols)
	if firstKept == n {
		return flops, peak, []float64{rows[n], cols}
	}
	siteBytes, carried := 0.0, cols*cols // bytes of the new sites; entries of what is carried to the left
	for k := n - 1; k >= firstKept; k-- {
		a, d := span[k], float64(span[k].dim)
		values := d // as in extendCompressed
		if summed[k] {
			values = 1
		}
		left := o.bonds[k] * a.left
		flops += 2*o.bonds[k+1]*a.left*d*a.right*cols + 2*entries[k]*a.left*cols
		live := carried + left*values*cols + a.left*d*cols
		if summed[k] {
			carried = left * cols
			peak = max(peak, stored+siteBytes+8*live)
			continue
		}
		width := values * cols
		if k > 0 {
			flops += 2 * rows[k] * left * width
			live += rows[k] * width
		}
		if k == firstKept {
			bonds = append(bonds, rows[k])
			peak = max(peak, stored+(siteBytes+8*rows[k]*width)+8*live)
			break
		}
		count := min(rows[k], width) // of singular values
		rank := min(count, bond)
		flops += svdFlops(rows[k], width) + 2*left*width*rank
		peak = max(peak, stored+siteBytes+8*(live+count*(rows[k]+2*width)+rows[k]*width+left*rank))
		siteBytes += 8 * rank * width
		carried, cols = left*rank, rank
		bonds = append(bonds, rank)
	}
	slices.Reverse(bonds)
	return flops, peak, bonds
}

// priceFactor returns the cost of extendFactor at site a, and the rows of its result. rows are those of the factor before. The operator has
// opLeft and opRight states on the two sides of the site, and entries in its core. isSummed is true if the site is summed out, so that its
// values add no rows. mayReduce is true if a QR decomposition may reduce R·B to as many rows as it has columns. bytes are those of R·A,
// R·B and the decomposition. The caller counts what is kept of the result.
func priceFactor(a *site, opLeft, opRight, entries, rows float64, isSummed, mayReduce bool) (flops, bytes, nextRows float64) {
	width := float64(a.dim) * a.right
	productRows, cols := rows, opRight*a.right // of R·B
	if !isSummed {
		productRows *= float64(a.dim)
	}
	// R·A: (rows·opLeft) × a.left by a.left × width. Then R·B: per row and entry of the core, a.right numbers of R·A are added.
	flops = 2*rows*opLeft*a.left*width + 2*rows*entries*a.right
	bytes = 8 * (rows*opLeft*width + productRows*cols)
	if mayReduce && productRows > cols {
		return flops + qrFlops(productRows, cols), bytes + 16*cols*cols, cols
	}
	return flops, bytes, productRows
}
