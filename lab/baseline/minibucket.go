package baseline

// Mini-bucket elimination.

import (
	"context"

	"github.com/basetensor/basetensor/internal/sumproduct"
)

// MiniBucket returns an upper bound on ln Z: the tables at an index are split into mini-buckets of
// at most ibound+1 indices, one of which is summed over the index and the others maximised,
//
//	Σ_x Π_k f_k(x) ≤ (Σ_x f_m(x)) Π_{k<m} max_x f_k(x).
//
// It is Z itself where the min-fill order has a width of at most ibound.
// Errors: fault.Unsupported for entries below 0, fault.OverBudget above 1 GiB of messages; the
// context's.
// Cost: d^(ibound+1) per mini-bucket.
// Source: Dechter and Rish, Mini-buckets, J. ACM 50 (2003).
// Differs: the mini-bucket of the largest tables is the one that is summed.
func MiniBucket(ctx context.Context, e *sumproduct.Expression, ibound int) (Result, error) {
	t, err := newTree(ctx, e, ibound)
	if err != nil {
		return Result{}, err
	}
	r := Result{Converged: true, Rounds: 1}
	messages, exp := make([]table, len(t.buckets)), int64(0)
	var numbers []float64
	for k, b := range t.buckets {
		if err := ctx.Err(); err != nil {
			return Result{}, err
		}
		ops := b.tables[:len(b.tables):len(b.tables)]
		for _, c := range b.children {
			ops = append(ops, messages[c])
		}
		messages[k] = product(b.scope, b.dims, ops, b.scope[1:], b.main != k, &r.Flops)
		if exp += normalise(messages[k].data); b.parent < 0 {
			numbers = append(numbers, messages[k].data[0])
		}
	}

	r.LnZ = lnOf(t.scale, numbers, exp)
	return r, nil
}
