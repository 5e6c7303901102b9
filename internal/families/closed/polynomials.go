package closed

// Products of the links' count polynomials, interruptible.

import (
	"context"
	"slices"

	"github.com/basetensor/basetensor/pkg/countspace"
)

// product returns Π ps in vars variables, and looks at ctx between multiplications.
//
// In one variable every order of products takes the same n²/2 multiply-adds, a pair of coefficients
// meeting once, and a balanced tree has the longest inner loops. In v ≥ 2 variables it does not:
// the root of a balanced tree alone takes (n/2)^{2v}, while multiplying by one small piece after
// the other, the largest first, takes O(k·c_1·c_2) as in Lemma 3, n^{v+1}.
func product(
	ctx context.Context, vars int, ps []countspace.Poly, ops *countspace.Ops,
) (countspace.Poly, error) {
	if vars > 1 {
		return chain(ctx, vars, ps, ops)
	}
	return tree(ctx, vars, ps, ops)
}

// smallProduct is the number of polynomials below which a product is not worth interrupting.
const smallProduct = 64

// tree is countspace.Product that looks at ctx: the same tree, the same bits.
func tree(
	ctx context.Context, vars int, ps []countspace.Poly, ops *countspace.Ops,
) (countspace.Poly, error) {
	if err := ctx.Err(); err != nil {
		return countspace.Poly{}, err
	}
	if len(ps) < smallProduct {
		return countspace.Product(vars, ps, ops), nil
	}

	half := len(ps) / 2
	left, err := tree(ctx, vars, ps[:half], ops)
	if err != nil {
		return countspace.Poly{}, err
	}
	right, err := tree(ctx, vars, ps[half:], ops)
	if err != nil {
		return countspace.Poly{}, err
	}

	if err := ctx.Err(); err != nil {
		return countspace.Poly{}, err
	}
	return left.Mul(right, ops), nil
}

// chain multiplies the largest polynomial by the others, largest first; equal sizes in list order.
func chain(
	ctx context.Context, vars int, ps []countspace.Poly, ops *countspace.Ops,
) (countspace.Poly, error) {
	if len(ps) == 0 {
		return countspace.Product(vars, nil, ops), nil
	}

	order := largestFirst(ps)
	p := ps[order[0]]
	for _, i := range order[1:] {
		if err := ctx.Err(); err != nil {
			return countspace.Poly{}, err
		}
		p = p.Mul(ps[i], ops)
	}
	return p, nil
}

// largestFirst returns the sequence in which chain multiplies.
func largestFirst(ps []countspace.Poly) []int {
	order := make([]int, len(ps))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, k int) int { return ps[k].Size() - ps[i].Size() })
	return order
}
