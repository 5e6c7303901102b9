package circuit

// A circuit over other variables.

import (
	"context"
	"fmt"

	"github.com/basetensor/basetensor/internal/base/pace"
)

// Lift returns the circuit in which every leaf is replaced by a product of leaves over new variables with these domains: leaf l of c, by
// its number, by the product of the new leaves stands[l]. The whole is multiplied by the new leaves fixed. The result is a circuit if every
// assignment of c's variables stands for one of the new variables (see Check). Linear time. Errors wrap ErrCircuit, or are the context's.
func (c *Circuit) Lift(ctx context.Context, domains []int, stands [][]int32, fixed []int32) (*Circuit, error) {
	offsets := offsetsOf(domains)
	if offsets == nil || len(stands) != c.leaves() {
		return nil, fmt.Errorf("%w: lifted to %d variables by %d products for %d leaves", ErrCircuit, len(domains), len(stands), c.leaves())
	}
	l := lifting{
		from:     c,
		to:       &Circuit{domains: domains, offsets: offsets, numbers: c.numbers, root: -1},
		numberOf: make([]int32, c.values()),
	}
	if c.root < 0 {
		return l.to, nil
	}
	if err := l.leaves(stands); err != nil {
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
		l.numberOf[c.firstNode()+i] = l.node(c.products[i], c.childrenOf(i), l.numberOf)
	}

	l.to.root = l.numberOf[c.root]
	if len(fixed) > 0 {
		l.to.root = l.node(true, append([]int32{l.to.root}, fixed...), nil)
	}
	return l.to, l.to.Check(ctx)
}

// lifting is the state of writing a circuit as one over other variables.
type lifting struct {
	from, to *Circuit
	numberOf []int32 // by number of a value in from: its number in to
}

// leaves makes the products that the leaves of the old circuit stand for, as far as nodes use these leaves.
func (l *lifting) leaves(stands [][]int32) error {
	used := make([]bool, l.from.leaves())
	markUsed := func(n int32) {
		if int(n) < len(used) {
			used[n] = true
		}
	}
	markUsed(l.from.root)
	for _, n := range l.from.children {
		markUsed(n)
	}
	for leaf, list := range stands {
		switch {
		case !used[leaf]:
		case len(list) == 0:
			return fmt.Errorf("%w: leaf %d stands for nothing", ErrCircuit, leaf)
		case len(list) == 1:
			l.numberOf[leaf] = list[0]
		default:
			l.numberOf[leaf] = l.node(true, list, nil)
		}
	}
	return nil
}

// node adds a sum or product to the new circuit and returns its number. children are numbers in the new circuit. If numberOf is not nil,
// they are numbers in the old one, which numberOf maps to the new one.
func (l *lifting) node(isProduct bool, children, numberOf []int32) int32 {
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
