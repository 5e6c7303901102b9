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

// Plan returns a path along which the tables can be eliminated within the memory, and its cost. The path is the min-fill order if that is
// cheap, else the best of that order and several contraction trees. It is sliced if the tables, which are all kept, would not fit. It
// depends on Shape and the options alone. For marginal MAP assignments see planMap. With an error about o.Flops the path and its cost are
// returned, too.
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

	path, cost, err := findPath(ctx, p.Hypergraph(), p.maximal, o)
	if err != nil {
		return nil, query.Cost{}, err
	}
	path.Ask, path.Shape = p.ask, p.Shape()
	return path, cost, o.checkFlops(cost)
}

// cheapFlops is the work up to which assignments are found along the min-fill order, without a
// search for a tree.
// Chosen: the cost at which contractionorder.Search takes its first tree.
const cheapFlops = 1e7

// findPath returns a path along which tables of shape h can be eliminated within o.Memory, and its cost. maximal states by index whether it
// is maximised or summed. It takes the min-fill order if that is cheap (cheapFlops). Else it tries that order and several contraction
// trees, searched with less and less memory, and each of them also with slices. It takes the path of least work that fits. The error is
// over budget if none fits.
func findPath(
	ctx context.Context, h contractionorder.Hypergraph, maximal []bool, o PlanOptions,
) (*Path, query.Cost, error) {
	s := &pathSearch{
		shape: h, maximal: maximal, memory: float64(o.Memory),
		cost: query.Cost{Bytes: math.MaxFloat64, Flops: math.MaxFloat64}, // no path yet
	}

	// The min-fill order.
	order, isWithin, err := contractionorder.MinFillWithin(ctx, h, math.Log2(policy.OutOfReach), policy.MostFill)
	if err != nil {
		return nil, query.Cost{}, err
	}
	if isWithin {
		s.path = &Path{Order: order, Count: 1}
		if s.cost, err = pathCost(ctx, h, maximal, s.path); err != nil {
			return nil, query.Cost{}, err
		}
	}
	if s.fits(s.cost) && s.cost.Flops <= cheapFlops {
		return s.path, s.cost, nil
	}

	if isWithin && !s.fits(s.cost) {
		if err := s.try(ctx, sliceToFit(ctx, h, maximal, s.path, s.memory)); err != nil {
			return nil, query.Cost{}, err
		}
	}
	if err := s.tryTrees(ctx, o); err != nil {
		return nil, query.Cost{}, err
	}
	if !s.fits(s.cost) {
		return nil, query.Cost{}, sumproduct.OverBudget(s.cost, o.Memory)
	}
	return s.path, s.cost, nil
}

// pathSearch is the best path of findPath so far.
type pathSearch struct {
	shape   contractionorder.Hypergraph
	maximal []bool
	memory  float64    // bytes
	path    *Path      // nil: none so far
	cost    query.Cost // of path; larger than any other if there is none
}

// fits reports whether a cost is within the memory.
func (s *pathSearch) fits(cost query.Cost) bool { return cost.Bytes <= s.memory }

// try takes a path if it is better than the best one so far. It is better if it fits the memory and the best one does not. If both fit or
// neither does, the one with less work is better. A path with the Count 0, which has too many slices, is not taken.
func (s *pathSearch) try(ctx context.Context, path *Path) error {
	cost, err := pathCost(ctx, s.shape, s.maximal, path)
	if err != nil || path.Count == 0 {
		return err
	}
	if s.fits(cost) && !s.fits(s.cost) || s.fits(cost) == s.fits(s.cost) && cost.Flops < s.cost.Flops {
		s.path, s.cost = path, cost
	}
	return nil
}

// tryTrees tries contraction trees as paths, the sequences in which tables are multiplied and summed. If one does not fit the memory, it is
// tried with slices, too: some indices are then fixed at one value after the other. A search for a tree does not count that all tables of a
// path are kept. So the memory that the search is given is halved until a path fits, down to a 64th of the memory (chosen).
func (s *pathSearch) tryTrees(ctx context.Context, o PlanOptions) error {
	if len(s.shape.Edges) < 2 { // there is nothing to merge
		return nil
	}
	for budget := o.Memory; budget >= o.Memory/64 && budget > 0; budget /= 2 {
		result, err := contractionorder.Search(ctx, s.shape, contractionorder.Options{
			Seed: o.Seed, Memory: budget, Threads: searchThreads, Moves: o.Moves,
		})
		if ctxErr := ctx.Err(); ctxErr != nil {
			return ctxErr
		}
		if err != nil { // no tree for this budget, and none for less
			return nil
		}
		tree := &Path{Tables: result.Tree.Leaves, Slices: result.Slices, Count: sliceCount(s.shape, result.Slices)}
		for _, m := range result.Tree.Merges {
			tree.Merges = append(tree.Merges, m[0], m[1])
		}
		if err := s.try(ctx, tree); err != nil {
			return err
		}
		if s.fits(s.cost) {
			return nil
		}
		if err := s.try(ctx, sliceToFit(ctx, s.shape, s.maximal, tree, s.memory)); err != nil {
			return err
		}
	}
	return nil
}

// maxSlices bounds the slices of a path.
const maxSlices = math.MaxInt32

// sliceCount returns the number of slices that fixing the given indices makes: the product of their dimensions, or 0 for more than
// maxSlices.
func sliceCount(h contractionorder.Hypergraph, indices []int) int64 {
	count := int64(1)
	for _, i := range indices {
		if count *= int64(h.Dims[i]); count > maxSlices {
			return 0
		}
	}
	return count
}

// pathCost returns the cost of all slices of a path through tables of shape h.
func pathCost(
	ctx context.Context, h contractionorder.Hypergraph, maximal []bool, path *Path,
) (query.Cost, error) {
	steps, err := stepsAlong(ctx, h, maximal, path)
	if err != nil {
		return query.Cost{}, err
	}
	cost := buckets.Price(h.Dims, steps)
	if cost.Flops = min(cost.Flops*float64(path.Count), math.MaxFloat64); len(path.Slices) > 0 {
		cost.Slices = float64(path.Count)
	}
	return cost, nil
}

// sliceToFit returns the path with more sliced indices, so that its tables fit memory bytes. It slices the index by which the tables shrink
// most, again and again. The path that it returns has the Count 0 if it fails: no index makes the tables smaller, there would be too many
// slices (sliceCount is 0), or the path does not fit h.
func sliceToFit(
	ctx context.Context, h contractionorder.Hypergraph, maximal []bool, path *Path, memory float64,
) *Path {
	sliced := *path
	sliced.Slices = slices.Clone(path.Slices)
	steps, err := stepsAlong(ctx, h, maximal, path)
	if err != nil {
		sliced.Count = 0
		return &sliced
	}

	dims := slices.Clone(h.Dims) // of one slice: 1 for sliced indices
	for _, i := range sliced.Slices {
		dims[i] = 1
	}
	for buckets.Price(dims, steps).Bytes > memory {
		i, ok := mostSavingIndex(dims, steps)
		if !ok {
			sliced.Count = 0
			return &sliced
		}
		dims[i] = 1
		sliced.Slices = append(sliced.Slices, i)
		if sliced.Count = sliceCount(h, sliced.Slices); sliced.Count == 0 {
			return &sliced
		}
	}
	slices.Sort(sliced.Slices)
	return &sliced
}

// mostSavingIndex returns the index that is best to fix: the tables that the steps make then have the fewest entries together. Of several
// it returns the first one. ok is false if fixing an index saves no entries: all tables have one entry.
func mostSavingIndex(dims []int, steps []buckets.Step) (index int, ok bool) {
	saved := make([]float64, len(dims)) // entries, by index
	for _, s := range steps {
		size := 1.0
		for _, i := range s.Out {
			size *= float64(dims[i])
		}
		for _, i := range s.Out {
			saved[i] += size * (1 - 1/float64(dims[i]))
		}
	}
	for i := range saved {
		if saved[i] > saved[index] {
			index = i
		}
	}
	return index, len(saved) > 0 && saved[index] != 0
}

// stepsAlong returns the elimination steps of a path through tables of shape h: along its order, or along its tree if it has merges.
func stepsAlong(
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
	for k := range len(path.Merges) / 2 { // two tables for each merge
		t.Merges = append(t.Merges, [2]int{path.Merges[2*k], path.Merges[2*k+1]})
	}
	return buckets.AlongTree(h, t, path.Slices, maximal)
}

// checkFlops returns an error, over budget, if a cost exceeds o.Flops.
func (o PlanOptions) checkFlops(cost query.Cost) error {
	if cost.Flops <= o.Flops {
		return nil
	}
	return fault.New(fault.OverBudget, "descent: finding assignments takes %.3g operations in %.0f slices, %.0g are allowed",
		cost.Flops, max(cost.Slices, 1), o.Flops)
}

// searchThreads is the number of threads of the search for a tree. The plan does not depend on it.
const searchThreads = 2

// steps returns the elimination steps of a path through p.Terms, or an error if the path was made for other tables or another question.
func (p *Prepared) steps(ctx context.Context, path *Path) ([]buckets.Step, error) {
	if path.Ask != p.ask || path.Shape != p.Shape() {
		return nil, fault.New(fault.Internal, "descent: the path was made for another network")
	}
	return checkedSteps(ctx, p.simplified, p.maximal, path)
}

// Flops returns the flops of the given number of slices of a path. All slices take the same.
func (p *Prepared) Flops(ctx context.Context, path *Path, count int64) (float64, error) {
	steps, err := p.steps(ctx, path)
	if err != nil {
		return 0, err
	}
	return min(buckets.Price(p.simplified.Dims, steps).Flops*float64(count), math.MaxFloat64), nil
}

// checkedSteps returns the elimination steps of a path through the tables of e, or an error if its slices or its order do not fit e.
func checkedSteps(
	ctx context.Context, e *sumproduct.Expression, maximal []bool, path *Path,
) ([]buckets.Step, error) {
	h := e.Hypergraph()
	sliced := sumproduct.Expression{Dims: slices.Clone(e.Dims)} // with the sliced indices fixed
	for _, i := range path.Slices {
		if i < 0 || i >= len(h.Dims) || sliced.Dims[i] < 2 {
			return nil, fault.New(fault.Internal, "descent: the path fixes index %d of %d", i, len(h.Dims))
		}
		sliced.Dims[i] = 1
	}
	if count := sliceCount(h, path.Slices); count != path.Count {
		return nil, fault.New(fault.Internal, "descent: the path has %d slices, and says %d", count, path.Count)
	}
	if path.Merges == nil { // the path goes along an order; that of merges is checked by stepsAlong
		if err := sliced.ValidateOrder(path.Order); err != nil {
			return nil, fault.Wrap(fault.Internal, err)
		}
	}
	return stepsAlong(ctx, h, maximal, path)
}

// sliceAt returns one slice of p.Terms, in which the indices in path.Slices are fixed. Their values are the digits of number, the last
// index fastest. It writes the value of each fixed index i to values[i].
func (p *Prepared) sliceAt(path *Path, number int64, values []int) *sumproduct.Expression {
	if len(path.Slices) == 0 {
		return p.simplified
	}
	e := *p.simplified
	e.Dims = slices.Clone(e.Dims)
	for n := len(path.Slices) - 1; n >= 0; n-- {
		i := path.Slices[n]
		values[i] = int(number % int64(e.Dims[i]))
		number /= int64(e.Dims[i])
		e.Dims[i] = 1
	}
	e.Tables = fixIndices(p.simplified, e.Dims, values)
	return &e
}

// fixIndices returns the tables of e with some indices fixed. An index i is fixed, to the value values[i], if its dimension is 1 in dims
// but not in e. The new tables do not have it in their scopes.
func fixIndices(e *sumproduct.Expression, dims, values []int) []sumproduct.Table {
	isFixed := func(i int) bool { return dims[i] != e.Dims[i] }
	tables := make([]sumproduct.Table, len(e.Tables))
	stride := make([]int, len(e.Dims)) // of each index in the present table
	for t, table := range e.Tables {
		if !slices.ContainsFunc(table.Scope, isFixed) {
			tables[t] = table
			continue
		}

		// The scope without the fixed indices.
		sumproduct.Strides(stride, e.Dims, table.Scope)
		base := 0 // entry by the values of the fixed indices
		var scope []int
		for _, i := range table.Scope {
			if isFixed(i) {
				base += stride[i] * values[i]
			} else {
				scope = append(scope, i)
			}
		}

		fixed := sumproduct.Table{Scope: scope, Rounded: table.Rounded}
		for _, offset := range sumproduct.Offsets([]int(nil), dims, scope, stride) { // nil: a new list
			fixed.Data = append(fixed.Data, table.Data[base+offset])
			if table.Exp != nil {
				fixed.Exp = append(fixed.Exp, table.Exp[base+offset])
			}
		}
		for _, i := range table.Scope {
			stride[i] = 0
		}
		tables[t] = fixed
	}
	return tables
}
