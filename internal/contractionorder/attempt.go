package contractionorder

// Attempts: one start, annealed and reconfigured, sliced where it has to be.

import (
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/basetensor/basetensor/internal/pace"
)

const (
	shares       = 12   // attempts that a budget is meant for, where each has at least goodSweeps
	largestShare = 4    // of a budget: its 4th part at most for one attempt that wants goodSweeps
	goodSweeps   = 3000 // sweeps of one attempt that are worth their moves
	together     = 2    // attempts that start from the same best tree
	patience     = 8    // attempts in a row without improvement, after which a search ends

	fewestSweeps = 64 // fewer are not worth annealing
	mostSweeps   = 20000
	greedyTries  = 12 // random greedy trees of one attempt; the cheapest is annealed
	// words of the scopes of all tensors; a search holds a dozen times as much
	mostWords = 1 << 20
)

// temperatures are where attempts begin: sparse networks want 2^-1,
// dense ones with many small tensors 2^-3. The best tree so far is annealed from lower ones.
var (
	temperatures = [...]logs{oneBit / 2, oneBit / 4, oneBit, oneBit / 8}
	lower        = [...]logs{oneBit / 8, oneBit / 4, oneBit / 16, oneBit / 2}
)

// explore makes attempts, together at a time, and keeps the best tree. The result of an attempt
// depends on its number and on the best tree before its group; groups are compared in sequence.
func (s *search) explore() {
	idle := 0
	for i := 0; idle < patience && s.ctx.Err() == nil; i += together {
		budget := s.worth(s.price)
		share := max(budget/shares, min(budget/largestShare, goodSweeps*s.perSweep()))
		if s.moves+together*share > budget || share <= 0 {
			break
		}

		var found [together]*slicing
		s.concurrently(func(j int) { found[j] = s.attempt(i+j, share) })
		if s.ctx.Err() != nil {
			return
		}

		for _, f := range found {
			p := s.score(f)
			s.moves += f.w.moves
			switch {
			case p < s.price-oneBit/128:
				idle = 0
			default:
				idle++
			}
			if p < s.price {
				s.best, s.price = f, p
			}
		}
	}
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

// score is what attempts are compared by: the price of all slices,
// and as much for every doubling of the memory that a plan needs beyond the budget.
func (s *search) score(c *slicing) logs {
	p := c.price(&s.objective)
	if plan, err := s.plan(s.reduced.expand(s.left, c.w.merges()), c.sliced); err == nil &&
		!s.fits(plan) {
		p += log2Float(plan.Cost.PeakBytes) - log2Float(float64(s.o.Memory))
	}
	c.w.moves += int64(16 * len(s.h.Edges))
	return p
}

// attempt number i works with its own random numbers and about share moves,
// which the result has counted.
func (s *search) attempt(i int, share int64) *slicing {
	rng := rand.NewPCG(s.o.Seed, uint64(i))
	c := s.start(i, share, rng)

	hot := temperatures[i/2%len(temperatures)]
	if i%2 == 1 {
		hot = lower[i/2%len(lower)]
	}

	s.improve(c, hot, share, rng)
	if c.w.largest() > s.objective.limit {
		c.narrow(&s.objective, pieces, 2*share)
		s.improve(c, oneBit/4, share+share/2, rng)
		c.narrow(&s.objective, pieces, 2*share)
	}

	if len(c.sliced) > 0 {
		c.exchange(&s.objective, pieces, 2*share)
		c.widen(&s.objective)
	}

	if c.price(&s.objective) < s.price {
		newReconfigurer(c.w, s.objective, largePieces).run(2 * share)
	}
	return c
}

// perSweep is about the moves of one sweep of annealing and the price after it.
func (s *search) perSweep() int64 { return int64(len(s.n.edges)*(24+5*s.n.words) + 1) }

// improve anneals from the given temperature and reconfigures, as far as the moves allow.
func (s *search) improve(c *slicing, hot logs, limit int64, rng *rand.PCG) {
	w := c.w
	sweeps := min((limit-w.moves)*7/8/s.perSweep(), mostSweeps)
	if sweeps >= fewestSweeps {
		w.anneal(s.objective, annealing{
			hot:    hot,
			cold:   hot / 10,
			sweeps: int(sweeps),
			stop:   s.ctx.Done(),
		}, rng, limit)
	}
	newReconfigurer(w, s.objective, pieces).run(limit + limit/4)
}

// start returns the tree an attempt begins with: in turn from bisection,
// the best one, greedy merging, and the best one with half of its slices taken back.
func (s *search) start(i int, share int64, rng *rand.PCG) *slicing {
	switch {
	case i%4 == 0:
		return s.dissected(share, rng)
	case i%4 == 2:
		return s.greedy(share, rng)
	}

	c := &slicing{whole: s.n, w: s.best.w.clone(), sliced: slices.Clone(s.best.sliced)}
	c.w.moves = 0
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
