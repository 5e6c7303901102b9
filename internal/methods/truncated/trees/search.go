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
	Memory int64   // bytes of Cost.Bytes at that bond; 0: query.DefaultMemory, 2 GiB
	Flops  float64 // of a contraction that truncates nothing, at most; 0: 2e9
	Seed   uint64  // of everything random
	Moves  int64   // elementary operations of about a nanosecond; 0: 2^30, about a second
}

const slowness = 3 // nanoseconds of a move of the meter

// Search looks for a plan whose peak with wires of at most Bond fits Memory. Among those it prefers exact ones of at most Flops, then the
// fewest flops, with a little weight on Cost.Loss. It tries exact contraction trees of elimination orders and of contractionorder.Search,
// whose Loss is 0 where they fit, and greedy trees over several ways to write variables of high degree as chains of copies.
//
// The plan is a function of the arguments alone; different seeds give different plans where nothing exact fits. Errors:
// sumproduct.ErrOverBudget (fault.OverBudget), with the cheapest plan found; bad_input for an inconsistent hypergraph; the context's,
// with the best plan so far where one that fits the memory is known.
func Search(ctx context.Context, h contractionorder.Hypergraph, o SearchOptions) (Plan, Cost, error) {
	if err := h.Validate(); err != nil {
		return Plan{}, Cost{}, err
	}
	if o.Bond <= 0 {
		o.Bond = 32
	}
	if !(o.Flops > 0) {
		o.Flops = 2e9
	}
	if o.Moves <= 0 {
		o.Moves = 1 << 30
	}
	s := &search{ctx: ctx, h: h, f: newForm(h), o: o, memory: legs.Memory(o.Memory), rng: rand.New(rand.NewPCG(o.Seed, 0x7ee))}
	if err := s.exactTrees(); err != nil && (ctx.Err() == nil || !s.found) {
		return Plan{}, Cost{}, err
	}
	for s.moves < o.Moves && ctx.Err() == nil && !(s.found && s.cost.Loss == 0 && s.fits(s.cost)) {
		s.attempt()
	}
	needed := math.Inf(1)
	if s.found {
		needed = s.cost.Bytes
	}
	err := legs.Fits(needed, s.memory, o.Bond)
	if ended := ctx.Err(); ended != nil {
		if err != nil {
			return Plan{}, Cost{}, ended
		}
		err = ended
	}
	return s.best, s.cost, err
}

// search carries one Search.
type search struct {
	ctx    context.Context
	h      contractionorder.Hypergraph
	f      *form
	o      SearchOptions
	memory float64
	rng    *rand.Rand
	moves  int64
	tries  int   // random trees so far
	order  []int // min-fill, once it is known
	drawn  draw  // of the best plan

	best  Plan
	cost  Cost
	found bool
}

// fits says whether a plan is within the memory, and its flops within the limit for plans that truncate nothing.
func (s *search) fits(c Cost) bool { return c.Bytes <= s.memory && c.Flops <= s.o.Flops }

// better orders costs: those within memory, then within the flops, then exact ones, then by price.
func (s *search) better(a, b Cost) bool {
	if x, y := a.Bytes <= s.memory, b.Bytes <= s.memory; x != y {
		return x
	} else if !x {
		return a.Bytes < b.Bytes
	}
	if x, y := a.Flops <= s.o.Flops, b.Flops <= s.o.Flops; x != y {
		return x
	} else if x && (a.Loss == 0) != (b.Loss == 0) {
		return a.Loss == 0
	}
	return a.price() < b.price()
}

// lossBits is the Loss that weighs as much as twice the flops. Measured on grids, random regular and complete graphs, trees of one bond:
// errors have a rank correlation with Loss of −0.1 to 0.5, with flops of −0.4 to 0.5, so that neither is worth much of the other; a tree
// of half the flops can be run with a larger bond.
const lossBits = 40

// price is the figure that a search compares: log2 of the flops and a little for every truncation.
func (c Cost) price() float64 { return math.Log2(c.Flops+1) + c.Loss/lossBits }

// consider prices a plan and keeps it if it is better than all before.
func (s *search) consider(p Plan) bool {
	n, err := newNetwork(s.h, p)
	if err != nil {
		return false
	}
	m := newMeter(n, s.h, s.o.Bond, defaultGauge)
	stopped := false
	err = m.run(p.Merges, func() bool { // where it is worse than the best already
		stopped = m.flops > 1e300 || s.found && !s.better(m.cost(), s.cost)
		return stopped
	})
	s.moves += slowness * m.moves
	c := m.cost()
	if err != nil || stopped || s.found && !s.better(c, s.cost) {
		return false
	}
	s.best, s.cost, s.found = p, c, true
	return true
}

const (
	orderMoves = 10  // moves of a search in the time of one of contractionorder.BestWithin
	farOff     = 1e4 // times the flops allowed: beyond it an exact tree is hardly worth a search
	effort     = 0.5 // moves that are worth a flop of an exact tree: the tree of the search is seldom contracted
	cheap      = 1e7 // flops of an exact tree below which no other is looked for
)

// exactTrees considers the trees of exact contraction.
func (s *search) exactTrees() error {
	shape := s.f.shape()
	order, spent, err := contractionorder.BestWithin(s.ctx, shape, s.o.Moves/32)
	if err != nil {
		return err
	}
	s.moves += orderMoves * spent
	t, err := contractionorder.FromOrder(shape, order)
	if err != nil {
		return err
	}
	s.consider(s.f.along(t))
	s.moves += int64(200 * len(shape.Edges))
	if s.found && s.cost.Loss == 0 && s.fits(s.cost) && s.cost.Flops < cheap {
		return nil
	}
	moves := s.o.Moves / 4
	if !s.found || s.cost.Flops > farOff*s.o.Flops {
		moves /= 4
	}
	p, err := contractionorder.Search(s.ctx, shape, contractionorder.Options{
		Seed:   s.o.Seed,
		Memory: math.MaxInt64,
		Moves:  moves,
		Effort: effort,
	})
	if err != nil {
		return err
	}
	s.moves += p.Moves
	if len(p.Slices) == 0 {
		s.consider(s.f.along(p.Tree))
	}
	return nil
}
