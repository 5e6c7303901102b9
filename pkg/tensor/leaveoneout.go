// Products of all factors but one, for every factor at once.

package tensor

import (
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// leaveOneOut returns Π_{m≠ℓ} ps[m] for every ℓ, without divisions: down a balanced tree, the product outside a half is
// the product outside the whole times the other half. For n legs of two levels that
// is O(n² log n) multiply-adds, where prefix times suffix for every leg takes n³.
func leaveOneOut(vars int, ps []countspace.Poly, ops *countspace.Ops) []countspace.Poly {
	out := make([]countspace.Poly, len(ps))
	if len(ps) > 0 {
		leaveOut(out, newProductTree(ps, ops), countspace.Constant(vars, scaled.One), ops)
	}
	return out
}

// productTree keeps the products of both halves at every level.
type productTree struct {
	product     countspace.Poly // of all leaves below
	left, right *productTree
	leaves      int
}

// newProductTree multiplies ps along a balanced tree.
func newProductTree(ps []countspace.Poly, ops *countspace.Ops) *productTree {
	if len(ps) == 1 {
		return &productTree{product: ps[0], leaves: 1}
	}
	half := len(ps) / 2
	t := &productTree{
		left:   newProductTree(ps[:half], ops),
		right:  newProductTree(ps[half:], ops),
		leaves: len(ps),
	}
	t.product = t.left.product.Mul(t.right.product, ops)
	return t
}

// leaveOut sets out[k] to outside times the product of all leaves of t but leaf k.
func leaveOut(out []countspace.Poly, t *productTree, outside countspace.Poly, ops *countspace.Ops) {
	if t.leaves == 1 {
		out[0] = outside
		return
	}
	half := t.left.leaves
	leaveOut(out[:half], t.left, outside.Mul(t.right.product, ops), ops)
	leaveOut(out[half:], t.right, outside.Mul(t.left.product, ops), ops)
}
