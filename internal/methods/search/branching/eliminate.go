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

// eliminateNext takes the first variable from the queue, and eliminates it if it is open and has few neighbours, to whom its least costs
// go. Its neighbours may be eliminable then. It returns false on a conflict.
func (s *eliminator) eliminateNext() bool {
	x := s.order[s.eliminable.popFirst()]
	v := &s.vars[x]
	if s.cells[v.stateCell] != open {
		return true
	}
	neighbours, areFew := s.neighboursOf(x)
	if !areFew || !s.isCheap(v, &neighbours) {
		return true
	}
	for _, y := range neighbours.members[:neighbours.count] {
		s.eliminable.insert(s.vars[y].rank)
	}
	return s.eliminateVariable(x, &neighbours)
}

// neighboursOf returns the open variables that share an active function with x. areFew is false if they are more than maxNeighbours; the
// set is incomplete then.
func (s *eliminator) neighboursOf(x int32) (neighbours neighbourSet, areFew bool) {
	v := &s.vars[x]
	for k := len(v.arcs) - 1; k >= 0; k-- {
		if e := &s.arcs[v.arcs[k]]; s.cells[e.activeCell] != 0 && !neighbours.add(e.to) {
			return neighbours, false
		}
	}
	for k := len(v.wides) - 1; k >= 0; k-- {
		w := &s.wides[v.wides[k]]
		if s.cells[w.activeCell] == 0 {
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

// isCheap reports whether the function that replaces v is little work to compute. With at most one neighbour it always is.
func (s *eliminator) isCheap(v *variable, neighbours *neighbourSet) bool {
	work, entries := s.cells[v.liveCountCell], int64(1)
	for _, y := range neighbours.members[:neighbours.count] {
		work *= s.cells[s.vars[y].liveCountCell]
		entries *= int64(s.vars[y].domainSize)
	}
	switch neighbours.count {
	case 0, 1:
		return true
	case 2:
		return work <= maxPairWork
	}
	return work <= maxTripleWork && entries <= maxTripleEntries
}

// term is a function of an eliminated variable x and its neighbours: an entry of a table, less the costs that were moved out of it.
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

// termsOf returns the active functions of x, arcs before wide ones. The list is valid until the next call.
func (s *eliminator) termsOf(x int32, neighbours *neighbourSet) []term {
	v := &s.vars[x]
	terms := s.termBuffer[:0]
	for _, id := range v.arcs {
		e := &s.arcs[id]
		if s.cells[e.activeCell] == 0 {
			continue
		}
		t := term{table: e.table, ownStride: s.vars[e.to].domainSize, ownMovedCell: e.movedCell}
		i := slices.Index(neighbours.members[:neighbours.count], e.to)
		t.strides[i], t.movedCells[i] = 1, s.arcs[id^1].movedCell
		terms = append(terms, t)
	}
	for _, id := range v.wides {
		if w := &s.wides[id]; s.cells[w.activeCell] != 0 {
			terms = append(terms, s.wideTerm(w, x, neighbours))
		}
	}
	s.termBuffer = terms
	return terms
}

// wideTerm returns a wide function as a term of x. Variables other than x and the neighbours are fixed. x may be −1: not in the scope.
func (s *eliminator) wideTerm(w *wide, x int32, neighbours *neighbourSet) term {
	t := term{table: w.table}
	for k, y := range w.scope {
		switch i := slices.Index(neighbours.members[:neighbours.count], y); {
		case y == x:
			t.ownStride, t.ownMovedCell = int(w.strides[k]), w.movedCells[k]
		case i >= 0:
			t.strides[i], t.movedCells[i] = int(w.strides[k]), w.movedCells[k]
		default:
			a := s.vars[y].live[0]
			t.baseIndex += int(a * w.strides[k])
			t.constant -= s.cells[w.movedCells[k]+int(a)]
		}
	}
	return t
}

// eliminateVariable takes x out of the network and replaces its functions by one of its neighbours: the least cost over the values of x.
// For one neighbour these are unary costs, which full support moves there. It returns false on a conflict.
func (s *eliminator) eliminateVariable(x int32, neighbours *neighbourSet) bool {
	v := &s.vars[x]
	el := s.newElimination(x)
	functions := s.eliminatedFunctions[el.firstFunction:]
	if neighbours.count == 1 && !s.fullSupport(functions[0]^1) {
		return false
	}
	var terms []term
	if neighbours.count > 1 {
		terms = s.termsOf(x, neighbours)
	}
	count := int(s.cells[s.eliminationCountCell])
	s.eliminations = append(s.eliminations[:count], el)
	s.set(s.eliminationCountCell, int64(count+1))
	s.set(v.stateCell, eliminated)
	s.set(s.openCountCell, s.cells[s.openCountCell]-1)
	for k, id := range functions {
		if k < el.arcCount {
			s.set(s.arcs[id].activeCell, 0)
		} else {
			s.set(s.wides[id].activeCell, 0)
		}
	}
	switch neighbours.count {
	case 2:
		return s.addPairFunction(v, neighbours, terms)
	case 3:
		return s.addTripleFunction(v, neighbours, terms)
	}
	return true
}

// newElimination returns the elimination of x and writes its active functions to eliminatedFunctions, behind those of the eliminations that
// are in force.
func (s *eliminator) newElimination(x int32) elimination {
	v := &s.vars[x]
	el := elimination{x: x}
	if count := int(s.cells[s.eliminationCountCell]); count > 0 {
		last := &s.eliminations[count-1]
		el.firstFunction = last.firstFunction + last.arcCount + last.wideCount
	}
	s.eliminatedFunctions = s.eliminatedFunctions[:el.firstFunction]
	for _, id := range v.arcs {
		if s.cells[s.arcs[id].activeCell] != 0 {
			s.eliminatedFunctions = append(s.eliminatedFunctions, id)
			el.arcCount++
		}
	}
	for _, id := range v.wides {
		if s.cells[s.wides[id].activeCell] != 0 {
			s.eliminatedFunctions = append(s.eliminatedFunctions, id)
			el.wideCount++
		}
	}
	return el
}

// leastCost returns the least cost over the live values of v of its unary cost plus the terms. neighbourValues has the values of the
// neighbours.
func (s *eliminator) leastCost(v *variable, neighbours *neighbourSet, terms []term, neighbourValues *[maxNeighbours]int32) int64 {
	fixedCost := int64(0) // the same for all values of v
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
		if t.ownMovedCell == 0 {
			fixedCost += t.table[t.index]
		}
	}
	least := noCost
	for _, a := range v.live[:s.cells[v.liveCountCell]] {
		cost := s.cells[v.unaryCell+int(a)]
		for k := range terms {
			if t := &terms[k]; t.ownMovedCell > 0 {
				cost += t.table[t.index+int(a)*t.ownStride] - s.cells[t.ownMovedCell+int(a)]
			}
		}
		least = min(least, cost)
	}
	s.work += s.cells[v.liveCountCell] * int64(len(terms))
	return least + fixedCost
}

// addPairFunction adds the least costs of the eliminated variable v to the function of its two neighbours. It returns false on a conflict.
func (s *eliminator) addPairFunction(v *variable, neighbours *neighbourSet, terms []term) bool {
	y, z := neighbours.members[0], neighbours.members[1]
	d := s.vars[z].domainSize
	costs := resized(&s.pairCosts[0], s.vars[y].domainSize*d)
	for _, b := range s.liveValues(y) {
		for _, c := range s.liveValues(z) {
			costs[int(b)*d+int(c)] = s.leastCost(v, neighbours, terms, &[maxNeighbours]int32{b, c})
		}
	}
	return s.addToPair(y, z, func(b, c int32) int64 { return costs[int(b)*d+int(c)] })
}

// resized returns a buffer with n entries of any value. It reuses the memory of the buffer if that is large enough.
func resized(buffer *[]int64, n int) []int64 {
	*buffer = slices.Grow((*buffer)[:0], n)[:n]
	return *buffer
}

// addTripleFunction replaces the eliminated variable v and all wide functions of its three neighbours by one function of the three. What
// two of their values cost at least goes to the functions of two variables. It returns false on a conflict.
func (s *eliminator) addTripleFunction(v *variable, neighbours *neighbourSet, terms []term) bool {
	terms = s.takeTriples(neighbours, terms)
	id := s.newTriple(neighbours.members)
	w := &s.wides[id]
	if !s.fillTriple(w, v, neighbours, terms) {
		s.set(w.activeCell, 0)
		return true
	}
	for skip := range maxNeighbours {
		s.takePairCosts(w, skip)
	}
	for skip := range maxNeighbours {
		i, j := otherTwo(skip)
		d := s.vars[w.scope[j]].domainSize
		if !s.addToPair(w.scope[i], w.scope[j], func(b, c int32) int64 { return s.pairCosts[skip][int(b)*d+int(c)] }) {
			return false
		}
	}
	lowest := s.lowestRanked(w)
	for i, x := range w.scope {
		s.doubtful.insert(s.vars[x].rank)
		if i != lowest && !s.wideSimpleSupport(id, i) {
			return false
		}
	}
	return s.wideFullSupport(id, lowest)
}

// takeTriples deactivates the wide functions whose open variables are just the three neighbours, and returns terms with them appended.
func (s *eliminator) takeTriples(neighbours *neighbourSet, terms []term) []term {
	for _, id := range s.vars[neighbours.members[0]].wides {
		w := &s.wides[id]
		if s.cells[w.activeCell] != 0 && s.cells[w.openCountCell] == maxNeighbours && s.isWithin(w, neighbours) {
			terms = append(terms, s.wideTerm(w, -1, neighbours))
			s.set(w.activeCell, 0)
		}
	}
	s.termBuffer = terms
	return terms
}

// fillTriple writes the least costs over the values of v to the table of w. It returns false if all are 0.
func (s *eliminator) fillTriple(w *wide, v *variable, neighbours *neighbourSet, terms []term) (hasCosts bool) {
	for _, b := range s.liveValues(w.scope[0]) {
		for _, c := range s.liveValues(w.scope[1]) {
			for _, d := range s.liveValues(w.scope[2]) {
				cost := s.leastCost(v, neighbours, terms, &[maxNeighbours]int32{b, c, d})
				w.table[b*w.strides[0]+c*w.strides[1]+d] = cost
				hasCosts = hasCosts || cost > 0
			}
		}
	}
	return hasCosts
}

// takePairCosts moves costs from w, a function of three variables, to s.pairCosts[skip], a function of two of them: those that are not at
// position skip. For each pair of their values it finds the least cost in w's table over the values of the skipped variable, subtracts it
// from these entries of the table, and writes it to s.pairCosts[skip].
func (s *eliminator) takePairCosts(w *wide, skip int) {
	i, j := otherTwo(skip)
	d := s.vars[w.scope[j]].domainSize
	costs := resized(&s.pairCosts[skip], s.vars[w.scope[i]].domainSize*d)
	skipped := s.liveValues(w.scope[skip])
	for _, b := range s.liveValues(w.scope[i]) {
		for _, c := range s.liveValues(w.scope[j]) {
			base := b*w.strides[i] + c*w.strides[j]
			least := noCost
			for _, a := range skipped {
				least = min(least, w.table[base+a*w.strides[skip]])
			}
			for _, a := range skipped {
				w.table[base+a*w.strides[skip]] -= least
			}
			costs[int(b)*d+int(c)] = least
		}
	}
}

// otherTwo returns the positions of a scope of three other than skip.
func otherTwo(skip int) (i, j int) { return (skip + 1) % maxNeighbours, (skip + 2) % maxNeighbours }

// isWithin reports whether all open variables of a wide function are among three neighbours.
func (s *eliminator) isWithin(w *wide, neighbours *neighbourSet) bool {
	for _, x := range w.scope {
		if s.isOpen(x) && !slices.Contains(neighbours.members[:], x) {
			return false
		}
	}
	return true
}

// newTriple adds a wide function of three variables and returns its number. Its table is to be filled. It reuses the buffers of a function
// that was taken back by pop.
func (s *eliminator) newTriple(scope [maxNeighbours]int32) int32 {
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

// completeAssignment writes the assignment of a node without open variables to s.values.
func (s *eliminator) completeAssignment() {
	s.assignFixed()
	s.assignEliminated()
}

// assignEliminated writes to s.values the cheapest value of every eliminated variable, given the values of all others. The variable that
// was eliminated last is first, since its neighbours were open then.
func (s *eliminator) assignEliminated() {
	for k := int(s.cells[s.eliminationCountCell]) - 1; k >= 0; k-- {
		el := &s.eliminations[k]
		least := noCost
		for _, a := range s.liveValues(el.x) {
			if cost := s.costOfEliminated(el, a); cost < least {
				least, s.values[el.x] = cost, int(a)
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

// costOfEliminated returns the cost of value a of an eliminated variable, given its neighbours' values in s.values. It leaves out the costs
// moved to these values, which are the same for every a.
func (s *eliminator) costOfEliminated(el *elimination, a int32) int64 {
	cost := s.cells[s.vars[el.x].unaryCell+int(a)]
	for _, id := range s.eliminatedFunctions[el.firstFunction:][:el.arcCount] {
		e := &s.arcs[id]
		cost += e.table[int(a)*s.vars[e.to].domainSize+s.values[e.to]] - s.cells[e.movedCell+int(a)]
	}
	for _, id := range s.eliminatedFunctions[el.firstFunction+el.arcCount:][:el.wideCount] {
		w := &s.wides[id]
		index := 0
		for i, y := range w.scope {
			if y == el.x {
				index += int(a * w.strides[i])
				cost -= s.cells[w.movedCells[i]+int(a)]
			} else {
				index += s.values[y] * int(w.strides[i])
			}
		}
		cost += w.table[index]
	}
	return cost
}
