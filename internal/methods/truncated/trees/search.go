package trees

// Search: the plan that truncates least within a budget.

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/basetensor/basetensor/internal/methods/truncated/legs"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
)

// SearchOptions of a search. The zero value works.
type SearchOptions struct {
	Bond   int     // largest bond that the plan is to be used with; 0: 32
	Memory int64   // bounds Cost.Bytes at that bond; 0: query.DefaultMemory, 2 GiB
	Flops  float64 // bounds a contraction that truncates nothing; 0: 2e9
	Seed   uint64  // of everything random
	Moves  int64   // the budget, in elementary operations of about a nanosecond; 0: 2^30, about a second
}

// withDefaults returns o with defaults for Bond, Flops and Moves if they are 0.
func (o SearchOptions) withDefaults() SearchOptions {
	if o.Bond <= 0 {
		o.Bond = 32
	}
	if !(o.Flops > 0) {
		o.Flops = 2e9
	}
	if o.Moves <= 0 {
		o.Moves = 1 << 30
	}
	return o
}

// meterMoves is the number of moves of a search, about a nanosecond each, in the time of a move of a meter.
const meterMoves = 3

// Search looks for a plan whose peak with wires of at most Bond fits Memory. Among those it prefers exact ones of at most Flops, then the
// fewest flops, with a little weight on Cost.Loss. It tries exact contraction trees of elimination orders and of contractionorder.Search,
// whose Loss is 0 if they fit, and greedy trees over several ways to write variables of high degree as chains of copies.
//
// The plan is a function of the arguments only. If nothing exact fits, different seeds give different plans.
// Errors: sumproduct.ErrOverBudget (fault.OverBudget), with the cheapest plan found; bad_input for an inconsistent hypergraph; the
// context's, with the best plan so far if that fits the memory.
func Search(ctx context.Context, h contractionorder.Hypergraph, o SearchOptions) (Plan, Cost, error) {
	if err := h.Validate(); err != nil {
		return Plan{}, Cost{}, err
	}
	o = o.withDefaults()
	s := &search{
		ctx: ctx, h: h, form: newForm(h), options: o, memory: legs.MemoryOrDefault(o.Memory),
		rng: rand.New(rand.NewPCG(o.Seed, 0x7ee)), // 0x7ee, "tree": the stream of this search
	}
	if err := s.considerExactTrees(); err != nil {
		if isLateWithPlan := ctx.Err() != nil && s.hasBest; !isLateWithPlan {
			return Plan{}, Cost{}, err
		}
	}

	// Draw random trees until the moves or the time are spent, or a plan cannot be improved.
	for s.moves < o.Moves && ctx.Err() == nil && !s.isExactAndFits() {
		s.tryRandomTree()
	}

	neededBytes := math.Inf(1)
	if s.hasBest {
		neededBytes = s.cost.Bytes
	}
	err := legs.CheckMemory(neededBytes, s.memory, o.Bond)
	if ctxErr := ctx.Err(); ctxErr != nil {
		if err != nil {
			return Plan{}, Cost{}, ctxErr
		}
		err = ctxErr // with the best plan so far
	}
	return s.best, s.cost, err
}

// search is the state of one Search.
type search struct {
	ctx     context.Context
	h       contractionorder.Hypergraph
	form    *form
	options SearchOptions
	memory  float64 // bytes
	rng     *rand.Rand
	moves   int64 // spent
	trees   int   // random trees so far
	minFill []int // elimination order of all indices, computed at the first use

	hasBest      bool
	best         Plan
	cost         Cost         // of the best plan
	bestSettings treeSettings // of the best random tree
}

// isExactAndFits reports whether the best plan truncates nothing and is within the memory and the flops: no plan is preferred to it.
func (s *search) isExactAndFits() bool {
	return s.hasBest && s.cost.Loss == 0 && s.cost.Bytes <= s.memory && s.cost.Flops <= s.options.Flops
}

// isBetter reports whether cost a is preferred to b. First a plan within the memory is preferred, then one within options.Flops, then one
// that truncates nothing, then the lower price. If neither is within the memory, fewer bytes are better. If neither is within the flops,
// exactness does not count.
func (s *search) isBetter(a, b Cost) bool {
	if aFits, bFits := a.Bytes <= s.memory, b.Bytes <= s.memory; aFits != bFits {
		return aFits
	} else if !aFits {
		return a.Bytes < b.Bytes
	}
	if aFits, bFits := a.Flops <= s.options.Flops, b.Flops <= s.options.Flops; aFits != bFits {
		return aFits
	} else if aFits && (a.Loss == 0) != (b.Loss == 0) {
		return a.Loss == 0
	}
	return a.price() < b.price()
}

// lossBits is the Loss that weighs as much as twice the flops. Measured on grids, random regular and complete graphs, trees of one bond:
// errors have a rank correlation with Loss of −0.1 to 0.5, with flops of −0.4 to 0.5, so that neither is worth much of the other; a tree
// of half the flops can be run with a larger bond.
const lossBits = 40

// price returns the number by which a search compares costs: log2 of the flops, plus Loss/lossBits for the truncations.
func (c Cost) price() float64 { return math.Log2(c.Flops+1) + c.Loss/lossBits }

// consider computes the cost of a plan and keeps the plan if it is better than the best so far. isBest reports whether it was kept. A plan
// that contradicts itself is not kept. The work is added to s.moves.
func (s *search) consider(p Plan) (isBest bool) {
	n, err := newNetwork(s.h, p)
	if err != nil {
		return false
	}

	// Costs only grow from merge to merge, so stop as soon as they are worse than those of the best plan.
	m := newMeter(n, s.h, s.options.Bond, defaultGauge)
	isWorse := false
	err = m.mergeAll(p.Merges, func() bool {
		isWorse = m.flops > 1e300 || s.hasBest && !s.isBetter(m.cost(), s.cost) // 1e300: soon beyond float64
		return isWorse
	})
	s.moves += meterMoves * m.moves // meterMoves moves of the search take the time of one that m has counted
	c := m.cost()
	if err != nil || isWorse || s.hasBest && !s.isBetter(c, s.cost) {
		return false
	}
	s.best, s.cost, s.hasBest = p, c, true
	return true
}

const (
	orderShare     = 32  // of so many moves one is for the search for an elimination order
	planMoves      = 200 // moves for each table, in the time that turns an elimination order into a plan
	treeShare      = 4   // of so many moves at most one is for the search for an exact tree
	orderMoves     = 10  // moves of a search in the time of one of contractionorder.BestWithin
	hopelessFactor = 1e4 // times the flops allowed: beyond it an exact tree is hardly worth a search
	effort         = 0.5 // moves that are worth a flop of an exact tree: the tree of the search is seldom contracted
	cheapFlops     = 1e7 // flops of an exact tree below which no other tree is looked for
)

// considerExactTrees considers the tree of an elimination order and, if that is not cheap, the tree of a search for exact contractions.
// These plans truncate nothing unless a wire exceeds the bond.
func (s *search) considerExactTrees() error {
	// The tree of the best elimination order of a short search.
	h := s.form.unhostedHypergraph()
	order, spent, err := contractionorder.BestWithin(s.ctx, h, s.options.Moves/orderShare) // spent: in moves of that search
	if err != nil {
		return err
	}
	s.moves += orderMoves * spent
	t, err := contractionorder.FromOrder(h, order)
	if err != nil {
		return err
	}
	s.consider(s.form.treePlan(t))
	s.moves += int64(planMoves * len(h.Edges))
	if s.isExactAndFits() && s.cost.Flops < cheapFlops {
		return nil
	}

	// The tree of a longer search, shortened if an exact contraction is hopeless.
	moves := s.options.Moves / treeShare
	if !s.hasBest || s.cost.Flops > hopelessFactor*s.options.Flops {
		moves /= 4
	}
	p, err := contractionorder.Search(s.ctx, h, contractionorder.Options{
		Seed:   s.options.Seed,
		Memory: math.MaxInt64, // so that it needs no slices
		Moves:  moves,
		Effort: effort,
	})
	if err != nil {
		return err
	}
	s.moves += p.Moves
	if len(p.Slices) == 0 {
		s.consider(s.form.treePlan(p.Tree))
	}
	return nil
}
