package circuit

// Maxima: sums become maxima, and the way down follows their arguments.

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// ErrOverlap is the error of a circuit that is not deterministic, or not seen to be: its maxima may differ from the maxima of the sum that
// it stands for.
var ErrOverlap = errors.New("circuit: maxima need a deterministic circuit")

// Near are assignments whose terms are close to the largest one.
type Near struct {
	Top    scaled.Number // the largest term, as rounded
	Values [][]int       // of all variables; the first one attains Top
	Terms  []*big.Float  // the term of each assignment, the product of the weights and numbers to 192 bits
	All    bool          // no other assignment is that close
}

// Maximum returns the largest term max_x C(x) Π w(x), and up to limit assignments whose terms, as rounded, are at least 1 − slack times
// that. It returns no assignment if Z is 0. One pass up, and for each assignment the nodes on its way down. Errors: ErrOverlap, otherwise
// as of Evaluate.
func (c *Circuit) Maximum(ctx context.Context, w Weights, slack float64, limit int) (Near, error) {
	switch ok, err := c.Deterministic(ctx); {
	case err != nil:
		return Near{}, err
	case !ok:
		return Near{}, fmt.Errorf("%w, which this one is not seen to be", ErrOverlap)
	}
	p, err := c.passUp(ctx, w, true)
	if err != nil {
		return Near{}, err
	}
	defer p.release()
	top := c.total(p)
	if top.m == 0 {
		return Near{All: true}, nil
	}
	s := search{c: c, p: p, look: pace.New(ctx), limit: limit, near: Near{Top: top.scaled(), All: true}}
	s.open = []way{{[]int32{c.root}, make([]int, len(c.domains)), one(), 1 - slack}}
	if err := s.followAll(); err != nil {
		return Near{}, err
	}
	return s.near, nil
}

// way is a way from the root down to an assignment that is not at its end.
type way struct {
	pending []int32
	values  []int
	term    *big.Float
	floor   float64 // the smallest share of its sum that a child may have on this way from here on
}

// search goes down from the root through all children of sums that are close to the largest child.
type search struct {
	c     *Circuit
	p     *pass
	look  *pace.Pace
	limit int // of assignments
	open  []way
	near  Near // the result so far
}

// followAll follows the open ways, the last one first, and adds the assignment of each to the result. Every way ends in an assignment,
// because the largest child is always close. It ends at limit assignments. The error is the context's.
func (s *search) followAll() error {
	for len(s.open) > 0 {
		next := s.open[len(s.open)-1]
		s.open = s.open[:len(s.open)-1]
		if len(s.near.Values) == s.limit {
			s.near.All = false
			return nil
		}
		if !s.follow(next) {
			return s.look.Err()
		}
		s.near.Values = append(s.near.Values, next.values)
		s.near.Terms = append(s.near.Terms, next.term)
	}
	return nil
}

// follow follows one way down through the largest children, and opens a way for each other child that is close. It fills in the values and
// the term of w. It returns false if the context ended.
func (s *search) follow(w way) bool {
	for len(w.pending) > 0 {
		n := w.pending[len(w.pending)-1]
		w.pending = w.pending[:len(w.pending)-1]
		i := int(n) - s.c.firstNode()
		if i < 0 {
			s.assign(n, w)
			continue
		}
		children := s.c.childrenOf(i)
		if s.look.Over(int64(len(children))) {
			return false
		}
		if s.c.products[i] {
			w.pending = append(w.pending, children...)
			continue
		}
		w.pending = append(w.pending, s.choose(children, s.p.values[n], w))
	}
	return true
}

// assign multiplies the term of a way by leaf or number n. If n is a leaf, its variable gets its value.
func (s *search) assign(n int32, w way) {
	if int(n) < s.c.leaves() {
		v := s.c.variable(n)
		w.values[v] = int(n - s.c.offsets[v])
	}
	x := s.p.values[n]
	f := new(big.Float).SetFloat64(x.m)
	w.term.Mul(w.term, f.SetMantExp(f, int(x.e)*radix))
}

// one returns the number 1 with the precision that terms have.
func one() *big.Float { return new(big.Float).SetPrec(192).SetInt64(1) }

// choose returns the largest child of a sum, the first of equal children. It opens a way for each other child whose share of top, the value
// of the largest, is at least the floor of w, as far as the limit allows.
func (s *search) choose(children []int32, top number, w way) int32 {
	largest := children[0]
	for _, n := range children[1:] {
		if s.p.values[largest].less(s.p.values[n]) {
			largest = n
		}
	}
	for _, n := range children {
		share := s.p.values[n].dividedBy(top)
		if n == largest || share < w.floor {
			continue
		}
		if len(s.open)+len(s.near.Values) >= s.limit {
			s.near.All = false
			break
		}
		s.open = append(s.open, way{append(slices.Clone(w.pending), n), slices.Clone(w.values), one().Set(w.term), w.floor / share})
	}
	return largest
}

// Roundings returns the largest number of factors of a term: each takes a rounding.
func (c *Circuit) Roundings() int {
	if c.root < 0 {
		return 0
	}
	factors := make([]int, c.values()) // by node: the largest number of factors of a term of it
	for i := range factors {
		factors[i] = 1
	}
	for i := range c.ends {
		n := 0
		for _, child := range c.childrenOf(i) {
			if c.products[i] {
				n += factors[child]
			} else {
				n = max(n, factors[child])
			}
		}
		factors[c.firstNode()+i] = n
	}
	return factors[c.root]
}
