package descent

// The sums beside values of a marginal MAP assignment.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/engine/buckets"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/query"
)

// Free lists the indices of p's Terms that the set of a marginal MAP assignment has a choice of.
func Free(p *Prepared) (free []int) {
	for i, m := range p.maximal {
		if m && p.simple.Dims[i] > 1 {
			free = append(free, i)
		}
	}
	return free
}

// Constrained returns min-fill's elimination order of p's Terms, sums before maxima, in so many moves.
func Constrained(ctx context.Context, p *Prepared, moves int64) ([]int, error) {
	order, _, err := contractionorder.MinFillLast(ctx, p.Hypergraph(), p.maximal, math.MaxInt64, moves)
	return order, err
}

// Inner sums Terms out beside values of the set.
type Inner struct {
	Cost    query.Cost
	p       *Prepared
	fixed   sumproduct.Expression
	steps   []buckets.Step
	options buckets.Options
}

// NewInner plans the sums. Errors: over_budget where one does not fit the memory.
func NewInner(ctx context.Context, p *Prepared, o PlanOptions, threads int) (*Inner, error) {
	n := &Inner{p: p, options: buckets.Options{Memory: o.Memory, Threads: threads}}
	n.fixed = *At(p, make([]int, len(p.simple.Dims)))
	sums := make([]bool, len(n.fixed.Dims))
	path, cost, err := route(ctx, n.fixed.Hypergraph(), sums, o)
	if err != nil {
		return nil, err
	}
	if path.Count > 1 {
		return nil, sumproduct.OverBudget(cost, o.Memory)
	}
	n.Cost = cost
	n.steps, err = stepsOf(ctx, &n.fixed, sums, path)
	return n, err
}

// At returns p's Terms where the set has the values of its indices among all.
func At(p *Prepared, values []int) *sumproduct.Expression {
	e := &sumproduct.Expression{Dims: slices.Clone(p.simple.Dims), Scale: p.simple.Scale}
	for _, i := range Free(p) {
		e.Dims[i] = 1
	}
	e.Tables = fix(p.simple, e.Dims, values)
	return e
}

// Ln is ln of the sum at the values of the set's indices among all.
func (n *Inner) Ln(ctx context.Context, values []int) (float64, error) {
	n.fixed.Tables = fix(n.p.simple, n.fixed.Dims, values)
	r, err := buckets.Eliminate(ctx, &n.fixed, n.steps, false, n.options)
	if err != nil {
		return 0, err
	}
	return r.LnTotal(), nil
}
