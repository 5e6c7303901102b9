package learned

// Environments of the pieces of a product in count space, in one forward pass over backward contractions of which some are kept.

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
	piece       func(j int) (countspace.Poly, error) // returns p_j
	ops         *countspace.Ops
	stride      int               // pieces of a segment
	marks       []countspace.Poly // by segment: h at its last piece
	segment     []countspace.Poly // by piece of the open segment: h
	openSegment int               // number of the segment whose h are known; −1: none
	pieces      int               // m
	next        int               // the present piece
	prefix      countspace.Poly   // f: the product of the pieces before next
}

// newChain returns the chain of m pieces over s, at the first piece. The pieces are divided into about √m segments of about √m pieces. It
// contracts s with the pieces once, from the last one back, and keeps a mark of each segment: the result h before the segment's last piece
// is contracted. loadSegment computes the others again from there. s and every piece have the same number of variables.
func newChain(
	s countspace.Poly, m int, ops *countspace.Ops, piece func(j int) (countspace.Poly, error),
) (*chain, error) {
	stride := max(1, int(math.Ceil(math.Sqrt(float64(m)))))
	c := &chain{
		piece:       piece,
		ops:         ops,
		stride:      stride,
		openSegment: -1,
		pieces:      m,
		prefix:      countspace.Constant(s.Vars(), scaled.One),
	}

	segments := (m + stride - 1) / stride
	c.marks = make([]countspace.Poly, segments)
	h := canonicalCopy(s)
	for k := segments - 1; k >= 0; k-- {
		c.marks[k] = copyPoly(h, noMoreRoom) // correlate overwrites h
		if k == 0 {
			break // no mark is left that needs the pieces of the first segment
		}
		for j := c.lastPiece(k); j >= k*stride; j-- {
			p, err := piece(j)
			if err != nil {
				return nil, err
			}
			h = correlate(h, p, ops)
		}
	}

	return c, nil
}

// lastPiece returns the number of the last piece of segment k.
func (c *chain) lastPiece(k int) int { return min((k+1)*c.stride, c.pieces) - 1 }

// suffix returns h at the present piece: s contracted with all pieces after it, as they were in the beginning.
func (c *chain) suffix() (countspace.Poly, error) {
	segment := c.next / c.stride
	if segment != c.openSegment {
		if err := c.loadSegment(segment); err != nil {
			return countspace.Poly{}, err
		}
	}
	return c.segment[c.next-segment*c.stride], nil
}

// noMoreRoom is the room for further coefficients of a copy (copyPoly) that gets none.
const noMoreRoom = 0

// loadSegment computes h, S contracted with all pieces behind a piece, at all pieces of segment k, backwards from its last piece, into
// segment. The pieces of segment k have not changed yet. Its mark is dropped, because the chain does not come back.
func (c *chain) loadSegment(k int) error {
	first, last := k*c.stride, c.lastPiece(k)
	c.segment = make([]countspace.Poly, last-first+1)
	h := c.marks[k]
	c.segment[last-first] = h
	for j := last; j > first; j-- {
		p, err := c.piece(j)
		if err != nil {
			return err
		}
		h = correlate(copyPoly(h, noMoreRoom), p, c.ops) // it overwrites the copy
		c.segment[j-1-first] = h
	}
	c.marks[k] = countspace.Poly{}
	c.openSegment = k
	return nil
}

// environment returns the environment t of the present piece: the sum over the chain is Σ_e piece[e] t[e]. Here t[e] = Σ_c prefix[c]
// suffix[c+e] for the exponents e of box, which has to be as large as the piece. prefix is the product of all pieces before the present
// one, and suffix is S contracted with all pieces after it. Sums over c end where prefix or suffix end: zero weights can make a piece
// narrower than its box.
func (c *chain) environment(box []int) (countspace.Poly, error) {
	h, err := c.suffix()
	if err != nil {
		return h, err
	}
	t := countspace.New(box)
	exponents := make([]int, len(box))
	for range t.Size() {
		t.Set(exponents, countspace.DotShift(h, c.prefix, exponents, c.ops))
		advanceIndex(exponents, box)
	}
	return t, nil
}

// advanceIndex changes index to the next index of a box, the last side fastest. After the last one it becomes 0.
func advanceIndex(index, box []int) {
	for a := len(index) - 1; a >= 0; a-- {
		if index[a]++; index[a] < box[a] {
			return
		}
		index[a] = 0
	}
}

// legEnvironment returns the environment t of the present piece, a single leg, by level of the leg: the sum over the chain is Σ_x weight(x)
// t[level of x]. At level 0, which does not count, it is Σ_c prefix[c] suffix[c]; at level a the suffix is shifted by one count of variable
// a. d is the number of levels.
func (c *chain) legEnvironment(d int) ([]scaled.Number, error) {
	h, err := c.suffix()
	if err != nil {
		return nil, err
	}
	t := make([]scaled.Number, d)
	shift := make([]int, d-1)
	for level := range t {
		if level > 0 {
			shift[level-1] = 1 // one count of variable level; set back below
		}
		t[level] = countspace.DotShift(h, c.prefix, shift, c.ops)
		if level > 0 {
			shift[level-1] = 0
		}
	}
	return t, nil
}

// advance multiplies the prefix by the present piece p, as it is now, and moves to the next piece.
func (c *chain) advance(p countspace.Poly) {
	c.prefix = multiply(c.prefix, p, c.ops)
	c.next++
}
