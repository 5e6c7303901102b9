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
		o.Moves = 1 << 24
	}
	s := &search{
		h:       h,
		near:    legs.Neighbours(h),
		indices: contractionorder.Restrict(nil, h),
		rng:     rand.New(rand.NewPCG(o.Seed, 0x6d7073)),
		bond:    float64(o.Bond),
		seed:    o.Seed,
		moves:   o.Moves,
		memory:  legs.Memory(o.Memory),
	}
	s.best.score = math.Inf(1)
	ended := s.run(ctx)
	if ended != nil && (ctx.Err() == nil || s.best.order == nil) {
		return Plan{}, legs.Cost{}, ended
	}
	p := s.best.plan(h)
	cost, err := Evaluate(context.WithoutCancel(ctx), h, p, o.Bond, false)
	if err == nil {
		err = legs.Fits(cost.Bytes, s.memory, o.Bond)
	}
	switch {
	case ended == nil:
		return p, cost, err
	case err != nil:
		return Plan{}, legs.Cost{}, ended
	}
	return p, cost, ended
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
	h       contractionorder.Hypergraph
	near    [][]int // by index: its neighbours
	indices []int   // of dimension above 1
	rng     *rand.Rand
	bond    float64
	best    candidate // so far
	seed    uint64
	moves   int64   // that are left
	memory  float64 // bytes
}

// run tries constructed plans and improves the best. The only error is the context's.
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

// score returns the score of a candidate, log2 flops as in Search and a penalty beyond the memory. It may return any larger number, also
// +Inf, if the score is above limit.
func (s *search) score(c candidate, limit float64) float64 {
	p := c.plan(s.h)
	truncated, visits, _ := price(context.Background(), s.h, p, s.bond, false, math.Exp2(min(limit, 300)))
	s.moves -= visits
	score := math.Log2(truncated.Flops + 1)
	if truncated.Bytes > s.memory {
		score += 4 * math.Log2(truncated.Bytes/s.memory)
	}
	if score > limit {
		return math.Inf(1)
	}
	exact, visits, _ := price(context.Background(), s.h, p, hugeBond, false, math.Exp2(min((limit-score)/exactWeight, 900)))
	s.moves -= visits
	return score + exactWeight*math.Log2(exact.Flops+1)
}

// noise is the largest misjudgement of constructed plans by seeds other than 0, so that they end in different plans of about the same
// cost.
const noise = 0.5

// consider makes a plan the best if it scores better than the best so far. With seeds other than 0 its score gets some noise.
func (s *search) consider(order, chain []int) {
	c := candidate{order: order, chain: chain}
	c.score = s.score(c, s.best.score+noise)
	if s.seed != 0 {
		c.score += noise * s.rng.Float64()
	}
	if c.score < s.best.score {
		s.best = c
	}
}

// tryConstructed considers constructed plans, as long as there are moves. With seeds other than 0 it begins with a random sequence, may
// reverse the sequence of the file, and breaks ties at random.
func (s *search) tryConstructed(ctx context.Context) error {
	file := s.indices
	var rng *rand.Rand // nil: ties are not broken at random
	if s.seed != 0 {
		rng = s.rng
		sequence := shuffle(slices.Clone(s.indices), rng)
		s.consider(sequence, sequence)
		if rng.IntN(2) == 1 {
			file = slices.Clone(file)
			slices.Reverse(file)
		}
	}
	mckee := cuthillMcKee(s.near, s.indices, rng)
	slices.Reverse(mckee)
	for _, findOrder := range []func() ([]int, error){
		func() ([]int, error) { return file, nil }, // known at once, while min-fill and min-weight of large networks take seconds
		func() ([]int, error) { return mckee, nil },
		func() ([]int, error) { return contractionorder.MinFill(ctx, s.h) },
		func() ([]int, error) { return contractionorder.MinWeight(ctx, s.h) },
	} {
		order, err := findOrder()
		if err != nil {
			return err
		}
		for _, chain := range [][]int{order, localInsertion(s.near, order), file, mckee} {
			if err := ctx.Err(); err != nil || s.moves < 0 && s.best.order != nil {
				return err
			}
			s.consider(order, chain)
		}
	}
	return s.tryGreedy(ctx)
}

// tryGreedy considers eight greedy plans, as long as there are moves. Each takes at most a quarter of them.
func (s *search) tryGreedy(ctx context.Context) error {
	for range 8 {
		if err := ctx.Err(); err != nil || s.moves < 0 {
			return err
		}
		budget := s.moves / 4
		remaining := budget
		order, chain, ok := greedy(s.h, s.near, s.indices, s.rng, &remaining)
		s.moves -= budget - remaining
		if ok {
			s.consider(order, chain)
		}
	}
	return nil
}

// anneal changes the best plan at random, at a temperature that falls to 0 with the moves. With seeds other than 0 it leaves an eighth of
// the moves to drift.
func (s *search) anneal(ctx context.Context) error {
	if len(s.indices) < 2 {
		return nil
	}
	s.best.score = s.score(s.best, math.Inf(1)) // without noise
	current := s.best
	total := float64(max(s.moves, 1))
	reserve := int64(0)
	if s.seed != 0 {
		reserve = int64(total / 8)
	}
	for s.moves > reserve {
		if err := ctx.Err(); err != nil {
			return err
		}
		next := s.perturb(current)
		temperature := 0.3 * float64(s.moves) / total
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

// drift exchanges two indices of the best plan as long as that costs nothing, and there are moves. So seeds other than 0 differ even if
// one plan is best up to symmetry. With seed 0 it does nothing.
func (s *search) drift(ctx context.Context) error {
	const rounding = 1e-9
	for s.seed != 0 && len(s.indices) > 1 && s.moves > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		next := s.best
		list := &next.chain
		if s.rng.IntN(2) == 0 {
			list = &next.order
		}
		exchanged := slices.Clone(*list)
		i, j := s.rng.IntN(len(exchanged)), s.rng.IntN(len(exchanged))
		exchanged[i], exchanged[j] = exchanged[j], exchanged[i]
		*list = exchanged
		s.moves -= int64(len(s.indices))
		next.score = s.score(next, s.best.score+rounding)
		if next.score <= s.best.score+rounding {
			s.best = next
		}
	}
	return nil
}

// perturb returns c with one index moved, in the chain (kinds 0 and 2), in the order (1 and 3) or in both (4), or with a short piece of the
// chain reversed (5).
func (s *search) perturb(c candidate) candidate {
	kind := s.rng.IntN(6)
	switch kind {
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
	out := slices.Clone(list)
	from := s.rng.IntN(len(out))
	slices.Reverse(out[from:min(len(out), from+2+s.rng.IntN(8))])
	return out
}

// moveIndex returns list with a random index moved: three times out of four next to one of its neighbours, otherwise to any place.
func (s *search) moveIndex(list []int) []int {
	out := slices.Clone(list)
	from := s.rng.IntN(len(out))
	i := out[from]
	to := s.rng.IntN(len(out))
	if near := s.near[i]; len(near) > 0 && s.rng.IntN(4) > 0 {
		to = slices.Index(out, near[s.rng.IntN(len(near))])
	}
	out = slices.Delete(out, from, from+1)
	return slices.Insert(out, min(max(to-s.rng.IntN(2), 0), len(out)), i)
}
