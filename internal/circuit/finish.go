package circuit

// From what was built to what is evaluated.

import (
	"errors"
	"fmt"
	"slices"
)

// ErrFull says that the circuit is larger than its builder was allowed to make it.
var ErrFull = errors.New("circuit: larger than allowed")

// Finish returns the circuit of a node, without what it does not need. It checks decomposability, smoothness and
// that all variables are there (see Check). The builder is of no use afterwards. Errors wrap ErrCircuit or ErrFull.
// Linear time.
func (b *Builder) Finish(root Node) (*Circuit, error) {
	switch {
	case b.full:
		return nil, ErrFull
	case b.err != nil:
		return nil, b.err
	case b.offsets == nil:
		return nil, fmt.Errorf("%w: domains", ErrCircuit)
	case root < 0 || int(root) >= len(b.kinds):
		return nil, fmt.Errorf("%w: there is no node %d", ErrCircuit, root)
	}
	c := &Circuit{domains: b.domains, offsets: b.offsets, root: -1}
	if root == Zero {
		return c, nil
	}

	b.table = nil
	place := b.places(root, c)
	b.pack(root, place, c)
	c.root = place[root]
	return c, c.Check()
}

// places numbers the values of a circuit: −1 for a node that the root does not need. It moves the numbers.
func (b *Builder) places(root Node, c *Circuit) []int32 {
	place := make([]int32, len(b.kinds))
	for n := range place {
		place[n] = -1
	}
	place[root] = 0
	for n := root; n > 0; n-- {
		if place[n] < 0 || b.kinds[n] < kindProduct {
			continue
		}
		for _, child := range b.args[b.start(n):b.ends[n]] {
			place[child] = 0
		}
	}

	next := int32(c.leaves())
	for n := One; n <= root; n++ {
		arg := b.args[b.start(n)]
		switch {
		case place[n] < 0:
		case b.kinds[n] == kindLeaf:
			place[n] = arg
		case b.kinds[n] == kindNumber:
			place[n] = next
			c.numbers = append(c.numbers, b.numbers[arg])
			next++
		}
	}
	for n := One; n <= root; n++ {
		if place[n] == 0 && b.kinds[n] >= kindProduct {
			place[n] = next
			next++
		}
	}
	return place
}

// pack writes the sums and products that are needed over the builder's arrays, from the left.
func (b *Builder) pack(root Node, place []int32, c *Circuit) {
	edges, nodes := 0, 0
	from := int32(0)
	for n := Node(0); n <= root; n++ {
		to := b.ends[n]
		if place[n] >= 0 && b.kinds[n] >= kindProduct {
			for _, child := range b.args[from:to] {
				b.args[edges] = place[child]
				edges++
			}
			b.ends[nodes] = int32(edges)
			b.kinds[nodes] = b.kinds[n]
			nodes++
		}
		from = to
	}
	c.children = tight(b.args[:edges])
	c.ends = tight(b.ends[:nodes])
	c.products = make([]bool, nodes)
	for i, k := range b.kinds[:nodes] {
		c.products[i] = k == kindProduct
	}
	b.args, b.ends, b.kinds = nil, nil, nil
	b.full = true
}

// tight copies a list that takes much more memory than it has entries.
func tight(list []int32) []int32 {
	if cap(list)-len(list) > len(list)/8 {
		return slices.Clone(list)
	}
	return list
}
