package descent

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
)

// PlanOptions bound a plan and the search for it. The zero value of every field is its default.
type PlanOptions struct {
	Memory int64 // bytes for tables, default query.DefaultMemory
	Seed   uint64
	Moves  int64   // of one search, default as in contractionorder
	Flops  float64 // limit, more is refused; 0: none
}

// Plan finds a path through the tables within memory: the min-fill order where that is cheap, else a
// contraction tree, with slices where the tables, which all stay, would not fit. It is a function of
// Shape and the options alone. For marginal MAP assignments see planMap.
//
// Errors: over budget, with the figure; the context's.
func (p *Prepared) Plan(ctx context.Context, o PlanOptions) (*Path, query.Cost, error) {
	if o.Memory <= 0 {
		o.Memory = query.DefaultMemory
	}
	if o.Flops <= 0 {
		o.Flops = math.MaxFloat64
	}
	if p.ask == btn.AskMap {
		return p.planMap(ctx, o)
	}

	path, cost, err := route(ctx, p.Hypergraph(), p.maximal, o)
	if err != nil {
		return nil, query.Cost{}, err
	}
	path.Ask, path.Shape = p.ask, p.Shape()
	return path, cost, o.refuse(cost)
}

// descentFlops is the work up to which assignments are found along the min-fill order, without a
// search for a tree.
// Chosen: the cost at which contractionorder.Search takes its first tree.
const descentFlops = 1e7

// route finds a path through tables of this shape.
func route(
	ctx context.Context, h contractionorder.Hypergraph, maximal []bool, o PlanOptions,
) (*Path, query.Cost, error) {
	path := &Path{Count: 1}
	order, within, err := contractionorder.MinFillWithin(ctx, h, math.Log2(policy.OutOfReach), policy.MostFill)
	if err != nil {
		return nil, query.Cost{}, err
	}
	best := query.Cost{Bytes: math.MaxFloat64, Flops: math.MaxFloat64}
	if path.Order = order; within {
		if best, err = price(ctx, h, maximal, path); err != nil {
			return nil, query.Cost{}, err
		}
	}
	memory := float64(o.Memory)
	if best.Bytes <= memory && best.Flops <= descentFlops {
		return path, best, nil
	}

	// What fits comes before what does not, and then what takes less work.
	try := func(other *Path) error {
		cost, err := price(ctx, h, maximal, other)
		if err != nil || other.Count == 0 {
			return err
		}
		fits, fit := cost.Bytes <= memory, best.Bytes <= memory
		if fits && !fit || fits == fit && cost.Flops < best.Flops {
			path, best = other, cost
		}
		return nil
	}
	if within && best.Bytes > memory {
		if err := try(narrow(ctx, h, maximal, path, memory)); err != nil {
			return nil, query.Cost{}, err
		}
	}
	for budget := o.Memory; budget >= o.Memory/64 && budget > 0 && len(h.Edges) > 1; budget /= 2 {
		found, err := contractionorder.Search(ctx, h, contractionorder.Options{
			Seed: o.Seed, Memory: budget, Threads: searchThreads, Moves: o.Moves,
		})
		if ctxErr := ctx.Err(); ctxErr != nil {
			return nil, query.Cost{}, ctxErr
		}
		if err != nil {
			break
		}
		tree := &Path{Tables: found.Tree.Leaves, Slices: found.Slices, Count: slicesOf(h, found.Slices)}
		for _, m := range found.Tree.Merges {
			tree.Merges = append(tree.Merges, m[0], m[1])
		}
		if err := try(tree); err != nil {
			return nil, query.Cost{}, err
		}
		if best.Bytes <= memory {
			break
		}
		if err := try(narrow(ctx, h, maximal, tree, memory)); err != nil {
			return nil, query.Cost{}, err
		}
	}
	if best.Bytes > memory {
		return nil, query.Cost{}, sumproduct.OverBudget(best, o.Memory)
	}
	return path, best, nil
}

// mostSlices bounds the slices of a path.
const mostSlices = math.MaxInt32

// slicesOf is the number of slices by some indices, 0 for too many.
func slicesOf(h contractionorder.Hypergraph, indices []int) int64 {
	count := int64(1)
	for _, i := range indices {
		if count *= int64(h.Dims[i]); count > mostSlices {
			return 0
		}
	}
	return count
}

// price is the cost of all slices of a path.
func price(
	ctx context.Context, h contractionorder.Hypergraph, maximal []bool, path *Path,
) (query.Cost, error) {
	steps, err := along(ctx, h, maximal, path)
	if err != nil {
		return query.Cost{}, err
	}
	cost := buckets.Price(h.Dims, steps)
	if cost.Flops = min(cost.Flops*float64(path.Count), math.MaxFloat64); len(path.Slices) > 0 {
		cost.Slices = float64(path.Count)
	}
	return cost, nil
}

// narrow fixes indices of a path until its tables fit memory bytes, the one that the tables shrink
// most by next. The path has no slices where that takes too many.
func narrow(
	ctx context.Context, h contractionorder.Hypergraph, maximal []bool, path *Path, memory float64,
) *Path {
	out := *path
	out.Slices = slices.Clone(path.Slices)
	steps, err := along(ctx, h, maximal, path)
	if err != nil {
		out.Count = 0
		return &out
	}
	dims := slices.Clone(h.Dims)
	for _, i := range out.Slices {
		dims[i] = 1
	}
	for buckets.Price(dims, steps).Bytes > memory {
		saved := make([]float64, len(dims))
		for _, s := range steps {
			size := 1.0
			for _, i := range s.Out {
				size *= float64(dims[i])
			}
			for _, i := range s.Out {
				saved[i] += size * (1 - 1/float64(dims[i]))
			}
		}
		most := 0
		for i := range saved {
			if saved[i] > saved[most] {
				most = i
			}
		}
		if len(saved) == 0 || saved[most] == 0 {
			out.Count = 0
			return &out
		}
		dims[most] = 1
		out.Slices = append(out.Slices, most)
		if out.Count = slicesOf(h, out.Slices); out.Count == 0 {
			return &out
		}
	}
	slices.Sort(out.Slices)
	return &out
}

// along are the steps of a path through tables of this shape.
func along(
	ctx context.Context, h contractionorder.Hypergraph, maximal []bool, path *Path,
) ([]buckets.Step, error) {
	if path.Merges == nil {
		fixed := contractionorder.Hypergraph{Dims: slices.Clone(h.Dims), Edges: h.Edges}
		for _, i := range path.Slices {
			fixed.Dims[i] = 1
		}
		return buckets.AlongOrder(ctx, fixed, path.Order, maximal)
	}
	t := contractionorder.Tree{Leaves: path.Tables}
	for k := range len(path.Merges) / 2 {
		t.Merges = append(t.Merges, [2]int{path.Merges[2*k], path.Merges[2*k+1]})
	}
	return buckets.AlongTree(h, t, path.Slices, maximal)
}

// refuse returns an error for a cost beyond the flops allowed.
func (o PlanOptions) refuse(cost query.Cost) error {
	if cost.Flops <= o.Flops {
		return nil
	}
	return fault.New(fault.OverBudget, "descent: finding assignments takes %.3g operations in %.0f slices, %.0g are allowed",
		cost.Flops, max(cost.Slices, 1), o.Flops)
}

// searchThreads of the tree search; the plan does not depend on it.
const searchThreads = 2

// steps are those of a path.
func (p *Prepared) steps(ctx context.Context, path *Path) ([]buckets.Step, error) {
	if path.Ask != p.ask || path.Shape != p.Shape() {
		return nil, fault.New(fault.Internal, "descent: the path was made for another network")
	}
	return stepsOf(ctx, p.simple, p.maximal, path)
}

// Flops is what some slices of a path take.
func (p *Prepared) Flops(ctx context.Context, path *Path, count int64) (float64, error) {
	steps, err := p.steps(ctx, path)
	if err != nil {
		return 0, err
	}
	return min(buckets.Price(p.simple.Dims, steps).Flops*float64(count), math.MaxFloat64), nil
}

// stepsOf are the steps of a path through the tables of e, or why it is none.
func stepsOf(
	ctx context.Context, e *sumproduct.Expression, maximal []bool, path *Path,
) ([]buckets.Step, error) {
	h := e.Hypergraph()
	rest := sumproduct.Expression{Dims: slices.Clone(e.Dims)}
	for _, i := range path.Slices {
		if i < 0 || i >= len(h.Dims) || rest.Dims[i] < 2 {
			return nil, fault.New(fault.Internal, "descent: the path fixes index %d of %d", i, len(h.Dims))
		}
		rest.Dims[i] = 1
	}
	if count := slicesOf(h, path.Slices); count != path.Count {
		return nil, fault.New(fault.Internal, "descent: the path has %d slices, and says %d", count, path.Count)
	}
	if path.Merges == nil {
		if err := rest.ValidateOrder(path.Order); err != nil {
			return nil, fault.Wrap(fault.Internal, err)
		}
	}
	return along(ctx, h, maximal, path)
}

// slice is the expression with the indices of a path's slices at the values of one of them, which it
// writes to values.
func (p *Prepared) slice(path *Path, at int64, values []int) *sumproduct.Expression {
	if len(path.Slices) == 0 {
		return p.simple
	}
	e := *p.simple
	e.Dims = slices.Clone(e.Dims)
	for n := len(path.Slices) - 1; n >= 0; n-- {
		i := path.Slices[n]
		values[i] = int(at % int64(e.Dims[i]))
		at /= int64(e.Dims[i])
		e.Dims[i] = 1
	}
	e.Tables = fix(p.simple, e.Dims, values)
	return &e
}

// fix returns the tables of e where the indices that have dimension 1 in dims are at values.
func fix(e *sumproduct.Expression, dims, values []int) []sumproduct.Table {
	tables := make([]sumproduct.Table, len(e.Tables))
	stride := make([]int, len(e.Dims))
	for t, table := range e.Tables {
		if !slices.ContainsFunc(table.Scope, func(i int) bool { return dims[i] != e.Dims[i] }) {
			tables[t] = table
			continue
		}
		sumproduct.Strides(stride, e.Dims, table.Scope)
		base := 0
		var scope []int
		for _, i := range table.Scope {
			if dims[i] != e.Dims[i] {
				base += stride[i] * values[i]
			} else {
				scope = append(scope, i)
			}
		}
		out := sumproduct.Table{Scope: scope, Rounded: table.Rounded}
		for _, at := range sumproduct.Offsets([]int(nil), dims, scope, stride) {
			out.Data = append(out.Data, table.Data[base+at])
			if table.Exp != nil {
				out.Exp = append(out.Exp, table.Exp[base+at])
			}
		}
		for _, i := range table.Scope {
			stride[i] = 0
		}
		tables[t] = out
	}
	return tables
}
