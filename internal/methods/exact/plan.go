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

// Plan searches a contraction tree of the simplified tables within memory bytes (0:
// query.DefaultMemory): a tree and, where a table would not fit, indices to slice. The search is
// counted in moves, grows with the cost of the contraction, and is a function of Hypergraph,
// memory and seed alone. The plan's flops are the work of one task that computes all slices,
// its bytes the peak of live tables.
//
// Errors wrap contractionorder.ErrMemory (fault.OverBudget) where no slices fit, and the context's.
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
	// Flops: a contraction that takes more for certain, or seems to by far,
	// is refused without a search; 0: nothing is.
	Flops float64
}

// ErrHopeless says that a contraction takes more work than allowed, as was seen without a search.
var ErrHopeless = errors.New("exact: out of reach")

// PlanWithin is Plan with bounds on the work. Over budget is reported without a search, with
// the figure, where the graph has a minor that no order contracts within o.Flops
// (contractionorder.LowerBound), and where the min-fill order has a table 2^30 times as large.
func (p *Prepared) PlanWithin(ctx context.Context, o PlanOptions) (*Tree, query.Cost, error) {
	memory := o.Memory
	if memory <= 0 {
		memory = query.DefaultMemory
	}

	h := p.Hypergraph()
	if err := o.possible(ctx, h); err != nil {
		return nil, query.Cost{}, err
	}

	search := contractionorder.Options{
		Seed:    o.Seed,
		Memory:  memory,
		Threads: searchThreads,
		Moves:   o.Moves,
		Effort:  1.0 / policy.MoveCost,
	}
	if p.needsMarginals() {
		search.Effort *= policy.MarginalRate
	}

	var over error // of the tree before
	for {
		found, err := contractionorder.Search(ctx, h, search)
		if over != nil && errors.Is(err, contractionorder.ErrMemory) {
			return nil, query.Cost{}, over
		}
		if err != nil {
			return nil, query.Cost{}, err
		}
		tree, cost, err := p.planned(h, found, memory)
		if err != nil || cost.Bytes <= float64(memory) && cost.Slices < math.MaxInt64 {
			return tree, cost, err
		}

		// The way back of marginals holds more than the search knows of. Where its tree leaves no
		// room for that, another is searched that is smaller by as much.
		fit := float64(search.Memory) / cost.Bytes * float64(memory)
		search.Memory = min(search.Memory/2, int64(fit))
		over = sumproduct.OverBudget(cost, memory)
		if search.Memory < max(memory/leastShare, 1) {
			return nil, query.Cost{}, over
		}
	}
}

// leastShare is the part of the memory that the way forth has at least, where the way back needs the
// rest.
const leastShare = 64

// needsMarginals reports whether marginals are asked for, of every variable or of a set.
func (p *Prepared) needsMarginals() bool { return p.marginals || p.cells != nil }

// planned returns a plan of the search as one of the network, and its cost.
func (p *Prepared) planned(
	h contractionorder.Hypergraph, found contractionorder.Plan, memory int64,
) (*Tree, query.Cost, error) {
	cost, err := pairwise.Plan(h, found.Tree, found.Slices)
	if err == nil && p.needsMarginals() {
		cost, err = pairwise.PlanMarginals(h, found.Tree, found.Slices, memory)
	}
	if err != nil {
		return nil, query.Cost{}, err
	}

	tree := &Tree{
		Shape:     Digest(h),
		Tables:    found.Tree.Leaves,
		Merges:    flatten(found.Tree.Merges),
		Slices:    found.Slices,
		Count:     int64(min(cost.Slices, 1<<62)),
		Marginals: p.marginals,
		Joint:     p.cells != nil,
	}
	return tree, query.Cost{
		Width:     found.Cost.Width,
		Log2Table: found.Cost.Log2Table,
		Flops:     cost.Flops(cost.Slices),
		Bytes:     cost.PeakBytes,
		Slices:    cost.Slices,
	}, nil
}

// WithinReach refuses hypergraphs of which every order takes more flops than that, by contractionorder.LowerBound.
func WithinReach(ctx context.Context, h contractionorder.Hypergraph, flops float64) error {
	least, err := contractionorder.LowerBound(ctx, h)
	if err != nil || least <= math.Log2(flops) {
		return err
	}
	return fault.New(fault.OverBudget, "%w: every order has a table of at least 2^%.1f entries and does as many operations, "+
		"%.3g are allowed", ErrHopeless, least, flops)
}

// farOff is the largest ratio of the flops of the min-fill order to the allowed ones at which a
// search is worth it.
// Seen: annealing saved a factor of 2^20 on grids and random graphs, never of 2^30. No command
// repeats it.
const farOff = 1 << 30

// fillMoves bounds the same for a simplified network before a tree is searched: ten seconds,
// which takes a graph of a million indices.
// Chosen; the times are not repeated by a command.
const fillMoves = 1 << 30

// possible refuses hypergraphs that no order contracts within the flops allowed.
func (o PlanOptions) possible(ctx context.Context, h contractionorder.Hypergraph) error {
	if o.Flops <= 0 {
		return nil
	}

	if err := WithinReach(ctx, h, o.Flops); err != nil {
		return err
	}

	most := math.Log2(farOff * o.Flops)
	_, within, err := contractionorder.MinFillWithin(ctx, h, most, fillMoves)
	if err != nil || within {
		return err
	}
	return fault.New(fault.OverBudget,
		"%w: no min-fill order was found whose tables have at most 2^%.0f entries, and %.3g "+
			"operations are allowed", ErrHopeless, most, o.Flops)
}

// Chunks returns how many tasks the slices of a contraction are spread over: each costs about
// chunkFlops, and what all slices share, which every task computes again, is at most a tenth of it.
// Between 1 and the number of slices.
func (p *Prepared) Chunks(c *Tree, chunkFlops float64) (int64, error) {
	if c.Count <= 1 {
		return 1, nil
	}
	cost, err := pairwise.Plan(p.Hypergraph(), tree(c), c.Slices)
	if err != nil {
		return 0, err
	}
	slices := cost.SliceFlops * cost.Slices
	n := math.Min(slices/math.Max(chunkFlops, 10*cost.CommonFlops), policy.MostChunks)
	return int64(math.Max(1, math.Min(n, float64(c.Count)))), nil
}

// searchThreads of the tree search; the plan does not depend on it.
const searchThreads = 2

// tree is a tree of the plan as one of the search.
func tree(c *Tree) contractionorder.Tree {
	t := contractionorder.Tree{Leaves: c.Tables, Merges: make([][2]int, len(c.Merges)/2)}
	for k := range t.Merges {
		t.Merges[k] = [2]int{c.Merges[2*k], c.Merges[2*k+1]}
	}
	return t
}

// flatten returns the merges of a tree of the search in the plan's form.
func flatten(merges [][2]int) []int {
	out := make([]int, 0, 2*len(merges))
	for _, m := range merges {
		out = append(out, m[0], m[1])
	}
	return out
}
