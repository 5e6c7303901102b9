package descent

// Marginal MAP: sums first, then maxima; where that is too wide, a bound and a search.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/engine/buckets"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// mapSearchFlops is the work that a search for a marginal MAP assignment may take, where the best
// one is out of reach: about a second.
// Chosen.
const mapSearchFlops = 1e9

// planMap finds an order that sums before it maximises. Where that does not fit memory and flops,
// the path is one of any order, along which the total is a bound: Σ_y max_x ≥ max_x Σ_y. It is not
// sliced.
func (p *Prepared) planMap(ctx context.Context, o PlanOptions) (*Path, query.Cost, error) {
	h := p.Hypergraph()
	order, within, err := contractionorder.MinFillLast(ctx, h, p.maximal, 1+math.Log2(float64(o.Memory)/8), policy.MostFill)
	if err != nil {
		return nil, query.Cost{}, err
	}
	if within {
		steps, err := buckets.AlongOrder(ctx, h, order, p.maximal)
		if err != nil {
			return nil, query.Cost{}, err
		}
		cost := buckets.Price(h.Dims, steps)
		if cost.Bytes <= float64(o.Memory) && cost.Flops <= o.Flops {
			return &Path{Ask: p.ask, Shape: p.Shape(), Order: order, Count: 1}, cost, nil
		}
	}

	path, cost, err := route(ctx, h, p.maximal, o)
	if err == nil && path.Count > 1 {
		err = sumproduct.OverBudget(cost, o.Memory)
	}
	if err != nil {
		return nil, query.Cost{}, err
	}
	cost.Flops += mapSearchFlops
	path.Ask, path.Shape, path.Relaxed = p.ask, p.Shape(), true
	return path, cost, o.refuse(cost)
}

// BestOf returns the most probable assignment of the set. It returns nil if Z is 0.
//
// Assignments are ties if ln of their weights differs from the largest by no more than rounding (slack). Of the ties it returns the
// smallest one in the order of the set. If there are more than mostTies, it compares only as many, those that it meets first.
//
// If the path is relaxed, its total only bounds the weights of assignments. Then climb searches for an assignment.
func (p *Prepared) BestOf(ctx context.Context, path *Path, o Options) (*btn.Found, error) {
	steps, err := p.steps(ctx, path)
	if err != nil {
		return nil, err
	}
	if path.Count != 1 || o.From != 0 || o.To != 1 {
		return nil, fault.New(fault.Internal, "descent: marginal MAP in slices")
	}
	r, err := p.run(ctx, path, steps, 0, nil, o) // slice 0 of one: no index is fixed
	if err != nil {
		return nil, err
	}
	lnTop := r.LnTotal() // of the largest weight, or a bound of it if the path is relaxed
	if math.IsInf(lnTop, -1) {
		return nil, nil
	}
	slack := p.slack(steps, lnTop)
	if path.Relaxed {
		return p.climb(ctx, r, lnTop, slack, o)
	}

	ties, hasAllTies, err := r.Near(ctx, slack, mostTies)
	if err != nil {
		return nil, err
	}
	best := p.ValuesOf(ties[0])
	for _, tie := range ties[1:] {
		if values := p.ValuesOf(tie); slices.Compare(values, best) < 0 {
			best = values
		}
	}
	return &btn.Found{
		Values: best,
		Weight: scaled.FromLog(lnTop),
		Unique: hasAllTies && len(ties) == 1,
		Close:  slack,
	}, nil
}

// ValuesOf returns the values of the set under the indices' values.
func (p *Prepared) ValuesOf(at []int) []int {
	values := make([]int, len(p.set))
	for k, v := range p.set {
		i := p.given.Variables[v]
		values[k] = at[i]
		if s := p.given.Support[i]; s != nil {
			values[k] = s[at[i]]
		}
	}
	return values
}

// starts are the assignment that a relaxed run leads to, and the most probable one of all variables,
// which is possible.
func (p *Prepared) starts(ctx context.Context, r *buckets.Run, memory int64, threads int) ([][]int, error) {
	led, _, err := r.Near(ctx, 0, 1)
	if err != nil {
		return nil, err
	}
	all := slices.Repeat([]bool{true}, len(p.simple.Dims))
	path, cost, err := route(ctx, p.Hypergraph(), all, PlanOptions{Memory: memory})
	if err == nil && path.Count > 1 {
		err = sumproduct.OverBudget(cost, memory)
	}
	if err != nil {
		return nil, err
	}
	steps, err := stepsOf(ctx, p.simple, all, path)
	if err != nil {
		return nil, err
	}
	top, err := buckets.Eliminate(ctx, p.simple, steps, true, buckets.Options{Memory: memory, Threads: threads})
	if err != nil {
		return nil, err
	}
	best, _, err := top.Near(ctx, 0, 1)
	return append(led, best...), err
}

// climb searches for an assignment of large weight if the path of run r is relaxed. It begins with the best one of starts, and changes one
// value at a time, as long as that makes ln of the weight larger by more than slack and mapSearchFlops lasts. Every weight is computed
// exactly. bound is ln of the total of r. The result is Relaxed if bound is above its weight by more than slack: there may be a better one.
func (p *Prepared) climb(
	ctx context.Context, r *buckets.Run, bound, slack float64, o Options,
) (*btn.Found, error) {
	memory := o.Memory
	if memory <= 0 {
		memory = query.DefaultMemory
	}
	starts, err := p.starts(ctx, r, memory, o.Threads)
	if err != nil {
		return nil, err
	}
	inner, err := NewInner(ctx, p, PlanOptions{Memory: memory}, o.Threads)
	if err != nil {
		return nil, err
	}
	best := math.Inf(-1)
	var at []int
	for _, start := range starts {
		w, err := inner.Ln(ctx, start)
		if err != nil {
			return nil, err
		}
		if w > best {
			best, at = w, start
		}
	}

	remainingFlops := mapSearchFlops
	for hasImproved := true; hasImproved; {
		hasImproved = false
		for _, i := range Free(p) {
			for x, first := 0, at[i]; x < p.simple.Dims[i]; x++ { // first: the value of i whose weight is known
				if remainingFlops -= inner.Cost.Flops; x == first || remainingFlops < 0 {
					continue
				}
				previous := at[i]
				at[i] = x
				w, err := inner.Ln(ctx, at)
				if err != nil {
					return nil, err
				}
				if w > best+slack {
					best, hasImproved = w, true
				} else {
					at[i] = previous
				}
			}
		}
	}
	return &btn.Found{
		Values:  p.ValuesOf(at),
		Weight:  scaled.FromLog(best),
		Close:   slack,
		Relaxed: bound-best > slack,
		Bound:   bound + slack,
	}, nil
}
