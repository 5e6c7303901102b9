// Products of all factors but one, for every factor at once.

package tensor

import (
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// leaveOneOut returns Π_{m≠ℓ} ps[m] for every ℓ, without divisions. It goes down a balanced tree of products: what is outside of one half
// is what is outside of the whole times the other half. For n legs of two levels that takes O(n² log n) multiply-adds, where prefix times
// suffix for every leg takes n³.
func leaveOneOut(vars int, ps []countspace.Poly, ops *countspace.Ops) []countspace.Poly {
	products := make([]countspace.Poly, len(ps))
	if len(ps) > 0 {
		newProductTree(ps, ops).setProductsOfOthers(products, countspace.Constant(vars, scaled.One), ops)
	}
	return products
}

// productTree is a balanced tree over a list of polynomials that has the product of the leaves below every node.
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

// setProductsOfOthers sets products[k] to outside times the product of all leaves of t but leaf k.
func (t *productTree) setProductsOfOthers(products []countspace.Poly, outside countspace.Poly, ops *countspace.Ops) {
	if t.leaves == 1 {
		products[0] = outside
		return
	}
	half := t.left.leaves
	t.left.setProductsOfOthers(products[:half], outside.Mul(t.right.product, ops), ops)
	t.right.setProductsOfOthers(products[half:], outside.Mul(t.left.product, ops), ops)
}
