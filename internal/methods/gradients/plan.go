package gradients

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/engine/einsum"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/query"
)

// PlanOptions bound a plan.
type PlanOptions struct {
	Memory    int64 // bytes, 0: query.DefaultMemory
	Flops     float64
	Marginals bool
}

// Plan returns an elimination order for Z and its derivatives, with indices to slice if its tables do not fit the memory, and the cost.
// It slices one index after the other: of the indices of the largest step the one that lowers the bytes most. The plan depends on the
// shape and the options alone. The flops of the cost are those of all slices, its bytes the peak of one slice with the derivatives.
// plan.Flops are those of one slice.
//
// Errors: fault.OverBudget, with the figures, if no slices fit or if they take more than o.Flops; the context's.
func (p *Prepared) Plan(ctx context.Context, o PlanOptions) (*AdjointPlan, query.Cost, error) {
	if o.Memory <= 0 {
		o.Memory = query.DefaultMemory
	}

	// The order.
	h := p.Hypergraph()
	h.Dims = slices.Clone(h.Dims)
	search := sliceSearch{ctx: ctx, h: h, wanted: p.hasParameters, marginals: o.Marginals}
	var err error
	if search.order, _, err = contractionorder.Best(ctx, h); err != nil {
		return nil, query.Cost{}, err
	}
	if search.cost, err = einsum.PlanDerivatives(ctx, h, search.order, p.hasParameters, o.Marginals); err != nil {
		return nil, query.Cost{}, err
	}

	// Slices, until the peak of memory fits.
	plan := &AdjointPlan{Order: search.order, Count: 1}
	count := 1.0                     // number of slices
	totalCost := func() query.Cost { // of all slices
		c := search.cost
		c.Bytes += p.bytes() // of the derivatives by all parameters
		c.Flops = min(c.Flops*count, math.MaxFloat64)
		c.Slices = count
		return c
	}
	for totalCost().Bytes > float64(o.Memory) {
		i, err := search.sliceNext()
		if err != nil {
			return nil, query.Cost{}, err
		}
		if i < 0 || count*float64(p.floats.Dims[i]) > maxSlices {
			return nil, query.Cost{}, sumproduct.OverBudget(totalCost(), o.Memory)
		}
		plan.Slices = append(plan.Slices, i)
		count *= float64(p.floats.Dims[i])
	}

	plan.Count = int64(count)
	plan.Flops = search.cost.Flops
	cost := totalCost()
	if o.Flops > 0 && cost.Flops > o.Flops {
		return nil, query.Cost{}, sumproduct.OverBudget(cost, o.Memory)
	}
	return plan, cost, nil
}

const (
	maxSlices = 1 << 30
	maxTried  = 24 // indices that are tried for one more slice
)

// sliceSearch is a search for indices to slice.
type sliceSearch struct {
	ctx       context.Context
	h         contractionorder.Hypergraph // of a slice: sliced indices have dimension 1
	wanted    []bool                      // by table: derivatives by its entries are wanted
	marginals bool                        // marginals are wanted
	order     []int
	cost      query.Cost // of a slice
}

// sliceNext slices one more index and returns it. A sliced index is fixed in each slice, so that its dimension becomes 1. It tries up to
// maxTried indices of the largest step of the elimination, and takes the one with which a slice takes the fewest bytes. It returns −1 if no
// index lowers the bytes.
func (s *sliceSearch) sliceNext() (int, error) {
	candidates, err := s.largestStep()
	if err != nil {
		return -1, err
	}
	best, leastCost := -1, s.cost
	for _, i := range candidates[:min(len(candidates), maxTried)] {
		d := s.h.Dims[i]
		if d == 1 {
			continue
		}
		s.h.Dims[i] = 1 // for the plan only
		cost, err := einsum.PlanDerivatives(s.ctx, s.h, s.order, s.wanted, s.marginals)
		s.h.Dims[i] = d
		if err != nil {
			return -1, err
		}
		if cost.Bytes < leastCost.Bytes {
			best, leastCost = i, cost
		}
	}
	if best >= 0 {
		s.h.Dims[best] = 1
		s.cost = leastCost
	}
	return best, nil
}

// largestStep returns the indices of the largest step of the elimination. The indices that the step sums come first. There are none without
// steps.
func (s *sliceSearch) largestStep() ([]int, error) {
	var largest *contractionorder.Step
	err := contractionorder.Walk(s.ctx, s.h, s.order, func(step *contractionorder.Step) bool {
		if largest == nil || step.FullSize > largest.FullSize {
			largest = step
		}
		return true
	})
	if err != nil || largest == nil {
		return nil, err
	}
	return slices.Concat(largest.Sum, largest.Out), nil
}

// Chunks returns the number of tasks among which the slices of a plan are divided. A task takes about chunkFlops and has at least one
// slice.
func Chunks(c *AdjointPlan, chunkFlops float64) int64 {
	n := math.Min(c.Flops*float64(c.Count)/chunkFlops, policy.MostChunks)
	return int64(math.Max(1, math.Min(n, float64(c.Count))))
}
