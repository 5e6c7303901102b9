package sweeps

// The search for a plan.

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/internal/methods/truncated/legs"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/pkg/fault"
)

// SearchOptions are the purpose of a plan and the length of a search.
type SearchOptions struct {
	Bond   int    // χ ≥ 1, for which plans are compared
	Memory int64  // bytes; 0: query.DefaultMemory
	Seed   uint64 // other seeds give other plans of about the same cost, in part from other starts
	Moves  int64  // sites that pricing may look at; 0: 2^24, about a second's worth
}

// Search returns a plan for h: the cheapest of several orders (file, reverse Cuthill–McKee, min-fill, min-weight, greedy) with several
// chains (the same, local insertion, file, reverse Cuthill–McKee), improved by moves of indices within order and chain. Cheap means
//
//	log2 flops(χ) + ¼·log2 flops(no truncation)
//
// where the second term stands for accuracy: less exact work loses less to truncation. The plan is a function of the arguments.
// Errors: ErrOptions; sumproduct.ErrOverBudget (fault.OverBudget) if the best plan needs more than Memory; the context's, with the best
// plan so far if that fits the memory.
func Search(ctx context.Context, h contractionorder.Hypergraph, o SearchOptions) (Plan, legs.Cost, error) {
	if o.Bond < 1 {
		return Plan{}, legs.Cost{}, fault.New(fault.BadInput, "%w: bond %d", ErrOptions, o.Bond)
	}
	if o.Moves == 0 {
		o.Moves = 1 << 24 // a move is a site that the price of a plan looks at
	}
	s := &search{
		hypergraph: h,
		neighbours: legs.Neighbours(h),
		indices:    contractionorder.RestrictOrder(nil, h),  // all of dimension above 1
		rng:        rand.New(rand.NewPCG(o.Seed, 0x6d7073)), // "mps": the stream of this search
		bond:       float64(o.Bond),
		seed:       o.Seed,
		moves:      o.Moves,
		memory:     legs.MemoryOrDefault(o.Memory),
	}
	s.best.score = math.Inf(1)
	searchErr := s.run(ctx)
	if isLateWithPlan := ctx.Err() != nil && s.best.order != nil; searchErr != nil && !isLateWithPlan {
		return Plan{}, legs.Cost{}, searchErr
	}

	// Price the best plan. If the context has ended, it is returned with the context's error, unless it exceeds the memory.
	p := s.best.plan(h)
	const marginals = false
	cost, err := Evaluate(context.WithoutCancel(ctx), h, p, o.Bond, marginals)
	if err == nil {
		err = legs.CheckMemory(cost.Bytes, s.memory, o.Bond)
	}
	switch {
	case searchErr == nil:
		return p, cost, err
	case err != nil:
		return Plan{}, legs.Cost{}, searchErr
	}
	return p, cost, searchErr
}

// candidate is a plan: its order, and its indices in the sequence of the chain.
type candidate struct {
	order, chain []int
	score        float64 // see search.score; the lower the better
}

// plan returns the candidate as a Plan of h.
func (c candidate) plan(h contractionorder.Hypergraph) Plan {
	return Plan{Order: c.order, Position: positions(c.chain, len(h.Dims))}
}

// search is the state of one Search.
type search struct {
	hypergraph contractionorder.Hypergraph
	neighbours [][]int // by index
	indices    []int   // of dimension above 1
	rng        *rand.Rand
	bond       float64   // for which plans are compared
	best       candidate // so far
	seed       uint64
	moves      int64   // that are left
	memory     float64 // bytes
}

// run tries constructed plans and improves the best one. The only error is the context's.
func (s *search) run(ctx context.Context) error {
	if err := s.tryConstructed(ctx); err != nil {
		return err
	}
	if err := s.anneal(ctx); err != nil {
		return err
	}
	return s.drift(ctx)
}

// exactWeight is the weight of an order of magnitude of exact work against one of truncated work.
const exactWeight = 0.25

// score returns the score of a candidate, the lower the better: log2 flops(bond) + ¼·log2 flops(no truncation), and a penalty if it exceeds
// the memory. If the score is above limit, it may return any number above limit, also +Inf, since pricing ends early then.
func (s *search) score(c candidate, limit float64) float64 {
	const marginals = false
	p := c.plan(s.hypergraph)
	// Prices end early once the flops alone exceed the limit. The limit is kept within the range of float64.
	// The only error is the context's, and this one does not end.
	truncated, visits, _ := price(context.Background(), s.hypergraph, p, s.bond, marginals, math.Exp2(min(limit, 300))) // 300: within float64
	s.moves -= visits
	score := math.Log2(truncated.Flops + 1)
	if truncated.Bytes > s.memory {
		score += 4 * math.Log2(truncated.Bytes/s.memory) // twice the memory counts as 16 times the flops
	}
	if score > limit {
		return math.Inf(1)
	}
	// The second term, without truncation, has what the first one leaves of the limit.
	exactLimit := math.Exp2(min((limit-score)/exactWeight, 900)) // 900: within float64
	exact, visits, _ := price(context.Background(), s.hypergraph, p, hugeBond, marginals, exactLimit)
	s.moves -= visits
	return score + exactWeight*math.Log2(exact.Flops+1)
}

// noise is the largest misjudgement of constructed plans by seeds other than 0, so that they end in different plans of about the same
// cost.
const noise = 0.5

// consider scores a constructed plan and keeps it if it is better than the best so far. With seeds other than 0 the score gets some noise.
// A plan is an elimination order and a chain, the sequence of the indices in the state.
func (s *search) consider(order, chain []int) {
	c := candidate{order: order, chain: chain}
	c.score = s.score(c, s.best.score+noise) // any number above the limit if the score is above it: such a plan is not kept
	if s.seed != 0 {
		c.score += noise * s.rng.Float64()
	}
	if c.score < s.best.score {
		s.best = c
	}
}

// tryConstructed considers several orders, each with several chains, and then greedy plans, as long as there are moves. With seeds other
// than 0 it begins with a random sequence, may reverse the sequence of the file, and breaks ties at random. A chain is the sequence of the
// indices in the state.
func (s *search) tryConstructed(ctx context.Context) error {
	fileOrder := s.indices
	var rng *rand.Rand // nil: ties are not broken at random
	if s.seed != 0 {
		rng = s.rng
		sequence := shuffle(slices.Clone(s.indices), rng)
		s.consider(sequence, sequence)
		if rng.IntN(2) == 1 {
			fileOrder = slices.Clone(fileOrder)
			slices.Reverse(fileOrder)
		}
	}
	mcKee := cuthillMcKee(s.neighbours, s.indices, rng) // neighbours are close together
	slices.Reverse(mcKee)

	// The first orders take no time, while min-fill and min-weight of large networks take seconds.
	for _, findOrder := range []func() ([]int, error){
		func() ([]int, error) { return fileOrder, nil },
		func() ([]int, error) { return mcKee, nil },
		func() ([]int, error) { return contractionorder.MinFill(ctx, s.hypergraph) },
		func() ([]int, error) { return contractionorder.MinWeight(ctx, s.hypergraph) },
	} {
		order, err := findOrder()
		if err != nil {
			return err
		}
		for _, chain := range [][]int{order, localInsertion(s.neighbours, order), fileOrder, mcKee} {
			if err := ctx.Err(); err != nil {
				return err
			}
			if s.moves < 0 && s.best.order != nil { // the moves are spent, and there is a plan
				return nil
			}
			s.consider(order, chain)
		}
	}
	return s.tryGreedy(ctx)
}

// tryGreedy considers eight greedy plans, as long as there are moves. Each may take at most a quarter of the moves that are left. Both
// numbers are chosen. A move is a look at a site or at a neighbour of an index.
func (s *search) tryGreedy(ctx context.Context) error {
	for range 8 {
		if err := ctx.Err(); err != nil || s.moves < 0 {
			return err
		}
		budget := s.moves / 4
		remaining := budget // greedyOrder lowers it
		order, chain, ok := greedyOrder(s.hypergraph, s.neighbours, s.indices, s.rng, &remaining)
		s.moves -= budget - remaining
		if ok {
			s.consider(order, chain)
		}
	}
	return nil
}

// anneal improves the best plan by simulated annealing: it changes a plan at random, and keeps a worse one with a probability that falls
// with the temperature, which falls to 0 with the moves. With seeds other than 0 it leaves an eighth of the moves to drift.
func (s *search) anneal(ctx context.Context) error {
	if len(s.indices) < 2 {
		return nil
	}
	s.best.score = s.score(s.best, math.Inf(1)) // without noise
	current := s.best
	total := float64(max(s.moves, 1))
	reserve := int64(0)
	if s.seed != 0 {
		reserve = int64(total / 8) // for drift; chosen
	}
	for s.moves > reserve {
		if err := ctx.Err(); err != nil {
			return err
		}

		// Metropolis' rule: keep the plan if its score is at most that of the current one plus a random number.
		next := s.perturb(current)
		temperature := 0.3 * float64(s.moves) / total // in units of the score, log2 of flops; 0.3 is chosen
		limit := current.score - temperature*math.Log(1-s.rng.Float64())
		s.moves -= int64(len(s.indices))
		if next.score = s.score(next, limit); next.score <= limit {
			current = next
			if current.score < s.best.score {
				s.best = current
			}
		}
	}
	return nil
}

// As long as there are moves, drift exchanges random pairs of indices in the order or the chain of the best plan, and keeps an exchange if
// it costs nothing. So seeds other than 0 give different plans even if one plan is best up to symmetry. With seed 0 it does nothing. A
// chain is the sequence of the indices in the state.
func (s *search) drift(ctx context.Context) error {
	const rounding = 1e-9 // of equal scores
	for s.seed != 0 && len(s.indices) > 1 && s.moves > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		next := s.best
		sequence := &next.chain
		if s.rng.IntN(2) == 0 {
			sequence = &next.order
		}
		exchanged := slices.Clone(*sequence)
		i, j := s.rng.IntN(len(exchanged)), s.rng.IntN(len(exchanged))
		exchanged[i], exchanged[j] = exchanged[j], exchanged[i]
		*sequence = exchanged
		s.moves -= int64(len(s.indices))
		next.score = s.score(next, s.best.score+rounding)
		if next.score <= s.best.score+rounding {
			s.best = next
		}
	}
	return nil
}

// perturb returns c with a random change: an index moved in the chain, in the order or in both, or a short piece of the chain reversed. The
// chain is the sequence of the indices in the state.
func (s *search) perturb(c candidate) candidate {
	switch s.rng.IntN(6) {
	case 0, 2:
		c.chain = s.moveIndex(c.chain)
	case 1, 3:
		c.order = s.moveIndex(c.order)
	case 4:
		c.chain = s.moveIndex(c.chain)
		c.order = s.moveIndex(c.order)
	case 5:
		c.chain = s.reversePiece(c.chain)
	}
	return c
}

// reversePiece returns list with a random piece of 2 to 9 indices reversed. At the end of the list the piece is shorter.
func (s *search) reversePiece(list []int) []int {
	changed := slices.Clone(list)
	first := s.rng.IntN(len(changed))
	slices.Reverse(changed[first:min(len(changed), first+2+s.rng.IntN(8))])
	return changed
}

// moveIndex returns list with a random index moved: three times out of four next to one of its neighbours, otherwise to any place.
func (s *search) moveIndex(list []int) []int {
	changed := slices.Clone(list)
	old := s.rng.IntN(len(changed))
	i := changed[old]
	place := s.rng.IntN(len(changed))
	if neighbours := s.neighbours[i]; len(neighbours) > 0 && s.rng.IntN(4) > 0 {
		place = slices.Index(changed, neighbours[s.rng.IntN(len(neighbours))])
	}
	changed = slices.Delete(changed, old, old+1)
	return slices.Insert(changed, min(max(place-s.rng.IntN(2), 0), len(changed)), i) // on either side of the place
}
