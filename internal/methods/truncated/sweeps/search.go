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
// where the second term stands for accuracy: less exact work loses less to truncation. A function of its arguments. Errors: ErrOptions;
// sumproduct.ErrOverBudget (fault.OverBudget) where the best plan needs more than Memory; the context's, with the best plan so far where
// one that fits the memory is known.
func Search(ctx context.Context, h contractionorder.Hypergraph, o SearchOptions) (Plan, legs.Cost, error) {
	if o.Bond < 1 {
		return Plan{}, legs.Cost{}, fault.New(fault.BadInput, "%w: bond %d", ErrOptions, o.Bond)
	}
	if o.Moves == 0 {
		o.Moves = 1 << 24
	}
	s := &searcher{
		h:      h,
		near:   legs.Neighbours(h),
		live:   contractionorder.Restrict(nil, h),
		rng:    rand.New(rand.NewPCG(o.Seed, 0x6d7073)),
		bond:   float64(o.Bond),
		seed:   o.Seed,
		moves:  o.Moves,
		memory: legs.Memory(o.Memory),
	}
	s.best.score = math.Inf(1)
	ended := s.starts(ctx)
	if ended == nil {
		ended = s.improve(ctx)
	}
	if ended == nil {
		ended = s.drift(ctx)
	}
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
	score        float64
}

func (c candidate) plan(h contractionorder.Hypergraph) Plan {
	return Plan{Order: c.order, Position: positions(c.chain, len(h.Dims))}
}

// searcher carries one Search.
type searcher struct {
	h      contractionorder.Hypergraph
	near   [][]int // by index: its neighbours
	live   []int   // indices of dimension above 1
	rng    *rand.Rand
	bond   float64
	best   candidate
	seed   uint64
	moves  int64   // left
	memory float64 // bytes
}

// exactWeight is the weight of an order of magnitude of exact work against one of truncated work.
const exactWeight = 0.25

// score prices a candidate, +Inf for one that is worse than enough.
func (s *searcher) score(c candidate, enough float64) float64 {
	p := c.plan(s.h)
	finite, visits, _ := price(context.Background(), s.h, p, s.bond, false, math.Exp2(min(enough, 300)))
	s.moves -= visits
	base := math.Log2(finite.Flops + 1)
	if finite.Bytes > s.memory {
		base += 4 * math.Log2(finite.Bytes/s.memory)
	}
	if base > enough {
		return math.Inf(1)
	}
	exact, visits, _ := price(context.Background(), s.h, p, hugeBond, false, math.Exp2(min((enough-base)/exactWeight, 900)))
	s.moves -= visits
	return base + exactWeight*math.Log2(exact.Flops+1)
}

// noise is the misjudgement of starts by seeds other than 0, so that they end in different plans of about the same cost.
const noise = 0.5

// try takes a plan that is better than the best so far.
func (s *searcher) try(order, chain []int) {
	c := candidate{order: order, chain: chain}
	c.score = s.score(c, s.best.score+noise)
	if s.seed != 0 {
		c.score += noise * s.rng.Float64()
	}
	if c.score < s.best.score {
		s.best = c
	}
}

// starts tries constructed plans. Seeds other than 0 begin at any sequence and may turn the file round, break ties, and start searches
// elsewhere.
func (s *searcher) starts(ctx context.Context) error {
	file := s.live
	var rng *rand.Rand // nil: no ties are broken by chance
	if s.seed != 0 {
		rng = s.rng
		sequence := shuffle(slices.Clone(s.live), rng)
		s.try(sequence, sequence)
		if rng.IntN(2) == 1 {
			file = slices.Clone(file)
			slices.Reverse(file)
		}
	}
	mckee := cuthillMcKee(s.near, s.live, rng)
	slices.Reverse(mckee)
	given := func(order []int) func() ([]int, error) { return func() ([]int, error) { return order, nil } }
	for _, find := range []func() ([]int, error){
		given(file), given(mckee), // at once: the others of large networks take seconds
		func() ([]int, error) { return contractionorder.MinFill(ctx, s.h) },
		func() ([]int, error) { return contractionorder.MinWeight(ctx, s.h) },
	} {
		order, err := find()
		if err != nil {
			return err
		}
		for _, chain := range [][]int{order, localInsertion(s.near, order), file, mckee} {
			if err := ctx.Err(); err != nil || s.moves < 0 && s.best.order != nil {
				return err
			}
			s.try(order, chain)
		}
	}
	for range 8 {
		if err := ctx.Err(); err != nil || s.moves < 0 {
			return err
		}
		budget := s.moves / 4
		before := budget
		order, chain, ok := greedy(s.h, s.near, s.live, s.rng, &budget)
		s.moves -= before - budget
		if ok {
			s.try(order, chain)
		}
	}
	return nil
}

// improve moves indices about, at a temperature that falls to 0.
func (s *searcher) improve(ctx context.Context) error {
	if len(s.live) < 2 {
		return nil
	}
	s.best.score = s.score(s.best, math.Inf(1))
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
		next := s.neighbour(current)
		temperature := 0.3 * float64(s.moves) / total
		allowed := current.score - temperature*math.Log(1-s.rng.Float64())
		s.moves -= int64(len(s.live))
		if next.score = s.score(next, allowed); next.score <= allowed {
			current = next
			if current.score < s.best.score {
				s.best = current
			}
		}
	}
	return nil
}

// drift exchanges indices as long as that costs nothing, so that seeds other than 0 differ even where one plan is best up to symmetry.
func (s *searcher) drift(ctx context.Context) error {
	const rounding = 1e-9
	for s.seed != 0 && len(s.live) > 1 && s.moves > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		next := s.best
		list := &next.chain
		if s.rng.IntN(2) == 0 {
			list = &next.order
		}
		out := slices.Clone(*list)
		i, j := s.rng.IntN(len(out)), s.rng.IntN(len(out))
		out[i], out[j] = out[j], out[i]
		*list = out
		s.moves -= int64(len(s.live))
		next.score = s.score(next, s.best.score+rounding)
		if next.score <= s.best.score+rounding {
			s.best = next
		}
	}
	return nil
}

// neighbour moves one index, or turns a short piece round, in the order, the chain, or both.
func (s *searcher) neighbour(c candidate) candidate {
	kind := s.rng.IntN(6)
	if kind != 1 && kind != 3 {
		c.chain = s.shift(c.chain, kind == 5)
	}
	if kind != 0 && kind != 2 && kind != 5 {
		c.order = s.shift(c.order, false)
	}
	return c
}

// shift moves one index somewhere else, to one of its neighbours as a rule, or turns a short piece round.
func (s *searcher) shift(list []int, turn bool) []int {
	out := slices.Clone(list)
	from := s.rng.IntN(len(out))
	if turn {
		slices.Reverse(out[from:min(len(out), from+2+s.rng.IntN(8))])
		return out
	}
	i := out[from]
	to := s.rng.IntN(len(out))
	if near := s.near[i]; len(near) > 0 && s.rng.IntN(4) > 0 {
		to = slices.Index(out, near[s.rng.IntN(len(near))])
	}
	out = slices.Delete(out, from, from+1)
	return slices.Insert(out, min(max(to-s.rng.IntN(2), 0), len(out)), i)
}
