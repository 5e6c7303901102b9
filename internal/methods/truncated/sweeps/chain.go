package sweeps

// The state: a matrix product state in mixed canonical form.

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/linalg"
	"github.com/basetensor/basetensor/internal/methods/truncated/legs"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// site is one tensor of a chain. Chains may share sites, and so a site is never changed once it is in a chain. The only exception is a dry
// run whose chain shares nothing: resize then changes the bonds.
type site struct {
	index, dim  int       // the index of the expression and its dimension
	left, right float64   // dimensions of the bonds; in a dry run they may exceed int
	data        []float64 // left × dim × right; nil in a dry run
}

// sizes returns the dimensions of the left bond, of the index and of the right bond.
func (a *site) sizes() (left, dim, right int) { return int(a.left), a.dim, int(a.right) }

// entries returns the number of entries.
func (a *site) entries() float64 { return a.left * float64(a.dim) * a.right }

// chain is a matrix product state: the tensor scale·(product of the sites). Sites before centre have orthonormal columns as
// (left·dim) × right matrices, sites after it orthonormal rows as left × (dim·right) matrices. An empty chain is the number scale.
type chain struct {
	sites    []*site // by ascending position of their indices
	centre   int     // the number of the site that need not be orthonormal
	scale    scaled.Number
	position []int        // by index: its position in the chain (Plan.Position)
	work     *linalg.Work // memory of decompositions; nil in a dry run, where the chain has sizes only
	isShared bool         // its sites may also be in other chains
}

// isDryRun reports whether the chain has sizes only, since only the cost of a sweep is wanted.
func (c *chain) isDryRun() bool { return c.work == nil }

// find returns the number k of the site whose index has the given position. If there is none, ok is false and k is the place at which it
// would be inserted.
func (c *chain) find(position int) (k int, ok bool) {
	return slices.BinarySearchFunc(c.sites, position, func(s *site, p int) int { return cmp.Compare(c.position[s.index], p) })
}

// insert adds a site for an index of dimension dim, on which the state does not depend yet. A site is a tensor (left bond × dim × right
// bond), and the state the product of all sites. For each value the new site is the identity, divided by √dim so that rows and columns are
// orthonormal. The scale is multiplied by √dim. A dry run changes the sizes only.
func (c *chain) insert(index, dim int) {
	k, _ := c.find(c.position[index]) // the place of the new site: the chain does not have the index
	s := &site{index: index, dim: dim, left: 1, right: 1}
	if k > 0 && k < len(c.sites) {
		s.left, s.right = c.sites[k].left, c.sites[k].left
	}
	if !c.isDryRun() {
		bond := int(s.left)
		diagonal := 1 / math.Sqrt(float64(dim))
		s.data = make([]float64, bond*dim*bond)
		for i := range bond {
			for x := range dim {
				s.data[(i*dim+x)*bond+i] = diagonal
			}
		}
		c.scale = c.scale.Mul(scaled.FromFloat(1 / diagonal))
	}
	c.sites = slices.Insert(c.sites, k, s)
	if k <= c.centre && len(c.sites) > 1 { // the centre has moved on by one place
		c.centre++
	}
}

// moveCentre makes site k the centre, the one site that need not be orthonormal, by decompositions of the sites on the way. It returns
// their flops. Errors: linalg.ErrNotFinite, linalg.ErrRange. A chain is a product of sites, tensors with one index each.
func (c *chain) moveCentre(k int) (flops float64, err error) {
	for c.centre < k {
		moveFlops, err := c.moveCentreRight()
		if flops += moveFlops; err != nil {
			return flops, err
		}
	}
	for c.centre > k {
		moveFlops, err := c.moveCentreLeft()
		if flops += moveFlops; err != nil {
			return flops, err
		}
	}
	return flops, nil
}

// moveCentreRight makes the next site the centre: with A = Q R the centre A becomes Q, and the next site B becomes R B. A is a matrix of
// (left bond · dimension) × right bond. The product of both stays the same. All sites but the centre are orthonormal. A dry run changes the
// sizes only. A chain is the product of its sites, tensors with one index each.
func (c *chain) moveCentreRight() (flops float64, err error) {
	a, b := c.sites[c.centre], c.sites[c.centre+1]
	rows := a.left * float64(a.dim)
	bond := min(rows, a.right)                                                 // between both sites afterwards
	flops = 2*qrFlops(rows, a.right) + 2*bond*a.right*(float64(b.dim)*b.right) // Q and R, and the product R B
	newA := &site{index: a.index, dim: a.dim, left: a.left, right: bond}
	newB := &site{index: b.index, dim: b.dim, left: bond, right: b.right}
	if !c.isDryRun() {
		r := make([]float64, int(bond*a.right))
		newA.data, newB.data = make([]float64, int(newA.entries())), make([]float64, int(newB.entries()))
		if err := c.work.QR(a.data, int(rows), int(a.right), newA.data, r); err != nil {
			return flops, err
		}
		c.work.Mul(newB.data, r, b.data, int(bond), int(a.right), b.dim*int(b.right))
	}
	c.sites[c.centre], c.sites[c.centre+1] = newA, newB
	c.centre++
	return flops, nil
}

// moveCentreLeft makes the site before it the centre: with B = L Q the centre B becomes Q, and the site A before it becomes A L. B is a
// matrix of left bond × (dimension · right bond). The product of both stays the same. All sites but the centre are orthonormal. A dry run
// changes the sizes only. A chain is the product of its sites, tensors with one index each.
func (c *chain) moveCentreLeft() (flops float64, err error) {
	a, b := c.sites[c.centre-1], c.sites[c.centre]
	cols := float64(b.dim) * b.right
	bond := min(b.left, cols)                                               // between both sites afterwards
	flops = 2*qrFlops(b.left, cols) + 2*bond*b.left*(a.left*float64(a.dim)) // L and Q, and the product A L
	newA := &site{index: a.index, dim: a.dim, left: a.left, right: bond}
	newB := &site{index: b.index, dim: b.dim, left: bond, right: b.right}
	if !c.isDryRun() {
		l := make([]float64, int(b.left*bond))
		newA.data, newB.data = make([]float64, int(newA.entries())), make([]float64, int(newB.entries()))
		if err := c.work.LQ(b.data, int(b.left), int(cols), l, newB.data); err != nil {
			return flops, err
		}
		c.work.Mul(newA.data, a.data, l, int(a.left)*a.dim, int(a.right), int(bond))
	}
	c.sites[c.centre-1], c.sites[c.centre] = newA, newB
	c.centre--
	return flops, nil
}

// normalise divides data, the entries of the centre, by a power of 2 so that the largest is in [1, 2), and multiplies the scale by it. The
// scale is multiplied by 2^exp as well. If all entries are 0, it sets the scale to 0 and isNonzero is false. The error is
// sumproduct.ErrNotFinite if the state has left the range of float64. The state is the scale times the product of the sites.
func (c *chain) normalise(data []float64, exp int64) (isNonzero bool, err error) {
	dataExp, err := legs.Rescale(data)
	if errors.Is(err, legs.ErrZero) {
		c.scale = scaled.Number{}
		return false, nil
	}
	c.scale = c.scale.Mul(scaled.Make(1, exp+dataExp))
	return err == nil, err
}

// bytes returns the bytes of all sites.
func (c *chain) bytes() float64 {
	bytes := 0.0
	for _, s := range c.sites {
		bytes += 8 * s.entries()
	}
	return bytes
}

// removeSpan removes from the chain the n sites from first on, which have been summed out to the matrix f of rows × cols. It multiplies f
// into the site before them, or into the site after them if first is 0, and makes that the centre. If no site is left, f is a number and
// goes into the scale. In a dry run f is not used. isNonzero is false if the state is 0. A chain is a state written as a product of sites,
// tensors with one index each, and its centre the one site that need not be orthonormal.
func (c *chain) removeSpan(first, n int, rows, cols float64, f factor) (isNonzero bool, err error) {
	c.sites = slices.Delete(c.sites, first, first+n)
	c.centre = max(first-1, 0)
	if len(c.sites) == 0 {
		return c.multiplyScale(f)
	}

	a := c.sites[c.centre]
	changed := *a
	if first > 0 {
		changed.right = cols
	} else {
		changed.left = rows
	}
	c.sites[c.centre] = &changed
	if c.isDryRun() { // a dry run has the centre after the span, where the next step usually is
		c.centre = min(first, len(c.sites)-1)
		return true, nil
	}
	left, dim, right := a.sizes()
	changed.data = make([]float64, int(changed.entries()))
	if first > 0 {
		c.work.Mul(changed.data, a.data, f.data, left*dim, right, int(cols))
	} else {
		c.work.Mul(changed.data, f.data, a.data, int(rows), left, dim*right)
	}
	return c.normalise(changed.data, f.exp)
}

// multiplyScale multiplies the scale by f, a matrix of one number, if no site is left. It does nothing in a dry run. isNonzero is false if
// the number is 0. A chain is the product of its sites, tensors with one index each.
func (c *chain) multiplyScale(f factor) (isNonzero bool, err error) {
	if c.isDryRun() {
		return true, nil
	}
	isNonzero, err = c.normalise(f.data, f.exp) // moves a power of two from the number to the scale
	if isNonzero {
		c.scale = c.scale.Mul(scaled.FromFloat(f.data[0]))
	}
	return isNonzero, err
}

// addScaled adds factor·x to sum.
func addScaled(sum, x []float64, factor float64) {
	x = x[:len(sum)]
	for i := range sum {
		sum[i] += factor * x[i]
	}
}

// qrFlops returns the flops of a QR decomposition of an m × n matrix whose orthonormal factor is not computed.
func qrFlops(m, n float64) float64 {
	k := min(m, n)
	return 2 * k * k * (max(m, n) - k/3)
}

// svdFlops returns about the flops of a singular value decomposition of an m × n matrix without left vectors.
func svdFlops(m, n float64) float64 {
	k := min(m, n)
	return 4*max(m, n)*k*k + 8*k*k*k
}
