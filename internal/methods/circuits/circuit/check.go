package circuit

// Validity of a circuit.

import (
	"context"
	"fmt"
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
)

// Check returns an error, which wraps ErrCircuit, if the circuit is not well formed. A circuit is well formed if children come before
// their parents, children of a sum are over the same variables (smooth), children of a product share no variable (decomposable), and the
// root is over all variables.
//
// Every variable v has a fixed fingerprint h_v of 128 bits. A leaf has the fingerprint of its variable, a number has 0, a product the sum
// of its children's fingerprints, and a sum the common fingerprint of its children. So a node has Σ_v n_v h_v, where n_v is how often v
// is in each of its terms. n_v never falls on the way up, and every node is below the root. So if the root has Σ_v h_v, no product has a
// variable twice. Two different sums are taken for equal with a probability of about 2^−128 for each comparison. Linear time, 16 bytes a
// value. If the context ends, the error is that of the context.
func (c *Circuit) Check(ctx context.Context) error {
	if c.root < 0 {
		if len(c.ends) > 0 || len(c.numbers) > 0 {
			return fmt.Errorf("%w: it is 0 and has nodes", ErrCircuit)
		}
		return nil
	}
	if n := c.values(); int(c.root) >= n || len(c.ends) > 0 && int(c.root) != n-1 { // the last sum or product, if there is one
		return fmt.Errorf("%w: node %d of %d is the root", ErrCircuit, c.root, n)
	}

	// The fingerprints of leaves, and the sum of those of all variables.
	look := pace.New(ctx)
	var variablesSum fingerprint
	prints := make([]fingerprint, c.values()) // by number of a value; that of a number stays 0
	for v, d := range c.domains {
		h := fingerprintOf(v)
		variablesSum = variablesSum.plus(h)
		for a := range d {
			prints[int(c.offsets[v])+a] = h
		}
	}

	for i := range c.ends {
		if look.Over(int64(len(c.childrenOf(i)))) {
			return look.Err()
		}
		if err := c.checkNode(i, prints); err != nil {
			return err
		}
	}
	if prints[c.root] != variablesSum {
		return fmt.Errorf("%w: the root does not have every variable once", ErrCircuit)
	}
	return c.checkReachable(look)
}

// checkNode writes the fingerprint of the i-th sum or product to prints, which has those of the values before it. It returns an error if
// there are less than two children, if a child does not come before the node, or if children of a sum have different fingerprints.
func (c *Circuit) checkNode(i int, prints []fingerprint) error {
	node, children := c.firstNode()+i, c.childrenOf(i)
	if len(children) < 2 {
		return fmt.Errorf("%w: node %d has %d children", ErrCircuit, node, len(children))
	}
	for k, n := range children {
		switch {
		case n < 0 || int(n) >= node:
			return fmt.Errorf("%w: node %d has the child %d", ErrCircuit, node, n)
		case k == 0:
			prints[node] = prints[n]
		case c.products[i]:
			prints[node] = prints[node].plus(prints[n])
		case prints[n] != prints[node]:
			return fmt.Errorf("%w: the children of sum %d are not over the same variables", ErrCircuit, node)
		}
	}
	return nil
}

// checkReachable returns an error, which wraps ErrCircuit, if a sum, product or number is neither the root nor below it. Nodes are
// numbered: leaves, which need not be below the root, then numbers, then sums and products.
func (c *Circuit) checkReachable(look *pace.Pace) error {
	isBelow := make([]bool, c.values())
	isBelow[c.root] = true
	for i := len(c.ends) - 1; i >= 0; i-- {
		children := c.childrenOf(i)
		if look.Over(int64(len(children))) {
			return look.Err()
		}
		if isBelow[c.firstNode()+i] {
			for _, n := range children {
				isBelow[n] = true
			}
		}
	}
	if i := slices.Index(isBelow[c.leaves():], false); i >= 0 {
		return fmt.Errorf("%w: node %d is not below the root", ErrCircuit, c.leaves()+i)
	}
	return nil
}

// fingerprint is a sum of the fingerprints of variables, modulo 2^64 in both halves.
type fingerprint [2]uint64

// fingerprintOf returns the fingerprint of variable v, two hashes of its number.
func fingerprintOf(v int) fingerprint {
	return fingerprint{mix(2*uint64(v) + 0x5851f42d4c957f2d), mix(2*uint64(v) + 0x14057b7ef767814f)}
}

// plus returns the sum of two fingerprints.
func (m fingerprint) plus(n fingerprint) fingerprint { return fingerprint{m[0] + n[0], m[1] + n[1]} }
