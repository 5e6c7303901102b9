package branching

import "slices"

// maxWideScope is the largest number of variables with several values each in a wide function, whose table has up to 2^27 entries.
const maxWideScope = 28

// unaryInclusion tells whether the cost of a combination of values of a wide function includes the unary costs of its variables, other than
// the variable that the caller looks at.
type unaryInclusion bool

const (
	withUnary    unaryInclusion = true
	withoutUnary unaryInclusion = false
)

// anyValue stands for no restriction to one value.
const anyValue = -1

// visitTuples calls visit for each combination of live values of function w, with the combination's index in the table and its cost. The
// cost is the table entry less the costs that were moved from w to the values. With withUnary it includes the unary costs of all variables
// except the one at position i. If only is not anyValue, the variable at position i has the value only. The tuple is valid during the call
// of visit.
func (s *mover) visitTuples(
	w *wide, i int, only int32, unary unaryInclusion, visit func(tuple []int32, index int32, cost int64),
) {
	// The combinations are the leaves of a tree, which the loop walks depth first. It has a level k for each position of the scope.
	var tuple [maxWideScope]int32     // by level: the present value
	var next [maxWideScope]int32      // by level: number of the live value that comes next
	var baseIndex [maxWideScope]int32 // by level: index in the table by the values of the levels before
	var baseCost [maxWideScope]int64  // by level: cost by the values of the levels before
	n := len(w.scope)
	for k := 0; k >= 0; {
		x := w.scope[k]
		v := &s.vars[x]
		if int64(next[k]) >= s.liveCount(v) { // all values of this level are done: back to the level before
			k--
			continue
		}
		a := v.live[next[k]]
		next[k]++
		if k == i && only >= 0 {
			a, next[k] = only, int32(v.domainSize) // no further value
		}
		tuple[k] = a
		cost := baseCost[k] - s.movedOutWide(w, k, a)
		if unary == withUnary && k != i {
			cost += s.unaryCost(v, a)
		}
		index := baseIndex[k] + a*w.strides[k]
		if k == n-1 {
			s.work++
			visit(tuple[:n], index, cost+w.table[index])
			continue
		}
		k++
		baseCost[k], baseIndex[k], next[k] = cost, index, 0
	}
}

// cheapestTuple looks through the combinations of live values of w, a function of more than two variables, that have value a at position i.
// It returns the least cost of one, and its index in the table. The cost includes the unary costs of the other variables.
func (s *mover) cheapestTuple(w *wide, i int, a int32) (leastCost int64, index int32) {
	leastCost = infiniteCost
	s.visitTuples(w, i, a, withUnary, func(_ []int32, tupleIndex int32, cost int64) {
		if cost < leastCost {
			leastCost, index = cost, tupleIndex
		}
	})
	return leastCost, index
}

// hasSupport reports whether value a of the variable at position i still has its last support: a combination of live values that has value
// a and costs 0. w.supports[i][a] is the combination's index in the table; it may have another value at position i if none was found yet.
// With withUnary the cost includes the unary costs of the other variables.
func (s *mover) hasSupport(w *wide, i int, a int32, unary unaryInclusion) bool {
	index := w.supports[i][a]
	cost := w.table[index]
	for k, x := range w.scope {
		b := index / w.strides[k] % int32(s.vars[x].domainSize) // value of x in the combination
		if k == i && b != a || !s.isLive(x, b) {
			return false
		}
		cost -= s.movedOutWide(w, k, b)
		if unary == withUnary && k != i {
			cost += s.unaryCost(&s.vars[x], b)
		}
	}
	return cost == 0
}

// findGains computes s.gains[a], the cost that each live value a of the variable at position i can get from w: the least cost of a
// combination with a. With withUnary costs include the unary costs of the other variables. It records the cheapest combination of each
// value as its support. If the costs moved to a value are beyond maxMoved already, its gain is 0. hasGain is false if no gain is above 0.
// Then s.gains means nothing: if all values still have support, it is not written.
func (s *mover) findGains(w *wide, i int, unary unaryInclusion) (hasGain bool) {
	live := s.liveValues(w.scope[i])
	lacksSupport := func(a int32) bool { return !s.hasSupport(w, i, a, unary) }
	if !slices.ContainsFunc(live, lacksSupport) {
		return false
	}

	for _, a := range live {
		s.gains[a] = infiniteCost
	}
	support := w.supports[i]
	s.visitTuples(w, i, anyValue, unary, func(tuple []int32, index int32, cost int64) {
		if a := tuple[i]; cost < s.gains[a] {
			s.gains[a], support[a] = cost, index
		}
	})
	for _, a := range live {
		if s.exceedsMaxMoved(w.movedCells[i] + int(a)) {
			s.gains[a] = 0
		}
		hasGain = hasGain || s.gains[a] > 0
	}
	return hasGain
}

// wideSimpleSupport moves costs from wide function id to the variable at position i of its scope: every value gets the least cost of a
// combination with it. It returns false on a conflict.
func (s *mover) wideSimpleSupport(id int32, i int) bool {
	w := &s.wides[id]
	if !s.findGains(w, i, withoutUnary) {
		return true
	}
	return s.moveGains(w, i)
}

// moveGains moves the cost s.gains[a] from w, a function of more than two variables, to each live value a of the variable at position i. It
// returns false on a conflict: the variable has no value left, or the bound has reached upperBound.
func (s *mover) moveGains(w *wide, i int) bool {
	x := w.scope[i]
	for _, a := range s.liveValues(x) {
		if s.gains[a] > 0 {
			s.set(w.movedCells[i]+int(a), s.movedOutWide(w, i, a)+s.gains[a])
			s.raiseUnary(x, a, s.gains[a])
		}
	}
	s.enqueue(&s.doubtfulSupport, x)
	return s.makeNodeConsistent(x)
}

// wideFullSupport moves costs from function id, one of more than two variables, to the variable at position i of its scope. Every value
// gets its gain: the least cost of a combination with it, unary costs of the other variables included. For this the function first takes
// from the unary costs of the other variables what it lacks, from one variable after another. It moves nothing if a cost that was moved to
// a value is beyond maxMoved already, since sums might overflow. It returns false on a conflict.
func (s *mover) wideFullSupport(id int32, i int) bool {
	w := &s.wides[id]
	if !s.findGains(w, i, withUnary) {
		return true
	}
	for k, y := range w.scope {
		if slices.ContainsFunc(s.liveValues(y), func(b int32) bool { return s.exceedsMaxMoved(w.movedCells[k] + int(b)) }) {
			return true
		}
	}

	// Remove values whose gain lets them cost too much.
	gap := s.gap()
	x := w.scope[i]
	live := s.liveValues(x)
	for k := len(live) - 1; k >= 0; k-- { // backwards, since removeValue reorders the list behind k
		if a := live[k]; s.unaryCost(&s.vars[x], a)+s.gains[a] >= gap && !s.removeValue(x, a) {
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

// takeFromOther moves unary costs of y, the variable at position j, into function w of more than two variables. Afterwards s.gains[a] is to
// be moved out of w to each value a of the variable at position i, without a combination that costs less than 0. Value b of y gives
// s.losses[b], the least cost for which that can hold. The variables before j have given their costs already. Those after j can still give
// all of theirs, which reduces what is needed from y. So the needs are at most what y has.
func (s *mover) takeFromOther(w *wide, i, j int) {
	y := w.scope[j]
	vy := &s.vars[y]
	if !slices.ContainsFunc(s.liveValues(y), func(b int32) bool { return s.unaryCost(vy, b) > 0 }) {
		return
	}

	// losses[b] is the largest need of a combination with b: the gain of its value at position i, less its cost in w and the unary costs
	// that the variables after j can give.
	for _, b := range s.liveValues(y) {
		s.losses[b] = 0
	}
	s.visitTuples(w, i, anyValue, withoutUnary, func(tuple []int32, _ int32, cost int64) {
		need := s.gains[tuple[i]] - cost
		for k := j + 1; k < len(tuple); k++ {
			if k != i {
				need -= s.unaryCost(&s.vars[w.scope[k]], tuple[k])
			}
		}
		s.losses[tuple[j]] = max(s.losses[tuple[j]], need)
	})

	// Move the losses from the unary costs of y into w.
	for _, b := range s.liveValues(y) {
		if s.losses[b] > 0 {
			s.set(w.movedCells[j]+int(b), s.movedOutWide(w, j, b)-s.losses[b])
			s.set(vy.unaryCell+int(b), s.unaryCost(vy, b)-s.losses[b])
		}
	}
}
