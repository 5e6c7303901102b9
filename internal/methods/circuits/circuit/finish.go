package circuit

// From the builder to the circuit that is evaluated.

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
)

// ErrFull says that the circuit is larger than its builder was allowed to make it.
var ErrFull = errors.New("circuit: larger than allowed")

// Finish returns the circuit of a node, without unreachable nodes. It checks decomposability, smoothness and that all
// variables are there (see Check). The builder is of no use afterwards. Errors wrap ErrCircuit or ErrFull, or are the
// context's. Linear time.
func (b *Builder) Finish(ctx context.Context, root Node) (*Circuit, error) {
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
	look := pace.New(ctx)
	place, ok := b.places(look, root, c)
	if !ok || !b.pack(look, root, place, c) {
		return nil, look.Err()
	}
	c.root = place[root]
	return c, c.Check(ctx)
}

// places numbers the values of a circuit: −1 for a node that the root does not need. It moves the numbers.
// It returns false where the context ended.
func (b *Builder) places(look *pace.Pace, root Node, c *Circuit) (place []int32, ok bool) {
	place = make([]int32, len(b.kinds))
	for n := range place {
		place[n] = -1
	}
	place[root] = 0
	for n := root; n > 0; n-- {
		if place[n] < 0 || b.kinds[n] < kindProduct {
			continue
		}
		children := b.args[b.start(n):b.ends[n]]
		if look.Over(int64(len(children))) {
			return nil, false
		}
		for _, child := range children {
			place[child] = 0
		}
	}

	next := int32(c.leaves())
	for n := One; n <= root; n++ {
		if look.Over(2) {
			return nil, false
		}
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
	return place, true
}

// pack writes the sums and products that are needed over the builder's arrays, from the left. It returns false where the
// context ended.
func (b *Builder) pack(look *pace.Pace, root Node, place []int32, c *Circuit) bool {
	edges, nodes := 0, 0
	from := int32(0)
	for n := Node(0); n <= root; n++ {
		to := b.ends[n]
		if look.Over(int64(to - from)) {
			return false
		}
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
	return true
}

// tight copies a list that takes much more memory than it has entries.
func tight(list []int32) []int32 {
	if cap(list)-len(list) > len(list)/8 {
		return slices.Clone(list)
	}
	return list
}
