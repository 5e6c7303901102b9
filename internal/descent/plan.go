package descent

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/contractionorder"
	"github.com/basetensor/basetensor/internal/engine/buckets"
	"github.com/basetensor/basetensor/internal/policy"
	"github.com/basetensor/basetensor/internal/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
)

// PlanOptions bound a plan and the search for it. The zero value of every field is its default.
type PlanOptions struct {
	Memory int64 // bytes for tables, default btn.DefaultMemory
	Seed   uint64
	Moves  int64   // of one search, default that of contractionorder
	Flops  float64 // what takes more is refused; 0: nothing is
}

// Plan finds a path through the tables within memory: the min-fill order where that is cheap, else a
// contraction tree, with slices where the tables, all of which stay, would not fit. It is a function
// of Shape and the options alone. For marginal MAP assignments see planMap.
//
// Errors: over budget, with the figure; the context's.
func (p *Prepared) Plan(ctx context.Context, o PlanOptions) (*btn.Path, btn.Cost, error) {
	if o.Memory <= 0 {
		o.Memory = btn.DefaultMemory
	}
	if o.Flops <= 0 {
		o.Flops = math.MaxFloat64
	}
	if p.ask == btn.AskMap {
		return p.planMap(ctx, o)
	}

	path, cost, err := route(ctx, p.Hypergraph(), p.maximal, o)
	if err != nil {
		return nil, btn.Cost{}, err
	}
	path.Ask, path.Shape = p.ask, p.Shape()
	return path, cost, o.refuse(cost)
}

// route finds a path through tables of this shape.
func route(
	ctx context.Context, h contractionorder.Hypergraph, maximal []bool, o PlanOptions,
) (*btn.Path, btn.Cost, error) {
	path := &btn.Path{Count: 1}
	order, within, err := contractionorder.MinFillWithin(ctx, h, math.Log2(policy.OutOfReach), policy.MostFill)
	if err != nil {
		return nil, btn.Cost{}, err
	}
	best := btn.Cost{Bytes: math.MaxFloat64, Flops: math.MaxFloat64}
	if within {
		steps, err := buckets.AlongOrder(ctx, h, order, maximal)
		if err != nil {
			return nil, btn.Cost{}, err
		}
		best = buckets.Price(h.Dims, steps)
	}
	path.Order = order
	if best.Bytes <= float64(o.Memory) && best.Flops <= policy.DescentFlops || len(h.Edges) < 2 {
		return path, best, nil
	}

	for budget := o.Memory; budget >= o.Memory/64 && budget > 0; budget /= 2 {
		found, err := contractionorder.Search(ctx, h, contractionorder.Options{
			Seed: o.Seed, Memory: budget, Threads: searchThreads, Moves: o.Moves,
		})
		if err != nil {
			if ctxErr := ctx.Err(); ctxErr != nil {
				return nil, btn.Cost{}, ctxErr
			}
			break
		}
		steps, err := buckets.AlongTree(h, found.Tree, found.Slices, maximal)
		if err != nil {
			return nil, btn.Cost{}, err
		}
		cost, count := buckets.Price(h.Dims, steps), 1.0
		for _, i := range found.Slices {
			count *= float64(h.Dims[i])
		}
		cost.Slices, cost.Flops = count, min(cost.Flops*count, math.MaxFloat64)
		better := cost.Flops < best.Flops || best.Bytes > float64(o.Memory)
		if cost.Bytes <= float64(o.Memory) && count < math.MaxInt32 && better {
			path = &btn.Path{Tables: found.Tree.Leaves, Slices: found.Slices, Count: int64(count)}
			for _, m := range found.Tree.Merges {
				path.Merges = append(path.Merges, m[0], m[1])
			}
			best = cost
		}
		if best.Bytes <= float64(o.Memory) {
			break
		}
	}
	if best.Bytes > float64(o.Memory) {
		return nil, btn.Cost{}, sumproduct.OverBudget(best, o.Memory)
	}
	return path, best, nil
}

// refuse is the error of what takes more than the flops allowed.
func (o PlanOptions) refuse(cost btn.Cost) error {
	if cost.Flops <= o.Flops {
		return nil
	}
	return fault.New(fault.OverBudget, "descent: finding assignments takes %.3g operations in %.0f slices, %.0g are allowed",
		cost.Flops, max(cost.Slices, 1), o.Flops)
}

// searchThreads of the tree search; the plan does not depend on it.
const searchThreads = 2

// steps are those of a path.
func (p *Prepared) steps(ctx context.Context, path *btn.Path) ([]buckets.Step, error) {
	if path.Ask != p.ask || path.Shape != p.Shape() {
		return nil, fault.New(fault.Internal, "descent: the path was made for another network")
	}
	return stepsOf(ctx, p.simple, p.maximal, path)
}

// stepsOf are the steps of a path through the tables of e.
func stepsOf(
	ctx context.Context, e *sumproduct.Expression, maximal []bool, path *btn.Path,
) ([]buckets.Step, error) {
	h := e.Hypergraph()
	if path.Merges == nil {
		if err := e.ValidateOrder(path.Order); err != nil {
			return nil, fault.Wrap(fault.Internal, err)
		}
		return buckets.AlongOrder(ctx, h, path.Order, maximal)
	}
	t := contractionorder.Tree{Leaves: path.Tables}
	for k := range len(path.Merges) / 2 {
		t.Merges = append(t.Merges, [2]int{path.Merges[2*k], path.Merges[2*k+1]})
	}
	count := int64(1)
	for _, i := range path.Slices {
		if i < 0 || i >= len(h.Dims) || count > path.Count {
			return nil, fault.New(fault.Internal, "descent: the path fixes index %d of %d", i, len(h.Dims))
		}
		count *= int64(h.Dims[i])
	}
	if count != path.Count {
		return nil, fault.New(fault.Internal, "descent: the path has %d slices, and says %d", count, path.Count)
	}
	return buckets.AlongTree(h, t, path.Slices, maximal)
}

// slice is the expression with the indices of a path's slices at the values of one of them, which it
// writes to values.
func (p *Prepared) slice(path *btn.Path, at int64, values []int) *sumproduct.Expression {
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
