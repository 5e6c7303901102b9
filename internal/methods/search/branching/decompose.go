package branching

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/engine/minibuckets"
	"github.com/basetensor/basetensor/internal/methods/search/andor"
)

// How a search along separators shares the work with the search of nodes. Mini-buckets take as much work as the search has done each time
// that it has doubled: their entries take a quarter of the time of others. The search with their bound takes as much again if the gap
// between bound and best assignment is a quarter (closerFactor) of that of the open nodes. For another gap the work changes with the square
// of that ratio, up to maxWorkRatio times the search's work. If the ratio is below 1, the next mini-buckets take that part, too.
// Measured: 1.8 to 16 parts where that search ends (CSP_13, linkage_23, Grids_17), 1 to 2 of radio links and linkage_11, where it does not.
const (
	closerFactor = 4.0
	maxWorkRatio = 8
)

// decomposition is the network at the root, in the form for a search along its separators.
type decomposition struct {
	search      *andor.Search       // nil: there is no elimination order yet
	baseBound   int64               // lower bound at the root; costs of search are in addition to it
	variables   []int32             // open variables at the root; search numbers them in this order
	index       []int               // by variable of the network: its place in variables
	liveValues  [][]int32           // by place in variables: its live values; search numbers them in this order
	countedWork int64               // of search.Work, what the solver's work contains already
	workRatio   float64             // work of the next search, as a multiple of the solver's work
	tables      []minibuckets.Costs // nil: the costs are too large for mini-buckets
}

// decompose searches for the best assignment along the separators of the network at the root: sets of variables whose values make parts of
// the network independent. It takes a share of the work so far. First it makes larger mini-buckets, offers the assignment that they
// suggest, and takes their bound as s.provenBound. Each call continues the search of the call before. It does nothing if several
// assignments are wanted, if the solver is not to search along separators (isNodewise), or if the work has ended.
func decompose(s *solver) {
	if s.wantedCount > 1 || s.isNodewise || s.isOver() || len(s.open) == 0 {
		return
	}
	if s.decomposition == nil {
		s.decomposition = newDecomposition(s)
	}
	p := s.decomposition
	if p.tables == nil { // the costs are too large for mini-buckets
		return
	}

	// The work of this call.
	remaining := int64(math.MaxInt64)
	if s.workLimit > 0 {
		remaining = s.workLimit - s.work
	}
	work := min(int64(float64(s.work)*min(p.workRatio, 1)), remaining)
	if p.search == nil && !p.planSearch(s, work/4) { // an elimination order, for a quarter of the work; false if none is found
		return
	}
	defer p.countWork(s) // adds the work of p.search to that of s

	// Larger mini-buckets, their assignment and their bound, then the search itself.
	isWider, err := p.search.WidenMiniBuckets(s.ctx, work)
	if err != nil { // the search goes on without
		return
	}
	if isWider {
		p.offer(s, p.search.GreedyAssignment())
	}
	s.provenBound = max(s.provenBound, p.baseBound+p.search.Bound)
	if s.provenBound < s.upperBound {
		p.solve(s, remaining-(p.search.Work-p.countedWork)) // less the work of this call, which is not in s.work yet
	}
}

// planSearch makes p.search, the search along separators of the decomposition's tables. Finding its elimination order takes at most the
// given work. It returns false if there is no search, because the work was not enough or the context has ended; then s.work counts all of
// it.
func (p *decomposition) planSearch(s *solver, work int64) bool {
	dims := make([]int, len(p.liveValues))
	for i := range dims {
		dims[i] = len(p.liveValues[i])
	}
	search, err := andor.New(s.ctx, dims, p.tables, s.openBytesLimit, work)
	if err != nil || search == nil {
		s.work += work
		return false
	}
	p.search = search
	return true
}

// countWork adds the work of the search along separators since the last call to that of the solver.
func (p *decomposition) countWork(s *solver) {
	s.work += p.search.Work - p.countedWork
	p.countedWork = p.search.Work
}

// solve searches along the separators (p.search) for an assignment better than the best one, and offers it. Its work is workRatio times
// that of the solver, at most remaining:
//
//	workRatio = (gap of the open nodes / closerFactor / gap of the mini-buckets)², at most maxWorkRatio,
//
// where a gap is the distance of a bound to the cost of the best assignment, upperBound. The bound of the open nodes is that of the first
// one, the bound of the mini-buckets is s.provenBound. Costs of p.search are in addition to p.baseBound. At the end its bound may raise
// s.provenBound.
func (p *decomposition) solve(s *solver, remaining int64) {
	nodesGap, provenGap := float64(s.upperBound-s.open[0].bound), float64(s.upperBound-s.provenBound)
	gapRatio := nodesGap / closerFactor / provenGap
	p.workRatio = min(gapRatio*gapRatio, maxWorkRatio)
	work := min(max(remaining, 1), int64(float64(s.work)*p.workRatio))
	nodesBefore := p.search.Nodes
	if values := p.search.Solve(s.ctx, s.upperBound-p.baseBound, work); values != nil {
		p.offer(s, values)
	}
	s.stats.Decomposed += p.search.Nodes - nodesBefore
	s.provenBound = max(s.provenBound, p.baseBound+p.search.Bound)
}

// offer offers the solver an assignment as a solution, before and after a local search (improve) makes it cheaper. numbers[i] is the
// place of the i-th variable's value in p.liveValues[i]. Assigned variables have their only value. Eliminated variables get their
// cheapest values, given those of the others.
func (p *decomposition) offer(s *solver, numbers []int) {
	s.assignFixed()
	for i, x := range p.variables {
		s.values[x] = int(p.liveValues[i][numbers[i]])
	}
	s.assignEliminated()
	s.offer(s.values)
	s.improve(s.values)
	s.offer(s.values)
}

// newDecomposition returns the network of the open variables as tables for mini-buckets: their unary costs and their functions over live
// values, with the present costs. A combination is forbidden if no assignment with it is better than the best one. The tables are nil if
// costs may exceed what mini-buckets can add up.
func newDecomposition(s *solver) *decomposition {
	p := &decomposition{baseBound: s.lowerBound(), workRatio: 1, index: make([]int, len(s.vars))}
	for x := range s.vars {
		if s.isOpen(int32(x)) {
			p.addVariable(s, int32(x))
		}
	}
	for k := 0; k < len(s.arcs); k += 2 { // a function of two variables has two arcs
		if e := &s.arcs[k]; s.isActive(e.activeCell) {
			p.addFunction(s, []int32{e.from, e.to}, func(v []int32) int64 { return s.pairCost(int32(k), v[0], v[1]) })
		}
	}
	for k := range s.wides {
		if w := &s.wides[k]; s.isActive(w.activeCell) {
			p.addWide(s, w)
		}
	}
	if s.upperBound-p.baseBound > minibuckets.Forbidden/4 {
		p.tables = nil
	}
	return p
}

// addVariable adds an open variable of the solver to the network of p, whose variables and values have numbers of their own. The variable
// gets the next number, and its live values are numbered in ascending order. Their unary costs become a table.
func (p *decomposition) addVariable(s *solver, x int32) {
	p.index[x] = len(p.variables)
	live := slices.Clone(s.liveValues(x))
	slices.Sort(live)
	p.variables, p.liveValues = append(p.variables, x), append(p.liveValues, live)
	table := minibuckets.Costs{Scope: []int{p.index[x]}}
	for _, a := range live {
		table.Values = append(table.Values, s.unaryCost(&s.vars[x], a))
	}
	p.tables = append(p.tables, table)
}

// addFunction adds the table of a function of open variables to the network of p, over their live values. cost(values) is the function,
// with the values in the order of scope. An entry is forbidden if its cost, the unary costs of its values and the bound together reach
// upperBound.
func (p *decomposition) addFunction(s *solver, scope []int32, cost func(values []int32) int64) {
	gap := s.upperBound - p.baseBound
	table := minibuckets.Costs{}
	size := 1
	for _, x := range scope {
		table.Scope = append(table.Scope, p.index[x])
		size *= len(p.liveValues[p.index[x]])
	}
	table.Values = make([]int64, size)
	values := make([]int32, len(scope))
	for k := range table.Values {
		// The digits of k are the numbers of the live values, that of the last variable first.
		digits, unary := k, int64(0)
		for i := len(scope) - 1; i >= 0; i-- {
			live := p.liveValues[table.Scope[i]]
			values[i] = live[digits%len(live)]
			digits /= len(live)
			unary += s.unaryCost(&s.vars[scope[i]], values[i])
		}
		if table.Values[k] = cost(values); table.Values[k]+unary >= gap {
			table.Values[k] = minibuckets.Forbidden
		}
	}
	s.work += int64(size)
	p.tables = append(p.tables, table)
}

// addWide adds the table of function w, one of more than two variables, over its open variables. The other variables are assigned: their
// values select a part of w's table. Costs that were moved from w to values are subtracted.
func (p *decomposition) addWide(s *solver, w *wide) {
	var scope []int32
	var positions []int // of the variables of scope in w.scope
	baseIndex := int32(0)
	moved := int64(0) // to the values of the assigned variables
	for i, x := range w.scope {
		if s.isOpen(x) {
			scope, positions = append(scope, x), append(positions, i)
		} else {
			a := s.vars[x].live[0]
			baseIndex += a * w.strides[i]
			moved += s.movedOutWide(w, i, a)
		}
	}

	p.addFunction(s, scope, func(v []int32) int64 {
		index, cost := int(baseIndex), -moved
		for j, i := range positions {
			index += int(v[j] * w.strides[i])
			cost -= s.movedOutWide(w, i, v[j])
		}
		return w.table[index] + cost
	})
}
