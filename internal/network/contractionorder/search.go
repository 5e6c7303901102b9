package contractionorder

// Search: the plan of a contraction within a memory budget.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// ErrMemory is wrapped by the error of a search that found no slices
// for which a contraction fits the memory; its code is fault.OverBudget.
var ErrMemory = errors.New("contractionorder: over the memory budget")

// Options of a search. The zero value works.
type Options struct {
	Seed   uint64  // of everything random
	Memory int64   // bytes of Cost.PeakBytes; 0: query.DefaultMemory, 2 GiB
	Moves  int64   // elementary operations at most, roughly; 0: 2^32, some four seconds of one core
	Effort float64 // moves that are worth a flop that they save; 0: 1/policy.MoveCost
	// WriteCost is the cost of writing and reading back an entry of a result,
	// in flops above 1; 0: 16.
	WriteCost float64
	Threads   int // goroutines, 1 or 2; 0: 1. The plan does not depend on it
}

// Plan is a contraction of a network, along Tree, once for every combination of
// values of Slices, and its cost.
type Plan struct {
	Tree   Tree
	Slices []int // sorted indices of the hypergraph
	Cost   Cost
	Moves  int64 // elementary operations of the search
}

const (
	cheap        = 1e7 // flops below which the first tree that fits is taken as it is
	defaultMoves = 1 << 32

	// An entry costs 8 bytes written, read and often permuted in between;
	// a core does some 16 flops meanwhile.
	defaultWriteCost = 16

	pieces      = 8  // tables of a piece that is reconfigured as a rule
	largePieces = 10 // and where a tree is better than all before
)

// Search returns a plan for h that holds at most Options.Memory bytes. It takes the min-fill order
// as a tree, improves it by reconfiguration, and returns it when it costs less than 10^7 flops.
// Otherwise it anneals trees from recursive bisection, from random greedy merging and the best one
// so far, cheap attempts first, and goes on while the next ones are expected to save more than they
// cost: Effort is the worth of a flop in moves, and WriteCost the worth of a written entry in
// flops. Where the best tree does not fit the memory, indices are sliced, interleaved with more
// annealing; a table over the limit is penalised from the start.
//
// The plan depends on h, Seed, Memory, Moves, Effort and WriteCost alone. Errors:
// ErrTree for an inconsistent hypergraph; ErrMemory, with the best plan found; the context's.
func Search(ctx context.Context, h Hypergraph, o Options) (Plan, error) {
	if err := h.Validate(); err != nil {
		return Plan{}, err
	}
	if o.Memory <= 0 {
		o.Memory = query.DefaultMemory
	}
	if o.Moves <= 0 {
		o.Moves = defaultMoves
	}
	if o.Effort <= 0 {
		o.Effort = 1 / policy.MoveCost
	}
	if !(o.WriteCost > 1) {
		o.WriteCost = defaultWriteCost
	}

	s := newSearch(ctx, h, o)
	if len(s.n.edges)*s.n.words > mostWords {
		return s.orderOnly()
	}

	plan, err := s.first()
	if ctxErr := ctx.Err(); ctxErr != nil {
		return Plan{}, ctxErr // it may be cut short
	}
	if err != nil || plan.Cost.Flops < cheap && s.fits(plan) {
		return plan, err
	}

	s.explore()
	if plan, err = s.squeeze(); err != nil {
		return Plan{}, err
	}
	if err := ctx.Err(); err != nil {
		return Plan{}, err
	}
	return plan, s.check(plan)
}

// check returns ErrMemory for a plan over the budget.
func (s *search) check(p Plan) error {
	if s.fits(p) {
		return nil
	}
	return fault.New(fault.OverBudget, "%w: %s with %d indices sliced, the budget is %d bytes",
		ErrMemory, bytesText(p.Cost.PeakBytes), len(p.Slices), s.o.Memory)
}

func bytesText(b float64) string {
	if b > 1e15 {
		return fmt.Sprintf("a contraction needs 2^%.1f bytes",
			float64(log2Float(b))/float64(oneBit))
	}
	return fmt.Sprintf("a contraction needs %.0f bytes", b)
}

// search is the state of a search: the network that reduction leaves, and the best tree over it.
type search struct {
	ctx       context.Context
	h         Hypergraph
	o         Options
	reduced   *pool    // with the merges of the reduction
	left      []int32  // the tables that reduction leaves, by their number in reduced
	n         *network // the network of these tables
	objective objective
	begin     *slicing // the first tree
	best      *slicing // the best tree
	price     logs     // of best
	moves     int64
}

func newSearch(ctx context.Context, h Hypergraph, o Options) *search {
	s := &search{ctx: ctx, h: h, o: o}
	s.reduced = reduce(fromHypergraph(h, nil))
	s.n, s.left = s.reduced.kernel(h.Dims)
	s.n.ctx = ctx
	s.moves = s.reduced.moves
	s.objective = objective{
		write: log2Float(o.WriteCost - 1),
		limit: s.tableLimit(),
		steep: oneBit / 2,
	}
	return s
}

// tableLimit is log2 of the largest table when the memory
// beside the tensors of the network holds two of them.
func (s *search) tableLimit() logs {
	free := float64(s.o.Memory) / 8
	for _, e := range s.h.Edges {
		size := 1.0
		for _, v := range e {
			size = finite(size * float64(s.h.Dims[v]))
		}
		free -= size
	}
	return log2Float(max(free, 1)) - oneBit
}

// first makes the min-fill tree the best one.
func (s *search) first() (Plan, error) {
	order, err := s.n.minFill(s.ctx)
	if err != nil {
		return Plan{}, err
	}
	w := newWorking(s.n, alongOrder(s.n, order).finish())
	newReconfigurer(w, s.objective, pieces).run(s.budget(w))
	s.begin = &slicing{whole: s.n, w: w}
	s.best = s.begin.again()
	s.price = s.score(s.best)
	s.moves += w.moves + s.best.w.moves
	return s.finish()
}

// orderOnly is for networks whose scopes as bit sets are too large for a search:
// the min-fill order, without slices.
func (s *search) orderOnly() (Plan, error) {
	order, err := s.n.minFill(s.ctx)
	if err != nil {
		return Plan{}, err
	}
	p := alongOrder(s.n, order)
	if err := s.ctx.Err(); err != nil {
		return Plan{}, err
	}

	s.moves += p.moves
	plan, err := s.plan(s.reduced.expand(s.left, p.finish()), nil)
	if err != nil {
		return Plan{}, err
	}
	return plan, s.check(plan)
}

// squeeze slices the best tree until it fits the memory: several tables that are held at once may
// exceed it although each is below the limit. Then it is improved once more, as long as it still
// fits.
func (s *search) squeeze() (Plan, error) {
	share := max(s.worth(s.price)/shares, 1)
	s.best.w.moves = 0
	squeezed := false

	plan, err := s.finish()
	for err == nil && !s.fits(plan) && s.ctx.Err() == nil {
		o := s.objective
		o.limit = s.best.w.largest() - 1
		v := none
		if o.limit >= 0 && s.best.slices() <= mostSlices {
			v = s.best.best(&o)
		}
		if v == none {
			return plan, nil
		}

		squeezed = true
		s.best = s.best.reslice(append(slices.Clone(s.best.sliced), v))
		newReconfigurer(s.best.w, s.objective, pieces).run(s.best.w.moves + share)
		plan, err = s.finish()
	}

	s.moves += s.best.w.moves
	if err != nil || !squeezed || s.ctx.Err() != nil {
		return plan, err
	}

	last := s.best
	s.best = &slicing{whole: s.n, w: last.w.clone(), sliced: last.sliced}
	s.improve(s.best, oneBit/4, share, rand.NewPCG(s.o.Seed, 1<<63))
	s.best.widen(&s.objective)
	s.moves += s.best.w.moves

	if again, err := s.finish(); err == nil && s.fits(again) &&
		again.Cost.price(s.o.WriteCost) < plan.Cost.price(s.o.WriteCost) {
		return again, nil
	}

	s.best = last
	plan.Moves = s.moves
	return plan, nil
}

// minFill returns the min-fill order of the network, in indices of the hypergraph it is from.
func (n *network) minFill(ctx context.Context) ([]int, error) {
	h := Hypergraph{Dims: make([]int, len(n.of)), Edges: make([][]int, len(n.edges))}
	for v := range h.Dims {
		h.Dims[v] = 1
	}
	for t, e := range n.edges {
		for _, v := range e {
			h.Dims[v] = n.dim[v>>6]
			h.Edges[t] = append(h.Edges[t], int(v))
		}
	}

	order, err := MinFill(ctx, h)
	if err != nil {
		return nil, err
	}
	for i, v := range order {
		order[i] = n.of[v]
	}
	return order, nil
}

// budget is the worth of w's price in moves.
func (s *search) budget(w *working) int64 {
	return s.worth(w.logTotal(&s.objective))
}

// worth converts a price into moves.
func (s *search) worth(price logs) int64 {
	return int64(min(float64(s.o.Effort*pow2(price)), float64(s.o.Moves)))
}

func (s *search) fits(p Plan) bool { return p.Cost.PeakBytes <= float64(s.o.Memory) }

// finish turns the best tree into a plan: it is expanded to the whole network, and the merges
// of reduction are reconfigured together with it, unless that takes the plan over the memory.
func (s *search) finish() (Plan, error) {
	merges := s.reduced.expand(s.left, s.best.w.merges())
	plain, err := s.plan(merges, s.best.sliced)
	n := fromHypergraph(s.h, plain.Slices)
	n.ctx = s.ctx
	if err != nil || len(n.edges)*n.words > mostWords {
		return plain, err
	}

	w := newWorking(n, merges)
	newReconfigurer(w, s.objective, pieces).run(max(s.budget(w)/shares, 1<<16))
	s.moves += w.moves

	better, err := s.plan(w.merges(), s.best.sliced)
	if err != nil || s.fits(plain) && !s.fits(better) {
		better = plain
	}
	return better, err
}

// plan turns merges of the network and indices of its reduction into a plan.
func (s *search) plan(merges [][2]int, sliced []int32) (Plan, error) {
	p := Plan{Slices: []int{}, Moves: s.moves}
	for _, v := range sliced {
		p.Slices = append(p.Slices, s.n.of[v])
	}
	slices.Sort(p.Slices)

	t, err := NewTree(len(s.h.Edges), merges)
	if err != nil {
		return Plan{}, err
	}

	if p.Tree, err = Schedule(s.h, t, p.Slices); err != nil {
		return Plan{}, err
	}
	p.Cost, err = EvaluateTree(s.h, p.Tree, p.Slices)
	return p, err
}
