package counts

// Products of given polynomials.

import (
	"cmp"
	"context"
	"slices"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// MultiplyPolys returns the product of polynomials ps in vars variables.
//
// Let n be the degree of the product in each variable. In one variable every order of products takes the same n²/2 multiply-adds, since
// each pair of coefficients meets once, and a balanced tree has the longest inner loops. In v ≥ 2 variables the root of a balanced tree
// alone takes (n/2)^{2v} multiply-adds. Multiplying by one small polynomial after the other, the largest first, takes n^{v+1}: O(k·c_1·c_2)
// for k polynomials, as in Lemma 3.
func MultiplyPolys(vars int, ps []countspace.Poly, ops *countspace.Ops) countspace.Poly {
	if vars < 2 || len(ps) == 0 {
		return countspace.Product(vars, ps, ops)
	}
	ps = slices.Clone(ps)
	slices.SortStableFunc(ps, func(p, q countspace.Poly) int { return cmp.Compare(q.Size(), p.Size()) })
	product := ps[0]
	for _, p := range ps[1:] {
		product = product.Mul(p, ops)
	}
	return product
}

// Product is Σ_c S_c [z^c] Π_k Polys_k.
type Product struct {
	S      countspace.Poly
	Polys  []countspace.Poly
	Signed bool           // terms of both signs may meet
	Wanted func(int) bool // reports whether the derivative by polynomial k is wanted; nil: none is
	Memory int64          // bytes
}

// Sum returns Σ_c S_c [z^c] Π_k Polys_k, and calls visit with the derivative by every wanted polynomial, over the box of that polynomial.
// Derivatives are for one variable only. With Z = Σ_c h_c [z^c] p q, the derivative by q is
//
//	h'_k = Σ_c p_c h_{k+c}
//
// which is as much work as p·q itself. If the context of ops ended, numbers are void. Errors: OverBudget's, the context's, those of visit.
func (p Product) Sum(
	ctx context.Context, ops *countspace.Ops, visit func(int, countspace.Poly) error,
) (scaled.Number, error) {
	vars := len(p.S.Shape)
	canCutWindows := vars == 1 && !p.Signed
	if len(p.Polys) == 0 || p.Wanted == nil && !canCutWindows {
		return countspace.Dot(p.S, MultiplyPolys(vars, p.Polys, ops), ops), nil
	}

	l := newLine(ctx, p.Polys, slices.Repeat([]int{1}, len(p.Polys)), ops)
	if p.Wanted == nil && l.root.cost() <= policy.WindowFrom {
		return countspace.Dot(p.S, MultiplyPolys(vars, p.Polys, ops), ops), nil
	}
	// The coefficients of the tree, which bytes counts twice, and four polynomials over the whole box for S and derivatives.
	need := l.root.bytes()/2 + 4*bytesPerCoefficient*float64(l.root.degree+1)
	if p.Wanted != nil && need > float64(p.Memory) {
		return scaled.Number{}, OverBudget(need, p.Memory)
	}
	return l.sumInWindows(p.S, p.Signed, p.Wanted, visit)
}

// OverBudget returns the error that says that derivatives need too much memory. It wraps contraction.ErrMemory.
func OverBudget(need float64, memory int64) error {
	return fault.New(fault.OverBudget,
		"%w: all marginals at once need %.0f bytes of count polynomials, the budget is %d", contraction.ErrMemory, need, memory)
}
