package branching

import "slices"

// numberVariables makes the number of each variable its rank in the order of directional consistency.
func (s *propagator) numberVariables() {
	s.order = make([]int32, len(s.vars))
	for x := range s.order {
		s.order[x] = int32(x)
		s.vars[x].rank = x
	}
}

// reverseOrder reverses the order of directional consistency and makes the network consistent in it: costs now move the other way. It
// returns false on a conflict.
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

// passMessages raises the bound at the root by message passing, in sweeps up and down the order of variables. Every variable takes the
// least costs from its functions and gives the least cost of its values to the bound. It divides what remains of its costs among the
// functions with variables that come later in the sweep. The bound never falls.
//
// It returns true when the sweeps or the work have ended. It returns false if no assignment is better than the best one so far. A conflict
// shows that, or a brief search of all nodes, which it tries each time that the work has doubled.
func (s *solver) passMessages() bool {
	startBound, lastSearchWork := s.lowerBound(), int64(0)
	for k := 0; k < maxSweeps && !s.stopped; k++ {
		boundBefore := s.lowerBound()
		if s.work >= 2*lastSearchWork {
			if s.searchBriefly(s.work / tryShare) {
				return false
			}
			lastSearchWork = s.work
		}

		isUp, isFirst := k%2 == 0, k == 0
		if !s.sweep(isUp, isFirst) {
			return false
		}
		if s.stopped { // in the middle of the sweep
			return true
		}
		s.trail = s.trail[:0] // nothing of the root is taken back

		if k%roundEvery == roundEvery-1 {
			s.offerRounded()
		}
		// End when a sweep raises the bound by a small part of the rise so far, or of the gap to the best assignment: from the 6th sweep on.
		if rise := s.lowerBound() - boundBefore; k > 4 && rise <= min(s.lowerBound()-startBound, s.gap())/slowestRise {
			break
		}
	}
	return true
}

// sweep passes the messages of all variables, in the order of ranks if isUp is set, else in the reverse of it. It ends early, and sets
// s.stopped, when the work or the context has ended. It returns false on a conflict.
func (s *propagator) sweep(isUp, isFirst bool) bool {
	for i := range s.order {
		x := s.order[i]
		if !isUp {
			x = s.order[len(s.order)-1-i]
		}
		if s.isOver() {
			return true
		}
		if !s.passMessagesOf(x, isUp, isFirst) {
			return false
		}
	}
	return true
}

// A brief search takes one part in tryShare of the work so far, each time that the work has doubled.
const tryShare = 2

// searchBriefly searches depth first from the root, with at most the given work. It reports whether all nodes were searched. Better
// assignments and the weights of conflicts remain; the state of the network is as before. leafFloor is the least bound of the leaves whose
// assignments may cost less than was found; it remains only if the search is complete.
func (s *solver) searchBriefly(work int64) (isComplete bool) {
	leafFloor := s.leafFloor
	isComplete = runWithoutTrace(s, func() bool {
		return !s.propagate() || s.searchDepthFirst(s.path[:0], maxDive, s.work+work, nil)
	})
	if !isComplete {
		s.leafFloor = leafFloor // later searches will come to the same leaves
	}
	return isComplete
}

// runWithoutTrace calls f, takes back what it has changed in the network and the queues of propagation, and returns its result. Other
// results of f remain: assignments found, weights of conflicts, and work.
func runWithoutTrace(s *solver, f func() bool) bool {
	var saved [4]queue
	queues := [...]*queue{&s.lostValues, &s.raisedCosts, &s.doubtfulSupport, &s.maybeEliminable}
	for k, q := range queues {
		saved[k] = queue{slices.Clone(q.words), q.count}
	}
	fixed := slices.Clone(s.toAssign)
	s.push()
	result := f()
	s.pop()
	for k, q := range queues {
		*q = saved[k]
	}
	s.toAssign = fixed
	return result
}

// passMessagesOf makes the step of a sweep of message passing for variable x. First it moves costs from functions to x. Then it moves an
// equal share of the unary costs of x to each function with variables that come later in the sweep. isUp is set if the sweep goes to higher
// ranks, isFirst for the first sweep. It returns false on a conflict.
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

// takeMessages moves costs from functions to x: each value of x gets its least cost in the function (simple support). isUp is set if the
// sweep of message passing goes to higher ranks, and isFirst in the first sweep. In the first sweep it takes from all functions of x. Later
// it takes from the functions with variables that came before x in the sweep; the other functions have nothing to give, since the sweep
// before has taken it.
//
// shares, into how many parts the caller divides the unary costs of x, is the larger of two numbers: of functions with variables of lower
// rank, and of functions with variables of higher rank. A function of more than two variables may count in each of them. ok is false on a
// conflict.
func (s *propagator) takeMessages(x int32, isUp, isFirst bool) (shares int64, ok bool) {
	v := &s.vars[x]
	downCount, upCount := int64(0), int64(0) // functions with variables of lower rank, and of higher rank

	// Functions of two variables.
	for _, id := range v.arcs {
		e := &s.arcs[id]
		if !s.isActive(e.activeCell) {
			continue
		}
		leadsDown := s.vars[e.to].rank < v.rank
		if leadsDown {
			downCount++
		} else {
			upCount++
		}
		comesFrom := leadsDown == isUp // the sweep has come from the other variable
		if (isFirst || comesFrom) && !s.simpleSupport(id) {
			return 0, false
		}
	}

	// Wide functions.
	for _, id := range v.wides {
		w := &s.wides[id]
		if !s.isActive(w.activeCell) {
			continue
		}
		leadsDown, leadsUp := s.openRanksAround(w, v.rank)
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

// giveMessages moves unary costs of x into each function with a variable that comes after x in the sweep: 1/shares of the cost of each
// value to each such function. isUp is set if the sweep goes to higher ranks. There are at most shares such functions.
func (s *propagator) giveMessages(x int32, shares int64, isUp bool) {
	v := &s.vars[x]
	for _, a := range s.liveValues(x) {
		s.valueCosts[a] = s.unaryCost(v, a) / shares
	}
	for _, id := range v.arcs {
		e := &s.arcs[id]
		if leadsUp := s.vars[e.to].rank > v.rank; s.isActive(e.activeCell) && leadsUp == isUp {
			s.moveIntoFunction(x, e.movedCell)
		}
	}
	for _, id := range v.wides {
		w := &s.wides[id]
		if !s.isActive(w.activeCell) {
			continue
		}
		leadsDown, leadsUp := s.openRanksAround(w, v.rank)
		if isUp && leadsUp || !isUp && leadsDown {
			s.moveIntoFunction(x, w.movedCells[slices.Index(w.scope, x)])
		}
	}
}

// moveIntoFunction moves the cost s.valueCosts[a] from the unary cost of each live value a of x into a function. The cells of the costs
// that were moved from the function to the values of x begin at movedCell; a cost that moves back lowers them. It leaves out values for
// which such a cell is beyond maxMoved already.
func (s *propagator) moveIntoFunction(x int32, movedCell int) {
	v := &s.vars[x]
	for _, a := range s.liveValues(x) {
		cell := movedCell + int(a)
		if s.valueCosts[a] > 0 && !s.exceedsMaxMoved(cell) {
			s.set(cell, s.cells[cell]-s.valueCosts[a])
			s.set(v.unaryCell+int(a), s.unaryCost(v, a)-s.valueCosts[a])
		}
	}
}

// offerRounded offers two assignments as solutions, one for each direction along the order of variables, each of them before and after a
// local search (improve). Every open variable takes its cheapest value, given the values of the variables before it, under the costs that
// message passing has moved (Kolmogorov, PAMI 2006).
func (s *finder) offerRounded() {
	for _, isUp := range []bool{true, false} {
		s.assignFixed() // writes s.values of the variables with one value left
		for i := range s.order {
			x := s.order[i]
			if !isUp {
				x = s.order[len(s.order)-1-i]
			}
			if s.isOpen(x) {
				s.values[x] = s.cheapestGivenRanked(x, isUp)
			}
		}
		s.completeAssignment() // with values of the eliminated variables
		s.offer(s.values)
		s.improve(s.values)
		s.offer(s.values)
	}
}

// cheapestGivenRanked returns the live value of x with the least cost, the first one of equal ones. It is given s.values of the open
// variables of lower rank than x if areLower is set, else of those of higher rank. The cost of a value of x is its unary cost and its costs
// in the functions whose other open variables all have such values. A cost in a function is a table entry less what was moved from the
// function to the value of x; what was moved to values of other variables is the same for all values of x.
func (s *finder) cheapestGivenRanked(x int32, areLower bool) int {
	v := &s.vars[x]
	costs := s.valueCosts[:v.domainSize] // by value of x
	copy(costs, s.cells[v.unaryCell:])
	for _, id := range v.arcs {
		e := &s.arcs[id]
		if isLower := s.vars[e.to].rank < v.rank; !s.isActive(e.activeCell) || isLower != areLower {
			continue
		}
		reverse := &s.arcs[reverseOf(id)] // its table has a row of x's values for each value of the other variable
		for a, c := range reverse.table[s.values[e.to]*v.domainSize:][:v.domainSize] {
			costs[a] += c - s.cells[e.movedCell+a]
		}
		s.work += int64(v.domainSize)
	}
	for _, id := range v.wides { // functions of more than two variables
		w := &s.wides[id]
		leadsDown, leadsUp := s.openRanksAround(w, v.rank)
		lacksValues := areLower && leadsUp || !areLower && leadsDown // some open variable of w has no value in s.values
		if s.isActive(w.activeCell) && !lacksValues {
			s.addWideCosts(w, x, costs)
		}
	}

	best := -1
	for a, c := range costs { // all values in order, since the order of the live ones depends on the search before
		if s.isLive(x, int32(a)) && (best < 0 || c < costs[best]) {
			best = a
		}
	}
	return best
}

// addWideCosts adds to costs, for each value of x, the entry of w's table at that value and s.values of the other variables. It subtracts
// what was moved from w to the value of x.
func (s *finder) addWideCosts(w *wide, x int32, costs []int64) {
	index, stride, movedCell := 0, 0, 0 // index of value 0 of x in the table, stride and first cell of x
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
	s.work += int64(len(costs))
}

// openRanksAround reports whether w, a function of more than two variables, has open variables of lower rank than the given one, and
// whether it has open variables of higher rank.
func (s *propagator) openRanksAround(w *wide, rank int) (hasLower, hasHigher bool) {
	for _, x := range w.scope {
		if r := s.vars[x].rank; s.isOpen(x) {
			hasLower = hasLower || r < rank
			hasHigher = hasHigher || r > rank
		}
	}
	return hasLower, hasHigher
}
