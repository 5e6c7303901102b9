package compiler

// The search: decide, propagate, split, sum.

import (
	"context"
	"math/bits"
	"slices"

	"github.com/basetensor/basetensor/internal/methods/circuits/circuit"
	"github.com/basetensor/basetensor/internal/methods/circuits/sat"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// search is the state of one search.
type search struct {
	o         Options
	residual  *residual
	solver    *sat.Solver
	splitter  *splitter
	cache     *cache
	budget    *budget
	heuristic heuristic
	dense     eliminator
	trace     *trace
	stats     Stats

	waiting []component // found, and not yet summed
	splits  odds        // of looks at components: that one finds several, or a known one
	looks   odds        // of looks at the tables of a component: that they are small enough
}

// newSearch makes a search over the clauses of two literals and more and the tables of p. Facts are assigned at the root.
func newSearch(p *problem, facts []lit, clauses [][]lit, o Options) *search {
	numbers := newDrawer(p, clauses)
	r := newResidual(p, facts, clauses, numbers)
	r.solver.Room = o.Memory / 8
	s := &search{
		o: o, residual: r, solver: r.solver, splitter: newSplitter(r, clauses, numbers), cache: newCache(o.Memory / 3),
		trace: newTrace(p, o),
	}
	s.budget = newBudget(r, &s.stats, o)
	s.heuristic = newHeuristic(p, r.value, clauses, s.splitter.clauses, s.splitter.tables, &s.stats)
	s.stats.Clauses, s.stats.Variables = len(r.clauses), r.openVariables()
	return s
}

// run sums the whole formula, without its scale and constants.
func (s *search) run(ctx context.Context) (amount, error) {
	whole := s.splitter.whole()
	product := s.trace.product()
	for _, t := range s.splitter.stack.tables {
		product.timesNumber(scaled.FromFloat(s.residual.tables[t.table].met[t.slice].factor))
	}
	sum, ok := s.branch(ctx, whole, 1, 0)
	s.stats.Work = s.solver.Work
	s.stats.Kept = s.solver.Kept()
	s.stats.Evicted = s.cache.evicted
	if s.budget.err != nil || !ok {
		return amount{}, s.budget.err
	}
	product.times(sum)
	s.trace.pushConstants()
	return product.end(), nil
}

// sum returns the sum of a component, or false where the formula has no assignment under the present one:
// then Analyse says why, by literals of the present level and below. Its share of the whole tree counts as progress.
func (s *search) sum(ctx context.Context, c component, share float64) (amount, bool) {
	if !s.budget.lasts(ctx) {
		return amount{}, false
	}
	wait := int32(0)
	if !c.stale && s.narrow(c) {
		value, log2, ok := s.eliminate(ctx, c)
		if ok || s.budget.err != nil {
			return value, ok
		}
		wait = 2 * log2
	} else {
		wait = c.wait - 1
	}
	total := amount{node: circuit.Zero}
	decision, reason := s.heuristic.decide(s.splitter.stack.of(c).vars), sat.Decided
	for range 2 {
		s.solver.Open()
		s.solver.Assign(decision, reason)
		s.cache.begin()
		value, ok := s.branch(ctx, c, share/2, wait)
		if s.budget.err != nil {
			return amount{}, false
		}

		reason = sat.Decided
		if ok {
			total = s.trace.sum(total, value)
		} else {
			s.stats.Conflicts++
			s.cache.drop()
			left := s.solver.Analyse(false)
			s.heuristic.reward(s.solver.Met)
			if !left {
				s.cache.end()
				s.solver.Close()
				return amount{}, false
			}
			s.solver.Forget()
			s.stats.Learned++
			reason = s.solver.Learn()
		}
		s.cache.end()
		s.solver.Close()
		decision = decision.Not()
	}
	return total, true
}

// splitsFrom is the number of variables from which a component is not looked at after every decision where less than one of
// splitsShare looks finds several parts, or a known one. oddsTried is the number of looks at a size before such shares count.
// Measured: planning formulas log-2, log-3, log-4 take 2.5, 4.8 and 3.9 s of CPU time with a look at every component and an eighth of
// the work on looks in vain, 2.3, 3.0 and 2.9 s with denseShare, 2.2, 2.6 and 2.0 s with both; 2.2, 2.6 and 2.7 s where three decisions
// go without a look.
const (
	splitsFrom  = 64
	splitsShare = 8
	oddsTried   = 64
)

// branch propagates the assignment and sums c's residue.
func (s *search) branch(ctx context.Context, c component, share float64, wait int32) (amount, bool) {
	if !s.solver.Propagate() {
		s.budget.progress += share
		return amount{}, false
	}
	vars := s.splitter.stack.of(c).vars
	if !c.stale && len(vars) >= splitsFrom && s.splits.poor(c.size(), splitsShare) && s.residual.anyOpen(vars) {
		// A look would find no parts, most likely; if it would, the next one finds them in both branches, in the second one in the cache.
		c.stale, c.wait = true, wait
		return s.sum(ctx, c, share)
	}
	from, first := s.splitter.stack.extent(), len(s.waiting)
	s.trace.stopIfFull()
	product := s.trace.product()
	s.split(c, &product)

	// The small ones first: they are the soonest to have no assignment.
	end := len(s.waiting)
	slices.SortStableFunc(s.waiting[first:end], func(a, b component) int { return int(a.size() - b.size()) })
	open := int32(0)
	for i := range s.waiting[first:end] {
		s.waiting[first+i].wait = wait
		open += s.waiting[first+i].size()
	}
	before := s.budget.progress
	ok := true
	for i := first; i < end && ok; i++ {
		part := s.waiting[i]
		var value amount
		if value, ok = s.sum(ctx, part, share*float64(part.size())/float64(open)); ok {
			s.cache.add(part.key, value, part.size())
			product.times(value)
		}
	}
	if s.budget.err == nil {
		s.budget.progress = before + share
	}
	s.waiting = s.waiting[:first]
	s.splitter.stack.cut(from)
	if !ok {
		product.drop()
		return amount{}, false
	}
	return product.end(), true
}

// split finds the components of c's residue. It multiplies a product by all that is known of it: weights of variables that are assigned,
// ratios of tables, and sums of components. The other components wait.
func (s *search) split(c component, product *product) {
	for _, l := range s.splitter.begin(c) {
		product.times(s.trace.weight(l))
	}
	for _, t := range s.splitter.stack.of(c).tables {
		product.timesNumber(s.splitter.restrict(t))
	}
	waiting, hits := len(s.waiting), s.stats.Hits
	for i := c.from.vars; i < c.to.vars; i++ { // the stack grows, and c's own range stays where it is
		v := s.splitter.stack.vars[i]
		if !s.splitter.isUnreached(v) {
			continue
		}
		part, links := s.splitter.explore(v)
		if sum, ok := s.known(part, links); ok {
			product.times(sum)
			s.splitter.stack.cut(part.from)
		} else {
			s.waiting = append(s.waiting, part)
		}
	}
	s.splits.count(c.size(), len(s.waiting) != waiting+1 || s.stats.Hits > hits)
}

// known returns the sum of a component of so many links if it is one variable or in the cache.
func (s *search) known(c component, links int) (sum amount, ok bool) {
	if links == 0 {
		return s.single(s.splitter.stack.of(c).vars), true
	}
	s.stats.Components++
	if sum, ok = s.cache.find(c.key); ok {
		s.stats.Hits++
	}
	return sum, ok
}

// single returns the sum of one variable of the formula that nothing is said about, of these Boolean ones.
func (s *search) single(vars []int32) amount {
	sum := amount{node: circuit.Zero}
	for _, v := range vars {
		sum = s.trace.sum(sum, s.trace.weight(lit(2*v)))
	}
	if v := vars[0]; !s.residual.problem.many[v] {
		sum = s.trace.sum(sum, s.trace.weight(lit(2*v+1)))
	}
	return sum
}

// odds counts tries and finds by the logarithm of a component's size.
type odds [32]struct{ tried, found int64 }

func (o *odds) count(size int32, found bool) {
	at := &o[bits.Len32(uint32(size))]
	at.tried++
	if found {
		at.found++
	}
}

// poor reports whether less than one of share tries at a size finds anything.
func (o *odds) poor(size int32, share int64) bool {
	at := &o[bits.Len32(uint32(size))]
	return at.tried > oddsTried && at.found*share < at.tried
}
