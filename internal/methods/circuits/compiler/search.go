package compiler

// The search: decide, propagate, split, sum.

import (
	"context"
	"math/bits"
	"slices"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/circuits/circuit"
	"github.com/basetensor/basetensor/internal/methods/circuits/sat"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// search is the state of one search.
type search struct {
	ctx       context.Context
	o         Options
	residual  *residual
	solver    *sat.Solver
	splitter  *splitter
	cache     *cache
	heuristic heuristic
	dense     eliminator
	trace     *trace
	stats     Stats

	waiting  []component // found, and not yet summed
	splits   odds        // of looks at components: that one finds several, or a known one
	looks    odds        // of looks at the tables of a component: that they are small enough
	progress float64     // the finished fraction of the decision tree, both values of a decision taken as alike
	begun    int64       // work when the search began
	cells    float64     // assignments of all bags of the tree decomposition
	rival    float64     // steps in the time of another way; 0: it is not known

	checked int64 // work when the context was last looked at
	err     error // why the search ends early
}

// newSearch makes a search over the clauses of two literals and more and the tables of p. Facts are assigned at the root.
func newSearch(ctx context.Context, p *problem, facts []lit, clauses [][]lit, o Options) *search {
	numbers := newDrawer(p, clauses)
	r := newResidual(p, facts, clauses, numbers)
	r.solver.Room = o.Memory / 8
	s := &search{
		ctx: ctx, o: o, residual: r, solver: r.solver, splitter: newSplitter(r, clauses, numbers), cache: newCache(o.Memory / 3),
		trace: newTrace(p, o),
	}
	s.heuristic = newHeuristic(p, r.value, clauses, s.splitter.clauses, s.splitter.tables)
	s.stats.Clauses, s.stats.Variables = len(r.clauses), r.openVariables()
	return s
}

// run sums the whole formula, without its scale and constants.
func (s *search) run() (amount, error) {
	whole := s.splitter.whole()
	product := s.trace.product()
	for _, t := range s.splitter.stack.tables {
		product.timesNumber(scaled.FromFloat(s.residual.tables[t.table].met[t.slice].factor))
	}
	sum, ok := s.branch(whole, 1, 0)
	s.stats.Work = s.solver.Work
	s.stats.Decisions = s.heuristic.decisions
	s.stats.Kept = s.solver.Kept()
	s.stats.Evicted = s.cache.evicted
	if s.err != nil || !ok {
		return amount{}, s.err
	}
	product.times(sum)
	s.trace.pushConstants()
	return product.end(), nil
}

// sum returns the sum of a component, or false where the formula has no assignment under the present one:
// then Analyse says why, by literals of the present level and below. Its share of the whole tree counts as progress.
func (s *search) sum(c component, share float64) (amount, bool) {
	if !s.goOn() {
		return amount{}, false
	}
	wait := int32(0)
	if !c.stale && s.narrow(c) {
		value, log2, ok := s.eliminate(c)
		if ok || s.err != nil {
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
		value, ok := s.branch(c, share/2, wait)
		if s.err != nil {
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
func (s *search) branch(c component, share float64, wait int32) (amount, bool) {
	if !s.solver.Propagate() {
		s.progress += share
		return amount{}, false
	}
	vars := s.splitter.stack.of(c).vars
	if !c.stale && len(vars) >= splitsFrom && s.splits.poor(c.size(), splitsShare) && s.residual.anyOpen(vars) {
		// A look would find no parts, most likely; if it would, the next one finds them in both branches, in the second one in the cache.
		c.stale, c.wait = true, wait
		return s.sum(c, share)
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
	before := s.progress
	ok := true
	for i := first; i < end && ok; i++ {
		part := s.waiting[i]
		var value amount
		if value, ok = s.sum(part, share*float64(part.size())/float64(open)); ok {
			s.cache.add(part.key, value, part.size())
			product.times(value)
		}
	}
	if s.err == nil {
		s.progress = before + share
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

// checkEvery is the work between two looks at the context: some milliseconds.
const checkEvery = 1 << 18

// nearEnd is how many times its work a search may take where what is left of it, by the fraction that is done, takes less than the
// elimination.
// Measured: logistics.b has 0.6 done after 0.45 of its 2.8e8 steps, where it was given up for a tree that took twice as long; weighted
// formula 121 is summed in 4.7e9 steps, of whose decisions more than 0.99 are done in 2e9, and in cubes takes twice as long.
const nearEnd = 4

// leads reports whether the search goes on after its work because another way takes longer.
func (s *search) leads() bool {
	if s.o.Rival != nil {
		s.rival = min(s.o.Rival(), s.cells/policy.StepCells)
		s.o.Rival = nil
		s.o.Work = max(s.o.Work, int64(s.rival/2))
	}
	remaining := float64(s.solver.Work-s.begun) * (1 - s.progress)
	return s.solver.Work <= s.o.Work || s.solver.Work <= nearEnd*s.o.Work && remaining < s.rival*s.progress
}

// goOn looks at the budgets.
func (s *search) goOn() bool {
	switch {
	case s.err != nil:
		return false
	case s.o.Work > 0 && s.solver.Work > s.o.Work && !s.leads():
		s.err = fault.New(fault.OverBudget,
			"%w: %d steps of work are spent after %d decisions about %d variables, with some %.2g of the search done",
			ErrBudget, s.o.Work, s.heuristic.decisions, s.stats.Variables, s.progress)
	case s.o.CircuitOnly && s.o.Builder != nil && s.o.Builder.Full():
		s.err = fault.New(fault.OverBudget, "%w, after %d steps of work and %d decisions about %d variables, with some %.2g of the search done",
			circuit.ErrFull, s.solver.Work, s.heuristic.decisions, s.stats.Variables, s.progress)
	case s.residual.bytes > s.o.Memory/8:
		s.err = fault.New(fault.OverBudget, "%w: slices of tables take %d bytes, an eighth of the memory is %d",
			ErrBudget, s.residual.bytes, s.o.Memory/8)
	case s.solver.Work-s.checked > checkEvery:
		s.checked = s.solver.Work
		s.err = s.ctx.Err()
	}
	return s.err == nil
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
