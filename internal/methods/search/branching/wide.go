package branching

import "slices"

// maxWideScope is the largest number of variables with several values each in a wide function, whose table has up to 2^27 entries.
const maxWideScope = 28

// visitTuples visits the live combinations of a wide function, each with its index in the table and its cost. If withUnary is set, the cost
// includes the unary costs of all variables but the one at position i. If only ≥ 0, the variable at position i has that value only. The
// tuple is valid during the call of visit.
func (s *mover) visitTuples(w *wide, i int, only int32, withUnary bool, visit func(tuple []int32, index int32, cost int64)) {
	// By level k, a position in the scope: its value, the next live value, and index and cost by the values of the levels before.
	var tuple, next, indices [maxWideScope]int32
	var costs [maxWideScope]int64
	n := len(w.scope)
	for k := 0; k >= 0; {
		x := w.scope[k]
		v := &s.vars[x]
		if int64(next[k]) >= s.cells[v.liveCountCell] {
			k--
			continue
		}
		a := v.live[next[k]]
		next[k]++
		if k == i && only >= 0 {
			a, next[k] = only, int32(v.domainSize) // no further value
		}
		tuple[k] = a
		cost := costs[k] - s.cells[w.movedCells[k]+int(a)]
		if withUnary && k != i {
			cost += s.cells[v.unaryCell+int(a)]
		}
		index := indices[k] + a*w.strides[k]
		if k == n-1 {
			s.work++
			visit(tuple[:n], index, cost+w.table[index])
			continue
		}
		k++
		costs[k], indices[k], next[k] = cost, index, 0
	}
}

// cheapestTuple returns the least cost of a combination with value a at position i, with the unary costs of the other variables, and its
// index in the table.
func (s *mover) cheapestTuple(w *wide, i int, a int32) (least int64, index int32) {
	least = noCost
	s.visitTuples(w, i, a, true, func(_ []int32, k int32, cost int64) {
		if cost < least {
			least, index = cost, k
		}
	})
	return least, index
}

// hasSupport reports whether the combination that supported value a of the variable at position i last is still live and costs 0. It reads
// the values of the combination off its index in the table. If withUnary is set, the cost includes the unary costs of the other variables.
func (s *mover) hasSupport(w *wide, i int, a int32, withUnary bool) bool {
	index := w.supports[i][a]
	cost := w.table[index]
	for k, x := range w.scope {
		b := index / w.strides[k] % int32(s.vars[x].domainSize)
		if k == i && b != a || !s.isLive(x, b) {
			return false
		}
		cost -= s.cells[w.movedCells[k]+int(b)]
		if withUnary && k != i {
			cost += s.cells[s.vars[x].unaryCell+int(b)]
		}
	}
	return cost == 0
}

// findGains writes to s.gains, by value, the least cost of every live value of the variable at position i, and updates its supports. If
// withUnary is set, costs include the unary costs of the other variables. It reports whether a gain is above 0; s.gains is not written if
// all values have their last support.
func (s *mover) findGains(w *wide, i int, withUnary bool) (hasGain bool) {
	x := w.scope[i]
	allSupported := true
	for _, a := range s.liveValues(x) {
		if !s.hasSupport(w, i, a, withUnary) {
			allSupported = false
			break
		}
	}
	if allSupported {
		return false
	}
	live := s.liveValues(x)
	for _, a := range live {
		s.gains[a] = noCost
	}
	support := w.supports[i]
	s.visitTuples(w, i, -1, withUnary, func(t []int32, index int32, cost int64) {
		if a := t[i]; cost < s.gains[a] {
			s.gains[a], support[a] = cost, index
		}
	})
	for _, a := range live {
		if s.isFar(w.movedCells[i] + int(a)) {
			s.gains[a] = 0
		}
		hasGain = hasGain || s.gains[a] > 0
	}
	return hasGain
}

// wideSimpleSupport is simpleSupport for the variable at position i of a wide function. It returns false on a conflict.
func (s *mover) wideSimpleSupport(id int32, i int) bool {
	w := &s.wides[id]
	if !s.findGains(w, i, false) {
		return true
	}
	return s.moveGains(w, i)
}

// moveGains moves s.gains from a wide function to the values of the variable at position i. It returns false on a conflict.
func (s *mover) moveGains(w *wide, i int) bool {
	x := w.scope[i]
	for _, a := range s.liveValues(x) {
		if s.gains[a] > 0 {
			s.set(w.movedCells[i]+int(a), s.cells[w.movedCells[i]+int(a)]+s.gains[a])
			s.raiseUnary(x, a, s.gains[a])
		}
	}
	s.doubtful.insert(s.vars[x].rank)
	return s.makeNodeConsistent(x)
}

// wideFullSupport is fullSupport for the variable at position i of a wide function: unary costs of the others are moved into the function,
// one variable after another, as much as the gains need. It moves nothing if a moved cost is beyond maxMoved already. It returns false on a
// conflict.
func (s *mover) wideFullSupport(id int32, i int) bool {
	w := &s.wides[id]
	if !s.findGains(w, i, true) {
		return true
	}
	for k, y := range w.scope {
		if slices.ContainsFunc(s.liveValues(y), func(b int32) bool { return s.isFar(w.movedCells[k] + int(b)) }) {
			return true
		}
	}
	slack := s.slack()
	x := w.scope[i]
	live := s.liveValues(x)
	for k := len(live) - 1; k >= 0; k-- {
		if a := live[k]; s.cells[s.vars[x].unaryCell+int(a)]+s.gains[a] >= slack && !s.removeValue(x, a) {
			return false
		}
	}
	for j, y := range w.scope {
		if j != i && s.isOpen(y) {
			s.takeFromOther(w, i, j)
		}
	}
	return s.moveGains(w, i)
}

// takeFromOther moves unary costs of the variable at position j into a wide function: each value's least cost with which no combination is
// below 0 after s.gains were moved out to the variable at position i. The costs of variables before j are in the function already. Those of
// variables after j may still come, and so reduce what is needed.
func (s *mover) takeFromOther(w *wide, i, j int) {
	y := w.scope[j]
	vy := &s.vars[y]
	if !slices.ContainsFunc(s.liveValues(y), func(b int32) bool { return s.cells[vy.unaryCell+int(b)] > 0 }) {
		return
	}
	for _, b := range s.liveValues(y) {
		s.losses[b] = 0
	}
	s.visitTuples(w, i, -1, false, func(t []int32, _ int32, cost int64) {
		need := s.gains[t[i]] - cost
		for k := j + 1; k < len(t); k++ {
			if k != i {
				need -= s.cells[s.vars[w.scope[k]].unaryCell+int(t[k])]
			}
		}
		s.losses[t[j]] = max(s.losses[t[j]], need)
	})
	for _, b := range s.liveValues(y) {
		if s.losses[b] > 0 {
			s.set(w.movedCells[j]+int(b), s.cells[w.movedCells[j]+int(b)]-s.losses[b])
			s.set(vy.unaryCell+int(b), s.cells[vy.unaryCell+int(b)]-s.losses[b])
		}
	}
}
