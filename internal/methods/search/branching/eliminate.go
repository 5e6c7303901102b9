package branching

import "slices"

// maxNeighbours is the largest number of neighbours of a variable that is eliminated.
const maxNeighbours = 3

// Limits of an elimination, in combinations of values of the variable and its neighbours.
const (
	maxPairWork      = 1 << 16 // live values, with two neighbours
	maxTripleWork    = 1 << 10 // live values, with three neighbours
	maxTripleEntries = 1 << 14 // all values of the three neighbours
)

// elimination is a variable that was eliminated, and the functions that it had then: in eliminatedFunctions from firstFunction on the
// numbers of arcCount arcs from x, followed by those of wideCount wide functions.
type elimination struct {
	x                   int32
	firstFunction       int
	arcCount, wideCount int
}

// neighbourSet is a set of at most maxNeighbours variables.
type neighbourSet struct {
	members [maxNeighbours]int32
	count   int
}

// add adds y unless it is a member already. It returns false if the set is full.
func (n *neighbourSet) add(y int32) bool {
	for _, member := range n.members[:n.count] {
		if member == y {
			return true
		}
	}
	if n.count == maxNeighbours {
		return false
	}
	n.members[n.count] = y
	n.count++
	return true
}

// eliminateNext takes the first variable from the queue maybeEliminable. It eliminates the variable if that is open, has at most
// maxNeighbours neighbours and little work (isCheap): a function of its neighbours replaces its functions. The neighbours are queued, since
// they may be eliminable then. It returns false on a conflict, and true if the variable stays.
func (s *eliminator) eliminateNext() bool {
	x := s.order[s.maybeEliminable.popFirst()]
	v := &s.vars[x]
	if !s.isOpen(x) {
		return true
	}
	neighbours, areFew := s.neighboursOf(x)
	if !areFew || !s.isCheap(v, &neighbours) {
		return true
	}
	for _, y := range neighbours.members[:neighbours.count] {
		s.enqueue(&s.maybeEliminable, y)
	}
	return s.eliminateVariable(x, &neighbours)
}

// neighboursOf returns the open variables that share an active function with x. areFew is false if they are more than maxNeighbours; then
// the set is incomplete.
func (s *eliminator) neighboursOf(x int32) (neighbours neighbourSet, areFew bool) {
	v := &s.vars[x]
	for k := len(v.arcs) - 1; k >= 0; k-- {
		if e := &s.arcs[v.arcs[k]]; s.isActive(e.activeCell) && !neighbours.add(e.to) {
			return neighbours, false
		}
	}
	for k := len(v.wides) - 1; k >= 0; k-- {
		w := &s.wides[v.wides[k]]
		if !s.isActive(w.activeCell) {
			continue
		}
		for _, y := range w.scope {
			if y != x && s.isOpen(y) && !neighbours.add(y) {
				return neighbours, false
			}
		}
	}
	return neighbours, true
}

// isCheap reports whether the elimination of v is within the limits of its work, which depend on the number of its neighbours. With at most
// one neighbour it always is.
func (s *eliminator) isCheap(v *variable, neighbours *neighbourSet) bool {
	work, entries := s.liveCount(v), int64(1) // combinations of live values, and entries of the table of the new function
	for _, y := range neighbours.members[:neighbours.count] {
		work *= s.liveCount(&s.vars[y])
		entries *= int64(s.vars[y].domainSize)
	}
	switch neighbours.count {
	case 0, 1: // the new function is a cost of the bound or unary costs
		return true
	case 2:
		return work <= maxPairWork
	}
	return work <= maxTripleWork && entries <= maxTripleEntries
}

// term is a function that the elimination of a variable x adds up: of x, its neighbours and assigned variables. Its cost is
//
//	table[baseIndex + Σ_i strides[i]·(value of neighbour i) + ownStride·(value of x)] + constant − the costs moved to these values.
type term struct {
	table        []int64
	constant     int64 // less the costs moved to the values of fixed variables
	baseIndex    int   // in table, by the values of fixed variables
	index        int   // scratch: in table, by the values of fixed variables and neighbours
	ownStride    int   // of x
	ownMovedCell int   // of the first cost moved to x; 0: x is not in the scope
	strides      [maxNeighbours]int
	movedCells   [maxNeighbours]int // of the first cost moved to each neighbour; 0: the neighbour is not in the scope
}

// termsOf returns the active functions of x as terms of its elimination. A term has the table of its function, and for x and each neighbour
// the stride in the table and the first cell of the costs moved to it. A neighbour that is not in the function's scope has 0 for both. The
// list is valid until the next call.
func (s *eliminator) termsOf(x int32, neighbours *neighbourSet) []term {
	v := &s.vars[x]
	terms := s.termBuffer[:0]
	for _, id := range v.arcs {
		e := &s.arcs[id]
		if !s.isActive(e.activeCell) {
			continue
		}
		t := term{table: e.table, ownStride: s.vars[e.to].domainSize, ownMovedCell: e.movedCell} // a row for each value of x
		i := slices.Index(neighbours.members[:neighbours.count], e.to)
		t.strides[i], t.movedCells[i] = 1, s.arcs[reverseOf(id)].movedCell
		terms = append(terms, t)
	}
	for _, id := range v.wides {
		if w := &s.wides[id]; s.isActive(w.activeCell) {
			terms = append(terms, s.wideTerm(w, x, neighbours))
		}
	}
	s.termBuffer = terms
	return terms
}

// wideTerm returns function w, one of more than two variables, as a term for the elimination of x. Variables of the function other than x
// and the neighbours are assigned: their values are part of baseIndex, and the costs that were moved to them are subtracted in constant. x
// is −1 if the function does not have the eliminated variable.
func (s *eliminator) wideTerm(w *wide, x int32, neighbours *neighbourSet) term {
	t := term{table: w.table}
	for k, y := range w.scope {
		switch i := slices.Index(neighbours.members[:neighbours.count], y); {
		case y == x:
			t.ownStride, t.ownMovedCell = int(w.strides[k]), w.movedCells[k]
		case i >= 0:
			t.strides[i], t.movedCells[i] = int(w.strides[k]), w.movedCells[k]
		default: // y is assigned
			a := s.vars[y].live[0]
			t.baseIndex += int(a * w.strides[k])
			t.constant -= s.movedOutWide(w, k, a)
		}
	}
	return t
}

// eliminateVariable takes x out of the network and replaces its functions by a function of its neighbours: the least sum of costs over the
// values of x. For one neighbour the function is its unary costs: fullSupport moves all costs of x and of their function there. Without
// neighbours there is nothing to replace. It returns false on a conflict.
func (s *eliminator) eliminateVariable(x int32, neighbours *neighbourSet) bool {
	v := &s.vars[x]
	el := s.newElimination(x)
	functions := s.eliminatedFunctions[el.firstFunction:]                 // numbers of el.arcCount arcs from x, then of wide functions
	if neighbours.count == 1 && !s.fullSupport(reverseOf(functions[0])) { // functions[0] is the arc from x to the neighbour
		return false
	}
	var terms []term
	if neighbours.count > 1 {
		terms = s.termsOf(x, neighbours)
	}

	s.recordElimination(el, functions)
	switch neighbours.count { // with at most one, all is done
	case 2:
		return s.addPairFunction(v, neighbours, terms)
	case 3:
		return s.addTripleFunction(v, neighbours, terms)
	}
	return true
}

// recordElimination puts an elimination in force: its variable is no longer open, and the functions of the variable are no longer active.
// Entries of s.eliminations behind those in force were taken back, and are overwritten.
func (s *eliminator) recordElimination(el elimination, functions []int32) {
	count := int(s.cells[s.eliminationCountCell]) // in force so far
	s.eliminations = append(s.eliminations[:count], el)
	s.set(s.eliminationCountCell, int64(count+1))
	s.set(s.vars[el.x].stateCell, eliminated)
	s.set(s.openCountCell, s.cells[s.openCountCell]-1)
	for k, id := range functions {
		if k < el.arcCount {
			s.set(s.arcs[id].activeCell, 0)
		} else {
			s.set(s.wides[id].activeCell, 0)
		}
	}
}

// newElimination returns the elimination of x, and writes the numbers of x's active functions to s.eliminatedFunctions: arcs from x, then
// functions of more than two variables. The list has the functions of all eliminations in force, one elimination after the other; entries
// behind the last of these were taken back and are overwritten.
func (s *eliminator) newElimination(x int32) elimination {
	v := &s.vars[x]
	el := elimination{x: x}

	// The first free place in the list.
	if count := int(s.cells[s.eliminationCountCell]); count > 0 {
		last := &s.eliminations[count-1]
		el.firstFunction = last.firstFunction + last.arcCount + last.wideCount
	}
	s.eliminatedFunctions = s.eliminatedFunctions[:el.firstFunction]

	for _, id := range v.arcs {
		if s.isActive(s.arcs[id].activeCell) {
			s.eliminatedFunctions = append(s.eliminatedFunctions, id)
			el.arcCount++
		}
	}
	for _, id := range v.wides {
		if s.isActive(s.wides[id].activeCell) {
			s.eliminatedFunctions = append(s.eliminatedFunctions, id)
			el.wideCount++
		}
	}
	return el
}

// leastCost returns the least cost of a live value of v, given the values of its neighbours in neighbourValues. The cost is v's unary cost
// plus the costs of the terms: entries of their tables, less the costs that were moved to the values. A cell of 0 in a term's movedCells or
// ownMovedCell states that its function does not have the neighbour, or v.
func (s *eliminator) leastCost(v *variable, neighbours *neighbourSet, terms []term, neighbourValues *[maxNeighbours]int32) int64 {
	// What is the same for all values of v: the indices by the neighbours' values, and fixedCost.
	fixedCost := int64(0)
	for k := range terms {
		t := &terms[k]
		t.index = t.baseIndex
		fixedCost += t.constant
		for i := range neighbours.count {
			if t.movedCells[i] > 0 {
				t.index += int(neighbourValues[i]) * t.strides[i]
				fixedCost -= s.cells[t.movedCells[i]+int(neighbourValues[i])]
			}
		}
		if t.ownMovedCell == 0 { // v is not in the term
			fixedCost += t.table[t.index]
		}
	}

	leastCost := infiniteCost
	for _, a := range v.live[:s.liveCount(v)] {
		cost := s.unaryCost(v, a)
		for k := range terms {
			if t := &terms[k]; t.ownMovedCell > 0 {
				cost += t.table[t.index+int(a)*t.ownStride] - s.cells[t.ownMovedCell+int(a)]
			}
		}
		leastCost = min(leastCost, cost)
	}
	s.work += s.liveCount(v) * int64(len(terms))
	return leastCost + fixedCost
}

// addPairFunction adds the least costs over the values of the eliminated variable v to the function of its two neighbours. The terms are
// the functions of v, whose costs add up. It returns false on a conflict.
func (s *eliminator) addPairFunction(v *variable, neighbours *neighbourSet, terms []term) bool {
	y, z := neighbours.members[0], neighbours.members[1]
	d := s.vars[z].domainSize
	costs := resized(&s.pairCosts[0], s.vars[y].domainSize*d) // costs[b·d + c] for value b of y and c of z
	for _, b := range s.liveValues(y) {
		for _, c := range s.liveValues(z) {
			costs[int(b)*d+int(c)] = s.leastCost(v, neighbours, terms, &[maxNeighbours]int32{b, c})
		}
	}
	return s.addToPair(y, z, func(b, c int32) int64 { return costs[int(b)*d+int(c)] })
}

// resized makes the buffer n entries long and returns it. Their values are undefined. It keeps the memory of the buffer if that is enough.
func resized(buffer *[]int64, n int) []int64 {
	*buffer = slices.Grow((*buffer)[:0], n)[:n]
	return *buffer
}

// addTripleFunction adds a function of the three neighbours of the eliminated variable v: the least cost of the terms over the values of v,
// for each combination of the neighbours' values. It also replaces the functions that the three neighbours have already (takeTriples). Then
// costs that depend on two neighbours only move to functions of two neighbours. It returns false on a conflict.
func (s *eliminator) addTripleFunction(v *variable, neighbours *neighbourSet, terms []term) bool {
	// The new function.
	terms = s.takeTriples(neighbours, terms)
	id := s.newTriple(neighbours.members)
	w := &s.wides[id]
	if !s.fillTriple(w, v, neighbours, terms) {
		s.set(w.activeCell, 0) // all its costs are 0
		return true
	}

	// Move costs to the functions of two neighbours. skip is the position of the third one.
	for skip := range maxNeighbours {
		s.takePairCosts(w, skip) // from w's table to s.pairCosts[skip]
	}
	for skip := range maxNeighbours {
		i, j := otherTwo(skip)
		d := s.vars[w.scope[j]].domainSize
		if !s.addToPair(w.scope[i], w.scope[j], func(b, c int32) int64 { return s.pairCosts[skip][int(b)*d+int(c)] }) {
			return false
		}
	}

	// Give all three support. The one of lowest rank gets full support, which counts unary costs of the others.
	lowest := s.lowestRanked(w)
	for i, x := range w.scope {
		s.enqueue(&s.doubtfulSupport, x)
		if i != lowest && !s.wideSimpleSupport(id, i) {
			return false
		}
	}
	return s.wideFullSupport(id, lowest)
}

// takeTriples deactivates the functions of more than two variables whose open variables are exactly the three neighbours, and appends
// them to terms. The new function of the three neighbours will contain their costs.
func (s *eliminator) takeTriples(neighbours *neighbourSet, terms []term) []term {
	for _, id := range s.vars[neighbours.members[0]].wides {
		w := &s.wides[id]
		if s.isActive(w.activeCell) && s.cells[w.openCountCell] == maxNeighbours && s.isWithin(w, neighbours) {
			terms = append(terms, s.wideTerm(w, -1, neighbours)) // −1: w does not have the eliminated variable
			s.set(w.activeCell, 0)
		}
	}
	s.termBuffer = terms
	return terms
}

// fillTriple writes the costs of w, a function of the three neighbours, to its table: the least costs of the terms over the values of v. It
// returns false if all are 0.
func (s *eliminator) fillTriple(w *wide, v *variable, neighbours *neighbourSet, terms []term) (hasCosts bool) {
	for _, b := range s.liveValues(w.scope[0]) {
		for _, c := range s.liveValues(w.scope[1]) {
			for _, d := range s.liveValues(w.scope[2]) { // stride 1 in the table
				cost := s.leastCost(v, neighbours, terms, &[maxNeighbours]int32{b, c, d})
				w.table[b*w.strides[0]+c*w.strides[1]+d] = cost
				hasCosts = hasCosts || cost > 0
			}
		}
	}
	return hasCosts
}

// takePairCosts moves costs from w, a function of three variables, to s.pairCosts[skip], a function of two of them: the variables at the
// positions i and j other than skip. For each pair of their values it finds the least cost in w's table over the values of the skipped
// variable, subtracts it from the entries of these values, and writes it to s.pairCosts[skip].
func (s *eliminator) takePairCosts(w *wide, skip int) {
	i, j := otherTwo(skip)
	d := s.vars[w.scope[j]].domainSize
	costs := resized(&s.pairCosts[skip], s.vars[w.scope[i]].domainSize*d) // costs[b·d + c] for values b and c at positions i and j
	skipped := s.liveValues(w.scope[skip])
	for _, b := range s.liveValues(w.scope[i]) {
		for _, c := range s.liveValues(w.scope[j]) {
			base := b*w.strides[i] + c*w.strides[j]
			leastCost := infiniteCost
			for _, a := range skipped {
				leastCost = min(leastCost, w.table[base+a*w.strides[skip]])
			}
			for _, a := range skipped {
				w.table[base+a*w.strides[skip]] -= leastCost
			}
			costs[int(b)*d+int(c)] = leastCost
		}
	}
}

// otherTwo returns the two positions other than skip in a scope of three variables.
func otherTwo(skip int) (i, j int) { return (skip + 1) % maxNeighbours, (skip + 2) % maxNeighbours }

// isWithin reports whether all open variables of a wide function are among the three neighbours.
func (s *eliminator) isWithin(w *wide, neighbours *neighbourSet) bool {
	for _, x := range w.scope {
		if s.isOpen(x) && !slices.Contains(neighbours.members[:], x) {
			return false
		}
	}
	return true
}

// newTriple adds a function of three variables (maxNeighbours) to s.wides and returns its number. The caller fills its table, in which the
// last variable has stride 1. An entry of s.wides that pop has cut off is used again, with its buffers. w.movedCells[k] is the first of the
// cells that hold the costs which were moved to the values of the k-th variable; new cells are 0.
func (s *eliminator) newTriple(scope [maxNeighbours]int32) int32 {
	// The place in s.wides.
	id := len(s.wides)
	if cap(s.wides) < id+1 {
		s.wides = slices.Grow(s.wides, 1)
	}
	s.wides = s.wides[:id+1]
	w := &s.wides[id]
	if cap(w.scope) < maxNeighbours {
		w.scope, w.strides = make([]int32, maxNeighbours), make([]int32, maxNeighbours)
		w.movedCells, w.supports = make([]int, maxNeighbours), make([][]int32, maxNeighbours)
	}
	w.openCountCell, w.activeCell = s.newCells(1), s.newCells(1)
	s.cells[w.openCountCell], s.cells[w.activeCell] = maxNeighbours, 1

	stride := 1
	for k := maxNeighbours - 1; k >= 0; k-- {
		x := scope[k]
		d := s.vars[x].domainSize
		w.scope[k], w.strides[k], w.movedCells[k] = x, int32(stride), s.newCells(d)
		w.supports[k] = slices.Grow(w.supports[k][:0], d)[:d]
		clear(w.supports[k])
		stride *= d
		s.vars[x].wides = append(s.vars[x].wides, int32(id))
	}
	resized(&w.table, stride)
	return int32(id)
}

// completeAssignment writes the cheapest assignment of a node without open variables to s.values: the values of the assigned variables, and
// the cheapest ones of the eliminated variables.
func (s *eliminator) completeAssignment() {
	s.assignFixed()
	s.assignEliminated()
}

// assignEliminated writes to s.values the cheapest value of every eliminated variable, given the values of its neighbours. It goes back
// from the last elimination, so that these neighbours, which were open at the elimination, have values already.
func (s *eliminator) assignEliminated() {
	for k := int(s.cells[s.eliminationCountCell]) - 1; k >= 0; k-- {
		el := &s.eliminations[k]
		leastCost := infiniteCost
		for _, a := range s.liveValues(el.x) {
			if cost := s.costOfEliminated(el, a); cost < leastCost {
				leastCost, s.values[el.x] = cost, int(a)
			}
		}
	}
}

// assignFixed writes the values of the assigned variables to s.values.
func (s *eliminator) assignFixed() {
	for x := range s.vars {
		if s.cells[s.vars[x].stateCell] == assigned {
			s.values[x] = int(s.vars[x].live[0])
		}
	}
}

// costOfEliminated returns the cost of value a of an eliminated variable, given its neighbours' values in s.values. It is the unary cost
// plus the functions that the variable had. It leaves out the costs moved to the neighbours' values, which are the same for every a.
func (s *eliminator) costOfEliminated(el *elimination, a int32) int64 {
	cost := s.unaryCost(&s.vars[el.x], a)

	// The functions of two variables, then the wide ones: entries of their tables less the costs that were moved to a.
	for _, id := range s.eliminatedFunctions[el.firstFunction:][:el.arcCount] { // arcs from x
		e := &s.arcs[id]
		cost += e.table[int(a)*s.vars[e.to].domainSize+s.values[e.to]] - s.movedOut(e, a)
	}
	for _, id := range s.eliminatedFunctions[el.firstFunction+el.arcCount:][:el.wideCount] {
		w := &s.wides[id]
		index := 0
		for i, y := range w.scope {
			if y == el.x {
				index += int(a * w.strides[i])
				cost -= s.movedOutWide(w, i, a)
			} else {
				index += s.values[y] * int(w.strides[i])
			}
		}
		cost += w.table[index]
	}
	return cost
}
