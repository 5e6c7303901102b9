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

// MaximisedIndices returns the indices of p.Terms that a marginal MAP assignment maximises over and that have several values.
func MaximisedIndices(p *Prepared) (free []int) {
	for i, m := range p.maximal {
		if m && p.simplified.Dims[i] > 1 {
			free = append(free, i)
		}
	}
	return free
}

// SumsFirstOrder returns the min-fill elimination order of p.Terms in which all sums come before all maxima. It takes at most the given
// number of moves.
func SumsFirstOrder(ctx context.Context, p *Prepared, moves int64) ([]int, error) {
	order, _, err := contractionorder.MinFillLast(ctx, p.Hypergraph(), p.maximal, math.MaxInt64, moves)
	return order, err
}

// InnerSum computes the weight of a marginal MAP assignment: the sum of the terms in which the indices that are maximised have given
// values.
type InnerSum struct {
	Cost    query.Cost // of one sum
	p       *Prepared
	fixed   sumproduct.Expression // Terms with these indices fixed
	steps   []buckets.Step        // that sum the others out
	options buckets.Options
}

// NewInnerSum plans the elimination of the indices that are summed, with the maximised indices fixed. The plan holds for all values of the
// maximised indices, so it is made for the values 0. Errors: over_budget if it does not fit the memory without slices.
func NewInnerSum(ctx context.Context, p *Prepared, o PlanOptions, threads int) (*InnerSum, error) {
	n := &InnerSum{p: p, options: buckets.Options{Memory: o.Memory, Threads: threads}}
	n.fixed = *ConditionedTerms(p, make([]int, len(p.simplified.Dims)))
	noMaximal := make([]bool, len(n.fixed.Dims)) // all indices are summed
	path, cost, err := findPath(ctx, n.fixed.Hypergraph(), noMaximal, o)
	if err != nil {
		return nil, err
	}
	if path.Count > 1 {
		return nil, sumproduct.OverBudget(cost, o.Memory)
	}
	n.Cost = cost
	n.steps, err = checkedSteps(ctx, &n.fixed, noMaximal, path)
	return n, err
}

// ConditionedTerms returns p.Terms with the indices that are maximised fixed to their values in values, which has one for every index.
func ConditionedTerms(p *Prepared, values []int) *sumproduct.Expression {
	e := &sumproduct.Expression{Dims: slices.Clone(p.simplified.Dims), Scale: p.simplified.Scale}
	for _, i := range MaximisedIndices(p) {
		e.Dims[i] = 1
	}
	e.Tables = fixIndices(p.simplified, e.Dims, values)
	return e
}

// LnWeight returns ln of the weight of an assignment of the maximised indices: the sum of all terms in which these have their values in
// values. values has an entry for every index; those of summed indices do not matter.
func (n *InnerSum) LnWeight(ctx context.Context, values []int) (float64, error) {
	n.fixed.Tables = fixIndices(n.p.simplified, n.fixed.Dims, values)
	const isMaximal = false
	r, err := buckets.Eliminate(ctx, &n.fixed, n.steps, isMaximal, n.options)
	if err != nil {
		return 0, err
	}
	return r.LnTotal(), nil
}
