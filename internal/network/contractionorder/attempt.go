package contractionorder

// Attempts: one start, annealed and reconfigured, sliced where it has to be.

import (
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/basetensor/basetensor/internal/base/pace"
)

const (
	together = 2 // attempts that start from the same best tree
	patience = 8 // attempts in a row without improvement, after which a search ends

	// firstGain is the share of the price that the first group is expected to save.
	firstGain = 0.25

	firstSweeps  = 64    // of annealing, in the attempts of the first group
	mostSweeps   = 20000 // most sweeps of any attempt
	fewestSweeps = 16    // fewer are not worth annealing

	shares      = 12 // the share of a price's worth of moves for polishing the last tree
	greedyTries = 12 // random greedy trees of one attempt; the cheapest is annealed
	// words of the scopes of all tensors; a search holds a dozen times as much
	mostWords = 1 << 20
)

// temperatures are where attempts begin: sparse networks want 2^-1,
// dense ones with many small tensors 2^-3. The best tree so far is annealed from lower ones.
var (
	temperatures = [...]logs{oneBit / 2, oneBit / 4, oneBit, oneBit / 8}
	lower        = [...]logs{oneBit / 8, oneBit / 4, oneBit / 16, oneBit / 2}
)

// explore makes attempts, together at a time, while they are expected to save more than they cost.
// The first group has the fewest moves that annealing is worth, each group twice as many as the one
// before. The next group is expected to save the same share of the price as the last one, or half
// of the last one's expectation, whichever is more.
//
// The result of an attempt depends on its number and on the best tree before its group; groups are
// compared in sequence.
func (s *search) explore() {
	share := firstSweeps * s.perSweep()
	expected := firstGain
	idle := 0
	for i := 0; idle < patience && s.ctx.Err() == nil; i += together {
		worth := float64(expected * s.o.Effort * pow2(s.price))
		if together*float64(share) > worth || s.moves+together*share > s.o.Moves {
			break
		}

		var found [together]*slicing
		s.concurrently(func(j int) { found[j] = s.attempt(i+j, share) })
		if s.ctx.Err() != nil {
			return
		}

		before := s.price
		for _, f := range found {
			if s.take(f) {
				idle = 0
			} else {
				idle++
			}
		}
		expected = max(expected/2, 1-pow2(s.price-before))
		share = min(2*share, mostSweeps*s.perSweep())
	}
}

// take makes f the best tree if it is cheaper, and says whether that is worth mentioning.
func (s *search) take(f *slicing) bool {
	price := s.score(f)
	s.moves += f.w.moves
	gained := price < s.price-oneBit/128
	if price < s.price {
		s.best, s.price = f, price
	}
	return gained
}

// concurrently runs the attempts of a group, beside each other where there are two threads.
func (s *search) concurrently(run func(j int)) {
	if s.o.Threads < 2 {
		for j := range together {
			run(j)
		}
		return
	}

	var g sync.WaitGroup
	for j := range together {
		g.Go(func() { run(j) })
	}
	g.Wait()
}

// score ranks attempts: the price of all slices, and as much for every doubling of
// the memory that a plan needs beyond the budget.
func (s *search) score(c *slicing) logs {
	p := c.price(&s.objective)
	if plan, err := s.plan(s.reduced.expand(s.left, c.w.merges()), c.sliced); err == nil &&
		!s.fits(plan) {
		p += log2Float(plan.Cost.PeakBytes) - log2Float(float64(s.o.Memory))
	}
	c.w.moves += int64(16 * len(s.h.Edges))
	return p
}

// attempt number i works with its own random numbers and anneals with about share moves, or as many
// as its start took where that is more. The result has counted them all.
func (s *search) attempt(i int, share int64) *slicing {
	rng := rand.NewPCG(s.o.Seed, uint64(i))
	c := s.start(i, share, rng)

	hot := temperatures[i/2%len(temperatures)]
	if i%2 == 1 {
		hot = lower[i/2%len(lower)]
	}

	s.improve(c, hot, c.w.moves+max(share, c.w.moves), rng)
	if c.w.largest() > s.objective.limit {
		c.narrow(&s.objective, pieces, c.w.moves+share)
		s.improve(c, oneBit/4, c.w.moves+share/2, rng)
		c.narrow(&s.objective, pieces, c.w.moves+share)
	}

	if len(c.sliced) > 0 {
		c.exchange(&s.objective, pieces, c.w.moves+share)
		c.widen(&s.objective)
	}

	if c.price(&s.objective) < s.price {
		newReconfigurer(c.w, s.objective, largePieces).run(c.w.moves + share)
	}
	return c
}

// perSweep is about the moves of one sweep of annealing and the price after it.
func (s *search) perSweep() int64 { return int64(len(s.n.edges)*(24+5*s.n.words) + 1) }

// improve anneals from the given temperature and reconfigures, as far as the moves allow: until c's
// moves reach limit, and a quarter of that more.
func (s *search) improve(c *slicing, hot logs, limit int64, rng *rand.PCG) {
	w := c.w
	start := w.moves
	sweeps := min((limit-w.moves)*7/8/s.perSweep(), mostSweeps)
	if sweeps >= fewestSweeps {
		w.anneal(s.objective, annealing{
			hot:    hot,
			cold:   hot / 10,
			sweeps: int(sweeps),
			stop:   s.ctx.Done(),
		}, rng, limit)
	}
	newReconfigurer(w, s.objective, pieces).run(limit + (limit-start)/4)
}

// start returns the tree an attempt begins with. Every second one is the best, or the best with half
// of its slices taken back; the others are from bisection, from greedy merging, and the first tree,
// in turn.
func (s *search) start(i int, share int64, rng *rand.PCG) *slicing {
	if i%2 == 0 {
		switch i / 2 % 3 {
		case 0:
			return s.dissected(share, rng)
		case 1:
			return s.greedy(share, rng)
		}
		return s.begin.again()
	}

	c := s.best.again()
	if i%4 == 3 && len(c.sliced) > 0 {
		c = c.reslice(slices.DeleteFunc(c.sliced, func(int32) bool { return rng.Uint64()%2 == 0 }))
	}
	return c
}

// dissected returns a tree by recursive bisection with
// a random imbalance and a random price of open indices.
func (s *search) dissected(share int64, rng *rand.PCG) *slicing {
	d := dissection{
		imbalance: []int64{24, 48, 80, 128}[rng.Uint64()%4],
		open:      []logs{0, oneBit / 4, oneBit / 2, oneBit}[rng.Uint64()%4],
		small:     pieces,
	}

	merges, moves := dissect(s.n, d, rng, pace.New(s.ctx))
	c := &slicing{whole: s.n, w: newWorking(s.n, merges)}
	c.w.moves += moves
	newReconfigurer(c.w, s.objective, pieces).run(c.w.moves + share/4)
	return c
}

// greedy returns the cheapest of some random greedy trees, each with a rule of its own.
func (s *search) greedy(share int64, rng *rand.PCG) *slicing {
	var best *working
	least := logs(0)
	moves := int64(0)
	for try := 0; try < greedyTries && (try == 0 || moves < share/4); try++ {
		rule := greedyRule{
			linear:      rng.Uint64()%2 == 0,
			alpha:       logs(rng.Uint64() % uint64(oneBit+oneBit/4)),
			temperature: logs(rng.Uint64() % uint64(oneBit)),
		}

		p := greedyTree(s.n, rule, rng)
		if s.n.over() {
			return &slicing{whole: s.n, w: s.best.w.clone()}
		}

		w := newWorking(s.n, p.finish())
		moves += p.moves + w.moves
		if t := w.logTotal(&s.objective); best == nil || t < least {
			best, least = w, t
		}
	}

	best.moves = moves
	newReconfigurer(best, s.objective, pieces).run(moves + share/4)
	return &slicing{whole: s.n, w: best}
}
