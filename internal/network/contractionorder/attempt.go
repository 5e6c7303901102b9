package contractionorder

// Attempts: a start tree that is annealed, reconfigured and, if it is too large, sliced.

import (
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/basetensor/basetensor/internal/base/pace"
)

const (
	attemptsPerGroup = 2 // attempts that start from the same best tree
	maxIdleAttempts  = 8 // a search ends after so many attempts in a row without improvement

	// firstExpectedGain is the share of the price that the first group is expected to save.
	firstExpectedGain = 0.25

	firstSweeps = 64    // of annealing, in an attempt of the first group
	maxSweeps   = 20000 // limit for any attempt
	minSweeps   = 16    // fewer are not worth annealing

	finishShare = 12 // the last tree is improved with 1/finishShare of the moves that its price is worth
	greedyTries = 12 // random greedy trees of one attempt; the cheapest is annealed
	// maxScopeWords is the limit of the words of all tensors' scopes in a search, which holds a dozen times as many.
	maxScopeWords = 1 << 20
)

// Attempts are annealed from one of startTemperatures: 2^-1 is good for sparse networks, 2^-3 for dense ones with many small tensors.
// Attempts that begin with the best tree so far are annealed from one of lowerTemperatures.
var (
	startTemperatures = [...]logs{oneBit / 2, oneBit / 4, oneBit, oneBit / 8}
	lowerTemperatures = [...]logs{oneBit / 8, oneBit / 4, oneBit / 16, oneBit / 2}
)

// runAttempts makes attempts in groups, as long as a group is expected to save more than it costs, the moves of the search last, and one of
// the latest attempts was an improvement. Attempts of the first group have the fewest moves for which annealing is useful, those of each
// further group twice as many. A group is expected to save the same share of the price as the one before saved, or half the share that was
// expected of that one, if this is more.
//
// The result of an attempt depends only on its number and on the best tree before its group. The results of a group are compared in
// sequence.
func (s *search) runAttempts() {
	movesPerAttempt := firstSweeps * s.movesPerSweep()
	expected := firstExpectedGain
	idleAttempts := 0
	for i := 0; idleAttempts < maxIdleAttempts && s.ctx.Err() == nil; i += attemptsPerGroup {
		worthOfGroup := float64(expected * s.options.Effort * pow2(s.price))
		if attemptsPerGroup*float64(movesPerAttempt) > worthOfGroup || s.moves+attemptsPerGroup*movesPerAttempt > s.options.Moves {
			break
		}

		var results [attemptsPerGroup]*slicedTree
		s.runGroup(func(j int) { results[j] = s.runAttempt(i+j, movesPerAttempt) })
		if s.ctx.Err() != nil {
			return
		}

		priceBefore := s.price
		for _, result := range results {
			if s.adopt(result) {
				idleAttempts = 0
			} else {
				idleAttempts++
			}
		}
		expected = max(expected/2, 1-pow2(s.price-priceBefore))
		movesPerAttempt = min(2*movesPerAttempt, maxSweeps*s.movesPerSweep())
	}
}

// adopt makes candidate the best tree if it is cheaper, and counts its moves. It reports whether the price fell by more than 1/128 bit.
func (s *search) adopt(candidate *slicedTree) bool {
	price := s.score(candidate)
	s.moves += candidate.tree.moves
	isWorthwhile := price < s.price-oneBit/128
	if price < s.price {
		s.best, s.price = candidate, price
	}
	return isWorthwhile
}

// runGroup calls run for every attempt of a group, j = 0, 1, concurrently if the search has two threads.
func (s *search) runGroup(run func(j int)) {
	if s.options.Threads < 2 {
		for j := range attemptsPerGroup {
			run(j)
		}
		return
	}

	var group sync.WaitGroup
	for j := range attemptsPerGroup {
		group.Go(func() { run(j) })
	}
	group.Wait()
}

// score returns log2 of the price of all slices of a candidate. If its plan is over the memory budget, the price doubles for every doubling
// of the memory beyond it.
func (s *search) score(candidate *slicedTree) logs {
	price := candidate.log2Price(&s.objective)
	if plan, err := s.makePlan(s.reduced.expand(s.remaining, candidate.tree.merges()), candidate.sliced); err == nil &&
		!s.fits(plan) {
		price += log2Float(plan.Cost.PeakBytes) - log2Float(float64(s.options.Memory))
	}
	candidate.tree.moves += int64(16 * len(s.h.Edges))
	return price
}

// runAttempt makes attempt number i, with random numbers that depend on i, and returns its tree. It anneals with about maxMoves moves, or
// with as many as the start tree took if they are more. If a table is over the limit then, it slices indices and anneals again. The moves
// of the tree count all work.
func (s *search) runAttempt(i int, maxMoves int64) *slicedTree {
	rng := rand.NewPCG(s.options.Seed, uint64(i))
	result := s.startTree(i, maxMoves, rng)

	temperature := startTemperatures[i/2%len(startTemperatures)]
	if i%2 == 1 {
		temperature = lowerTemperatures[i/2%len(lowerTemperatures)]
	}

	s.annealAndReconfigure(result, temperature, result.tree.moves+max(maxMoves, result.tree.moves), rng)
	if result.tree.log2Largest() > s.objective.limit {
		result.sliceToLimit(&s.objective, pieces, result.tree.moves+maxMoves)
		s.annealAndReconfigure(result, oneBit/4, result.tree.moves+maxMoves/2, rng)
		result.sliceToLimit(&s.objective, pieces, result.tree.moves+maxMoves)
	}

	if len(result.sliced) > 0 {
		result.exchangeSlices(&s.objective, pieces, result.tree.moves+maxMoves)
		result.removeSlices(&s.objective)
	}

	if result.log2Price(&s.objective) < s.price {
		newReconfigurer(result.tree, s.objective, largePieces).run(result.tree.moves + maxMoves)
	}
	return result
}

// movesPerSweep estimates the moves of one sweep of annealing with the price after it.
func (s *search) movesPerSweep() int64 { return int64(len(s.n.edges)*(24+5*s.n.words) + 1) }

// annealAndReconfigure anneals the tree of a candidate from the given temperature until its moves reach limit, unless they suffice for few
// sweeps only. Then it reconfigures the tree with up to a quarter as many further moves.
func (s *search) annealAndReconfigure(candidate *slicedTree, temperature logs, limit int64, rng *rand.PCG) {
	tree := candidate.tree
	start := tree.moves
	sweeps := min((limit-tree.moves)*7/8/s.movesPerSweep(), maxSweeps)
	if sweeps >= minSweeps {
		tree.anneal(s.objective, annealing{
			hot:    temperature,
			cold:   temperature / 10,
			sweeps: int(sweeps),
			stop:   s.ctx.Done(),
		}, rng, limit)
	}
	newReconfigurer(tree, s.objective, pieces).run(limit + (limit-start)/4)
}

// startTree returns the tree that attempt number i begins with. Attempts with an even number begin with a tree by bisection, by greedy
// merging, or the first tree of the search, in turn. The others begin with the best tree so far; every second of these without about half
// of its slices.
func (s *search) startTree(i int, maxMoves int64, rng *rand.PCG) *slicedTree {
	if i%2 == 0 {
		switch i / 2 % 3 {
		case 0:
			return s.bisectionTree(maxMoves, rng)
		case 1:
			return s.randomGreedyTree(maxMoves, rng)
		}
		return s.firstTree.copyWithoutMoves()
	}

	start := s.best.copyWithoutMoves()
	if i%4 == 3 && len(start.sliced) > 0 {
		start = start.withSlices(slices.DeleteFunc(start.sliced, func(int32) bool { return rng.Uint64()%2 == 0 }))
	}
	return start
}

// bisectionTree returns a tree by recursive bisection with a random imbalance and a random cost of open indices. It is reconfigured with
// maxMoves/4 moves.
func (s *search) bisectionTree(maxMoves int64, rng *rand.PCG) *slicedTree {
	plan := dissection{
		imbalance: []int64{24, 48, 80, 128}[rng.Uint64()%4],
		openCost:  []logs{0, oneBit / 4, oneBit / 2, oneBit}[rng.Uint64()%4],
		pieceSize: pieces,
	}

	merges, moves := dissect(s.n, plan, rng, pace.New(s.ctx))
	result := &slicedTree{whole: s.n, tree: newWorkingTree(s.n, merges)}
	result.tree.moves += moves
	newReconfigurer(result.tree, s.objective, pieces).run(result.tree.moves + maxMoves/4)
	return result
}

// randomGreedyTree returns the cheapest of some greedy trees with random rules, reconfigured with maxMoves/4 moves. After the search has
// ended it returns the best tree so far.
func (s *search) randomGreedyTree(maxMoves int64, rng *rand.PCG) *slicedTree {
	var best *workingTree
	lowest := logs(0)
	moves := int64(0)
	for try := 0; try < greedyTries && (try == 0 || moves < maxMoves/4); try++ {
		rule := greedyRule{
			isLinear:    rng.Uint64()%2 == 0,
			alpha:       logs(rng.Uint64() % uint64(oneBit+oneBit/4)),
			temperature: logs(rng.Uint64() % uint64(oneBit)),
		}

		product := greedyTree(s.n, rule, rng)
		if s.n.hasEnded() {
			return &slicedTree{whole: s.n, tree: s.best.tree.clone()}
		}

		tree := newWorkingTree(s.n, product.mergeRemaining())
		moves += product.moves + tree.moves
		if price := tree.log2TotalPrice(&s.objective); best == nil || price < lowest {
			best, lowest = tree, price
		}
	}

	best.moves = moves
	newReconfigurer(best, s.objective, pieces).run(moves + maxMoves/4)
	return &slicedTree{whole: s.n, tree: best}
}
