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

// decompose searches for the best assignment along the separators of the network at the root, for a share of the work so far. It widens the
// mini-buckets first and offers the assignment that they suggest. A search continues with the bounds and the memory of the one before. It
// does nothing if several assignments are wanted, if the search is nodewise, or if the work has ended.
func decompose(s *solver) {
	if s.count > 1 || s.isNodewise || s.isOver() || len(s.open) == 0 {
		return
	}
	if s.decomposition == nil {
		s.decomposition = newDecomposition(s)
	}
	p := s.decomposition
	if p.tables == nil {
		return
	}
	remaining := int64(math.MaxInt64)
	if s.workLimit > 0 {
		remaining = s.workLimit - s.work
	}
	work := min(int64(float64(s.work)*min(p.workRatio, 1)), remaining)
	if p.search == nil && !p.planSearch(s, work/4) {
		return
	}
	defer p.countWork(s)
	isWider, err := p.search.Widen(s.ctx, work)
	if err != nil {
		return
	}
	if isWider {
		p.offer(s, p.search.Dive())
	}
	s.provenBound = max(s.provenBound, p.baseBound+p.search.Bound)
	if s.provenBound < s.upperBound {
		p.solve(s, remaining-(p.search.Work-p.countedWork))
	}
}

// planSearch makes the search along separators, whose elimination order may take that work. It returns false if there is none: the work was
// not enough or the context has ended.
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
	s.work, p.countedWork = s.work+p.search.Work-p.countedWork, p.search.Work
}

// solve searches along the separators for an assignment better than the best one, and offers it. It takes remaining work at most, and sets
// workRatio by how much smaller the gap to the best assignment is than that of the open nodes.
func (p *decomposition) solve(s *solver, remaining int64) {
	gapRatio := float64(s.upperBound-s.open[0].bound) / closerFactor / float64(s.upperBound-s.provenBound)
	p.workRatio = min(gapRatio*gapRatio, maxWorkRatio)
	work := min(max(remaining, 1), int64(float64(s.work)*p.workRatio))
	nodes := p.search.Nodes
	if values := p.search.Solve(s.ctx, s.upperBound-p.baseBound, work); values != nil {
		p.offer(s, values)
	}
	s.stats.Decomposed += p.search.Nodes - nodes
	s.provenBound = max(s.provenBound, p.baseBound+p.search.Bound)
}

// offer offers the solver an assignment of the variables that are open at the root, before and after a local search improves it. values has
// the number of each variable's value among liveValues.
func (p *decomposition) offer(s *solver, values []int) {
	s.assignFixed()
	for i, x := range p.variables {
		s.values[x] = int(p.liveValues[i][values[i]])
	}
	s.assignEliminated()
	s.offer(s.values)
	s.improve(s.values)
	s.offer(s.values)
}

// newDecomposition returns the network of the open variables: their functions over live values, less the costs that were moved out.
// Combinations that no assignment of interest has are forbidden. Its tables are nil if costs may exceed what mini-buckets add up.
func newDecomposition(s *solver) *decomposition {
	p := &decomposition{baseBound: s.lowerBound(), workRatio: 1, index: make([]int, len(s.vars))}
	for x := range s.vars {
		if s.isOpen(int32(x)) {
			p.addVariable(s, int32(x))
		}
	}
	for k := 0; k < len(s.arcs); k += 2 {
		if e, reverse := &s.arcs[k], &s.arcs[k+1]; s.cells[e.activeCell] != 0 {
			p.addFunction(s, []int32{e.from, e.to}, func(v []int32) int64 {
				cost := e.table[int(v[0])*s.vars[e.to].domainSize+int(v[1])]
				return cost - s.cells[e.movedCell+int(v[0])] - s.cells[reverse.movedCell+int(v[1])]
			})
		}
	}
	for k := range s.wides {
		if w := &s.wides[k]; s.cells[w.activeCell] != 0 {
			p.addWide(s, w)
		}
	}
	if s.upperBound-p.baseBound > minibuckets.Forbidden/4 {
		p.tables = nil
	}
	return p
}

// addVariable adds an open variable with its live values in ascending order, and its unary costs as a table.
func (p *decomposition) addVariable(s *solver, x int32) {
	p.index[x] = len(p.variables)
	live := slices.Clone(s.liveValues(x))
	slices.Sort(live)
	p.variables, p.liveValues = append(p.variables, x), append(p.liveValues, live)
	table := minibuckets.Costs{Scope: []int{p.index[x]}}
	for _, a := range live {
		table.Of = append(table.Of, s.cells[s.vars[x].unaryCell+int(a)])
	}
	p.tables = append(p.tables, table)
}

// addFunction adds the table of a function of open variables over their live values. cost returns the function at values, which are in the
// order of scope. An entry is forbidden if it and the unary costs of its values together reach the best assignment.
func (p *decomposition) addFunction(s *solver, scope []int32, cost func(values []int32) int64) {
	slack := s.upperBound - p.baseBound
	table := minibuckets.Costs{}
	size := 1
	for _, x := range scope {
		table.Scope = append(table.Scope, p.index[x])
		size *= len(p.liveValues[p.index[x]])
	}
	table.Of = make([]int64, size)
	values := make([]int32, len(scope))
	for k := range table.Of {
		// The digits of k are the numbers of the live values, that of the last variable first.
		digits, unary := k, int64(0)
		for i := len(scope) - 1; i >= 0; i-- {
			live := p.liveValues[table.Scope[i]]
			values[i] = live[digits%len(live)]
			digits /= len(live)
			unary += s.cells[s.vars[scope[i]].unaryCell+int(values[i])]
		}
		if table.Of[k] = cost(values); table.Of[k]+unary >= slack {
			table.Of[k] = minibuckets.Forbidden
		}
	}
	s.work += int64(size)
	p.tables = append(p.tables, table)
}

// addWide adds a wide function over its open variables. The others have one value each, which selects a part of the table.
func (p *decomposition) addWide(s *solver, w *wide) {
	var scope []int32
	var positions []int                    // of the variables of scope in w.scope
	baseIndex, moved := int32(0), int64(0) // of the values of the others
	for i, x := range w.scope {
		if s.isOpen(x) {
			scope, positions = append(scope, x), append(positions, i)
		} else {
			a := s.vars[x].live[0]
			baseIndex += a * w.strides[i]
			moved += s.cells[w.movedCells[i]+int(a)]
		}
	}
	p.addFunction(s, scope, func(v []int32) int64 {
		index, cost := int(baseIndex), -moved
		for j, i := range positions {
			index += int(v[j] * w.strides[i])
			cost -= s.cells[w.movedCells[i]+int(v[j])]
		}
		return w.table[index] + cost
	})
}
