package compiler

// The search: decide, propagate, split, sum.

import (
	"context"
	"slices"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/circuits/circuit"
	"github.com/basetensor/basetensor/internal/methods/circuits/sat"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// search is the state of one search.
type search struct {
	*sat.Solver
	trace *trace
	ctx   context.Context
	p     *problem
	o     Options
	graph *graph
	cache *cache
	stats Stats
	all   [][]lit // clauses of two literals and more at the root
	long  [][]lit // clauses of three literals and more, by number

	// Stacks that components are ranges of, and the components that wait.
	vars    []int32
	clauses []int32
	tables  []tableSlice
	parts   []component

	// Marks of split: variables and clauses of the component that are not yet reached carry the number of the walk, which is even;
	// variables that are reached carry the next one.
	epoch        uint32
	varMark      []uint32
	clauseMark   []uint32
	tableMark    []uint32
	tableNow     []int32 // by table: the number of its slice in this walk
	varDigest    []digest
	clauseDigest []digest
	key          digest
	edges        int // links within the component being explored

	slices     []*sliceTable
	values     []int32
	sliceBytes int64

	heuristic heuristic

	splits   odds // of looks at components: that one finds several, or a known one
	looks    odds // of looks at the tables of a component: that they are small enough
	dense    eliminator
	progress float64 // the finished fraction of the decision tree, both values of a decision taken as alike
	begun    int64   // work when the search began
	cells    float64 // assignments of all bags of the tree decomposition
	rival    float64 // steps in the time of another way; 0: it is not known

	checked int64 // work when the context was last looked at
	err     error // why the search ends early
}

// newSearch makes a search over the clauses of two literals and more and the tables of p. Facts are assigned at the root.
func newSearch(ctx context.Context, p *problem, facts []lit, clauses [][]lit, o Options) (*search, error) {
	s := &search{Solver: sat.New(p.first), trace: newTrace(p, o), ctx: ctx, p: p, o: o, all: clauses}
	for _, l := range facts {
		if s.Value[l] == 0 {
			s.Assign(l, sat.Fact)
		}
	}
	numbers := newDrawer(p, clauses)
	long := 0
	for _, c := range clauses {
		s.Attach(slices.Clone(c), 0)
		if len(c) > 2 {
			s.long = append(s.long, c)
			s.clauseDigest = append(s.clauseDigest, numbers.draw())
			long++
		}
	}

	tablesOf := make([][]int32, len(p.f.Domains))
	for i := range p.tables {
		t := &p.tables[i]
		st := newSliceTable(t, numbers)
		s.slices = append(s.slices, st)
		for len(s.values) < len(t.scope) {
			s.values = append(s.values, 0)
		}
		for _, v := range t.scope {
			tablesOf[v] = append(tablesOf[v], int32(i))
		}
	}
	s.tableMark, s.tableNow = make([]uint32, len(p.tables)), make([]int32, len(p.tables))

	n := p.booleans()
	s.graph = newGraph(p, clauses, tablesOf)
	s.varMark, s.clauseMark = make([]uint32, n), make([]uint32, long)
	s.heuristic = newHeuristic(p, s.Value, clauses)
	s.varDigest = make([]digest, n)
	for v := range n {
		s.varDigest[v] = numbers.draw()
	}
	s.cache = newCache(o.Memory / 3)
	for _, c := range supports(p, s.Value, clauses) {
		s.Attach(c, 0)
	}
	s.Room = o.Memory / 8
	s.stats.Clauses = long
	return s, nil
}

// run sums the whole formula, without its scale and constants.
func (s *search) run() (amount, error) {
	whole := component{}
	for v := range s.p.booleans() {
		s.vars = append(s.vars, int32(v))
		if s.Value[2*v] == 0 {
			s.stats.Variables++
		}
	}
	for k := range s.clauseMark {
		s.clauses = append(s.clauses, int32(k))
	}
	product := s.trace.product()
	for t, st := range s.slices {
		open := s.values[:len(st.table.scope)]
		for i := range open {
			open[i] = -1
		}
		whole := st.find(open)
		product.timesNumber(scaled.FromFloat(st.met[whole].factor))
		s.tables = append(s.tables, tableSlice{int32(t), whole})
	}
	whole.varsEnd, whole.clausesEnd, whole.tablesEnd = int32(len(s.vars)), int32(len(s.clauses)), int32(len(s.tables))

	sum, ok := s.branch(whole, 1, 0)
	s.stats.Work = s.Work
	s.stats.Decisions = s.heuristic.decisions
	s.stats.Kept = s.Kept()
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
	decision, reason := s.heuristic.decide(s.vars[c.vars:c.varsEnd]), sat.Decided
	for range 2 {
		s.Open()
		s.Assign(decision, reason)
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
			left := s.Analyse(false)
			s.heuristic.reward(s.Met)
			if !left {
				s.cache.end()
				s.Close()
				return amount{}, false
			}
			s.Forget()
			s.stats.Learned++
			reason = s.Learn()
		}
		s.cache.end()
		s.Close()
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
	if !s.Propagate() {
		s.progress += share
		return amount{}, false
	}
	vars := s.vars[c.vars:c.varsEnd]
	if !c.stale && len(vars) >= splitsFrom && s.splits.poor(c.size(), splitsShare) && someOpen(s.Value, vars) {
		// A look would find no parts, most likely; if it would, the next one finds them in both branches, in the second one in the cache.
		c.stale, c.wait = true, wait
		return s.sum(c, share)
	}
	from := component{vars: int32(len(s.vars)), clauses: int32(len(s.clauses)), tables: int32(len(s.tables))}
	first := len(s.parts)
	s.trace.stopIfFull()
	product := s.trace.product()
	s.split(c, &product)

	// The small ones first: they are the soonest to have no assignment.
	end := len(s.parts)
	slices.SortStableFunc(s.parts[first:end], func(a, b component) int { return int(a.size() - b.size()) })
	open := int32(0)
	for i := range s.parts[first:end] {
		s.parts[first+i].wait = wait
		open += s.parts[first+i].size()
	}
	before := s.progress
	ok := true
	for i := first; i < end && ok; i++ {
		part := s.parts[i]
		var value amount
		if value, ok = s.sum(part, share*float64(part.size())/float64(open)); ok {
			s.cache.add(part.key, value, part.size())
			product.times(value)
		}
	}
	if s.err == nil {
		s.progress = before + share
	}
	s.parts = s.parts[:first]
	s.forget(from)
	if !ok {
		product.drop()
		return amount{}, false
	}
	return product.end(), true
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
	remaining := float64(s.Work-s.begun) * (1 - s.progress)
	return s.Work <= s.o.Work || s.Work <= nearEnd*s.o.Work && remaining < s.rival*s.progress
}

// goOn looks at the budgets.
func (s *search) goOn() bool {
	switch {
	case s.err != nil:
		return false
	case s.o.Work > 0 && s.Work > s.o.Work && !s.leads():
		s.err = fault.New(fault.OverBudget,
			"%w: %d steps of work are spent after %d decisions about %d variables, with some %.2g of the search done",
			ErrBudget, s.o.Work, s.heuristic.decisions, s.stats.Variables, s.progress)
	case s.o.CircuitOnly && s.o.Builder != nil && s.o.Builder.Full():
		s.err = fault.New(fault.OverBudget, "%w, after %d steps of work and %d decisions about %d variables, with some %.2g of the search done",
			circuit.ErrFull, s.Work, s.heuristic.decisions, s.stats.Variables, s.progress)
	case s.sliceBytes > s.o.Memory/8:
		s.err = fault.New(fault.OverBudget, "%w: slices of tables take %d bytes, an eighth of the memory is %d",
			ErrBudget, s.sliceBytes, s.o.Memory/8)
	case s.Work-s.checked > checkEvery:
		s.checked = s.Work
		s.err = s.ctx.Err()
	}
	return s.err == nil
}
