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

// site is one tensor of the chain. It is never changed once it is in a chain, so that chains may share it, but for the bonds of a price
// whose chain shares nothing.
type site struct {
	index, d int       // and its dimension
	l, r     float64   // left and right bond; of a price they may exceed int
	data     []float64 // l × d × r; nil in a price
}

// sizes are left bond, dimension and right bond.
func (a *site) sizes() (l, d, r int) { return int(a.l), a.d, int(a.r) }

func (a *site) entries() float64 { return a.l * float64(a.d) * a.r }

// chain is scale·(product of the sites). Sites before centre have orthonormal columns as (l·d) × r matrices, sites after it orthonormal
// rows as l × (d·r) matrices. An empty chain is the number scale.
type chain struct {
	sites  []*site
	centre int
	scale  scaled.Number
	place  []int        // Plan.Position
	w      *linalg.Work // room for decompositions; nil: the chain has sizes only
	shared bool         // its sites may be those of other chains
}

// find returns the place in the chain of a site of the given place, or of its insertion.
func (c *chain) find(place int) (int, bool) {
	return slices.BinarySearchFunc(c.sites, place, func(s *site, p int) int { return cmp.Compare(c.place[s.index], p) })
}

// insert adds a site for an index of dimension d on which the state does not depend yet.
func (c *chain) insert(index, d int) {
	k, _ := c.find(c.place[index])
	s := &site{index: index, d: d, l: 1, r: 1}
	if k > 0 && k < len(c.sites) {
		s.l, s.r = c.sites[k].l, c.sites[k].l
	}
	if c.w != nil {
		bond := int(s.l)
		v := 1 / math.Sqrt(float64(d))
		s.data = make([]float64, bond*d*bond)
		for i := range bond {
			for x := range d {
				s.data[(i*d+x)*bond+i] = v
			}
		}
		c.scale = c.scale.Mul(scaled.FromFloat(1 / v))
	}
	c.sites = slices.Insert(c.sites, k, s)
	if k <= c.centre && len(c.sites) > 1 {
		c.centre++
	}
}

// move makes site k the centre, and returns the flops. Errors: linalg.ErrNotFinite, linalg.ErrRange.
func (c *chain) move(k int) (flops float64, err error) {
	for c.centre < k {
		a, b := c.sites[c.centre], c.sites[c.centre+1]
		rows := a.l * float64(a.d)
		m := min(rows, a.r)
		flops += 2*qrFlops(rows, a.r) + 2*m*a.r*(float64(b.d)*b.r)
		left, right := &site{index: a.index, d: a.d, l: a.l, r: m}, &site{index: b.index, d: b.d, l: m, r: b.r}
		if c.w != nil {
			r := make([]float64, int(m*a.r))
			left.data, right.data = make([]float64, int(left.entries())), make([]float64, int(right.entries()))
			if err := c.w.QR(a.data, int(rows), int(a.r), left.data, r); err != nil {
				return flops, err
			}
			c.w.Mul(right.data, r, b.data, int(m), int(a.r), b.d*int(b.r))
		}
		c.sites[c.centre], c.sites[c.centre+1] = left, right
		c.centre++
	}
	for c.centre > k {
		a, b := c.sites[c.centre-1], c.sites[c.centre]
		cols := float64(b.d) * b.r
		m := min(b.l, cols)
		flops += 2*qrFlops(b.l, cols) + 2*m*b.l*(a.l*float64(a.d))
		left, right := &site{index: a.index, d: a.d, l: a.l, r: m}, &site{index: b.index, d: b.d, l: m, r: b.r}
		if c.w != nil {
			l := make([]float64, int(b.l*m))
			left.data, right.data = make([]float64, int(left.entries())), make([]float64, int(right.entries()))
			if err := c.w.LQ(b.data, int(b.l), int(cols), l, right.data); err != nil {
				return flops, err
			}
			c.w.Mul(left.data, a.data, l, int(a.l)*a.d, int(a.r), int(m))
		}
		c.sites[c.centre-1], c.sites[c.centre] = left, right
		c.centre--
	}
	return flops, nil
}

// normalise moves a power of 2 from data, which is to be multiplied by 2^exp, into the scale; false when the state is 0. Errors:
// sumproduct.ErrNotFinite where the state has left float64, which is no zero.
func (c *chain) normalise(data []float64, exp int64) (bool, error) {
	by, err := legs.Rescale(data)
	if errors.Is(err, legs.ErrZero) {
		c.scale = scaled.Number{}
		return false, nil
	}
	c.scale = c.scale.Mul(scaled.Make(1, exp+by))
	return err == nil, err
}

// bytes is the size of the sites.
func (c *chain) bytes() float64 {
	n := 0.0
	for _, s := range c.sites {
		n += 8 * s.entries()
	}
	return n
}

// dissolve removes a span of n sites: a matrix of rows × cols is left on a bond, 1 × 1 where the chain ends.
func (c *chain) dissolve(first, n int, rows, cols float64, f factor) (bool, error) {
	c.sites = slices.Delete(c.sites, first, first+n)
	c.centre = max(first-1, 0)
	if len(c.sites) == 0 {
		if c.w == nil {
			return true, nil
		}
		alive, err := c.normalise(f.data, f.exp)
		if alive {
			c.scale = c.scale.Mul(scaled.FromFloat(f.data[0]))
		}
		return alive, err
	}
	s := *c.sites[c.centre]
	a := c.sites[c.centre]
	if first > 0 {
		s.r = cols
	} else {
		s.l = rows
	}
	c.sites[c.centre] = &s
	if c.w == nil { // a price has the centre after it, where the next step is as a rule
		c.centre = min(first, len(c.sites)-1)
		return true, nil
	}
	l, d, r := a.sizes()
	s.data = make([]float64, int(s.entries()))
	if first > 0 {
		c.w.Mul(s.data, a.data, f.data, l*d, r, int(cols))
	} else {
		c.w.Mul(s.data, f.data, a.data, int(rows), l, d*r)
	}
	return c.normalise(s.data, f.exp)
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
