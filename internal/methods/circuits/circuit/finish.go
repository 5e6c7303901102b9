package circuit

// From the builder to the circuit that is evaluated.

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
)

// ErrFull is the error of a circuit that is larger than its builder may make it.
var ErrFull = errors.New("circuit: larger than allowed")

// Finish returns the circuit of a node, without unreachable nodes. It checks decomposability, smoothness and that all
// variables are in it (see Check). The builder cannot be used afterwards. Errors wrap ErrCircuit or ErrFull, or are the
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

	b.table = nil // frees the hash table
	look := pace.New(ctx)
	// Both return false if the context has ended.
	numberOf, ok := b.numberNodes(look, root, c)
	if !ok || !b.pack(look, root, numberOf, c) {
		return nil, look.Err()
	}
	c.root = numberOf[root]
	return c, c.Check(ctx)
}

// numberNodes returns the number that each node of the builder gets in circuit c: first leaves, which have the numbers of their weights,
// then numbers, then sums and products. It is −1 for a node that is neither the root nor below it. The numbers are added to c. ok is
// false if the context has ended.
func (b *Builder) numberNodes(look *pace.Pace, root Node, c *Circuit) (numberOf []int32, ok bool) {
	if numberOf, ok = b.markReachable(look, root); !ok {
		return nil, false
	}

	// Leaves and numbers.
	next := int32(c.leaves()) // the number of the next node that is no leaf
	for n := One; n <= root; n++ {
		if look.Over(2) {
			return nil, false
		}
		arg := b.args[b.start(n)] // of a leaf the number of its weight, of a number its position in b.numbers
		switch {
		case numberOf[n] < 0: // not in the circuit
		case b.kinds[n] == kindLeaf:
			numberOf[n] = arg
		case b.kinds[n] == kindNumber:
			numberOf[n] = next
			c.numbers = append(c.numbers, b.numbers[arg])
			next++
		}
	}

	// Sums and products.
	for n := One; n <= root; n++ {
		if numberOf[n] == 0 && b.kinds[n] >= kindProduct { // 0 is what markReachable gave the nodes of the circuit
			numberOf[n] = next
			next++
		}
	}
	return numberOf, true
}

// markReachable returns for each node of the builder 0 if it is the root or below it, −1 if not. ok is false if the context has ended.
func (b *Builder) markReachable(look *pace.Pace, root Node) (marks []int32, ok bool) {
	marks = slices.Repeat([]int32{-1}, len(b.kinds))
	marks[root] = 0
	for n := root; n > 0; n-- { // parents before their children, which have smaller numbers
		hasChildren := b.kinds[n] >= kindProduct // a product or a sum
		if marks[n] < 0 || !hasChildren {
			continue
		}
		children := b.args[b.start(n):b.ends[n]]
		if look.Over(int64(len(children))) {
			return nil, false
		}
		for _, child := range children {
			marks[child] = 0
		}
	}
	return marks, true
}

// pack moves the sums and products of the circuit to the start of the builder's arrays, replaces their children by the numbers in numberOf,
// and gives the arrays to c. Nodes that are not in the circuit have a number below 0. Nothing is overwritten before it is read, since the
// nodes move towards the start. The builder cannot be used afterwards. It returns false if the context has ended.
func (b *Builder) pack(look *pace.Pace, root Node, numberOf []int32, c *Circuit) bool {
	edges, nodes := 0, 0 // moved so far
	start := int32(0)    // of the node's children in b.args
	for n := Node(0); n <= root; n++ {
		end := b.ends[n]
		if look.Over(int64(end - start)) {
			return false
		}
		if numberOf[n] >= 0 && b.kinds[n] >= kindProduct {
			for _, child := range b.args[start:end] {
				b.args[edges] = numberOf[child]
				edges++
			}
			b.ends[nodes] = int32(edges)
			b.kinds[nodes] = b.kinds[n]
			nodes++
		}
		start = end
	}

	c.children = clip(b.args[:edges])
	c.ends = clip(b.ends[:nodes])
	c.products = make([]bool, nodes)
	for i, k := range b.kinds[:nodes] {
		c.products[i] = k == kindProduct
	}
	b.args, b.ends, b.kinds = nil, nil, nil
	b.full = true // further calls of the builder fail
	return true
}

// clip returns the list, or a copy of it if it takes over an eighth more memory than its entries need.
func clip(list []int32) []int32 {
	if cap(list)-len(list) > len(list)/8 {
		return slices.Clone(list)
	}
	return list
}
