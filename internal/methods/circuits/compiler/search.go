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

// search sums a component by a decision on one of its variables, or by elimination if it is narrow. Under either value of the decision
// it is the product of the sums of the components that it falls into.
type search struct {
	solver     *sat.Solver
	residual   *residual // the formula under the solver's assignment
	splitter   *splitter
	waiting    []component // found by the splitter, and not yet summed
	splits     odds        // that a look at a component finds several, or a known one
	cache      *cache
	heuristic  *heuristic
	eliminator *eliminator
	trace      *trace
	budget     *budget
	stats      Stats
}

// newSearch returns a search that follows a tree decomposition. The clauses are those of two literals and more.
func newSearch(r *residual, clauses [][]lit, tree decomposition, numbers drawer, o Options) *search {
	s := &search{
		solver: r.solver, residual: r, splitter: newSplitter(r, clauses, numbers), cache: newCache(o.Memory / 3), trace: newTrace(r.problem, o),
		stats: Stats{Clauses: len(r.clauses), Variables: r.openVariables(), Width: tree.width},
	}
	s.solver.Room = o.Memory / 8
	s.heuristic = newHeuristic(s.splitter, clauses, tree.guide(s.stats.Variables), &s.stats)
	s.budget = newBudget(r, &s.stats, tree.cells, o)
	s.eliminator = newEliminator(r, s.trace, s.budget, &s.stats, tree.inward(), o.cells)
	return s
}

// run sums the whole formula, without its scale and constants.
func (s *search) run(ctx context.Context) (sum amount, err error) {
	whole := s.splitter.whole()
	product := s.trace.product()
	for _, t := range s.splitter.stack.tables {
		product.timesNumber(scaled.FromFloat(s.residual.sliceOf(t).factor))
	}
	sum, ok := s.branch(ctx, whole, 1)
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

// sum returns the sum of a component. It is not ok if the search ends early, or if the formula has no assignment under the present one:
// then Analyse says why, by literals of the present level and below. The share of the component in the whole tree counts as progress.
func (s *search) sum(ctx context.Context, c component, share float64) (sum amount, ok bool) {
	if !s.budget.lasts(ctx) {
		return amount{}, false
	}
	content := s.splitter.stack.of(c)
	if s.eliminator.isWorthLook(c) {
		if sum, c.wait, ok = s.eliminator.sum(ctx, content); ok || s.budget.err != nil {
			return sum, ok
		}
	} else {
		c.wait--
	}

	sum = amount{node: circuit.Zero}
	decision, reason := s.heuristic.decide(content.vars), sat.Decided
	for range 2 {
		s.solver.Open()
		s.solver.Assign(decision, reason)
		s.cache.begin()
		value, ok := s.branch(ctx, c, share/2)
		if s.budget.err != nil {
			return amount{}, false
		}
		if ok {
			sum, reason = s.trace.sum(sum, value), sat.Decided
		} else {
			reason, ok = s.learn()
		}
		s.cache.end()
		s.solver.Close()
		if !ok {
			return amount{}, false
		}
		decision = decision.Not()
	}
	return sum, true
}

// learn learns a clause from a conflict, and returns it as the reason of the opposite of the last decision. It is not ok if the conflict is
// one of the levels below.
func (s *search) learn() (reason int32, ok bool) {
	s.stats.Conflicts++
	s.cache.drop()
	ok = s.solver.Analyse(false)
	s.heuristic.reward(s.solver.Met)
	if !ok {
		return 0, false
	}
	s.solver.Forget()
	s.stats.Learned++
	return s.solver.Learn(), true
}

// splitsFrom is the number of variables from which a component is not looked at after every decision if less than one of
// splitsShare looks finds several parts, or a known one.
// Measured: planning formulas log-2, log-3, log-4 take 2.5, 4.8 and 3.9 s of CPU time with a look at every component and an eighth of
// the work on looks in vain, 2.3, 3.0 and 2.9 s with denseShare, 2.2, 2.6 and 2.0 s with both; 2.2, 2.6 and 2.7 s where three decisions
// go without a look.
const (
	splitsFrom  = 64
	splitsShare = 8
)

// branch propagates the assignment and sums c's residue.
func (s *search) branch(ctx context.Context, c component, share float64) (sum amount, ok bool) {
	if !s.solver.Propagate() {
		s.budget.progress += share
		return amount{}, false
	}
	if !c.stale && c.size() >= splitsFrom && s.splits.poor(c.size(), splitsShare) && s.residual.anyOpen(s.splitter.stack.of(c).vars) {
		// A look would find no parts, most likely; if it would, the next one finds them in both branches, in the second one in the cache.
		c.stale = true
		return s.sum(ctx, c, share)
	}
	extent, first := s.splitter.stack.extent(), len(s.waiting)
	s.trace.stopIfFull()
	product := s.trace.product()
	s.split(c, &product)
	ok = s.sumAll(ctx, s.waiting[first:], share, &product)
	s.waiting = s.waiting[:first]
	s.splitter.stack.cut(extent)
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
		product.timesNumber(s.splitter.addTable(t))
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
			part.wait = c.wait
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

// sumAll multiplies a product by the sums of components, the small ones first: they are the soonest to have no assignment.
func (s *search) sumAll(ctx context.Context, parts []component, share float64, product *product) (ok bool) {
	slices.SortStableFunc(parts, func(a, b component) int { return int(a.size() - b.size()) })
	open := int32(0)
	for _, c := range parts {
		open += c.size()
	}
	before := s.budget.progress
	ok = true
	for i := 0; i < len(parts) && ok; i++ {
		c := parts[i]
		var sum amount
		if sum, ok = s.sum(ctx, c, share*float64(c.size())/float64(open)); ok {
			s.cache.add(c.key, sum, c.size())
			product.times(sum)
		}
	}
	if s.budget.err == nil {
		s.budget.progress = before + share
	}
	return ok
}

// oddsTried is the number of tries at a size before their share counts.
// Measured with splitsShare.
const oddsTried = 64

// odds are the numbers of tries and of finds among them, by the logarithm of a component's size.
type odds [32]struct{ tried, found int64 }

// count counts a try.
func (o *odds) count(size int32, found bool) {
	count := &o[bits.Len32(uint32(size))]
	count.tried++
	if found {
		count.found++
	}
}

// poor reports whether less than one of share tries at a size finds anything.
func (o *odds) poor(size int32, share int64) bool {
	count := o[bits.Len32(uint32(size))]
	return count.tried > oddsTried && count.found*share < count.tried
}
