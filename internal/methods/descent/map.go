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

// mapSearchFlops is the work that a search for a marginal MAP assignment may take, if the best one is out of reach: about a second, chosen.
const mapSearchFlops = 1e9

// planMap returns a path for a marginal MAP assignment, and its cost. If an order that sums before it maximises fits memory and flops, the
// path goes along that order. If not, the path is relaxed: it takes sums and maxima in any order. Its total is then only a bound of the
// largest weight, since Σ_y max_x ≥ max_x Σ_y, and a search for an assignment follows (mapSearchFlops). The path has no slices.
func (p *Prepared) planMap(ctx context.Context, o PlanOptions) (*Path, query.Cost, error) {
	// Sums before maxima.
	h := p.Hypergraph()
	widthLimit := 1 + math.Log2(float64(o.Memory)/8) // log2 of twice the number of entries, of 8 bytes, that fit the memory; chosen
	order, isWithin, err := contractionorder.MinFillLast(ctx, h, p.maximal, widthLimit, policy.MostFill)
	if err != nil {
		return nil, query.Cost{}, err
	}
	if isWithin {
		steps, err := buckets.AlongOrder(ctx, h, order, p.maximal)
		if err != nil {
			return nil, query.Cost{}, err
		}
		cost := buckets.Price(h.Dims, steps)
		if cost.Bytes <= float64(o.Memory) && cost.Flops <= o.Flops {
			return &Path{Ask: p.ask, Shape: p.Shape(), Order: order, Count: 1}, cost, nil
		}
	}

	// A relaxed path, and a search for an assignment.
	path, cost, err := findPath(ctx, h, p.maximal, o)
	if err == nil && path.Count > 1 { // it fits with slices only
		err = sumproduct.OverBudget(cost, o.Memory)
	}
	if err != nil {
		return nil, query.Cost{}, err
	}
	cost.Flops += mapSearchFlops
	path.Ask, path.Shape, path.Relaxed = p.ask, p.Shape(), true
	return path, cost, o.checkFlops(cost)
}

// BestOfSet returns the most probable assignment of the set. It returns nil if Z is 0.
//
// Assignments are tied if ln of their weights differ from the largest by no more than rounding (slack). Of the tied ones it returns the
// smallest in the order of the set. If more than maxTies are tied, it compares only maxTies of them, those that it meets first.
//
// If the path is relaxed, its total only bounds the weights of assignments. Then climb searches for an assignment.
func (p *Prepared) BestOfSet(ctx context.Context, path *Path, o Options) (*btn.Found, error) {
	steps, err := p.steps(ctx, path)
	if err != nil {
		return nil, err
	}
	if path.Count != 1 || o.From != 0 || o.To != 1 {
		return nil, fault.New(fault.Internal, "descent: marginal MAP in slices")
	}
	r, err := p.eliminateSlice(ctx, path, steps, 0, nil, o) // slice 0 of one: no index is fixed
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

	ties, hasAllTies, err := r.Near(ctx, slack, maxTies)
	if err != nil {
		return nil, err
	}

	// The smallest of the ties.
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

// ValuesOf returns the values of the variables of the set, in its order, from values of the indices of Terms.
func (p *Prepared) ValuesOf(indexValues []int) []int {
	values := make([]int, len(p.set))
	for k, v := range p.set {
		i := p.expression.Variables[v]
		values[k] = indexValues[i]
		if support := p.expression.Support[i]; support != nil { // evidence has left some values only
			values[k] = support[indexValues[i]]
		}
	}
	return values
}

// starts returns two starts of a search for an assignment, as values of the indices. The first one is the largest term along the relaxed
// run r. The second one is the most probable assignment of all variables, the summed ones included; its weight is not 0.
func (p *Prepared) starts(ctx context.Context, r *buckets.Run, memory int64, threads int) ([][]int, error) {
	starts, _, err := r.Near(ctx, 0, 1) // at most one term, and none below the largest one
	if err != nil {
		return nil, err
	}

	// The most probable assignment of all variables.
	allMaximal := slices.Repeat([]bool{true}, len(p.simplified.Dims))
	path, cost, err := findPath(ctx, p.Hypergraph(), allMaximal, PlanOptions{Memory: memory})
	if err == nil && path.Count > 1 { // it fits with slices only
		err = sumproduct.OverBudget(cost, memory)
	}
	if err != nil {
		return nil, err
	}
	steps, err := checkedSteps(ctx, p.simplified, allMaximal, path)
	if err != nil {
		return nil, err
	}
	const isMaximal = true
	maxima, err := buckets.Eliminate(ctx, p.simplified, steps, isMaximal, buckets.Options{Memory: memory, Threads: threads})
	if err != nil {
		return nil, err
	}
	mostProbable, _, err := maxima.Near(ctx, 0, 1) // one term
	return append(starts, mostProbable...), err
}

// climb searches for an assignment of large weight if the path of run r is relaxed. It begins with the best one of starts, and changes one
// value at a time. It goes on as long as a change makes ln of the weight larger by more than slack, and as mapSearchFlops lasts. Every
// weight is computed exactly. bound is ln of the total of r. The result is Relaxed if bound is above its weight by more than slack: there
// may be a better one.
func (p *Prepared) climb(
	ctx context.Context, r *buckets.Run, bound, slack float64, o Options,
) (*btn.Found, error) {
	memory := o.Memory
	if memory <= 0 {
		memory = query.DefaultMemory
	}

	// The best start.
	starts, err := p.starts(ctx, r, memory, o.Threads)
	if err != nil {
		return nil, err
	}
	inner, err := NewInnerSum(ctx, p, PlanOptions{Memory: memory}, o.Threads)
	if err != nil {
		return nil, err
	}
	c := climber{inner: inner, slack: slack, remainingFlops: mapSearchFlops, lnWeight: math.Inf(-1)}
	for _, start := range starts {
		ln, err := inner.LnWeight(ctx, start)
		if err != nil {
			return nil, err
		}
		if ln > c.lnWeight {
			c.lnWeight, c.values = ln, start
		}
	}

	// Change one value at a time.
	for hasImproved := true; hasImproved; {
		hasImproved = false
		for _, i := range MaximisedIndices(p) {
			isBetter, err := c.tryValues(ctx, i, p.simplified.Dims[i])
			if err != nil {
				return nil, err
			}
			hasImproved = hasImproved || isBetter
		}
	}
	return &btn.Found{
		Values:  p.ValuesOf(c.values),
		Weight:  scaled.FromLog(c.lnWeight),
		Close:   slack,
		Relaxed: bound-c.lnWeight > slack,
		Bound:   bound + slack,
	}, nil
}

// climber is the state of climb: the best values so far.
type climber struct {
	inner          *InnerSum // weighs values
	slack          float64   // rounding of ln of a weight
	values         []int     // by index
	lnWeight       float64   // ln of their weight
	remainingFlops float64   // below 0, no more values are weighed
}

// tryValues tries all d values of index i in turn. It keeps a value if ln of the weight becomes larger by more than slack, and reports
// whether it has kept one. Each value takes the flops of one weight from remainingFlops. Once these are used up, no value is weighed.
func (c *climber) tryValues(ctx context.Context, i, d int) (isBetter bool, err error) {
	first := c.values[i] // its weight is known
	for x := range d {
		if c.remainingFlops -= c.inner.Cost.Flops; x == first || c.remainingFlops < 0 {
			continue
		}
		previous := c.values[i]
		c.values[i] = x
		ln, err := c.inner.LnWeight(ctx, c.values)
		if err != nil {
			return false, err
		}
		if ln > c.lnWeight+c.slack {
			c.lnWeight, isBetter = ln, true
		} else {
			c.values[i] = previous
		}
	}
	return isBetter, nil
}
