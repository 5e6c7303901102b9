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

// Plan looks for an order, and for indices to slice where its tables do not fit the memory: one after
// the other the index of the largest step that lowers the bytes most. The plan is a function of the
// shape and the options. Its cost covers all slices, its bytes are the peak with the derivatives.
//
// Errors: fault.OverBudget, with the figures, where no slices fit or they take more than o.Flops; the
// context's.
func (p *Prepared) Plan(ctx context.Context, o PlanOptions) (*AdjointPlan, query.Cost, error) {
	if o.Memory <= 0 {
		o.Memory = query.DefaultMemory
	}
	h := p.Hypergraph()
	h.Dims = slices.Clone(h.Dims)
	search := planning{ctx: ctx, h: h, wanted: p.wanted, options: o}
	var err error
	if search.best, _, err = contractionorder.Best(ctx, h); err != nil {
		return nil, query.Cost{}, err
	}
	if search.cost, err = einsum.PlanDerivatives(ctx, h, search.best, p.wanted, o.Marginals); err != nil {
		return nil, query.Cost{}, err
	}

	plan := &AdjointPlan{Order: search.best, Count: 1}
	count := 1.0
	total := func() query.Cost {
		c := search.cost
		c.Bytes += p.bytes()
		c.Flops = min(c.Flops*count, math.MaxFloat64)
		c.Slices = count
		return c
	}
	for total().Bytes > float64(o.Memory) {
		i, err := search.slice()
		if err != nil {
			return nil, query.Cost{}, err
		}
		if i < 0 || count*float64(p.floats.Dims[i]) > maxSlices {
			return nil, query.Cost{}, sumproduct.OverBudget(total(), o.Memory)
		}
		plan.Slices = append(plan.Slices, i)
		count *= float64(p.floats.Dims[i])
	}
	plan.Count = int64(count)
	plan.Flops = search.cost.Flops
	cost := total()
	if o.Flops > 0 && cost.Flops > o.Flops {
		return nil, query.Cost{}, sumproduct.OverBudget(cost, o.Memory)
	}
	return plan, cost, nil
}

const (
	maxSlices = 1 << 30
	maxTried  = 24 // indices tried for one more slice
)

// planning is a search for a plan; h loses the indices that are sliced.
type planning struct {
	ctx     context.Context
	h       contractionorder.Hypergraph
	wanted  []bool
	options PlanOptions
	best    []int
	cost    query.Cost
}

// slice fixes one more index, and returns it; −1 where none lowers the bytes.
func (s *planning) slice() (int, error) {
	var largest *contractionorder.Step
	err := contractionorder.Walk(s.ctx, s.h, s.best, func(step *contractionorder.Step) bool {
		if largest == nil || step.Full > largest.Full {
			largest = step
		}
		return true
	})
	if err != nil || largest == nil {
		return -1, err
	}
	tried := slices.Concat(largest.Sum, largest.Out)
	if len(tried) > maxTried {
		tried = tried[:maxTried]
	}

	best, least := -1, s.cost
	for _, i := range tried {
		d := s.h.Dims[i]
		if d == 1 {
			continue
		}
		s.h.Dims[i] = 1
		cost, err := einsum.PlanDerivatives(s.ctx, s.h, s.best, s.wanted, s.options.Marginals)
		s.h.Dims[i] = d
		if err != nil {
			return -1, err
		}
		if cost.Bytes < least.Bytes {
			best, least = i, cost
		}
	}
	if best >= 0 {
		s.h.Dims[best] = 1
		s.cost = least
	}
	return best, nil
}

// Chunks returns how many tasks the slices of a plan are spread over: each takes about chunkFlops.
func Chunks(c *AdjointPlan, chunkFlops float64) int64 {
	n := math.Min(c.Flops*float64(c.Count)/chunkFlops, policy.MostChunks)
	return int64(math.Max(1, math.Min(n, float64(c.Count))))
}
