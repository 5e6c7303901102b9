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
	startTemperatures = [...]log2Fixed{oneBit / 2, oneBit / 4, oneBit, oneBit / 8}
	lowerTemperatures = [...]log2Fixed{oneBit / 8, oneBit / 4, oneBit / 16, oneBit / 2}
)

// runAttempts makes attempts at a better tree, in groups of two, and keeps the best one. It goes on as long as three things hold: a group
// is expected to save more than it costs; the moves (elementary operations) of the search suffice for it; and one of the latest
// maxIdleAttempts attempts was an improvement. Attempts of the first group have the fewest moves for which annealing is useful, those of
// each further group twice as many, up to maxSweeps sweeps.
//
// What a group is expected to save is a share of the price: the share that the group before has saved, or half of the share that was
// expected of the group before, if this is more.
//
// The result of an attempt depends only on its number and on the best tree before its group. The results of a group are compared in
// sequence.
func (s *search) runAttempts() {
	movesPerAttempt := firstSweeps * s.movesPerSweep()
	expectedGain := firstExpectedGain // the share of the price that the next group is expected to save
	idleAttempts := 0                 // attempts in a row without improvement
	for i := 0; idleAttempts < maxIdleAttempts && s.ctx.Err() == nil; i += attemptsPerGroup {
		worthOfGroup := float64(expectedGain * s.options.Effort * pow2(s.price)) // in moves
		isWorthwhile := attemptsPerGroup*float64(movesPerAttempt) <= worthOfGroup
		isAffordable := s.movesSpent+attemptsPerGroup*movesPerAttempt <= s.options.Moves
		if !isWorthwhile || !isAffordable {
			break
		}

		var results [attemptsPerGroup]*slicedTree
		s.runGroup(func(j int) { results[j] = s.runAttempt(i+j, movesPerAttempt) })
		if s.ctx.Err() != nil {
			return
		}

		priceBefore := s.price
		for _, result := range results {
			if s.adopt(result) { // makes result the best tree if it is cheaper, and updates s.price and s.movesSpent
				idleAttempts = 0
			} else {
				idleAttempts++
			}
		}
		expectedGain = max(expectedGain/2, 1-pow2(s.price-priceBefore)) // prices are log2
		movesPerAttempt = min(2*movesPerAttempt, maxSweeps*s.movesPerSweep())
	}
}

// adopt makes candidate the best tree if it is cheaper, and adds its moves to those of the search. It reports whether the candidate is an
// improvement: the price fell by a factor of more than 2^(1/128).
func (s *search) adopt(candidate *slicedTree) (isImprovement bool) {
	price := s.score(candidate)
	s.movesSpent += candidate.tree.movesSpent
	isImprovement = price < s.price-oneBit/128
	if price < s.price {
		s.best, s.price = candidate, price
	}
	return isImprovement
}

// runGroup calls run(j) for every attempt of a group, j = 0, 1, concurrently if the search has two threads.
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

// score returns log2 of the price of all slices of a candidate. If its plan needs more bytes than the memory budget, the price is
// multiplied by the ratio of these bytes to the budget. If no plan can be made of the candidate, the price alone counts.
func (s *search) score(candidate *slicedTree) log2Fixed {
	price := candidate.log2Price(&s.objective)
	wholeMerges := s.reduced.expand(s.remaining, candidate.tree.merges())
	plan, err := s.makePlan(wholeMerges, candidate.sliced)
	if err == nil && !s.fits(plan) {
		price += log2Float(plan.Cost.PeakBytes) - log2Float(float64(s.options.Memory))
	}
	candidate.tree.movesSpent += int64(16 * len(s.hypergraph.Edges)) // for the plan: 16 elementary operations for each tensor
	return price
}

// runAttempt makes attempt number i, with random numbers that depend on i, and returns its tree. It anneals a start tree with about
// maxMoves moves (elementary operations), or with as many as the start tree took if they are more. If a table is over the limit then, it
// slices indices and anneals again. tree.movesSpent counts the work of the attempt so far. The last argument of each step is the count at
// which the step must stop, so it has the form movesSpent + the moves of the step.
func (s *search) runAttempt(i int, maxMoves int64) *slicedTree {
	rng := rand.NewPCG(s.options.Seed, uint64(i))
	result := s.startTree(i, maxMoves, rng)

	// Anneal. Attempts of an odd number begin with the best tree, and so at a lower temperature. Each pair of attempts takes the next
	// temperatures of the two lists.
	temperature := startTemperatures[i/2%len(startTemperatures)]
	if i%2 == 1 {
		temperature = lowerTemperatures[i/2%len(lowerTemperatures)]
	}

	s.annealAndReconfigure(result, temperature, result.tree.movesSpent+max(maxMoves, result.tree.movesSpent), rng)

	// Slice indices until every table is within the limit. Annealing at a low temperature (1/4 bit) may make tables larger again.
	if result.tree.log2Largest() > s.objective.limit {
		result.sliceToLimit(&s.objective, pieceTables, result.tree.movesSpent+maxMoves)
		s.annealAndReconfigure(result, oneBit/4, result.tree.movesSpent+maxMoves/2, rng)
		result.sliceToLimit(&s.objective, pieceTables, result.tree.movesSpent+maxMoves)
	}

	if len(result.sliced) > 0 {
		result.exchangeSlices(&s.objective, pieceTables, result.tree.movesSpent+maxMoves)
		result.removeSlices(&s.objective)
	}

	// Improve a new best tree with larger pieces.
	if result.log2Price(&s.objective) < s.price {
		newReconfigurer(result.tree, s.objective, largePieceTables).run(result.tree.movesSpent + maxMoves)
	}
	return result
}

// movesPerSweep returns an estimate of the moves (elementary operations) of one sweep of annealing and of the price after it.
func (s *search) movesPerSweep() int64 { return int64(len(s.network.edges)*(24+5*s.network.words) + 1) }

// annealAndReconfigure anneals the tree of a candidate, from the given temperature down to a tenth of it, until the moves of the tree
// (elementary operations) reach maxMoves. It does not anneal if the available moves suffice for fewer than minSweeps sweeps only. Then it
// replaces pieces of the tree by optimal trees, with up to a quarter of the available moves beyond maxMoves.
func (s *search) annealAndReconfigure(candidate *slicedTree, temperature log2Fixed, maxMoves int64, rng *rand.PCG) {
	tree := candidate.tree
	available := maxMoves - tree.movesSpent
	sweeps := min(available*7/8/s.movesPerSweep(), maxSweeps) // an eighth is left, since moves per sweep are an estimate
	if sweeps >= minSweeps {
		tree.anneal(s.objective, annealing{
			hot:    temperature,
			cold:   temperature / 10,
			sweeps: int(sweeps),
			stop:   s.ctx.Done(),
		}, rng, maxMoves)
	}
	newReconfigurer(tree, s.objective, pieceTables).run(maxMoves + available/4)
}

// startTree returns the tree that attempt number i begins with. Attempts with an even number begin, in turn, with a tree by bisection, a
// tree by greedy merging, and the first tree of the search; to make a tree takes about maxMoves/4 moves (elementary operations). Attempts
// with an odd number begin with the best tree so far. For every second of these, each sliced index becomes whole again with probability
// 1/2.
func (s *search) startTree(i int, maxMoves int64, rng *rand.PCG) *slicedTree {
	if isEven := i%2 == 0; isEven {
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

// bisectionTree returns a tree by recursive bisection of the tensors. Two parameters are random: how unequal the sides of a split may be,
// and what it costs to cut an index that an earlier split has cut already. Then parts of the tree with up to pieceTables tables are
// replaced by optimal trees, with maxMoves/4 further moves (elementary operations).
func (s *search) bisectionTree(maxMoves int64, rng *rand.PCG) *slicedTree {
	plan := dissection{
		imbalance: []int64{24, 48, 80, 128}[rng.Uint64()%4],                       // in 256ths of half of the tensors
		openCost:  []log2Fixed{0, oneBit / 4, oneBit / 2, oneBit}[rng.Uint64()%4], // relative to the cost of a first cut
		pieceSize: pieceTables,
	}

	merges, moves := dissect(s.network, plan, rng, pace.New(s.ctx))
	result := &slicedTree{wholeNetwork: s.network, tree: newWorkingTree(s.network, merges)}
	result.tree.movesSpent += moves
	newReconfigurer(result.tree, s.objective, pieceTables).run(result.tree.movesSpent + maxMoves/4)
	return result
}

// randomGreedyTree returns the cheapest of up to greedyTries greedy trees with random rules. Parts of that tree with up to pieceTables
// tables are replaced by optimal trees. It makes no further greedy tree once they took maxMoves/4 moves (elementary operations). The
// replacement takes up to maxMoves/4 further moves. If the search has ended it returns a copy of the best tree of the search so far.
func (s *search) randomGreedyTree(maxMoves int64, rng *rand.PCG) *slicedTree {
	var best *workingTree
	lowestPrice := log2Fixed(0)
	moves := int64(0) // of all trees
	for try := 0; try < greedyTries && (try == 0 || moves < maxMoves/4); try++ {
		rule := greedyRule{
			isLinear:    rng.Uint64()%2 == 0,
			alpha:       log2Fixed(rng.Uint64() % uint64(oneBit+oneBit/4)), // 0 to 1.25 in fixed point
			temperature: log2Fixed(rng.Uint64() % uint64(oneBit)),          // 0 to 1
		}

		pool := greedyTree(s.network, rule, rng)
		if s.network.hasEnded() {
			return &slicedTree{wholeNetwork: s.network, tree: s.best.tree.clone()}
		}

		tree := newWorkingTree(s.network, pool.mergeRemaining())
		moves += pool.movesSpent + tree.movesSpent
		if price := tree.log2TotalPrice(&s.objective); best == nil || price < lowestPrice {
			best, lowestPrice = tree, price
		}
	}

	best.movesSpent = moves
	newReconfigurer(best, s.objective, pieceTables).run(moves + maxMoves/4)
	return &slicedTree{wholeNetwork: s.network, tree: best}
}
