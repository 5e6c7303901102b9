package circuit

// A circuit over other variables.

import (
	"context"
	"fmt"

	"github.com/basetensor/basetensor/internal/base/pace"
)

// Lift returns the circuit in which every leaf is a product of leaves over other variables: leaf l of c, by its number, is
// the product of the new leaves stands[l], and the whole is multiplied by the leaves of fixed. The result is a circuit if every
// assignment of c's variables stands for one of the new variables (see Check). Linear time. Errors wrap ErrCircuit, or are the
// context's.
func (c *Circuit) Lift(ctx context.Context, domains []int, stands [][]int32, fixed []int32) (*Circuit, error) {
	offsets := offsetsOf(domains)
	if offsets == nil || len(stands) != c.leaves() {
		return nil, fmt.Errorf("%w: lifted to %d variables by %d products for %d leaves", ErrCircuit, len(domains), len(stands), c.leaves())
	}
	l := lifting{
		from:  c,
		to:    &Circuit{domains: domains, offsets: offsets, numbers: c.numbers, root: -1},
		place: make([]int32, c.values()),
	}
	if c.root < 0 {
		return l.to, nil
	}
	if err := l.leaves(stands); err != nil {
		return nil, err
	}
	for k := range c.numbers {
		l.place[c.leaves()+k] = int32(l.to.leaves() + k)
	}
	look := pace.New(ctx)
	for i := range c.ends {
		if look.Over(int64(len(c.of(i)))) {
			return nil, look.Err()
		}
		l.place[c.first()+i] = l.node(c.products[i], c.of(i), l.place)
	}

	l.to.root = l.place[c.root]
	if len(fixed) > 0 {
		l.to.root = l.node(true, append([]int32{l.to.root}, fixed...), nil)
	}
	return l.to, l.to.Check(ctx)
}

// lifting is a circuit that becomes another one.
type lifting struct {
	from, to *Circuit
	place    []int32 // by number of from: the number in to
}

// leaves makes the products that leaves stand for, of those leaves that the circuit has.
func (l *lifting) leaves(stands [][]int32) error {
	used := make([]bool, l.from.leaves())
	note := func(n int32) {
		if int(n) < len(used) {
			used[n] = true
		}
	}
	note(l.from.root)
	for _, n := range l.from.children {
		note(n)
	}
	for leaf, list := range stands {
		switch {
		case !used[leaf]:
		case len(list) == 0:
			return fmt.Errorf("%w: leaf %d stands for nothing", ErrCircuit, leaf)
		case len(list) == 1:
			l.place[leaf] = list[0]
		default:
			l.place[leaf] = l.node(true, list, nil)
		}
	}
	return nil
}

// node adds a sum or product of children, which are places where there are some.
func (l *lifting) node(product bool, children, place []int32) int32 {
	for _, n := range children {
		if place != nil {
			n = place[n]
		}
		l.to.children = append(l.to.children, n)
	}
	l.to.ends = append(l.to.ends, int32(len(l.to.children)))
	l.to.products = append(l.to.products, product)
	return int32(l.to.values() - 1)
}
