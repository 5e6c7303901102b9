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

// account has the limits of compression, the memory that is held, and what compression has dropped and cost so far.
type account struct {
	bond        float64    // largest number of values that a bond keeps
	cutoff      float64    // singular values below it times the largest are dropped
	held        float64    // bytes of tables, and of sites kept for the sweep back
	largestBond float64    // the largest bond so far; only of a dry run
	value       legs.Value // what compression has dropped and cost
}

// factor is the triangle R of the part of a chain left of a bond: a matrix of rows × (states of the operator · bond), times 2^exp.
type factor struct {
	rows int
	data []float64
	exp  int64
}

// applyOperator multiplies an operator into a span of the chain: the sites from first on, one for each entry of summed. It sums out site
// first+k if summed[k] is true, compresses the bonds between the others, and makes the first of them the centre. isNonzero is false if the
// state is 0. A dry run only counts the cost. A chain is a product of sites, tensors with one index each, and its centre the one site that
// need not be orthonormal. acc counts the cost.
func (c *chain) applyOperator(first int, o operator, summed []bool, acc *account) (isNonzero bool, err error) {
	// Bring the centre into the span and count the cost.
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
	if c.isDryRun() {
		sites := c.resize(span, summed, bonds)
		acc.largestBond = max(acc.largestBond, slices.Max(bonds))
		if firstKept < 0 {
			return c.removeSpan(first, len(span), span[0].left, span[len(span)-1].right, factor{})
		}
		c.replaceSpan(first, end, sites)
		return true, nil
	}

	// Go from left to right for the factors, then back for the new sites.
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

// replaceSpan replaces the sites first ≤ k < end by others, and makes the first of these the centre.
func (c *chain) replaceSpan(first, end int, sites []*site) {
	c.sites = slices.Replace(c.sites, first, end, sites...)
	c.centre = first
}

// resize returns the sites of a span that are not summed out, with the given bonds between them, for a dry run. It changes the sites, or
// makes new ones if other chains may have the old ones. A site is a tensor with one index, between two bonds. A dry run computes sizes
// only.
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

// factorsFromLeft returns factors[k], the factor R for the bond left of site k of the span, for every k up to the last site that is kept:
// not summed out. If no site is kept, factors[len(span)] is the whole span as a matrix. Factors beyond are zero values. firstKept is the
// first site that is kept, or −1. Only factors right of it may be reduced to a triangle (extendFactor), since the kept sites take up the
// orthonormal matrix. A span is neighbouring sites of the chain, and the grown span those sites times their cores of the operator. A chain
// is the product of its sites, tensors with one index each.
func (c *chain) factorsFromLeft(span []*site, cores []core, summed []bool, firstKept int) (factors []factor, err error) {
	factors = make([]factor, len(span)+1)
	n := int(span[0].left)
	factors[0] = factor{rows: n, data: identity(n)}
	for k := range lastKept(summed) { // all sites if none is kept
		mayReduce := firstKept >= 0 && k >= firstKept
		if factors[k+1], err = c.extendFactor(factors[k], span[k], cores[k], summed[k], mayReduce); err != nil {
			return nil, err
		}
	}
	return factors, nil
}

// identity returns the identity matrix of n × n.
func identity(n int) []float64 {
	matrix := make([]float64, n*n)
	for i := range n {
		matrix[i*n+i] = 1
	}
	return matrix
}

// extendFactor returns the factor of the bond right of site a, given the factor R = f of the bond left of it: the part of the chain left of
// a bond is an orthonormal matrix times the factor. B is the grown site: a times its core of the operator. The result is R·B, summed over
// the values of the site if isSummed is true. If mayReduce is true and R·B has more rows than columns, it is the triangle of a QR
// decomposition of R·B instead. A chain is the product of its sites, tensors with one index each.
func (c *chain) extendFactor(f factor, a *site, o core, isSummed, mayReduce bool) (factor, error) {
	// Multiply R by the site: y[q, s, x, j] = Σ_l R[q, s, l] · A[l, x, j], for row q, left state s and value x.
	states := o.leftStates
	left, dim, right := a.sizes()
	y := make([]float64, f.rows*states*dim*right)
	c.work.Mul(y, f.data, a.data, f.rows*states, left, dim*right)

	// Multiply by the core: m[q, x, t, j] = Σ_s core[s, x, t] · y[q, s, x, j], for right state t; summed over x if isSummed is true.
	values := dim // of the site that are rows of the result
	if isSummed {
		values = 1
	}
	rows, cols := f.rows*values, o.rightStates*right
	m := make([]float64, rows*cols)
	for q := range f.rows {
		for _, e := range o.entries {
			row := q * values
			if !isSummed {
				row += e.value
			}
			addScaled(m[row*cols+e.right*right:][:right], y[((q*states+e.left)*dim+e.value)*right:][:right], e.weight)
		}
	}

	exp, _ := legs.Rescale(m) // zeros stay as they are; later steps find entries that are not finite
	exp += f.exp
	if !mayReduce || rows <= cols {
		return factor{rows: rows, data: m, exp: exp}, nil
	}
	upper := make([]float64, cols*cols)
	err := c.work.Upper(m, rows, cols, upper)
	return factor{rows: cols, data: upper, exp: exp}, err
}

// compressFromRight returns the new sites that replace those of a span that are kept, with truncated bonds between them. Their product has
// to be multiplied by 2^exp. It goes from right to left. factors[k] is the factor R of the bond left of site k. The sites are nil if the
// state is 0.
//
// A grown site is a site times its core of the operator. N is the grown site times the compressed part right of it. The leading right
// singular vectors V of R·N are the new site, and N·V goes on to the left.
func (c *chain) compressFromRight(
	span []*site, cores []core, summed []bool, factors []factor, firstKept int, acc *account,
) (sites []*site, exp int64, err error) {
	cols := int(span[len(span)-1].right) // bond right of the next new site
	carried := identity(cols)            // N·V of the site before: (states·bond) × cols
	for k := len(span) - 1; k >= firstKept; k-- {
		a, o := span[k], cores[k]
		n := c.extendCompressed(carried, a, o, summed[k], cols)
		stepExp, _ := legs.Rescale(n) // zeros stay as they are; later steps find entries that are not finite
		exp += stepExp
		if summed[k] {
			carried = n
			continue
		}

		f := factors[k]
		rows, width := o.leftStates*int(a.left), a.dim*cols // N is rows × width
		rn := n                                             // R·N; at site 0 R is the identity
		if k > 0 {
			rn = make([]float64, f.rows*width)
			c.work.Mul(rn, f.data, n, f.rows, rows, width)
		}
		if k == firstKept { // the new centre is R·N itself, since its left bond is not truncated
			exp += f.exp
			sites = append(sites, &site{index: a.index, dim: a.dim, left: float64(f.rows), right: float64(cols), data: rn})
			break
		}

		v, rank, err := c.leadingVectors(rn, f.rows, width, acc)
		if err != nil || rank == 0 {
			return nil, 0, err
		}
		sites = append(sites, &site{index: a.index, dim: a.dim, left: float64(rank), right: float64(cols), data: v})
		carried = make([]float64, rows*rank) // N·V
		c.work.MulTB(carried, n, v, rows, width, rank)
		cols = rank
	}
	slices.Reverse(sites)
	return sites, exp, nil
}

// leadingVectors returns the leading right singular vectors of a matrix of rows × width, as the rows of Vᵀ, and their number: as many as
// the bond and the cutoff of acc keep. acc records what is dropped. The number is 0 if the matrix is 0.
func (c *chain) leadingVectors(matrix []float64, rows, width int, acc *account) (vt []float64, rank int, err error) {
	count := min(rows, width) // number of singular values
	s, vt := make([]float64, count), make([]float64, count*width)
	if err := c.work.RightSVD(matrix, rows, width, s, vt); err != nil {
		return nil, 0, err
	}
	rank = acc.value.ChooseRank(s, int(acc.bond), acc.cutoff)
	return vt[: rank*width : rank*width], rank, nil
}

// extendCompressed returns the product B·carried. B is the grown site: site a times its core o of the operator. carried is the compressed
// part of the chain right of the site. It has a row for each pair (right state of the core, right bond of a) and cols columns. The product
// has a row for each pair (left state of the core, left bond of a), and a column for each pair (value of the site, column of carried). If
// isSummed is true, it is summed over the values of the site, and its columns are those of carried. A chain is the product of its sites,
// tensors with one index each.
func (c *chain) extendCompressed(carried []float64, a *site, o core, isSummed bool, cols int) []float64 {
	left, dim, right := a.sizes()
	values := dim // of the site that are columns of the result
	if isSummed {
		values = 1
	}
	n := make([]float64, o.leftStates*left*values*cols)
	y := make([]float64, left*dim*cols) // y[l, x, c] = Σ_r A[l, x, r] · carried[t, r, c], for one right state t
	// n[s, l, x, c] = Σ_t core[s, x, t] · y[l, x, c], for left state s. The entries of the core are those that are not 0.
	for t := range o.rightStates {
		c.work.Mul(y, a.data, carried[t*right*cols:], left*dim, right, cols)
		for _, e := range o.entries {
			if e.right != t {
				continue
			}
			x := e.value
			if isSummed {
				x = 0
			}
			for l := range left {
				addScaled(n[((e.left*left+l)*values+x)*cols:][:cols], y[(l*dim+e.value)*cols:][:cols], e.weight)
			}
		}
	}
	return n
}

// priceSpan returns the cost of applyOperator on a span, if bonds are truncated to the given bond. bonds are those between the sites that
// are kept, the outer ones included. If no site is kept, they are the outer ones only.
func priceSpan(span []*site, o operator, summed []bool, bond float64) (flops, bytes float64, bonds []float64) {
	p := newSpanPrice(span, o, summed)
	p.goRight()
	bonds = p.goLeft(bond)
	return p.flops, p.peak, bonds
}

// spanPrice counts the cost of applyOperator on a span. The names are those of factorsFromLeft and compressFromRight: R is the factor left
// of a site, and N the grown site times the compressed part right of it. Matrices have 8 bytes an entry.
type spanPrice struct {
	span      []*site
	operator  operator
	summed    []bool    // by site: it is summed out, not kept
	firstKept int       // the first site that is kept; len(span): none
	entries   []float64 // by site: the entries of its core of the operator
	rows      []float64 // by site: the rows of R, up to the last site that is kept; goRight sets all but the first

	flops  float64 // so far
	stored float64 // bytes of the factors so far and of the operator
	peak   float64 // largest number of bytes so far
}

// newSpanPrice returns the price of applying an operator to a span of sites. So far it has counted the bytes of the operator and of the
// first factor, an identity of the size of the span's left bond. summed has, by site, whether it is summed out.
func newSpanPrice(span []*site, o operator, summed []bool) *spanPrice {
	n := len(span)
	p := &spanPrice{
		span: span, operator: o, summed: summed, firstKept: slices.Index(summed, false),
		entries: make([]float64, n), rows: make([]float64, n+1),
	}
	if p.firstKept < 0 {
		p.firstKept = n
	}
	p.rows[0] = span[0].left // rows and columns of the identity
	p.stored = 8 * p.rows[0] * p.rows[0]
	for k, a := range span {
		p.entries[k] = o.maxEntries(k, a.dim)
		p.stored += entryBytes * p.entries[k]
	}
	return p
}

// goRight counts the cost of factorsFromLeft.
func (p *spanPrice) goRight() {
	bonds := p.operator.bonds
	for k := range lastKept(p.summed) {
		mayReduce := k >= p.firstKept
		flops, scratch, nextRows := priceFactor(p.span[k], bonds[k], bonds[k+1], p.entries[k], p.rows[k], p.summed[k], mayReduce)
		p.rows[k+1] = nextRows
		p.flops += flops
		p.stored += 8 * nextRows * bonds[k+1] * p.span[k].right
		p.peak = max(p.peak, p.stored+scratch)
	}
}

// goLeft counts the cost of compressFromRight, after goRight, and returns the bonds between the sites that are kept.
func (p *spanPrice) goLeft(bond float64) (bonds []float64) {
	span, o, n := p.span, p.operator, len(p.span)
	cols := span[n-1].right // the bond right of the next new site
	bonds = append(make([]float64, 0, n+1), cols)
	if p.firstKept == n {
		return []float64{p.rows[n], cols}
	}
	siteBytes, carried := 0.0, cols*cols // bytes of the new sites; entries of the compressed part right of site k
	for k := n - 1; k >= p.firstKept; k-- {
		a, d := span[k], float64(span[k].dim)

		// N, a matrix of left × width, is computed by way of a·carried (extendCompressed).
		values := d
		if p.summed[k] {
			values = 1
		}
		left, width := o.bonds[k]*a.left, values*cols
		p.flops += 2*o.bonds[k+1]*a.left*d*a.right*cols + 2*p.entries[k]*a.left*cols // a·carried, then the entries of the core
		live := carried + left*values*cols + a.left*d*cols                           // entries of all matrices at this site
		if p.summed[k] {
			carried = left * cols
			p.peak = max(p.peak, p.stored+siteBytes+8*live)
			continue
		}

		// R·N, a matrix of p.rows[k] × width; at site 0 R is the identity.
		if k > 0 {
			p.flops += 2 * p.rows[k] * left * width
			live += p.rows[k] * width
		}
		if k == p.firstKept { // its left bond is not truncated
			bonds = append(bonds, p.rows[k])
			p.peak = max(p.peak, p.stored+(siteBytes+8*p.rows[k]*width)+8*live)
			break
		}

		// The singular value decomposition of R·N, whose right vectors V are the new site, and N·V, which is carried on.
		count := min(p.rows[k], width) // number of singular values
		rank := min(count, bond)
		p.flops += svdFlops(p.rows[k], width) + 2*left*width*rank // and N·V
		// Besides the matrices before: U, S and Vᵀ with memory of the decomposition, a copy of R·N, and N·V.
		p.peak = max(p.peak, p.stored+siteBytes+8*(live+count*(p.rows[k]+2*width)+p.rows[k]*width+left*rank))
		siteBytes += 8 * rank * width
		carried, cols = left*rank, rank
		bonds = append(bonds, rank)
	}
	slices.Reverse(bonds)
	return bonds
}

// priceFactor returns the cost of extendFactor at site a, and the number of rows of its result. rows is that of the factor before. The core
// of the site has leftStates and rightStates states on its sides, and entries. isSummed and mayReduce are those of extendFactor. bytes are
// those of its scratch, without the result. A chain is the product of its sites, tensors with one index each.
func priceFactor(
	a *site, leftStates, rightStates, entries, rows float64, isSummed, mayReduce bool,
) (flops, bytes, nextRows float64) {
	width := float64(a.dim) * a.right
	productRows, cols := rows, rightStates*a.right // of R·B
	if !isSummed {
		productRows *= float64(a.dim)
	}
	// R·A: (rows·leftStates) × a.left by a.left × width. Then R·B: per row and entry of the core, a.right numbers of R·A are added.
	flops = 2*rows*leftStates*a.left*width + 2*rows*entries*a.right
	bytes = 8 * (rows*leftStates*width + productRows*cols)
	if mayReduce && productRows > cols {
		return flops + qrFlops(productRows, cols), bytes + 16*cols*cols, cols // R and memory of the same size
	}
	return flops, bytes, productRows
}
