package branching

import (
	"math"
	"slices"
)

// struckValue is value a of variable x, which was struck: its unary cost is above theta, or it costs more than theta in a function with all
// values that are left of the function's other variables.
type struckValue struct {
	x, a   int32
	reason int32 // the number of an arc from x, wideReason of a wide function, or ownCost
}

// wideReason returns the reason that stands for wide function id: −2 − id. Its inverse is wideReason itself.
func wideReason(id int32) int32 { return -2 - id }

// ownCost is the reason of a value that was struck for its unary cost.
const ownCost = -1

// virtual strikes values until the network is arc consistent, where costs up to theta count as 0. If this leaves a variable without values,
// the strikes give a direction: moves of costs that raise the bound (virtual arc consistency: Cooper, de Givry, Sanchez, Schiex, Zytnicki
// and Werner, Artificial Intelligence 2010).
type virtual struct {
	*propagator
	theta         int64
	struckValues  []struckValue  // in the order of strikes
	firstValue    []int          // by variable: index of its first value in strikeNumber and unitsNeeded
	strikeNumber  []int32        // by value: its place in struckValues, from 1; 0: it is not struck
	unitsNeeded   []int64        // by value: units of cost to be moved to it for each unit that the bound rises
	movesPerUnit  map[int]int64  // by cell: what is added to it for each unit that the bound rises
	unitsAsked    map[int]int64  // by cell of moved costs: units that the value gives to the function
	usedFunctions map[int32]bool // functions that the last direction goes through, as reasons; of two arcs the first one
}

// newVirtual returns the state of virtual arc consistency before any value is struck. Costs of at most theta count as 0. theta begins at
// half of the largest unary cost of an open variable, or at half of the gap between the bound and the best assignment if that is less.
func (s *solver) newVirtual() *virtual {
	v := &virtual{propagator: &s.propagator, movesPerUnit: map[int]int64{}, unitsAsked: map[int]int64{}, usedFunctions: map[int32]bool{}}
	n := 0 // number of values of all variables
	for x := range s.vars {
		v.firstValue = append(v.firstValue, n)
		n += s.vars[x].domainSize
	}
	v.strikeNumber, v.unitsNeeded = make([]int32, n), make([]int64, n)

	// theta, from the largest unary cost.
	for x := range s.vars {
		if s.isOpen(int32(x)) {
			for _, a := range s.liveValues(int32(x)) {
				v.theta = max(v.theta, s.unaryCost(&s.vars[x], a))
			}
		}
	}
	v.theta = min(v.theta, s.gap()) / 2
	return v
}

// valueIndex returns the index of value a of x in strikeNumber and unitsNeeded.
func (v *virtual) valueIndex(x, a int32) int { return v.firstValue[x] + int(a) }

// strike strikes value a of x, and records the reason: the number of an arc, wideReason of a wide function, or ownCost. It returns false if
// x has no value left.
func (v *virtual) strike(x, a, reason int32) bool {
	v.struckValues = append(v.struckValues, struckValue{x, a, reason})
	v.strikeNumber[v.valueIndex(x, a)] = int32(len(v.struckValues))
	return v.removeValue(x, a)
}

// findWipedOut makes the network arc consistent, where costs up to theta count as 0. It strikes values until each value left has a unary
// cost of at most theta, and costs at most theta in each of its functions with some values left of the function's other variables. It
// returns the first variable that has no value left, or −1 if there is none or the work has ended. At its end the state of the network is
// as before (pop); struckValues and strikeNumber remain.
func (v *virtual) findWipedOut() int32 {
	for _, d := range v.struckValues {
		v.strikeNumber[v.valueIndex(d.x, d.a)] = 0
	}
	v.struckValues = v.struckValues[:0]
	v.push()
	defer v.pop()
	v.queueUsedVariables()
	for x := range v.vars {
		if !v.strikeByOwnCost(int32(x)) {
			return int32(x)
		}
	}
	for v.lostValues.count > 0 && !v.isOver() {
		y := v.order[v.lostValues.popFirst()]
		if !v.isOpen(y) {
			continue
		}
		if x := v.strikeNeighbours(y); x >= 0 {
			return x
		}
	}
	return -1
}

// queueUsedVariables queues the variables of v.usedFunctions, the functions in which the last rise of the bound has moved costs. These
// functions have to be looked at again even if their variables lose no values, since support may have ended in them. A number below 0
// stands for a function of more than two variables (wideReason), another one for an arc.
func (v *virtual) queueUsedVariables() {
	for reason := range v.usedFunctions {
		if reason >= 0 {
			e := &v.arcs[reason]
			v.lostValues.insert(v.vars[e.from].rank)
			v.lostValues.insert(v.vars[e.to].rank)
		} else {
			for _, x := range v.wides[wideReason(reason)].scope {
				v.lostValues.insert(v.vars[x].rank)
			}
		}
	}
}

// strikeByOwnCost strikes the values of x whose unary cost is above theta, if x is open. It returns false if x has no value left.
func (v *virtual) strikeByOwnCost(x int32) bool {
	if !v.isOpen(x) {
		return true
	}
	live := v.liveValues(x)
	v.work += int64(len(live))
	for k := len(live) - 1; k >= 0; k-- { // backwards, since strike reorders the list behind k
		if a := live[k]; v.unaryCost(&v.vars[x], a) > v.theta && !v.strike(x, a, ownCost) {
			return false
		}
	}
	return true
}

// strikeNeighbours looks at the functions of y, and strikes values of their other variables. A value is struck if it costs more than
// theta in the function with all combinations of values left of the function's other variables. It returns the first variable that has no
// value left, or −1.
func (v *virtual) strikeNeighbours(y int32) int32 {
	for _, id := range v.vars[y].arcs {
		if v.isActive(v.arcs[id].activeCell) && !v.strikePair(reverseOf(id)) {
			return v.arcs[id].to
		}
	}
	for _, id := range v.vars[y].wides {
		w := &v.wides[id]
		for i, x := range w.scope {
			if v.isActive(w.activeCell) && x != y && v.isOpen(x) && !v.strikeWide(id, i) {
				return x
			}
		}
	}
	return -1
}

// strikePair strikes the values of the first variable of arc id, a function of two variables, that cost more than theta with every value
// left of the second one. A value b with which a costs at most theta is recorded as support of a. strikePair returns false if the first
// variable has no value left.
//
// The cost of a and b is the entry of the table minus what was moved out of the function to each of them: v.movedOut(e, a) to value a, and
// movedToPartner[b] to value b.
func (v *virtual) strikePair(id int32) bool {
	e, reverse := &v.arcs[id], &v.arcs[reverseOf(id)]
	d := v.vars[e.to].domainSize
	movedToPartner, partners := v.cells[reverse.movedCell:][:d], v.liveValues(e.to)
	ownValues := v.liveValues(e.from)
	v.work += int64(len(ownValues))
	for k := len(ownValues) - 1; k >= 0; k-- { // backwards, since strike reorders the list behind k
		a := ownValues[k]
		row, limit := e.table[int(a)*d:][:d], v.movedOut(e, a)+v.theta // (a, b) costs at most theta if row[b] − movedToPartner[b] ≤ limit
		if b := e.support[a]; v.isLive(e.to, b) && row[b]-movedToPartner[b] <= limit {
			continue // b still supports a
		}
		v.work += int64(len(partners))
		i := slices.IndexFunc(partners, func(b int32) bool { return row[b]-movedToPartner[b] <= limit })
		if i >= 0 {
			e.support[a] = partners[i]
		} else if !v.strike(e.from, a, id) {
			return false
		}
	}
	return true
}

// strikeWide strikes values of the variable at position i of function id, one of more than two variables: the values that cost more than
// theta with all combinations of values left of the function's other variables. It returns false if the variable has no value left.
func (v *virtual) strikeWide(id int32, i int) bool {
	w := &v.wides[id]
	x := w.scope[i]
	ownValues := v.liveValues(x)
	leastCostOf := v.gains // by value of x: the least cost of a combination with it
	for _, a := range ownValues {
		leastCostOf[a] = infiniteCost
	}
	v.visitTuples(w, i, anyValue, withoutUnary, func(tuple []int32, _ int32, cost int64) {
		leastCostOf[tuple[i]] = min(leastCostOf[tuple[i]], cost)
	})
	for k := len(ownValues) - 1; k >= 0; k-- { // backwards, since strike reorders the list behind k
		if a := ownValues[k]; leastCostOf[a] > v.theta && !v.strike(x, a, wideReason(id)) {
			return false
		}
	}
	return true
}

// raiseAlong raises the bound by moving costs along the reasons why all values of variable wipedOut were struck. findDirection computes the
// moves: v.movesPerUnit[cell] is what a cell changes by for each unit of the rise. The rise, which raiseAlong returns, is the largest one
// for which no cost falls below 0 and no cell exceeds maxMoved, beyond which sums might overflow. The moves give every value of wipedOut a
// cost as high as the rise; this cost goes to the bound.
func (v *virtual) raiseAlong(wipedOut int32) int64 {
	rise, ok := v.findDirection(wipedOut) // the largest rise that the unary costs allow
	if !ok {
		return 0
	}

	// Limit the rise by the costs of the functions that it goes through, and by maxMoved for each cell.
	for reason := range v.usedFunctions {
		if reason >= 0 { // an arc, else a function of more than two variables
			rise = min(rise, v.largestRiseOfPair(reason))
		} else {
			rise = min(rise, v.largestRiseOfWide(wideReason(reason)))
		}
	}
	for cell, perUnit := range v.movesPerUnit {
		if perUnit != 0 { // |cell| + rise·|perUnit| ≤ maxMoved
			rise = min(rise, (maxMoved-max(v.cells[cell], -v.cells[cell]))/max(perUnit, -perUnit))
		}
	}
	if rise <= 0 {
		return 0
	}

	for cell, perUnit := range v.movesPerUnit {
		v.set(cell, v.cells[cell]+rise*perUnit)
	}
	v.set(v.boundCell, v.lowerBound()+rise)
	return rise
}

// findDirection computes v.movesPerUnit, the change of each cell if every value of variable wipedOut gets one unit of cost. It returns the
// largest rise of the bound that the unary costs allow. ok is false if a value needs more than 2^30 units.
//
// unitsNeeded has, for each value, the units of cost that it needs for each unit of the rise; at first only the values of wipedOut need one
// each. The struck values are visited from the last to the first. The reason of a strike provides the units: the value's unary cost falls
// by them, or a function gives them. The function has to get as many units from values that were struck before, whose needs grow.
func (v *virtual) findDirection(wipedOut int32) (largestRise int64, ok bool) {
	clear(v.unitsNeeded)
	clear(v.movesPerUnit)
	clear(v.unitsAsked)
	clear(v.usedFunctions)
	for _, a := range v.liveValues(wipedOut) {
		v.unitsNeeded[v.valueIndex(wipedOut, a)] = 1
	}

	largestRise = v.upperBound // no limit yet
	for n := len(v.struckValues) - 1; n >= 0; n-- {
		d := v.struckValues[n] // value d.a of variable d.x
		units := v.unitsNeeded[v.valueIndex(d.x, d.a)]
		switch {
		case units == 0: // nothing needs it
		case units > 1<<30: // needs add up from value to value, and must not overflow
			return 0, false
		case d.reason == ownCost:
			cell := v.vars[d.x].unaryCell + int(d.a)
			v.movesPerUnit[cell] -= units
			largestRise = min(largestRise, v.cells[cell]/units)
		case d.reason >= 0: // a function of two variables
			v.demandFromPair(d, units)
		default:
			v.demandFromWide(d, units)
		}
	}
	return largestRise, true
}

// largestRiseOfPair returns the largest rise of the bound with which no cost of the function of arc id falls below 0.
// v.movesPerUnit[e.movedCell+a] is what value a takes from the function for each unit of the rise. The cost of two values falls by what
// both of them take.
func (v *virtual) largestRiseOfPair(id int32) int64 {
	e, reverse := &v.arcs[id], &v.arcs[reverseOf(id)]
	largest := int64(math.MaxInt64)
	for _, a := range v.liveValues(e.from) {
		for _, b := range v.liveValues(e.to) {
			if units := v.movesPerUnit[e.movedCell+int(a)] + v.movesPerUnit[reverse.movedCell+int(b)]; units > 0 {
				largest = min(largest, v.pairCost(id, a, b)/units)
			}
		}
		v.work += int64(v.vars[e.to].domainSize)
	}
	return largest
}

// largestRiseOfWide returns the largest rise of the bound with which no cost of function id, one of more than two variables, falls below 0.
// v.movesPerUnit[w.movedCells[i]+a] is what value a of the function's i-th variable takes from the function for each unit of the rise. The
// cost of a combination falls by what its values take.
func (v *virtual) largestRiseOfWide(id int32) int64 {
	w := &v.wides[id]
	largest := int64(math.MaxInt64)
	v.visitTuples(w, 0, anyValue, withoutUnary, func(tuple []int32, _ int32, cost int64) { // all combinations of live values
		units := int64(0) // that the combination loses for each unit of the rise
		for i, a := range tuple {
			units += v.movesPerUnit[w.movedCells[i]+int(a)]
		}
		if units > 0 {
			largest = min(largest, cost/units)
		}
	})
	return largest
}

// addDemand asks a value to give units to a function. If it was asked for some before, only the rest is added to what it needs. value is
// the value's index in v.unitsNeeded, and movedCell the cell of the cost that was moved from the function to the value.
func (v *virtual) addDemand(value, movedCell int, units int64) {
	if more := units - v.unitsAsked[movedCell]; more > 0 {
		v.unitsAsked[movedCell] = units
		v.movesPerUnit[movedCell] -= more
		v.unitsNeeded[value] += more
	}
}

// demandFromPair moves the units of cost that the struck value d needs to it from the function of two variables that is the reason of its
// strike (d.reason, an arc). d was struck since it costs more than theta in that function with every value b of the other variable that was
// left. So that no entry of the function falls below 0, other values b must give it as many units: the values b that were struck before d
// and whose cost with d is at most theta.
//
// v.movesPerUnit[cell] is what a cell changes by for each unit that the bound rises. v.strikeNumber numbers the struck values in their
// order, from 1; it is 0 for values that are not struck.
func (v *virtual) demandFromPair(d struckValue, units int64) {
	e, reverse := &v.arcs[d.reason], &v.arcs[reverseOf(d.reason)]
	v.usedFunctions[min(d.reason, reverseOf(d.reason))] = true // a function has two arcs: the smaller number stands for it
	v.movesPerUnit[e.movedCell+int(d.a)] += units
	ownNumber := v.strikeNumber[v.valueIndex(d.x, d.a)]
	for _, b := range v.liveValues(e.to) {
		value := v.valueIndex(e.to, b)
		number := v.strikeNumber[value]
		wasStruckBefore := number > 0 && number < ownNumber
		if wasStruckBefore && v.pairCost(d.reason, d.a, b) <= v.theta {
			v.addDemand(value, reverse.movedCell+int(b), units)
		}
	}
	v.work += int64(v.vars[e.to].domainSize)
}

// demandFromWide moves the units of cost that the struck value d needs to it from the function of more than two variables that is the
// reason of its strike. Each combination of values with d then loses the units. If a combination costs at most theta, its values have to
// give the function as many units: the value that was struck first, before d, is asked for what the combination has not got yet.
//
// v.unitsAsked[cell] is what a value was asked for before, v.movesPerUnit[cell] what a cell changes by for each unit that the bound rises.
// v.strikeNumber numbers the struck values in their order, from 1; it is 0 for values that are not struck.
func (v *virtual) demandFromWide(d struckValue, units int64) {
	w := &v.wides[wideReason(d.reason)]
	v.usedFunctions[d.reason] = true
	ownPosition := slices.Index(w.scope, d.x)
	v.movesPerUnit[w.movedCells[ownPosition]+int(d.a)] += units
	ownNumber := v.strikeNumber[v.valueIndex(d.x, d.a)]
	v.visitTuples(w, ownPosition, d.a, withoutUnary, func(tuple []int32, _ int32, cost int64) {
		if cost > v.theta {
			return
		}

		// Find the position of the value struck first, and the units that all values give already.
		giver, unitsGiven := -1, int64(0)
		firstNumber := ownNumber
		for i, b := range tuple {
			if i == ownPosition {
				continue
			}
			unitsGiven += v.unitsAsked[w.movedCells[i]+int(b)]
			if n := v.strikeNumber[v.valueIndex(w.scope[i], b)]; n > 0 && n < firstNumber {
				giver, firstNumber = i, n
			}
		}
		if giver >= 0 && unitsGiven < units {
			cell := w.movedCells[giver] + int(tuple[giver])
			v.addDemand(v.valueIndex(w.scope[giver], tuple[giver]), cell, v.unitsAsked[cell]+units-unitsGiven)
		}
	})
}

// A round of virtual consistency takes one part in virtualShare of the root's work so far. Another one follows if the bound has risen by
// more than one part in virtualWorth of itself, or of its gap to the best assignment. theta falls to one part in thetaFloor of that gap. It
// is halved when the bound rises by one part in smallRiseShare of it or less. Costs moved by message passing lead dives to better
// assignments. So virtual moves stay only if their bound is higher by more than one part in virtualLead of its gap: higher than the bound
// before, or than that of message passing.
const (
	virtualShare   = 4
	virtualWorth   = 16
	thetaFloor     = 1 << 16
	smallRiseShare = 16
	virtualLead    = 6
)

// raiseVirtually raises the bound by virtual arc consistency as long as that is worth its work, and propagates if the bound has risen. It
// returns false if no assignment is better than the best one so far.
//
// Costs up to v.theta count as 0; theta is halved when the bound rises by at most theta/smallRiseShare. A round ends when theta is at most
// 1/thetaFloor of the gap between bound and upperBound, or when it has taken 1/virtualShare of the work before it. The last round is one in
// which theta became so small, or the bound rose by less than 1/virtualWorth of itself or of the gap.
func (s *solver) raiseVirtually() bool {
	v, startBound := s.newVirtual(), s.lowerBound()
	for {
		// A round, which ends with its share of the work or when theta is small.
		roundBound, workEnd := s.lowerBound(), s.work+s.work/virtualShare
		for v.theta > s.gap()/thetaFloor && s.work < workEnd && !s.isOver() {
			rise := int64(0)
			if x := v.findWipedOut(); x >= 0 {
				rise = v.raiseAlong(x)
			}
			if s.lowerBound() >= s.upperBound {
				return false
			}
			if rise <= v.theta/smallRiseShare {
				v.theta /= 2
			}
		}

		isThetaSmall := s.work < workEnd // the loop ended before the work did, unless the search was stopped
		roundRise := s.lowerBound() - roundBound
		isFruitless := roundRise < min(roundBound, s.upperBound-roundBound)/virtualWorth
		if isThetaSmall || s.stopped || isFruitless {
			return s.lowerBound() == startBound || s.propagateAll() // without a rise there is nothing to propagate
		}
	}
}
