package branching

import "slices"

// workAtOnce is the number of table entries between two looks at the context.
const workAtOnce = 1 << 20

// propagate makes the network consistent: it works off the queues of variables with changes (existential directional arc consistency). If
// work or context ends before, it returns true early, with a bound that holds.
//
// It returns false on a conflict: a variable has no value left, or the bound has reached upperBound. Then the queues are emptied, except
// for maybeEliminable, whose variables are checked before they are eliminated. The weight of the function that led to the conflict rises;
// runQueues leaves the index of that weight in s.blamedWeight. Decisions prefer variables of functions with high weights.
func (s *eliminator) propagate() bool {
	s.blamedWeight = len(s.weights) - 1 // stands for no function of the network, until runQueues looks at one
	isConsistent := s.runQueues()
	if !isConsistent {
		s.weights[s.blamedWeight]++
		s.lostValues.clear()
		s.raisedCosts.clear()
		s.doubtfulSupport.clear()
		s.toAssign = s.toAssign[:0]
	}
	return isConsistent
}

// isOver reports whether the limit of work is reached or the context has ended, and records that in s.stopped. It looks at the context only
// once in workAtOnce table entries.
func (s *propagator) isOver() bool {
	if s.workLimit > 0 && s.work > s.workLimit {
		s.stopped = true
	} else if s.work > s.nextLook {
		s.nextLook = s.work + workAtOnce
		s.stopped = s.ctx.Err() != nil
	}
	return s.stopped
}

// runQueues works off the queues of propagation until all are empty. Each time it takes the first case below for which there is work:
//
//   - variables with one value left become assigned;
//   - variables that lost values: the support of their neighbours is restored;
//   - variables whose unary costs were raised from 0: their neighbours of lower rank get full support, which counts these costs;
//   - if a unary cost may reach the gap between bound and upperBound: costly values are removed;
//   - variables whose existential support is in doubt: a value that costs 0 together with its functions;
//   - variables that may be eliminable.
//
// It returns false on a conflict, and true when no work is left or isOver.
func (s *eliminator) runQueues() bool {
	fruitless := 0 // searches for existential support that moved costs, but did not raise the bound
	for !s.isOver() {
		isConsistent := true
		switch {
		case len(s.toAssign) > 0:
			x := s.toAssign[len(s.toAssign)-1]
			s.toAssign = s.toAssign[:len(s.toAssign)-1]
			isConsistent = s.assignVariable(x)
		case s.lostValues.count > 0:
			isConsistent = s.restoreSupports(s.order[s.lostValues.popFirst()])
		case s.raisedCosts.count > 0:
			isConsistent = s.supportLowerRanks(s.order[s.raisedCosts.popLast()])
		case s.gap() <= s.cells[s.highestCell]:
			isConsistent = s.removeCostlyValues()
		case s.doubtfulSupport.count > 0:
			boundBefore := s.lowerBound()
			isConsistent = s.seekExistentialSupport(s.order[s.doubtfulSupport.popFirst()])
			// Costs may move for ever without a rise of the bound, since the search counts a cost of a variable once for each function.
			if s.raisedCosts.count > 0 && s.lowerBound() == boundBefore {
				fruitless++
			}
			if fruitless > len(s.vars) { // once for each variable: look for no further support
				s.doubtfulSupport.clear()
			}
		case s.maybeEliminable.count > 0:
			isConsistent = s.eliminateNext()
		default:
			return true
		}
		if !isConsistent {
			return false
		}
	}
	return true
}

// assignVariable assigns x its only value. Costs that its functions have with this value move to its neighbours: a function of two
// variables becomes unary costs of the other one. Functions of more variables: assignInWides. It returns false on a conflict, and does
// nothing if x is not open.
func (s *propagator) assignVariable(x int32) bool {
	v := &s.vars[x]
	if !s.isOpen(x) {
		return true
	}
	s.set(v.stateCell, assigned)
	s.set(s.openCountCell, s.cells[s.openCountCell]-1)
	if !s.makeNodeConsistent(x) { // moves the unary cost of the value to the bound
		return false
	}
	a := v.live[0]                     // the only live value
	for k := 0; k < len(v.arcs); k++ { // no range: functions may be added in the loop
		id := v.arcs[k]
		if !s.isActive(s.arcs[id].activeCell) {
			continue
		}
		s.blamePairOnConflict(id) // its weight rises if projectRow finds a conflict
		if !s.projectRow(id, a) {
			return false
		}
	}
	return s.assignInWides(v)
}

// assignInWides counts one open variable less in the functions of more than two variables over v, which was assigned. A function with at
// most two open variables left is replaced by a smaller one (narrowWide). It returns false on a conflict.
func (s *propagator) assignInWides(v *variable) bool {
	for k := 0; k < len(v.wides); k++ { // no range: functions may be added in the loop
		id := v.wides[k]
		w := &s.wides[id]
		if !s.isActive(w.activeCell) {
			continue
		}
		s.set(w.openCountCell, s.cells[w.openCountCell]-1)
		s.blameWideOnConflict(id)
		for _, y := range w.scope {
			s.enqueue(&s.maybeEliminable, y) // y has a neighbour less
		}
		if s.cells[w.openCountCell] <= 2 && !s.narrowWide(w) {
			return false
		}
	}
	return true
}

// narrowWide replaces w, a function of more than two variables, when at most two of them are open. What remains of it under the values of
// its assigned variables is a function of two variables, unary costs, or a constant that goes to the bound. It returns false on a conflict.
func (s *propagator) narrowWide(w *wide) bool {
	s.set(w.activeCell, 0) // no longer active

	// Find the open variables. The values of the assigned ones select the entries of the table that begin at baseIndex. Costs that were
	// moved from the function to these values are no longer in it: fixedCost subtracts them.
	var openPositions [2]int
	openCount, baseIndex := 0, int32(0)
	fixedCost := int64(0)
	for k, x := range w.scope {
		if s.isOpen(x) {
			openPositions[openCount] = k
			openCount++
			continue
		}
		a := s.vars[x].live[0]
		baseIndex += a * w.strides[k]
		fixedCost -= s.movedOutWide(w, k, a)
	}

	switch openCount {
	case 0: // a constant
		s.set(s.boundCell, s.lowerBound()+fixedCost+w.table[baseIndex])
		return s.lowerBound() < s.upperBound
	case 1: // unary costs
		k := openPositions[0]
		x := w.scope[k]
		for _, a := range s.liveValues(x) {
			if c := fixedCost + w.table[baseIndex+a*w.strides[k]] - s.movedOutWide(w, k, a); c > 0 {
				s.raiseUnary(x, a, c)
			}
		}
		s.enqueue(&s.doubtfulSupport, x)
		return s.makeNodeConsistent(x)
	}
	i, j := openPositions[0], openPositions[1]
	return s.addToPair(w.scope[i], w.scope[j], func(a, b int32) int64 {
		cost := fixedCost + w.table[baseIndex+a*w.strides[i]+b*w.strides[j]]
		return cost - s.movedOutWide(w, i, a) - s.movedOutWide(w, j, b)
	})
}

// addToPair adds cost(a, b) to the function of two open variables x and y, for all their live values a and b. If they have a function, a
// new one with the sum of both costs replaces it. The new function gives both variables support (giveSupport). addToPair does nothing if
// all costs are 0. It returns false on a conflict.
func (s *propagator) addToPair(x, y int32, cost func(a, b int32) int64) bool {
	replaced := s.activeArc(x, y) // −1: none
	hasCosts := false
	for _, a := range s.liveValues(x) {
		for _, b := range s.liveValues(y) {
			hasCosts = hasCosts || cost(a, b) != 0
		}
	}
	if !hasCosts {
		return true
	}

	// The tables of a new function, seen from x and from y.
	id := s.newPair(x, y)
	dx, dy := s.vars[x].domainSize, s.vars[y].domainSize
	e, reverse := &s.arcs[id], &s.arcs[id+1]
	for _, a := range s.liveValues(x) {
		for _, b := range s.liveValues(y) {
			c := cost(a, b)
			if replaced >= 0 {
				c += s.pairCost(replaced, a, b)
			}
			e.table[int(a)*dy+int(b)] = c
			reverse.table[int(b)*dx+int(a)] = c
		}
	}
	if replaced >= 0 {
		s.set(s.arcs[replaced].activeCell, 0)
	}
	s.work += int64(dx * dy)
	return s.giveSupport(int32(id)) && s.giveSupport(int32(id+1))
}

// activeArc returns the active arc from x to y that was made last, or −1. An arc from x to y is a function of the two, seen from x.
func (s *propagator) activeArc(x, y int32) int32 {
	arcs := s.vars[x].arcs
	for k := len(arcs) - 1; k >= 0; k-- {
		if e := &s.arcs[arcs[k]]; e.to == y && s.isActive(e.activeCell) {
			return arcs[k]
		}
	}
	return -1
}

// giveSupport moves costs from the function of arc id to its first variable, so that each value of that variable costs 0 with some value of
// the second variable. If the first variable has the lower rank, the unary costs of the second variable are counted, too (full support). If
// it has the higher rank, they are not (simple support). It returns false on a conflict.
func (s *propagator) giveSupport(id int32) bool {
	e := &s.arcs[id]
	if s.vars[e.from].rank < s.vars[e.to].rank {
		return s.fullSupport(id)
	}
	s.enqueue(&s.doubtfulSupport, e.from) // existential support depends on functions whose other variable has a lower rank, as this one
	return s.simpleSupport(id)
}

// restoreSupports gives the neighbours of y support again (giveSupport), since y has lost values that may have supported theirs. It returns
// false on a conflict, and does nothing if y is not open.
func (s *propagator) restoreSupports(y int32) bool {
	v := &s.vars[y]
	if !s.isOpen(y) {
		return true
	}
	for k := 0; k < len(v.arcs); k++ { // no range: functions may be added in the loop
		id := v.arcs[k]
		if !s.isActive(s.arcs[id].activeCell) {
			continue
		}
		s.blamePairOnConflict(id)
		s.enqueue(&s.maybeEliminable, s.arcs[id].to)
		if !s.giveSupport(reverseOf(id)) {
			return false
		}
	}
	const hasLostValues = true
	return s.giveWideSupports(y, hasLostValues)
}

// giveWideSupports restores the support of y's neighbours in the functions of more than two variables that they share with y. It moves
// costs from a function to a neighbour, so that each of the neighbour's values costs 0 in some combination. The neighbour of lowest rank
// gets full support, which counts the unary costs of the other variables. If y has lost values, the other neighbours get simple support,
// which does not count them. It returns false on a conflict.
func (s *propagator) giveWideSupports(y int32, hasLostValues bool) bool {
	for _, id := range s.vars[y].wides {
		w := &s.wides[id]
		if !s.isActive(w.activeCell) {
			continue
		}
		s.blameWideOnConflict(id)
		lowest := s.lowestRanked(w)
		for i, x := range w.scope {
			if x == y || !s.isOpen(x) || !s.isActive(w.activeCell) { // an earlier step of the loop may have replaced w
				continue
			}
			if hasLostValues {
				s.enqueue(&s.maybeEliminable, x)
			}
			if i == lowest {
				if !s.wideFullSupport(id, i) {
					return false
				}
				continue
			}
			s.enqueue(&s.doubtfulSupport, x)
			if hasLostValues && !s.wideSimpleSupport(id, i) {
				return false
			}
		}
	}
	return true
}

// lowestRanked returns the position of the open variable of lowest rank in the scope of w, a function of more than two variables, or −1 if
// none is open.
func (s *propagator) lowestRanked(w *wide) int {
	position, lowest := -1, len(s.order)
	for i, x := range w.scope {
		if r := s.vars[x].rank; r < lowest && s.isOpen(x) {
			position, lowest = i, r
		}
	}
	return position
}

// supportLowerRanks gives y's neighbours of lower rank full support, which counts the unary costs of y, since such a cost has risen. It
// queues y and its neighbours of higher rank in doubtfulSupport: the rise may have ended their existential support, a value that costs 0
// together with its functions. It returns false on a conflict, and does nothing if y is not open.
func (s *propagator) supportLowerRanks(y int32) bool {
	v := &s.vars[y]
	if !s.isOpen(y) {
		return true
	}
	s.doubtfulSupport.insert(v.rank)
	for k := 0; k < len(v.arcs); k++ { // no range: functions may be added in the loop
		id := v.arcs[k]
		e := &s.arcs[id]
		if !s.isActive(e.activeCell) {
			continue
		}
		if s.vars[e.to].rank > v.rank {
			s.enqueue(&s.doubtfulSupport, e.to)
			continue
		}
		s.blamePairOnConflict(id)
		if !s.fullSupport(reverseOf(id)) {
			return false
		}
	}
	const hasLostValues = false
	return s.giveWideSupports(y, hasLostValues)
}

// seekExistentialSupport looks for a value of x whose cost is 0: its unary cost and the least that its functions add to it
// (costWithFunctions). If there is none, it moves costs from these functions to x (takeFullSupport), so that the bound rises by the least
// cost of a value. It does not do so if that is so small that it is not worth the work. It returns false on a conflict, and does nothing if
// x is not open.
func (s *propagator) seekExistentialSupport(x int32) bool {
	v := &s.vars[x]
	if !s.isOpen(x) {
		return true
	}
	// The value that had the support last may still have it.
	// 1 and leastCost are limits: costWithFunctions may stop at a cost that reaches its limit.
	if a := v.existentialValue; s.isLive(x, a) && s.unaryCost(v, a) == 0 && s.costWithFunctions(x, a, 1) == 0 {
		return true
	}
	leastCost := infiniteCost
	for _, a := range s.liveValues(x) {
		if s.unaryCost(v, a) >= leastCost {
			continue
		}
		if c := s.costWithFunctions(x, a, leastCost); c < leastCost {
			leastCost, v.existentialValue = c, a
			if c == 0 {
				return true
			}
		}
	}
	// Not worth the work: at most 1/4096 of the way to upperBound, and at most smallRise, a small part of the largest cost.
	if leastCost <= min(s.gap()>>12, s.smallRise) {
		return true
	}
	return s.takeFullSupport(x)
}

// takeFullSupport moves costs to the values of x from its functions of two variables whose other variable has a lower rank, and from all
// its wide functions, those of more variables. Before, unary costs of the other variables move into each function, so that each value of x
// gets the least cost of the function and these variables together. It returns false on a conflict.
func (s *propagator) takeFullSupport(x int32) bool {
	v := &s.vars[x]
	for k := 0; k < len(v.arcs); k++ { // no range: functions may be added in the loop
		id := v.arcs[k]
		e := &s.arcs[id]
		if !s.isActive(e.activeCell) || s.vars[e.to].rank > v.rank {
			continue
		}
		s.blamePairOnConflict(id) // its weight rises if fullSupport finds a conflict
		if !s.fullSupport(id) {
			return false
		}
	}

	// Wide functions.
	for _, id := range v.wides {
		w := &s.wides[id]
		if !s.isActive(w.activeCell) {
			continue
		}
		s.blameWideOnConflict(id)
		if !s.wideFullSupport(id, slices.Index(w.scope, x)) {
			return false
		}
	}
	return true
}

// costWithFunctions returns the cost of value a of x with its functions: the unary cost of a plus, for each function, the least cost of the
// function with a, unary costs of the function's other variables included. It counts the functions of two variables whose other variable
// has a lower rank, and all functions of more variables (wide). The cheapest values of the other variables are recorded as supports of a.
// It returns early, with a part of the cost, once that reaches limit.
func (s *propagator) costWithFunctions(x, a int32, limit int64) int64 {
	v := &s.vars[x]
	cost := s.unaryCost(v, a)
	for _, id := range v.arcs {
		e := &s.arcs[id]
		if !s.isActive(e.activeCell) || s.vars[e.to].rank > v.rank {
			continue
		}
		if cost += s.costWithPartner(id, a); cost >= limit {
			return cost
		}
	}
	for _, id := range v.wides {
		w := &s.wides[id]
		if !s.isActive(w.activeCell) {
			continue
		}
		i := slices.Index(w.scope, x)
		if s.hasSupport(w, i, a, withUnary) {
			continue // it adds 0
		}
		leastCost, index := s.cheapestTuple(w, i, a)
		w.supports[i][a] = index
		if cost += leastCost; cost >= limit {
			return cost
		}
	}
	return cost
}

// costWithPartner returns the least cost of value a of the first variable of arc id, a function of two variables, with a value of the
// second one: the cost of the function plus the unary cost of the second value, which becomes the support of a.
func (s *propagator) costWithPartner(id, a int32) int64 {
	e, reverse := &s.arcs[id], &s.arcs[reverseOf(id)]
	y := e.to
	d := s.vars[y].domainSize
	movedToPartner, unary := s.cells[reverse.movedCell:][:d], s.cells[s.vars[y].unaryCell:][:d] // by value of y
	b := e.support[a]
	if unary[b] == 0 && s.isLive(y, b) && e.table[int(a)*d+int(b)]-movedToPartner[b] == s.movedOut(e, a) {
		return 0 // b still costs 0 with a
	}
	leastCost, partner := s.cheapestPartner(e, a, movedToPartner, unary, s.liveValues(y))
	e.support[a] = partner
	return leastCost
}
