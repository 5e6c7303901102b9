package learned

// Environments of the pieces of a product in count space, in one forward pass over checkpointed
// backward contractions.

import (
	"math"

	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// chain walks over the pieces p_0 … p_{m−1} of Σ_c S_c [z^c] Π_j p_j(z). At piece j it pairs the
// prefix f = Π_{i<j} p_i, made of pieces as they are now, with h_j = S contracted by the pieces
// after j, as they were:
//
//	h_{j−1}[c] = Σ_e p_j[e] h_j[c+e],   environment t[e] = Σ_c f[c] h_j[c+e],   Σ_c S_c [z^c] Π p = Σ_e p_j[e] t[e].
//
// Multiplying prefix by suffix at every piece would cost n³ a sweep; this costs O(n) per piece and
// level. h is kept at every ⌈√m⌉-th piece and within one segment, O(√m) polynomials, and computed
// twice.
type chain struct {
	piece  func(j int) (countspace.Poly, error)
	ops    *countspace.Ops
	stride int
	// marks[k] = h at piece min((k+1)·stride, m)−1, that is before any piece of segment k was
	// contracted
	marks   []countspace.Poly
	segment []countspace.Poly // segment[i] = h at piece at·stride+i
	at      int               // which segment is there, −1 for none
	m, next int
	prefix  countspace.Poly
}

// newChain contracts s backwards once. vars is the number of variables of s and of every piece.
func newChain(
	s countspace.Poly, m int, ops *countspace.Ops, piece func(j int) (countspace.Poly, error),
) (*chain, error) {
	stride := max(1, int(math.Ceil(math.Sqrt(float64(m)))))
	c := &chain{
		piece:  piece,
		ops:    ops,
		stride: stride,
		at:     -1,
		m:      m,
		prefix: countspace.Constant(s.Vars(), scaled.One),
	}
	segments := (m + stride - 1) / stride
	c.marks = make([]countspace.Poly, segments)
	h := canonical(s)
	for k := segments - 1; k >= 0; k-- {
		c.marks[k] = own(h, 0)
		if k == 0 {
			break
		}
		for j := c.last(k); j >= k*stride; j-- {
			p, err := piece(j)
			if err != nil {
				return nil, err
			}
			h = correlate(h, p, ops)
		}
	}

	return c, nil
}

// last returns the last piece of segment k.
func (c *chain) last(k int) int { return min((k+1)*c.stride, c.m) - 1 }

// suffix returns h at the piece the chain is at.
func (c *chain) suffix() (countspace.Poly, error) {
	k := c.next / c.stride
	if k != c.at {
		if err := c.open(k); err != nil {
			return countspace.Poly{}, err
		}
	}
	return c.segment[c.next-k*c.stride], nil
}

// open computes the backward contractions inside segment k, whose pieces have not changed yet.
func (c *chain) open(k int) error {
	first, last := k*c.stride, c.last(k)
	c.segment = make([]countspace.Poly, last-first+1)
	h := c.marks[k]
	c.segment[last-first] = h
	for j := last; j > first; j-- {
		p, err := c.piece(j)
		if err != nil {
			return err
		}
		h = correlate(own(h, 0), p, c.ops)
		c.segment[j-1-first] = h
	}
	c.marks[k] = countspace.Poly{}
	c.at = k
	return nil
}

// environment returns t over a box that holds the present piece. A piece that happens to be narrower
// (zero weights) leaves h and t wider than needed; only the box is computed.
func (c *chain) environment(box []int) (countspace.Poly, error) {
	h, err := c.suffix()
	if err != nil {
		return h, err
	}
	t := countspace.New(box)
	e := make([]int, len(box))
	for range t.Size() {
		t.Set(e, countspace.DotShift(h, c.prefix, e, c.ops))
		advanceIndex(e, box)
	}
	return t, nil
}

// advanceIndex moves an index of a box to the next one, last side fastest.
func advanceIndex(e, box []int) {
	for a := len(e) - 1; a >= 0; a-- {
		if e[a]++; e[a] < box[a] {
			return
		}
		e[a] = 0
	}
}

// legEnvironment returns t[0], t[e_1], … t[e_{d−1}]: the environment of a single leg at each of d
// levels.
func (c *chain) legEnvironment(d int) ([]scaled.Number, error) {
	h, err := c.suffix()
	if err != nil {
		return nil, err
	}
	t := make([]scaled.Number, d)
	shift := make([]int, d-1)
	for a := range t {
		if a > 0 {
			shift[a-1] = 1
		}
		t[a] = countspace.DotShift(h, c.prefix, shift, c.ops)
		if a > 0 {
			shift[a-1] = 0
		}
	}
	return t, nil
}

// advance puts the present piece, as it is now, into the prefix.
func (c *chain) advance(p countspace.Poly) {
	c.prefix = multiply(c.prefix, p, c.ops)
	c.next++
}
