package exact

import (
	"context"
	"errors"
	"math"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/exact/pairwise"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// Plan searches a contraction tree of the simplified tables within memory bytes (0: query.DefaultMemory), and returns it with its price.
// If a table would not fit, some indices are sliced. The number of moves of the search grows with the price of the contraction. The tree
// depends only on Hypergraph, memory and seed. The flops of the price are those of one task that computes all slices, its bytes the peak
// of live tables.
//
// Errors wrap contractionorder.ErrMemory (fault.OverBudget) if no slices fit, or are the context's.
func (p *Prepared) Plan(
	ctx context.Context, memory int64, seed uint64,
) (*Tree, query.Cost, error) {
	return p.PlanWithin(ctx, PlanOptions{Memory: memory, Seed: seed})
}

// PlanOptions bound a plan and the search for it. The zero value of every field is its default.
type PlanOptions struct {
	Memory int64 // bytes for tables, default query.DefaultMemory
	Seed   uint64
	Moves  int64 // of one search, default as in contractionorder
	// Flops refuses contractions without a search, if they certainly take more, or seem to take far more; 0: none is refused.
	Flops float64
}

// ErrHopeless is the error of a contraction that was refused without a search, since it takes more work than allowed.
var ErrHopeless = errors.New("exact: out of reach")

// PlanWithin searches a contraction tree as Plan does, with bounds on the work. If o.Flops is set, it first checks whether a tree of at
// most o.Flops can be found. It returns an error over budget without a search if no such tree exists (WithinReach), or if the min-fill
// order takes more than farOff times as much. If the tree of the first search leaves too little memory for marginals, it searches smaller
// trees.
func (p *Prepared) PlanWithin(ctx context.Context, o PlanOptions) (*Tree, query.Cost, error) {
	memory := o.Memory
	if memory <= 0 {
		memory = query.DefaultMemory
	}

	h := p.Hypergraph()
	if err := o.checkReach(ctx, h); err != nil {
		return nil, query.Cost{}, err
	}

	search := p.searchOptions(o, memory)
	var overMemory error // of the tree before this one
	for {
		searchResult, err := contractionorder.Search(ctx, h, search)
		if overMemory != nil && errors.Is(err, contractionorder.ErrMemory) { // of the reduced memory, which is not what was asked for
			return nil, query.Cost{}, overMemory
		}
		if err != nil {
			return nil, query.Cost{}, err
		}
		tree, cost, err := p.treeOf(h, searchResult, memory)
		fits := cost.Bytes <= float64(memory) && cost.Slices < math.MaxInt64
		if err != nil || fits {
			return tree, cost, err
		}

		// The backward pass of marginals holds more than the search knows of. If the tree leaves no memory for that, the next search has
		// less memory by the same factor, and at most half.
		overMemory = sumproduct.OverBudget(cost, memory)
		reduced := float64(search.Memory) / cost.Bytes * float64(memory)
		search.Memory = min(search.Memory/2, int64(reduced))
		if search.Memory < max(memory/leastShare, 1) { // the forward pass has at least this much
			return nil, query.Cost{}, overMemory
		}
	}
}

// searchOptions returns the options of the first search for a tree.
func (p *Prepared) searchOptions(o PlanOptions, memory int64) contractionorder.Options {
	effort := 1.0 / policy.MoveCost // how many moves of the search it is worth to save one flop
	if p.needsMarginals() {
		effort *= policy.MarginalRate // with marginals, each flop of the tree is done so many times
	}
	return contractionorder.Options{Seed: o.Seed, Memory: memory, Threads: searchThreads, Moves: o.Moves, Effort: effort}
}

// leastShare is the divisor of the memory that the forward pass has at least, if the backward pass needs all other memory.
const leastShare = 64

// needsMarginals reports whether marginals of every variable, or of a set, are asked for.
func (p *Prepared) needsMarginals() bool { return p.marginals || p.cells != nil }

// treeOf returns a plan of the search as a Tree of the network with hypergraph h, and its price: of marginals within memory bytes if they
// are asked for, otherwise of Z.
func (p *Prepared) treeOf(
	h contractionorder.Hypergraph, searchResult contractionorder.Plan, memory int64,
) (*Tree, query.Cost, error) {
	cost, err := pairwise.Plan(h, searchResult.Tree, searchResult.Slices)
	if err == nil && p.needsMarginals() {
		cost, err = pairwise.PlanMarginals(h, searchResult.Tree, searchResult.Slices, memory)
	}
	if err != nil {
		return nil, query.Cost{}, err
	}

	tree := &Tree{
		Shape:     Digest(h),
		Tables:    searchResult.Tree.Leaves,
		Merges:    flatten(searchResult.Tree.Merges),
		Slices:    searchResult.Slices,
		Count:     int64(min(cost.Slices, 1<<62)), // within int64; so many slices are never done
		Marginals: p.marginals,
		Joint:     p.cells != nil,
	}
	return tree, query.Cost{
		Width:     searchResult.Cost.Width,
		Log2Table: searchResult.Cost.Log2Table,
		Flops:     cost.Flops(cost.Slices),
		Bytes:     cost.PeakBytes,
		Slices:    cost.Slices,
	}, nil
}

// WithinReach returns an error if every elimination order of a hypergraph is known to take more than the given flops, by
// contractionorder.LowerBound. The error is then over budget.
func WithinReach(ctx context.Context, h contractionorder.Hypergraph, flops float64) error {
	log2Flops, err := contractionorder.LowerBound(ctx, h)
	if err != nil || log2Flops <= math.Log2(flops) {
		return err
	}
	return fault.New(fault.OverBudget, "%w: every order has a table of at least 2^%.1f entries and does as many operations, "+
		"%.3g are allowed", ErrHopeless, log2Flops, flops)
}

// farOff is the largest ratio of the flops of the min-fill order to the allowed flops for which a tree is searched.
// Seen: annealing saved a factor of 2^20 on grids and random graphs, never of 2^30. No command
// repeats it.
const farOff = 1 << 30

// fillMoves bounds the moves of that min-fill order: ten seconds, enough for a graph of a million indices.
// Chosen; the times are not repeated by a command.
const fillMoves = 1 << 30

// checkReach returns an error if no order contracts h within o.Flops (WithinReach), or if the min-fill order has a table of more than
// farOff · o.Flops entries, so that it takes more flops than that. It returns nil if o.Flops is 0.
func (o PlanOptions) checkReach(ctx context.Context, h contractionorder.Hypergraph) error {
	if o.Flops <= 0 {
		return nil
	}

	if err := WithinReach(ctx, h, o.Flops); err != nil {
		return err
	}

	log2Table := math.Log2(farOff * o.Flops)
	_, isWithin, err := contractionorder.MinFillWithin(ctx, h, log2Table, fillMoves)
	if err != nil || isWithin {
		return err
	}
	return fault.New(fault.OverBudget,
		"%w: no min-fill order was found whose tables have at most 2^%.0f entries, and %.3g "+
			"operations are allowed", ErrHopeless, log2Table, o.Flops)
}

// Chunks returns the number of tasks for the slices of a contraction along c, between 1 and the number of slices. A task takes about
// chunkFlops, or more if that is needed to keep the tables that all slices share, which every task computes, to a tenth of its work.
func (p *Prepared) Chunks(c *Tree, chunkFlops float64) (int64, error) {
	if c.Count <= 1 {
		return 1, nil
	}
	cost, err := pairwise.Plan(p.Hypergraph(), tree(c), c.Slices)
	if err != nil {
		return 0, err
	}
	sliceFlops := cost.SliceFlops * cost.Slices // of all slices
	taskFlops := math.Max(chunkFlops, 10*cost.CommonFlops)
	tasks := math.Min(sliceFlops/taskFlops, policy.MostChunks)
	return int64(math.Max(1, math.Min(tasks, float64(c.Count)))), nil
}

// searchThreads is the number of threads of the tree search. The plan does not depend on it.
const searchThreads = 2

// tree returns the tree of a plan in the form of package contractionorder.
func tree(c *Tree) contractionorder.Tree {
	t := contractionorder.Tree{Leaves: c.Tables, Merges: make([][2]int, len(c.Merges)/2)}
	for k := range t.Merges {
		t.Merges[k] = [2]int{c.Merges[2*k], c.Merges[2*k+1]}
	}
	return t
}

// flatten returns merges in the form of a plan: two tables for each merge, one after the other.
func flatten(merges [][2]int) []int {
	out := make([]int, 0, 2*len(merges))
	for _, m := range merges {
		out = append(out, m[0], m[1])
	}
	return out
}
