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
	splits     hitRates    // how often split, the look whether a component falls into several, finds several or one in the cache
	cache      *cache
	heuristic  *heuristic
	eliminator *eliminator
	trace      *trace
	budget     *budget
	stats      Stats
}

// newSearch returns a search over the residual formula r, what the facts at the root leave of it. Its decisions follow a tree
// decomposition. The clauses are those of two literals and more.
func newSearch(r *residual, clauses [][]lit, tree decomposition, digestDrawer drawer, o Options) *search {
	// A third of the memory is for the cache, an eighth for learned clauses. tree.guide is what the decomposition adds to the scores of
	// variables, and tree.inward the order of eliminations, from the leaves of the tree to its middle.
	s := &search{
		solver: r.solver, residual: r, splitter: newSplitter(r, clauses, digestDrawer), cache: newCache(o.Memory / 3),
		trace: newTrace(r.problem, o),
		stats: Stats{Clauses: len(r.clauses), Variables: r.openVariables(), Width: tree.width},
	}
	s.solver.LearnedBytesLimit = o.Memory / 8
	s.heuristic = newHeuristic(s.splitter, clauses, tree.guide(s.stats.Variables), &s.stats)
	s.budget = newBudget(r, &s.stats, tree.cells, o)
	s.eliminator = newEliminator(r, s.trace, s.budget, &s.stats, tree.inward(), o.cells)
	return s
}

// run sums the whole formula. The node of the sum includes the formula's scale and constants (pushConstants); its number does not, so that
// the caller multiplies it by them. Sums of components count each table without the factor of its slice, so the factors come first.
func (s *search) run(ctx context.Context) (sum amount, err error) {
	// The factor of each table, then the sum over the assignments.
	whole := s.splitter.whole()
	product := s.trace.product()
	for _, t := range s.splitter.stack.tables {
		product.timesNumber(scaled.FromFloat(s.residual.sliceOf(t).factor))
	}
	const wholeTree = 1.0 // its share of the progress
	sum, ok := s.branch(ctx, whole, wholeTree)
	s.stats.Work = s.solver.Work
	s.stats.Kept = s.solver.LearnedCount()
	s.stats.Evicted = s.cache.evicted
	if s.budget.err != nil || !ok { // without an error the formula has no assignment: the sum is 0
		return amount{}, s.budget.err
	}
	product.times(sum)
	s.trace.pushConstants()
	return product.end(), nil
}

// sum returns the sum of a component: by elimination if it is narrow, else by a decision on one of its variables, under both values. ok is
// false if the search ends early, or if the formula has no assignment under the present one: then the solver has a conflict, which Analyse
// explains by literals of the present level and below. share is the component's share of the decision tree, which counts as progress.
func (s *search) sum(ctx context.Context, c component, share float64) (sum amount, ok bool) {
	if !s.budget.mayGoOn(ctx) {
		return amount{}, false
	}

	content := s.splitter.stack.contentOf(c)
	if s.eliminator.isWorthLook(c) {
		if sum, c.wait, ok = s.eliminator.sum(ctx, content); ok || s.budget.err != nil {
			return sum, ok
		}
	} else {
		c.wait-- // decisions until the next look; c goes on to the branches
	}
	return s.sumOfDecision(ctx, c, content.vars, share)
}

// sumOfDecision returns the sum of component c, whose Boolean variables are vars, as the sum of two branches: under a decision and under
// its opposite. ok and share are as for sum.
func (s *search) sumOfDecision(ctx context.Context, c component, vars []int32, share float64) (sum amount, ok bool) {
	// If the first branch leads to a conflict, the opposite follows from a learned clause, its reason. learn returns false if the conflict
	// does not depend on the decision: then the component has no assignment.
	sum = amount{node: circuit.Zero}
	decision, reason := s.heuristic.decide(vars), sat.Decided
	for range 2 {
		s.solver.OpenLevel()
		s.solver.Assign(decision, reason)
		s.cache.beginBranch()
		value, ok := s.branch(ctx, c, share/2)
		if s.budget.err != nil {
			return amount{}, false
		}
		if ok {
			sum, reason = s.trace.sum(sum, value), sat.Decided
		} else {
			reason, ok = s.learn()
		}
		s.cache.endBranch()
		s.solver.CloseLevel()
		if !ok {
			return amount{}, false
		}
		decision = decision.Not()
	}
	return sum, true
}

// learn learns a clause from the conflict of the present branch. The clause implies the opposite of the branch's decision once the branch
// is closed; learn returns it as the reason of that literal. It drops what was cached in the branch, since sums under a conflict may be
// wrong. ok is false if the conflict is one of the levels below (Analyse): then it learns nothing.
func (s *search) learn() (reason int32, ok bool) {
	s.stats.Conflicts++
	s.cache.dropBranch()
	const stopsEarly = false
	ok = s.solver.Analyse(stopsEarly)
	s.heuristic.reward(s.solver.MetLiterals)
	if !ok {
		return 0, false
	}
	s.solver.Forget()
	s.stats.Learned++
	return s.solver.Learn(), true
}

// splitsFrom is the number of variables from which a component is not looked at after every decision. A look (split) finds the parts into
// which a component falls. It is left out if less than one of splitsShare looks finds several parts, or one in the cache.
// Measured: planning formulas log-2, log-3, log-4 take 2.5, 4.8 and 3.9 s of CPU time with a look at every component and an eighth of
// the work on looks in vain, 2.3, 3.0 and 2.9 s with denseShare, 2.2, 2.6 and 2.0 s with both; 2.2, 2.6 and 2.7 s where three decisions
// go without a look.
const (
	splitsFrom  = 64
	splitsShare = 8
)

// branch propagates the assignment and returns the sum of component c under it. c may fall into several components (split), whose sums
// are multiplied. ok is false if the search ends early or on a conflict. share is the branch's share of the decision tree, which is added
// to the progress when it is done.
func (s *search) branch(ctx context.Context, c component, share float64) (sum amount, ok bool) {
	if !s.solver.Propagate() {
		s.budget.progress += share
		return amount{}, false
	}

	// If a look (split) at a component of this size seldom finds several parts, decide once more before the next look. If there are parts,
	// that look finds them in both branches, in the second one in the cache.
	isLookInVain := c.size() >= splitsFrom && s.splits.areLow(c.size(), splitsShare)
	if !c.stale && isLookInVain && s.residual.hasOpen(s.splitter.stack.contentOf(c).vars) {
		c.stale = true // its content is that before the assignment
		return s.sum(ctx, c, share)
	}

	extent, first := s.splitter.stack.extent(), len(s.waiting)
	s.trace.stopIfFull()
	product := s.trace.product()
	s.split(c, &product)
	ok = s.sumAll(ctx, s.waiting[first:], share, &product)
	s.waiting = s.waiting[:first] // the lists are as before
	s.splitter.stack.cut(extent)
	if !ok {
		product.drop()
		return amount{}, false
	}
	return product.end(), true
}

// split looks whether component c falls into several components under the present assignment, and finds them. It multiplies the product by
// all that is known:
//
//   - the weights of c's variables that have values;
//   - for each table the factor of its slice under the assignment, divided by the factor of its slice when c was found: the sum of a
//     component does not include the factors of its tables' slices (addTable), and the assignment makes the slices smaller;
//   - the sums of components that are in the cache or single variables.
//
// It appends the other components to s.waiting, and leaves them on the splitter's stack. It counts in s.splits whether the look has found
// something: several components, or one in the cache.
func (s *search) split(c component, product *product) {
	for _, l := range s.splitter.begin(c) {
		product.times(s.trace.weight(l))
	}
	for _, t := range s.splitter.stack.contentOf(c).tables {
		product.timesNumber(s.splitter.addTable(t))
	}

	waitingBefore, hitsBefore := len(s.waiting), s.stats.Hits
	for i := c.from.vars; i < c.to.vars; i++ { // the stack grows, and c's own range stays where it is
		v := s.splitter.stack.vars[i]
		if !s.splitter.isUnreached(v) {
			continue
		}
		part, links := s.splitter.explore(v)
		if sum, ok := s.knownSum(part, links); ok {
			product.times(sum)
			s.splitter.stack.cut(part.from) // takes the component off the stack
		} else {
			part.wait = c.wait // decisions until the next look whether it can be eliminated
			s.waiting = append(s.waiting, part)
		}
	}
	foundSeveral := len(s.waiting) != waitingBefore+1
	foundKnown := s.stats.Hits > hitsBefore
	s.splits.count(c.size(), foundSeveral || foundKnown)
}

// knownSum returns the sum of a component if it is in the cache, or if the component is a single variable of the formula. links is the
// number of clauses and tables between the component's variables: without any the component is a single variable. ok is false if the sum
// is not known.
func (s *search) knownSum(c component, links int) (sum amount, ok bool) {
	if links == 0 {
		return s.sumOfVariable(s.splitter.stack.contentOf(c).vars), true
	}
	s.stats.Components++
	if sum, ok = s.cache.find(c.key); ok {
		s.stats.Hits++
	}
	return sum, ok
}

// sumOfVariable returns the sum of the weights of the open values of a variable of the formula that is in no clause and no table. vars
// are its open Boolean variables. A variable of two values has one Boolean variable, true for one value and false for the other; a
// variable of more values has one for each of its open values.
func (s *search) sumOfVariable(vars []int32) amount {
	sum := amount{node: circuit.Zero}
	for _, v := range vars {
		sum = s.trace.sum(sum, s.trace.weight(positive(v)))
	}
	if v := vars[0]; !s.residual.problem.isOneOfMany[v] {
		sum = s.trace.sum(sum, s.trace.weight(negative(v))) // the other value
	}
	return sum
}

// sumAll multiplies the product by the sums of the components in parts, and adds each sum to the cache. Small components come first, since
// a conflict in them is found soonest. ok is false if the search ends early or on a conflict. share is the share of the decision tree that
// all parts have together; each part gets a part of it by its size. The share of what is done adds up in s.budget.progress.
func (s *search) sumAll(ctx context.Context, parts []component, share float64, product *product) (ok bool) {
	slices.SortStableFunc(parts, func(a, b component) int { return int(a.size() - b.size()) })
	totalSize := int32(0)
	for _, c := range parts {
		totalSize += c.size()
	}
	progressBefore := s.budget.progress
	ok = true
	for i := 0; i < len(parts) && ok; i++ {
		c := parts[i]
		var sum amount
		if sum, ok = s.sum(ctx, c, share*float64(c.size())/float64(totalSize)); ok {
			s.cache.add(c.key, sum, c.size())
			product.times(sum)
		}
	}
	if s.budget.err == nil { // the search goes on: all parts are done, also those that a conflict makes needless
		s.budget.progress = progressBefore + share
	}
	return ok
}

// minTries is the number of looks at components of a size before the share of those that found something counts.
// Measured with splitsShare.
const minTries = 64

// hitRates count looks at components, and those that found something, by the number of bits of the component's size.
type hitRates [32]struct{ tried, found int64 }

// count counts a look at a component of this size, and whether it has found something. Sizes of equal bit length are counted together.
func (o *hitRates) count(size int32, found bool) {
	count := &o[bits.Len32(uint32(size))]
	count.tried++
	if found {
		count.found++
	}
}

// areLow reports whether less than one in share looks at components of this size have found something. Up to minTries looks do not count.
func (o *hitRates) areLow(size int32, share int64) bool {
	count := o[bits.Len32(uint32(size))]
	return count.tried > minTries && count.found*share < count.tried
}
