package descent

// Marginal MAP: sums first, then maxima; where that is too wide, a bound and a search.

import (
	"container/heap"
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/engine/buckets"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// planMap finds an order that sums before it maximises. Where that does not fit memory and flops,
// the path is one of any order, along which the total is a bound: Σ_y max_x ≥ max_x Σ_y. It is not
// sliced.
func (p *Prepared) planMap(ctx context.Context, o PlanOptions) (*Path, btn.Cost, error) {
	h := p.Hypergraph()
	order, within, err := constrained(ctx, h, p.maximal, math.Log2(float64(o.Memory)/8))
	if err != nil {
		return nil, btn.Cost{}, err
	}
	if within {
		steps, err := buckets.AlongOrder(ctx, h, order, p.maximal)
		if err != nil {
			return nil, btn.Cost{}, err
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
		return nil, btn.Cost{}, err
	}
	cost.Flops += policy.MapSearchFlops
	path.Ask, path.Shape, path.Relaxed = p.ask, p.Shape(), true
	return path, cost, o.refuse(cost)
}

// candidate is an index to be eliminated.
type candidate struct {
	late   bool // after all that are not
	fill   int
	weight float64
	index  int
	stamp  int
}

type candidates []candidate

func (c candidates) Len() int      { return len(c) }
func (c candidates) Swap(i, j int) { c[i], c[j] = c[j], c[i] }
func (c candidates) Less(i, j int) bool {
	a, b := c[i], c[j]
	switch {
	case a.late != b.late:
		return b.late
	case a.fill != b.fill:
		return a.fill < b.fill
	case a.weight != b.weight:
		return a.weight < b.weight
	}
	return a.index < b.index
}
func (c *candidates) Push(x any) { *c = append(*c, x.(candidate)) }
func (c *candidates) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}

// constrained returns the min-fill order of a hypergraph that eliminates the maximal indices last. It
// gives up where a table has more than 2^most entries.
func constrained(
	ctx context.Context, h contractionorder.Hypergraph, maximal []bool, most float64,
) (order []int, within bool, err error) {
	beside := make([]map[int]bool, len(h.Dims))
	for i, d := range h.Dims {
		if d > 1 {
			beside[i] = map[int]bool{}
		}
	}
	join := func(scope []int) {
		for _, i := range scope {
			for _, j := range scope {
				if i != j && h.Dims[i] > 1 && h.Dims[j] > 1 {
					beside[i][j] = true
				}
			}
		}
	}
	for _, e := range h.Edges {
		join(e)
	}

	stamp := make([]int, len(h.Dims))
	measure := func(i int) candidate {
		c := candidate{late: maximal[i], index: i, weight: math.Log2(float64(h.Dims[i])), stamp: stamp[i]}
		for j := range beside[i] {
			c.weight += math.Log2(float64(h.Dims[j]))
			for k := range beside[i] {
				if j < k && !beside[j][k] {
					c.fill++
				}
			}
		}
		c.weight = math.Round(c.weight*(1<<20)) / (1 << 20) // for every iteration order of the map
		return c
	}
	var queue candidates
	for i, d := range h.Dims {
		if d > 1 {
			queue = append(queue, measure(i))
		}
	}
	heap.Init(&queue)

	for queue.Len() > 0 {
		c := heap.Pop(&queue).(candidate)
		i := c.index
		if beside[i] == nil || c.stamp != stamp[i] {
			continue
		}
		if ctx.Err() != nil {
			return nil, false, ctx.Err()
		}
		if c.weight > most+1 {
			return nil, false, nil
		}
		order = append(order, i)
		var around []int
		for j := range beside[i] {
			around = append(around, j)
			delete(beside[j], i)
		}
		slices.Sort(around)
		join(around)
		beside[i] = nil
		again := map[int]bool{}
		for _, j := range around {
			again[j] = true
			for k := range beside[j] {
				again[k] = true // its fill may be another one
			}
		}
		for j := range again {
			stamp[j]++
			heap.Push(&queue, measure(j))
		}
	}
	return order, true, nil
}

// BestOf returns the most probable assignment of the set, nil where Z is 0. Of assignments as good as
// rounding can tell the smallest in the order of the set is taken, as Best says.
//
// Along a relaxed path the total is a bound, and the assignment the best that a search finds, value by
// value from where the path leads, with every weight computed exactly.
func (p *Prepared) BestOf(ctx context.Context, path *Path, o Options) (*btn.Found, error) {
	steps, err := p.steps(ctx, path)
	if err != nil {
		return nil, err
	}
	if path.Count != 1 || o.From != 0 || o.To != 1 {
		return nil, fault.New(fault.Internal, "descent: marginal MAP in slices")
	}
	r, err := p.run(ctx, path, steps, 0, nil, o)
	if err != nil {
		return nil, err
	}
	top := r.LnTotal()
	if math.IsInf(top, -1) {
		return nil, nil
	}
	slack := p.slack(steps, top)
	if path.Relaxed {
		return p.climb(ctx, r, top, slack, o)
	}

	near, all, err := r.Near(ctx, slack, mostTies)
	if err != nil {
		return nil, err
	}
	best := p.ValuesOf(near[0])
	for _, at := range near[1:] {
		if values := p.ValuesOf(at); slices.Compare(values, best) < 0 {
			best = values
		}
	}
	return &btn.Found{
		Values: best,
		Weight: scaled.FromLog(top),
		Unique: all && len(near) == 1,
		Close:  slack,
	}, nil
}

// Free lists the indices of Terms that the set has a choice of.
func (p *Prepared) Free() (free []int) {
	for i, m := range p.maximal {
		if m && p.simple.Dims[i] > 1 {
			free = append(free, i)
		}
	}
	return free
}

// Constrained returns an elimination order of Terms, sums before maxima, for bounds: of min-fill, where no table has more than 2^most
// entries, else min-fill's without that constraint, the maximal indices moved behind the others.
func (p *Prepared) Constrained(ctx context.Context, most float64, moves int64) ([]int, error) {
	h := p.Hypergraph()
	order, within, err := constrained(ctx, h, p.maximal, most)
	if err != nil || within {
		return order, err
	}
	if order, _, err = contractionorder.MinFillWithin(ctx, h, math.MaxInt64, moves); err != nil {
		return nil, err
	}
	last := func(i int) int {
		if p.maximal[i] {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(order, func(i, j int) int { return last(i) - last(j) })
	return order, nil
}

// Inner sums Terms out beside values of the set.
type Inner struct {
	Cost    btn.Cost
	p       *Prepared
	fixed   sumproduct.Expression
	steps   []buckets.Step
	options buckets.Options
}

// Inner plans the sums. Errors: over_budget where one does not fit memory bytes.
func (p *Prepared) Inner(ctx context.Context, memory int64, threads int) (*Inner, error) {
	n := &Inner{p: p, options: buckets.Options{Memory: memory, Threads: threads}}
	n.fixed = *p.At(make([]int, len(p.simple.Dims)))
	sums := make([]bool, len(n.fixed.Dims))
	path, cost, err := route(ctx, n.fixed.Hypergraph(), sums, PlanOptions{Memory: memory})
	if err != nil {
		return nil, err
	}
	if path.Count > 1 {
		return nil, sumproduct.OverBudget(cost, memory)
	}
	n.Cost = cost
	n.steps, err = stepsOf(ctx, &n.fixed, sums, path)
	return n, err
}

// At returns Terms where the set has the values of its indices among all.
func (p *Prepared) At(values []int) *sumproduct.Expression {
	e := &sumproduct.Expression{Dims: slices.Clone(p.simple.Dims), Scale: p.simple.Scale}
	for _, i := range p.Free() {
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

// climb changes one value at a time, as long as that is better, from where a relaxed run leads.
func (p *Prepared) climb(
	ctx context.Context, r *buckets.Run, bound, slack float64, o Options,
) (*btn.Found, error) {
	memory := o.Memory
	if memory <= 0 {
		memory = btn.DefaultMemory
	}
	starts, err := p.starts(ctx, r, memory, o.Threads)
	if err != nil {
		return nil, err
	}
	inner, err := p.Inner(ctx, memory, o.Threads)
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

	left := policy.MapSearchFlops
	for better := true; better; {
		better = false
		for _, i := range p.Free() {
			for x, was := 0, at[i]; x < p.simple.Dims[i]; x++ {
				if left -= inner.Cost.Flops; x == was || left < 0 {
					continue
				}
				kept := at[i]
				at[i] = x
				w, err := inner.Ln(ctx, at)
				if err != nil {
					return nil, err
				}
				if w > best+slack {
					best, better = w, true
				} else {
					at[i] = kept
				}
			}
		}
	}
	return &btn.Found{
		Values:  p.ValuesOf(at),
		Weight:  scaled.FromLog(best),
		Close:   slack,
		Relaxed: bound-best > slack,
		Bound:   bound,
	}, nil
}
