package circuit

// Validity of a circuit.

import (
	"context"
	"fmt"
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
)

// Check checks that children come before their parents, that the circuit is smooth and decomposable, and that the root is over all
// variables. Errors wrap ErrCircuit.
//
// Every variable has a fixed number of 128 bits. A leaf has its variable's, a product the sum of its children's, a sum the common
// number of its children: so a node has Σ_v n_v h_v, where n_v is the multiplicity of v in its products. These counts never fall on
// the way up, and every node is below the root; so if the root has Σ_v h_v, nothing met itself. Two different sums are taken for
// one with a probability of about 2^−128 for each comparison. Linear time, 16 bytes a value. The context's error where that ends.
func (c *Circuit) Check(ctx context.Context) error {
	if c.root < 0 {
		if len(c.ends) > 0 || len(c.numbers) > 0 {
			return fmt.Errorf("%w: it is 0 and has nodes", ErrCircuit)
		}
		return nil
	}
	if n := c.values(); int(c.root) >= n || len(c.ends) > 0 && int(c.root) != n-1 {
		return fmt.Errorf("%w: node %d of %d is the root", ErrCircuit, c.root, n)
	}

	look := pace.New(ctx)
	var all mark
	marks := make([]mark, c.values())
	for v, d := range c.domains {
		h := markOf(v)
		all = all.and(h)
		for a := range d {
			marks[int(c.offsets[v])+a] = h
		}
	}
	for i := range c.ends {
		at, children := c.first()+i, c.of(i)
		if look.Over(int64(len(children))) {
			return look.Err()
		}
		if len(children) < 2 {
			return fmt.Errorf("%w: node %d has %d children", ErrCircuit, at, len(children))
		}
		for k, n := range children {
			switch {
			case n < 0 || int(n) >= at:
				return fmt.Errorf("%w: node %d has the child %d", ErrCircuit, at, n)
			case k == 0:
				marks[at] = marks[n]
			case c.products[i]:
				marks[at] = marks[at].and(marks[n])
			case marks[n] != marks[at]:
				return fmt.Errorf("%w: the children of sum %d are not over the same variables", ErrCircuit, at)
			}
		}
	}
	if marks[c.root] != all {
		return fmt.Errorf("%w: the root does not have every variable once", ErrCircuit)
	}
	return c.needed(look)
}

// needed checks that every sum, product and number is below the root.
func (c *Circuit) needed(look *pace.Pace) error {
	below := make([]bool, c.values())
	below[c.root] = true
	for i := len(c.ends) - 1; i >= 0; i-- {
		children := c.of(i)
		if look.Over(int64(len(children))) {
			return look.Err()
		}
		if below[c.first()+i] {
			for _, n := range children {
				below[n] = true
			}
		}
	}
	if i := slices.Index(below[c.leaves():], false); i >= 0 {
		return fmt.Errorf("%w: node %d is not below the root", ErrCircuit, c.leaves()+i)
	}
	return nil
}

// mark is a sum of the numbers of variables, modulo 2^64 in both halves.
type mark [2]uint64

// markOf returns the number of a variable.
func markOf(v int) mark {
	return mark{mix(2*uint64(v) + 0x5851f42d4c957f2d), mix(2*uint64(v) + 0x14057b7ef767814f)}
}

// and adds.
func (m mark) and(n mark) mark { return mark{m[0] + n[0], m[1] + n[1]} }
