package circuit

// A circuit over other variables.

import (
	"context"
	"fmt"

	"github.com/basetensor/basetensor/internal/base/pace"
)

// Lift returns a circuit over new variables with the given domains. Every leaf l of c is replaced by the product of the new leaves in
// products[l], and the root is multiplied by the new leaves in fixed. Leaves are given by number. The result is well formed if every
// assignment of c's variables becomes an assignment of the new variables (see Check). Linear time. Errors wrap ErrCircuit, or are the
// context's.
func (c *Circuit) Lift(ctx context.Context, domains []int, products [][]int32, fixed []int32) (*Circuit, error) {
	offsets := offsetsOf(domains)
	if offsets == nil || len(products) != c.leaves() {
		return nil, fmt.Errorf("%w: lifted to %d variables by %d products for %d leaves", ErrCircuit, len(domains), len(products), c.leaves())
	}
	l := lifting{
		from:     c,
		to:       &Circuit{domains: domains, offsets: offsets, numbers: c.numbers, root: -1}, // −1: the circuit 0, until the root is set
		numberOf: make([]int32, c.values()),
	}
	if c.root < 0 { // the circuit is 0, with the new variables as with the old ones
		return l.to, nil
	}

	// The new numbers of c's values: leaves, numbers, then sums and products.
	if err := l.liftLeaves(products); err != nil {
		return nil, err
	}
	for k := range c.numbers {
		l.numberOf[c.leaves()+k] = int32(l.to.leaves() + k)
	}
	look := pace.New(ctx)
	for i := range c.ends {
		if look.Over(int64(len(c.childrenOf(i)))) {
			return nil, look.Err()
		}
		l.numberOf[c.firstNode()+i] = l.addNode(c.products[i], c.childrenOf(i), l.numberOf)
	}

	l.to.root = l.numberOf[c.root]
	if len(fixed) > 0 {
		l.to.root = l.addProduct(append([]int32{l.to.root}, fixed...))
	}
	return l.to, l.to.Check(ctx)
}

// lifting is the state of writing a circuit as one over other variables.
type lifting struct {
	from, to *Circuit
	numberOf []int32 // by number of a value in from: its number in to
}

// liftLeaves adds products[leaf], a product of new leaves, to the new circuit for each leaf of the old circuit that is used. A leaf is
// used if it is the root or a child of a node. l.numberOf gets the number of the product, or of the new leaf if there is only one.
func (l *lifting) liftLeaves(products [][]int32) error {
	isUsed := make([]bool, l.from.leaves())
	markUsed := func(n int32) {
		if int(n) < len(isUsed) {
			isUsed[n] = true
		}
	}
	markUsed(l.from.root)
	for _, n := range l.from.children {
		markUsed(n)
	}

	for leaf, factors := range products {
		switch {
		case !isUsed[leaf]:
		case len(factors) == 0:
			return fmt.Errorf("%w: leaf %d stands for nothing", ErrCircuit, leaf)
		case len(factors) == 1:
			l.numberOf[leaf] = factors[0]
		default:
			l.numberOf[leaf] = l.addProduct(factors)
		}
	}
	return nil
}

// addProduct adds a product to the new circuit and returns its number. factors are numbers in the new circuit.
func (l *lifting) addProduct(factors []int32) int32 {
	const isProduct = true
	return l.addNode(isProduct, factors, nil)
}

// addNode adds a sum or product to the new circuit and returns its number. If numberOf is nil, children are numbers in the new circuit.
// Otherwise they are numbers in the old circuit, and numberOf has the number in the new circuit for each of them.
func (l *lifting) addNode(isProduct bool, children, numberOf []int32) int32 {
	for _, n := range children {
		if numberOf != nil {
			n = numberOf[n]
		}
		l.to.children = append(l.to.children, n)
	}
	l.to.ends = append(l.to.ends, int32(len(l.to.children)))
	l.to.products = append(l.to.products, isProduct)
	return int32(l.to.values() - 1)
}
