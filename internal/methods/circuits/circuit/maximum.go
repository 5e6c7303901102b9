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

// Maximum returns the largest term max_x C(x) Π w(x), and up to limit assignments whose terms, as the pass up rounds them, are at least
// (1 − slack) times the largest one. It returns no assignment if Z is 0. One pass up, and for each assignment the nodes on its way down.
// The error is ErrOverlap if the circuit is not seen to be deterministic; other errors are those of Evaluate.
func (c *Circuit) Maximum(ctx context.Context, w Weights, slack float64, limit int) (Near, error) {
	switch ok, err := c.IsDeterministic(ctx); {
	case err != nil:
		return Near{}, err
	case !ok:
		return Near{}, fmt.Errorf("%w, which this one is not seen to be", ErrOverlap)
	}
	p, err := c.passUp(ctx, w, maximumChildren)
	if err != nil {
		return Near{}, err
	}
	defer p.release()
	top := c.rootValue(p)
	if top.m == 0 {
		return Near{All: true}, nil
	}

	s := descent{circuit: c, pass: p, look: pace.New(ctx), limit: limit, near: Near{Top: top.scaled(), All: true}}
	s.open = []path{{[]int32{c.root}, make([]int, len(c.domains)), one(), 1 - slack}} // pending, values, term, minShare
	if err := s.followAll(); err != nil {
		return Near{}, err
	}
	return s.near, nil
}

// path is a descent from the root to one assignment that is not complete.
type path struct {
	pending  []int32    // nodes to be visited
	values   []int      // by variable: the assignment so far
	term     *big.Float // product of the leaves and numbers visited so far
	minShare float64    // the smallest share of its sum's largest child that a child may have on this path from here on
}

// descent goes down from the root of a circuit through all children of sums that are close to the largest child.
type descent struct {
	circuit *Circuit
	pass    *pass // the values of all nodes, with the maximum of its children for a sum
	look    *pace.Pace
	limit   int // number of assignments
	open    []path
	near    Near // the result so far
}

// followAll follows the open paths, the last one first, and adds the assignment of each to the result. Every path ends in an assignment,
// because the largest child is always close. It stops at s.limit assignments. The error is the context's.
func (s *descent) followAll() error {
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

// follow follows one path down from its pending nodes: through all children of a product and the largest child of each sum. It opens a path
// for each other child of a sum that is close to the largest one (chooseChild). It fills in current.values and current.term. It returns
// false if the context has ended. Nodes are numbered: leaves, then numbers, then sums and products.
func (s *descent) follow(current path) bool {
	for len(current.pending) > 0 {
		n := current.pending[len(current.pending)-1]
		current.pending = current.pending[:len(current.pending)-1]
		i := int(n) - s.circuit.firstNode() // its position among sums and products
		if i < 0 {
			s.multiplyBy(n, current)
			continue
		}
		children := s.circuit.childrenOf(i)
		if s.look.Over(int64(len(children))) {
			return false
		}
		if s.circuit.products[i] {
			current.pending = append(current.pending, children...)
			continue
		}
		current.pending = append(current.pending, s.chooseChild(children, s.pass.values[n], current))
	}
	return true
}

// multiplyBy multiplies the term of a path by the value of n, a leaf or number. If n is a leaf, its variable gets its value.
func (s *descent) multiplyBy(n int32, current path) {
	if int(n) < s.circuit.leaves() {
		v := s.circuit.variable(n)
		current.values[v] = int(n - s.circuit.offsets[v])
	}
	x := s.pass.values[n] // x.m·2^(radix·x.e)
	f := new(big.Float).SetFloat64(x.m)
	current.term.Mul(current.term, f.SetMantExp(f, int(x.e)*radix))
}

// one returns the number 1 with the precision that terms have.
func one() *big.Float { return new(big.Float).SetPrec(192).SetInt64(1) }

// chooseChild returns the largest child of a sum, the first one of equal children. top is the value of that child. For each other child
// whose share of top is at least current.minShare it opens a path that takes that child. If s.limit does not allow that, it notes that not
// all assignments are found. The new path has a larger minShare, since its term is smaller by the share already.
func (s *descent) chooseChild(children []int32, top number, current path) int32 {
	largest := children[0]
	for _, n := range children[1:] {
		if s.pass.values[largest].less(s.pass.values[n]) {
			largest = n
		}
	}

	// Open a path for each other child that is close.
	for _, n := range children {
		share := s.pass.values[n].dividedBy(top)
		if n == largest || share < current.minShare {
			continue
		}
		if len(s.open)+len(s.near.Values) >= s.limit {
			s.near.All = false
			break
		}
		s.open = append(s.open, path{
			pending:  append(slices.Clone(current.pending), n),
			values:   slices.Clone(current.values),
			term:     one().Set(current.term),
			minShare: current.minShare / share,
		})
	}
	return largest
}

// MaxTermFactors returns the largest number of factors of a term of the circuit. Each factor may add a rounding error to the term.
func (c *Circuit) MaxTermFactors() int {
	if c.root < 0 {
		return 0
	}
	factors := make([]int, c.values()) // by node: the largest number of factors of one of its terms
	for i := range factors {
		factors[i] = 1 // of a leaf or number; those of sums and products are set below
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
