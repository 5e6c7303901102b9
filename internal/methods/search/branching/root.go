package branching

import "slices"

// numberVariables makes the numbers of the variables their ranks in the order of directional consistency.
func (s *propagator) numberVariables() {
	s.order = make([]int32, len(s.vars))
	for x := range s.order {
		s.order[x] = int32(x)
		s.vars[x].rank = x
	}
}

// reverseOrder reverses the order and makes the network consistent in it, so that costs move the other way. It returns false on a conflict.
func (s *solver) reverseOrder() bool {
	slices.Reverse(s.order)
	for r, x := range s.order {
		s.vars[x].rank = r
	}
	return s.propagateAll()
}

// Sweeps of the root's message passing, at most maxSweeps. They end when the bound rises by less than one part in slowestRise of its rise
// so far, or of the gap to the best assignment. After every roundEvery of them an assignment is read off.
const (
	maxSweeps   = 200
	slowestRise = 1 << 11
	roundEvery  = 8
)

// passMessages moves costs at the root by message passing, in sweeps up and down the order: every variable takes the least costs from its
// functions, gives the least one to the bound, and shares the others among the functions that lead on. The bound never falls. Brief
// searches look for a quick end in between. It returns false if no assignment of interest is left, and true if the sweeps or the work have
// ended.
func (s *solver) passMessages() bool {
	start, lastSearch := s.lowerBound(), int64(0)
	for k := 0; k < maxSweeps && !s.stopped; k++ {
		before := s.lowerBound()
		if s.work >= 2*lastSearch {
			if s.searchBriefly(s.work / tryShare) {
				return false
			}
			lastSearch = s.work
		}
		isUp := k%2 == 0
		for i := range s.order {
			x := s.order[i]
			if !isUp {
				x = s.order[len(s.order)-1-i]
			}
			if s.isOver() {
				return true
			}
			if !s.passMessagesOf(x, isUp, k == 0) {
				return false
			}
		}
		s.trail = s.trail[:0]
		if k%roundEvery == roundEvery-1 {
			s.offerRounded()
		}
		if rise := s.lowerBound() - before; k > 4 && rise <= min(s.lowerBound()-start, s.slack())/slowestRise {
			break
		}
	}
	return true
}

// tryShare is the share of the work so far, as a divisor, that a brief search takes each time that the work has doubled.
const tryShare = 2

// searchBriefly searches depth first from the root for that work, and reports whether that was the whole search. Better assignments and the
// weights of conflicts remain of it, and otherwise nothing.
func (s *solver) searchBriefly(work int64) (isComplete bool) {
	leafFloor := s.leafFloor
	isComplete = runWithoutTrace(s, func() bool {
		return !s.propagate() || s.searchDepthFirst(s.path[:0], maxDive, s.work+work, nil)
	})
	if !isComplete {
		s.leafFloor = leafFloor // the search of nodes meets its leaves again
	}
	return isComplete
}

// runWithoutTrace returns the result of f. Network and queues are as before then.
func runWithoutTrace(s *solver, f func() bool) bool {
	var saved [4]queue
	queues := [...]*queue{&s.shrunk, &s.raised, &s.doubtful, &s.eliminable}
	for k, q := range queues {
		saved[k] = queue{slices.Clone(q.words), q.count}
	}
	fixed := slices.Clone(s.fixed)
	s.push()
	result := f()
	s.pop()
	for k, q := range queues {
		*q = saved[k]
	}
	s.fixed = fixed
	return result
}

// passMessagesOf is the step of a sweep of message passing for variable x: it takes costs from functions, then gives equal shares of its
// unary costs to the functions that lead on. It returns false on a conflict.
func (s *propagator) passMessagesOf(x int32, isUp, isFirst bool) bool {
	if !s.isOpen(x) {
		return true
	}
	shares, ok := s.takeMessages(x, isUp, isFirst)
	if !ok {
		return false
	}
	if shares > 0 {
		s.giveMessages(x, shares, isUp)
	}
	return true
}

// takeMessages gives x simple support from the functions that the sweep comes from, in the first sweep from all: the others have had no
// costs to give since the sweep before. It returns the number of functions that lead up or that lead down, whichever is larger; a wide
// function may do both. ok is false on a conflict.
func (s *propagator) takeMessages(x int32, isUp, isFirst bool) (shares int64, ok bool) {
	v := &s.vars[x]
	downCount, upCount := int64(0), int64(0)
	for _, id := range v.arcs {
		e := &s.arcs[id]
		if s.cells[e.activeCell] == 0 {
			continue
		}
		leadsDown := s.vars[e.to].rank < v.rank
		if leadsDown {
			downCount++
		} else {
			upCount++
		}
		if (isFirst || leadsDown == isUp) && !s.simpleSupport(id) {
			return 0, false
		}
	}
	for _, id := range v.wides {
		w := &s.wides[id]
		if s.cells[w.activeCell] == 0 {
			continue
		}
		leadsDown, leadsUp := s.hasOpenAround(w, v.rank)
		if leadsDown {
			downCount++
		}
		if leadsUp {
			upCount++
		}
		comesFrom := isUp && leadsDown || !isUp && leadsUp
		if (isFirst || comesFrom) && !s.wideSimpleSupport(id, slices.Index(w.scope, x)) {
			return 0, false
		}
	}
	return max(downCount, upCount), true
}

// giveMessages moves one part in shares of every unary cost of x into each function that leads on in the direction of the sweep.
func (s *propagator) giveMessages(x int32, shares int64, isUp bool) {
	v := &s.vars[x]
	for _, a := range s.liveValues(x) {
		s.valueCosts[a] = s.cells[v.unaryCell+int(a)] / shares
	}
	for _, id := range v.arcs {
		e := &s.arcs[id]
		if leadsUp := s.vars[e.to].rank > v.rank; s.cells[e.activeCell] != 0 && leadsUp == isUp {
			s.moveIntoFunction(x, e.movedCell)
		}
	}
	for _, id := range v.wides {
		w := &s.wides[id]
		if s.cells[w.activeCell] == 0 {
			continue
		}
		if leadsDown, leadsUp := s.hasOpenAround(w, v.rank); isUp && leadsUp || !isUp && leadsDown {
			s.moveIntoFunction(x, w.movedCells[slices.Index(w.scope, x)])
		}
	}
}

// moveIntoFunction moves s.valueCosts from the unary costs of x into a function, whose cells for x begin at movedCell.
func (s *propagator) moveIntoFunction(x int32, movedCell int) {
	v := &s.vars[x]
	for _, a := range s.liveValues(x) {
		if s.valueCosts[a] > 0 && !s.isFar(movedCell+int(a)) {
			s.set(movedCell+int(a), s.cells[movedCell+int(a)]-s.valueCosts[a])
			s.set(v.unaryCell+int(a), s.cells[v.unaryCell+int(a)]-s.valueCosts[a])
		}
	}
}

// offerRounded offers two assignments that the moved costs suggest, one up and one down the order, before and after a local search: every
// open variable takes its cheapest value, given the values of the variables that had their turn before (Kolmogorov, PAMI 2006).
func (s *finder) offerRounded() {
	for _, isUp := range []bool{true, false} {
		s.assignFixed()
		for i := range s.order {
			x := s.order[i]
			if !isUp {
				x = s.order[len(s.order)-1-i]
			}
			if s.isOpen(x) {
				s.values[x] = s.cheapestGivenRanked(x, isUp)
			}
		}
		s.completeAssignment()
		s.offer(s.values)
		s.improve(s.values)
		s.offer(s.values)
	}
}

// cheapestGivenRanked returns the live value of x with the least cost under the costs as moved: its unary cost, and the functions whose
// other open variables all have values already. These have lower ranks than x if lower is set, else higher ranks.
func (s *finder) cheapestGivenRanked(x int32, lower bool) int {
	v := &s.vars[x]
	costs := s.valueCosts[:v.domainSize]
	copy(costs, s.cells[v.unaryCell:])
	for _, id := range v.arcs {
		e := &s.arcs[id]
		if s.cells[e.activeCell] == 0 || (s.vars[e.to].rank < v.rank) != lower {
			continue
		}
		reverse := &s.arcs[id^1]
		for a, c := range reverse.table[s.values[e.to]*v.domainSize:][:v.domainSize] {
			costs[a] += c - s.cells[e.movedCell+a]
		}
		s.work += int64(v.domainSize)
	}
	for _, id := range v.wides {
		w := &s.wides[id]
		if leadsDown, leadsUp := s.hasOpenAround(w, v.rank); s.cells[w.activeCell] == 0 || lower && leadsUp || !lower && leadsDown {
			continue
		}
		index, stride, movedCell := 0, 0, 0
		for i, y := range w.scope {
			if y == x {
				stride, movedCell = int(w.strides[i]), w.movedCells[i]
			} else {
				index += s.values[y] * int(w.strides[i])
			}
		}
		for a := range costs {
			costs[a] += w.table[index+a*stride] - s.cells[movedCell+a]
		}
		s.work += int64(v.domainSize)
	}
	best := -1
	for a, c := range costs { // of equal ones the first, whatever was searched before
		if s.isLive(x, int32(a)) && (best < 0 || c < costs[best]) {
			best = a
		}
	}
	return best
}

// hasOpenAround reports whether a wide function has open variables of lower and of higher rank.
func (s *propagator) hasOpenAround(w *wide, rank int) (lower, higher bool) {
	for _, x := range w.scope {
		if r := s.vars[x].rank; s.isOpen(x) {
			lower = lower || r < rank
			higher = higher || r > rank
		}
	}
	return lower, higher
}
