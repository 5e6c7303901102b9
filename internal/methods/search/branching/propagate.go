package branching

import "slices"

// workAtOnce is the number of table entries between two looks at the context.
const workAtOnce = 1 << 20

// propagate makes the network consistent: nodes, directional arcs and existential supports. It returns false on a conflict, for which the
// function that was looked at gets weight. If work or context ends before, it returns true early, with a bound that holds.
func (s *eliminator) propagate() bool {
	s.blamed = len(s.weights) - 1
	isConsistent := s.runQueues()
	if !isConsistent {
		s.weights[s.blamed]++
		s.shrunk.clear()
		s.raised.clear()
		s.doubtful.clear()
		s.fixed = s.fixed[:0]
	}
	return isConsistent
}

// isOver reports whether the work or the context has ended, and records that in stopped. It looks at the context every workAtOnce entries.
func (s *propagator) isOver() bool {
	if s.workLimit > 0 && s.work > s.workLimit {
		s.stopped = true
	} else if s.work > s.nextLook {
		s.nextLook = s.work + workAtOnce
		s.stopped = s.ctx.Err() != nil
	}
	return s.stopped
}

// runQueues empties the queues of propagation, the most urgent kind of work first. It returns false on a conflict, and true when there is
// no more work or isOver.
func (s *eliminator) runQueues() bool {
	fruitless := 0
	for !s.isOver() {
		isConsistent := true
		switch {
		case len(s.fixed) > 0:
			x := s.fixed[len(s.fixed)-1]
			s.fixed = s.fixed[:len(s.fixed)-1]
			isConsistent = s.assignVariable(x)
		case s.shrunk.count > 0:
			isConsistent = s.restoreSupports(s.order[s.shrunk.popFirst()])
		case s.raised.count > 0:
			isConsistent = s.supportLowerRanks(s.order[s.raised.popLast()])
		case s.slack() <= s.cells[s.highestCell]:
			isConsistent = s.removeCostlyValues()
		case s.doubtful.count > 0:
			before := s.lowerBound()
			isConsistent = s.seekExistentialSupport(s.order[s.doubtful.popFirst()])
			// Functions that share a variable count its cost twice, so costs may move for ever without a rise of the bound.
			if s.raised.count > 0 && s.lowerBound() == before {
				fruitless++
			}
			if fruitless > len(s.vars) {
				s.doubtful.clear()
			}
		case s.eliminable.count > 0:
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

// assignVariable assigns the last value of x and moves all costs of its functions to its neighbours. It returns false on a conflict, and
// does nothing if x is not open.
func (s *propagator) assignVariable(x int32) bool {
	v := &s.vars[x]
	if s.cells[v.stateCell] != open {
		return true
	}
	s.set(v.stateCell, assigned)
	s.set(s.openCountCell, s.cells[s.openCountCell]-1)
	if !s.makeNodeConsistent(x) {
		return false
	}
	a := v.live[0]
	// The functions may become more on the way.
	for k := 0; k < len(v.arcs); k++ {
		id := v.arcs[k]
		if s.cells[s.arcs[id].activeCell] == 0 {
			continue
		}
		s.blamed = s.pairWeight(id)
		if !s.projectRow(id, a) {
			return false
		}
	}
	for k := 0; k < len(v.wides); k++ {
		id := v.wides[k]
		w := &s.wides[id]
		if s.cells[w.activeCell] == 0 {
			continue
		}
		s.set(w.openCountCell, s.cells[w.openCountCell]-1)
		s.blamed = s.wideWeight(id)
		for _, y := range w.scope {
			s.eliminable.insert(s.vars[y].rank)
		}
		if s.cells[w.openCountCell] <= 2 && !s.narrowWide(w) {
			return false
		}
	}
	return true
}

// narrowWide replaces a wide function with at most two open variables: by a function of two, by unary costs, or by a cost of the bound. It
// returns false on a conflict.
func (s *propagator) narrowWide(w *wide) bool {
	s.set(w.activeCell, 0)
	var openPositions [2]int
	openCount, baseIndex := 0, int32(0)
	fixedCost := int64(0) // less the costs moved to the values of fixed variables
	for k, x := range w.scope {
		if s.isOpen(x) {
			openPositions[openCount] = k
			openCount++
			continue
		}
		a := s.vars[x].live[0]
		baseIndex += a * w.strides[k]
		fixedCost -= s.cells[w.movedCells[k]+int(a)]
	}
	switch openCount {
	case 0:
		s.set(s.boundCell, s.lowerBound()+fixedCost+w.table[baseIndex])
		return s.lowerBound() < s.upperBound
	case 1:
		k := openPositions[0]
		x := w.scope[k]
		for _, a := range s.liveValues(x) {
			if c := fixedCost + w.table[baseIndex+a*w.strides[k]] - s.cells[w.movedCells[k]+int(a)]; c > 0 {
				s.raiseUnary(x, a, c)
			}
		}
		s.doubtful.insert(s.vars[x].rank)
		return s.makeNodeConsistent(x)
	}
	i, j := openPositions[0], openPositions[1]
	return s.addToPair(w.scope[i], w.scope[j], func(a, b int32) int64 {
		cost := fixedCost + w.table[baseIndex+a*w.strides[i]+b*w.strides[j]]
		return cost - s.cells[w.movedCells[i]+int(a)] - s.cells[w.movedCells[j]+int(b)]
	})
}

// addToPair adds costs to the function of two open variables: a new function replaces the one that they have, and gets support. It does
// nothing if all costs are 0. It returns false on a conflict.
func (s *propagator) addToPair(x, y int32, cost func(a, b int32) int64) bool {
	replaced := s.activeArc(x, y)
	hasCosts := false
	for _, a := range s.liveValues(x) {
		for _, b := range s.liveValues(y) {
			hasCosts = hasCosts || cost(a, b) != 0
		}
	}
	if !hasCosts {
		return true
	}
	id := s.newPair(x, y)
	dx, dy := s.vars[x].domainSize, s.vars[y].domainSize
	e, reverse := &s.arcs[id], &s.arcs[id+1]
	for _, a := range s.liveValues(x) {
		for _, b := range s.liveValues(y) {
			c := cost(a, b)
			if replaced >= 0 {
				old, oldReverse := &s.arcs[replaced], &s.arcs[replaced^1]
				c += old.table[int(a)*dy+int(b)] - s.cells[old.movedCell+int(a)] - s.cells[oldReverse.movedCell+int(b)]
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

// activeArc returns the active arc from x to y that was made last, or −1.
func (s *propagator) activeArc(x, y int32) int32 {
	arcs := s.vars[x].arcs
	for k := len(arcs) - 1; k >= 0; k-- {
		if e := &s.arcs[arcs[k]]; e.to == y && s.cells[e.activeCell] != 0 {
			return arcs[k]
		}
	}
	return -1
}

// giveSupport gives the first variable of an arc support: full support if its rank is below that of the other one, else simple support. It
// returns false on a conflict.
func (s *propagator) giveSupport(id int32) bool {
	e := &s.arcs[id]
	if s.vars[e.from].rank < s.vars[e.to].rank {
		return s.fullSupport(id)
	}
	s.doubtful.insert(s.vars[e.from].rank)
	return s.simpleSupport(id)
}

// restoreSupports gives the values of y's neighbours support again after y has lost values. It returns false on a conflict, and does
// nothing if y is not open.
func (s *propagator) restoreSupports(y int32) bool {
	v := &s.vars[y]
	if s.cells[v.stateCell] != open {
		return true
	}
	for k := 0; k < len(v.arcs); k++ {
		id := v.arcs[k]
		if s.cells[s.arcs[id].activeCell] == 0 {
			continue
		}
		s.blamed = s.pairWeight(id)
		s.eliminable.insert(s.vars[s.arcs[id].to].rank)
		if !s.giveSupport(id ^ 1) {
			return false
		}
	}
	return s.giveWideSupports(y, true)
}

// giveWideSupports gives the other variables of y's wide functions support: full support to the one of lowest rank, and if y has lost
// values, simple support to the others. It returns false on a conflict.
func (s *propagator) giveWideSupports(y int32, hasLostValues bool) bool {
	for _, id := range s.vars[y].wides {
		w := &s.wides[id]
		if s.cells[w.activeCell] == 0 {
			continue
		}
		s.blamed = s.wideWeight(id)
		lowest := s.lowestRanked(w)
		for i, x := range w.scope {
			if x == y || !s.isOpen(x) || s.cells[w.activeCell] == 0 {
				continue
			}
			if hasLostValues {
				s.eliminable.insert(s.vars[x].rank)
			}
			if i == lowest {
				if !s.wideFullSupport(id, i) {
					return false
				}
				continue
			}
			s.doubtful.insert(s.vars[x].rank)
			if hasLostValues && !s.wideSimpleSupport(id, i) {
				return false
			}
		}
	}
	return true
}

// lowestRanked returns the position of the open variable of lowest rank in a wide function, or −1 if none is open.
func (s *propagator) lowestRanked(w *wide) int {
	position, lowest := -1, len(s.order)
	for i, x := range w.scope {
		if r := s.vars[x].rank; r < lowest && s.isOpen(x) {
			position, lowest = i, r
		}
	}
	return position
}

// supportLowerRanks gives y's neighbours of lower rank full support after a unary cost of y has risen. The existential support of y and of
// its neighbours of higher rank is in doubt then. It returns false on a conflict, and does nothing if y is not open.
func (s *propagator) supportLowerRanks(y int32) bool {
	v := &s.vars[y]
	if s.cells[v.stateCell] != open {
		return true
	}
	s.doubtful.insert(v.rank)
	for k := 0; k < len(v.arcs); k++ {
		id := v.arcs[k]
		e := &s.arcs[id]
		if s.cells[e.activeCell] == 0 {
			continue
		}
		if s.vars[e.to].rank > v.rank {
			s.doubtful.insert(s.vars[e.to].rank)
			continue
		}
		s.blamed = s.pairWeight(id)
		if !s.fullSupport(id ^ 1) {
			return false
		}
	}
	return s.giveWideSupports(y, false)
}

// seekExistentialSupport looks for a value of x that costs nothing together with its functions and its neighbours' unary costs, of those
// functions that costWithFunctions counts. If there is none, and the least cost is worth the work, x gets full support from these
// functions, so that the bound rises. It returns false on a conflict, and does nothing if x is not open.
func (s *propagator) seekExistentialSupport(x int32) bool {
	v := &s.vars[x]
	if s.cells[v.stateCell] != open {
		return true
	}
	if a := v.existentialValue; s.isLive(x, a) && s.cells[v.unaryCell+int(a)] == 0 && s.costWithFunctions(x, a, 1) == 0 {
		return true
	}
	least := noCost
	for _, a := range s.liveValues(x) {
		if s.cells[v.unaryCell+int(a)] >= least {
			continue
		}
		if c := s.costWithFunctions(x, a, least); c < least {
			least, v.existentialValue = c, a
			if c == 0 {
				return true
			}
		}
	}
	if least <= min(s.slack()>>12, s.smallRise) {
		return true
	}
	return s.fullSupportOf(x)
}

// fullSupportOf gives x full support from its functions with variables of lower rank and from all its wide functions. It returns false on a
// conflict.
func (s *propagator) fullSupportOf(x int32) bool {
	v := &s.vars[x]
	for k := 0; k < len(v.arcs); k++ {
		id := v.arcs[k]
		e := &s.arcs[id]
		if s.cells[e.activeCell] == 0 || s.vars[e.to].rank > v.rank {
			continue
		}
		s.blamed = s.pairWeight(id)
		if !s.fullSupport(id) {
			return false
		}
	}
	for _, id := range v.wides {
		w := &s.wides[id]
		if s.cells[w.activeCell] == 0 {
			continue
		}
		s.blamed = s.wideWeight(id)
		if !s.wideFullSupport(id, slices.Index(w.scope, x)) {
			return false
		}
	}
	return true
}

// costWithFunctions returns the unary cost of value a of x plus the least that each function adds, with its neighbours' unary costs:
// functions with variables of lower rank and all wide ones. It returns early once the sum reaches enough.
func (s *propagator) costWithFunctions(x, a int32, enough int64) int64 {
	v := &s.vars[x]
	cost := s.cells[v.unaryCell+int(a)]
	for _, id := range v.arcs {
		e, reverse := &s.arcs[id], &s.arcs[id^1]
		y := e.to
		if s.cells[e.activeCell] == 0 || s.vars[y].rank > v.rank {
			continue
		}
		d := s.vars[y].domainSize
		movedOut, unary := s.cells[reverse.movedCell:][:d], s.cells[s.vars[y].unaryCell:][:d]
		b := e.support[a]
		if unary[b] == 0 && s.isLive(y, b) && e.table[int(a)*d+int(b)]-movedOut[b] == s.cells[e.movedCell+int(a)] {
			continue // b still costs nothing with a
		}
		least, partner := s.cheapestPartner(e, a, movedOut, unary, s.liveValues(y))
		e.support[a] = partner
		if cost += least; cost >= enough {
			return cost
		}
	}
	for _, id := range v.wides {
		w := &s.wides[id]
		if s.cells[w.activeCell] == 0 {
			continue
		}
		i := slices.Index(w.scope, x)
		if s.hasSupport(w, i, a, true) {
			continue
		}
		least, index := s.cheapestTuple(w, i, a)
		w.supports[i][a] = index
		if cost += least; cost >= enough {
			return cost
		}
	}
	return cost
}
