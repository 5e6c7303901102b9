package sweeps

// The state: a matrix product state in mixed canonical form.

import (
	"cmp"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/linalg"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// site is one tensor of the chain.
// It is never changed once it is in a chain, so that chains may share it.
type site struct {
	index   int
	l, d, r int       // left bond, dimension of the index, right bond
	data    []float64 // l × d × r
}

// chain is scale·(product of the sites). Sites before centre have orthonormal columns as (l·d) × r
// matrices, sites after it orthonormal rows as l × (d·r) matrices. An empty chain is the number
// scale.
type chain struct {
	sites  []*site
	centre int
	scale  scaled.Number
	place  []int        // Plan.Position
	w      *linalg.Work // room for decompositions
}

// newChain returns the number scale.
func newChain(place []int, scale scaled.Number, w *linalg.Work) *chain {
	return &chain{scale: scale, place: place, w: w}
}

// find returns where the site of an index of the given place is, or would be.
func (c *chain) find(place int) (int, bool) {
	return slices.BinarySearchFunc(c.sites, place,
		func(s *site, p int) int { return cmp.Compare(c.place[s.index], p) })
}

// insert adds a site for an index of dimension d on which the state does not depend yet.
func (c *chain) insert(index, d int) {
	k, _ := c.find(c.place[index])
	bond := c.bond(k)
	s := &site{index: index, l: bond, d: d, r: bond, data: make([]float64, bond*d*bond)}

	v := 1 / math.Sqrt(float64(d))
	for i := range bond {
		for x := range d {
			s.data[(i*d+x)*bond+i] = v
		}
	}

	c.scale = c.scale.Mul(scaled.FromFloat(1 / v))
	c.sites = slices.Insert(c.sites, k, s)
	if k <= c.centre && len(c.sites) > 1 {
		c.centre++
	}
}

// bond is the size of the bond on the left of site k.
func (c *chain) bond(k int) int {
	if k == 0 || k == len(c.sites) {
		return 1
	}
	return c.sites[k].l
}

// move makes site k the centre, and returns the flops.
// Errors: linalg.ErrNotFinite, linalg.ErrRange.
func (c *chain) move(k int) (flops float64, err error) {
	for c.centre < k {
		a, b := c.sites[c.centre], c.sites[c.centre+1]
		m := min(a.l*a.d, a.r)
		q := make([]float64, a.l*a.d*m)
		r := make([]float64, m*a.r)

		if err := c.w.QR(a.data, a.l*a.d, a.r, q, r); err != nil {
			return flops, err
		}

		c.sites[c.centre] = &site{index: a.index, l: a.l, d: a.d, r: m, data: q}
		next := make([]float64, m*b.d*b.r)
		c.w.Mul(next, r, b.data, m, a.r, b.d*b.r)

		flops += 2*qrFlops(float64(a.l*a.d), float64(a.r)) + 2*float64(len(next))*float64(a.r)
		c.centre++
		c.sites[c.centre] = &site{index: b.index, l: m, d: b.d, r: b.r, data: next}
	}

	for c.centre > k {
		a, b := c.sites[c.centre-1], c.sites[c.centre]
		m := min(b.l, b.d*b.r)
		l := make([]float64, b.l*m)
		q := make([]float64, m*b.d*b.r)

		if err := c.w.LQ(b.data, b.l, b.d*b.r, l, q); err != nil {
			return flops, err
		}

		c.sites[c.centre] = &site{index: b.index, l: m, d: b.d, r: b.r, data: q}
		next := make([]float64, a.l*a.d*m)
		c.w.Mul(next, a.data, l, a.l*a.d, a.r, m)

		flops += 2*qrFlops(float64(b.l), float64(b.d*b.r)) + 2*float64(len(next))*float64(a.r)
		c.centre--
		c.sites[c.centre] = &site{index: a.index, l: a.l, d: a.d, r: m, data: next}
	}
	return flops, nil
}

// normalise moves a power of 2 from data, which is to be multiplied by 2^exp, into the scale; false
// when the state is 0. It returns linalg.ErrNotFinite where the state has left float64, which is no
// zero.
func (c *chain) normalise(data []float64, exp int64) (bool, error) {
	if !nonzero(data) {
		for _, x := range data {
			if x-x != 0 {
				return false, linalg.ErrNotFinite
			}
		}
		c.scale = scaled.Number{}
		return false, nil
	}

	c.scale = c.scale.Mul(scaled.Make(1, exp+rescale(data)))
	return true, nil
}

// bytes is the size of the sites.
func (c *chain) bytes() float64 {
	n := 0.0
	for _, s := range c.sites {
		n += 8 * float64(len(s.data))
	}
	return n
}

// rescale divides by a power of 2 so that the largest entry is in [½, 1), and returns its exponent.
// A list of zeros stays as it is, and so does one with entries that are not finite.
func rescale(data []float64) int64 {
	if !nonzero(data) {
		return 0
	}
	exp := scaled.Exponent(scaled.LargestBits(data)) + 1
	if exp != 0 {
		scaled.Shift(data, -exp)
	}
	return int64(exp)
}
