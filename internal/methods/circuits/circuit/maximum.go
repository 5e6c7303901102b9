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

// ErrOverlap says that a circuit is not deterministic, or not seen to be: its maxima differ from the maxima of the sum that it
// stands for.
var ErrOverlap = errors.New("circuit: maxima need a deterministic circuit")

// Near are assignments whose terms are close to the largest one.
type Near struct {
	Top    scaled.Number // the largest term, as rounded
	Values [][]int       // of all variables; the first one attains Top
	Terms  []*big.Float  // theirs, the product of the weights and numbers to 192 bits
	All    bool          // there are no others that close
}

// Maximum returns the largest term max_x C(x) Π w(x), and assignments whose terms, as rounded, are at least 1 − slack of it,
// up to most of them; none where Z is 0. One pass up, and for each assignment the nodes on its way. Errors: ErrOverlap, else
// as of Evaluate.
func (c *Circuit) Maximum(ctx context.Context, w Weights, slack float64, most int) (Near, error) {
	switch ok, err := c.Deterministic(ctx); {
	case err != nil:
		return Near{}, err
	case !ok:
		return Near{}, fmt.Errorf("%w, which this one is not seen to be", ErrOverlap)
	}
	p, err := c.up(ctx, w, true)
	if err != nil {
		return Near{}, err
	}
	defer p.done()
	top := c.total(p)
	if top.m == 0 {
		return Near{All: true}, nil
	}
	s := search{c: c, p: p, look: pace.New(ctx), most: most, near: Near{Top: top.scaled(), All: true}}
	s.open = []state{{[]int32{c.root}, make([]int, len(c.domains)), one(), 1 - slack}}
	if err := s.run(); err != nil {
		return Near{}, err
	}
	return s.near, nil
}

// state is a way down that is not at its end.
type state struct {
	todo   []int32
	values []int
	term   *big.Float
	floor  float64 // the least share of the largest term that may be lost from here on
}

// search goes down through all children that are close to the largest.
type search struct {
	c    *Circuit
	p    *pass
	look *pace.Pace
	most int
	open []state
	near Near
}

// run follows the ways that are open, the last one first. Every way ends in an assignment, because the largest child is always close.
func (s *search) run() error {
	for len(s.open) > 0 {
		next := s.open[len(s.open)-1]
		s.open = s.open[:len(s.open)-1]
		if len(s.near.Values) == s.most {
			s.near.All = false
			return nil
		}
		if !s.down(next) {
			return s.look.Err()
		}
		s.near.Values = append(s.near.Values, next.values)
		s.near.Terms = append(s.near.Terms, next.term)
	}
	return nil
}

// down follows one way through the largest children, and leaves others that are close for later. It returns false where the context
// ended.
func (s *search) down(at state) bool {
	for len(at.todo) > 0 {
		n := at.todo[len(at.todo)-1]
		at.todo = at.todo[:len(at.todo)-1]
		i := int(n) - s.c.first()
		if i < 0 {
			s.take(n, at)
			continue
		}
		children := s.c.of(i)
		if s.look.Over(int64(len(children))) {
			return false
		}
		if s.c.products[i] {
			at.todo = append(at.todo, children...)
			continue
		}
		at.todo = append(at.todo, s.choose(children, s.p.values[n], at))
	}
	return true
}

// take notes a leaf or a number.
func (s *search) take(n int32, at state) {
	if int(n) < s.c.leaves() {
		v := s.c.variable(n)
		at.values[v] = int(n - s.c.offsets[v])
	}
	x := s.p.values[n]
	f := new(big.Float).SetFloat64(x.m)
	at.term.Mul(at.term, f.SetMantExp(f, int(x.e)*radix))
}

// one is the number 1, to the digits that terms have.
func one() *big.Float { return new(big.Float).SetPrec(192).SetInt64(1) }

// choose returns the largest child of a sum, the first of equal ones, and opens a way for every other one that is close.
func (s *search) choose(children []int32, top number, at state) int32 {
	first := children[0]
	for _, n := range children[1:] {
		if s.p.values[first].less(s.p.values[n]) {
			first = n
		}
	}
	for _, n := range children {
		share := s.p.values[n].over(top)
		if n == first || share < at.floor {
			continue
		}
		if len(s.open)+len(s.near.Values) >= s.most {
			s.near.All = false
			break
		}
		s.open = append(s.open, state{append(slices.Clone(at.todo), n), slices.Clone(at.values), one().Set(at.term), at.floor / share})
	}
	return first
}

// Roundings bounds the number of factors of one term.
func (c *Circuit) Roundings() int {
	if c.root < 0 {
		return 0
	}
	most := make([]int, c.values())
	for i := range most {
		most[i] = 1
	}
	for i := range c.ends {
		n := 0
		for _, child := range c.of(i) {
			if c.products[i] {
				n += most[child]
			} else {
				n = max(n, most[child])
			}
		}
		most[c.first()+i] = n
	}
	return most[c.root]
}
