package branching

// maxMoved limits the cost that is moved to or from one value, so that no sum overflows. Cost beyond it stays in its function.
const maxMoved = 1 << 60

// infiniteCost is above every cost, the start of a search for the least one.
const infiniteCost = int64(1) << 62

// exceedsMaxMoved reports whether the cost in a cell is beyond maxMoved, above or below 0.
func (s *state) exceedsMaxMoved(cell int) bool { return uint64(s.cells[cell]+maxMoved) > 2*maxMoved }

// cheapestPartner returns the least cost of value a of e's first variable with a value b of its second one, over the values b in
// partners, and the b of that cost. movedToPartner[b] is the cost that was moved out of the function to b. If unary is not nil, the cost
// includes unary[b]. The loops leave out what was moved to a, which is the same for all b: so a c of at most moved is a cost of 0, and
// ends the scan, since no cost is below 0.
func (s *mover) cheapestPartner(e *arc, a int32, movedToPartner, unary []int64, partners []int32) (leastCost int64, partner int32) {
	d := len(movedToPartner)
	row := e.table[int(a)*d:][:d]
	moved := s.movedOut(e, a) // the cost is row[b] − moved − movedToPartner[b]
	leastCost = infiniteCost
	if unary == nil { // two loops, so that neither tests this for each b
		for _, b := range partners {
			if c := row[b] - movedToPartner[b]; c < leastCost {
				leastCost, partner = c, b
				if c <= moved {
					break
				}
			}
		}
	} else {
		unary = unary[:d]
		for _, b := range partners {
			if c := row[b] - movedToPartner[b] + unary[b]; c < leastCost {
				leastCost, partner = c, b
				if c <= moved {
					break
				}
			}
		}
	}
	s.work += int64(len(partners))
	return leastCost - moved, partner
}

// simpleSupport moves costs from a function of two variables to the first variable of arc id: every value gets the least cost that it has
// with a value of the other variable. It returns false on a conflict.
func (s *mover) simpleSupport(id int32) bool {
	e, reverse := &s.arcs[id], &s.arcs[reverseOf(id)]
	x, y := e.from, e.to
	movedToPartner := s.cells[reverse.movedCell:][:s.vars[y].domainSize] // by value of y: the cost moved to it
	partners := s.liveValues(y)
	d := len(movedToPartner)

	// Give each value of x its least cost.
	changed := false
	s.work += s.liveCount(&s.vars[x]) + 4 // entries looked at, the unit of work; the call itself counts as 4
	for _, a := range s.liveValues(x) {
		cell := e.movedCell + int(a)
		if b := e.support[a]; s.isLive(y, b) && e.table[int(a)*d+int(b)]-movedToPartner[b] == s.cells[cell] {
			continue // a still costs 0 with b
		}
		leastCost, partner := s.cheapestPartner(e, a, movedToPartner, nil, partners) // nil: without the unary costs of y
		e.support[a] = partner
		if leastCost > 0 && !s.exceedsMaxMoved(cell) {
			s.set(cell, s.cells[cell]+leastCost)
			s.raiseUnary(x, a, leastCost)
			changed = true
		}
	}

	if !changed {
		return true
	}
	s.enqueue(&s.doubtfulSupport, x)
	return s.makeNodeConsistent(x)
}

// fullSupport moves costs from a function of two variables to the first variable of arc id. Every value a gets its gain, the least over the
// values b of the other variable of the cost of (a, b) plus the unary cost of b. For this the function first takes from the unary costs of
// the other variable what it lacks (takeFromPartner). Values that would cost too much are removed. It returns false on a conflict.
func (s *mover) fullSupport(id int32) bool {
	e := &s.arcs[id]
	values := s.valuesWithoutFullSupport(id)
	if len(values) == 0 {
		return true
	}
	values, ok := s.removeTooCostly(e.from, values)
	if !ok {
		return false
	}
	s.takeFromPartner(id, values)
	for k, a := range values {
		s.set(e.movedCell+int(a), s.movedOut(e, a)+s.gains[k])
		s.raiseUnary(e.from, a, s.gains[k])
	}
	s.enqueue(&s.doubtfulSupport, e.from)
	return s.makeNodeConsistent(e.from)
}

// valuesWithoutFullSupport returns the values a of the first variable of arc id that cost more than 0 with every value b of the other one,
// b's unary cost included. s.gains[k] is the least such cost of the k-th value returned. The list is valid until the next call. It leaves
// out values to which more cost was moved than maxMoved, since more moves might overflow.
func (s *mover) valuesWithoutFullSupport(id int32) []int32 {
	e, reverse := &s.arcs[id], &s.arcs[reverseOf(id)]
	y := e.to
	d := s.vars[y].domainSize
	movedToPartner, unary := s.cells[reverse.movedCell:][:d], s.cells[s.vars[y].unaryCell:][:d] // by value of y
	partners, ownValues := s.liveValues(y), s.liveValues(e.from)
	values := s.gaining[:0]
	s.work += int64(len(ownValues)) + 4 // entries looked at, the unit of work; the call itself counts as 4
	for _, a := range ownValues {
		cell := e.movedCell + int(a)
		if b := e.support[a]; unary[b] == 0 && s.isLive(y, b) && e.table[int(a)*d+int(b)]-movedToPartner[b] == s.cells[cell] {
			continue // a still costs 0 with b
		}
		leastCost, partner := s.cheapestPartner(e, a, movedToPartner, unary, partners)
		e.support[a] = partner
		if leastCost > 0 && !s.exceedsMaxMoved(cell) {
			s.gains[len(values)] = leastCost
			values = append(values, a)
		}
	}
	return values
}

// removeTooCostly removes values of x that cost too much. s.gains[k] is what values[k] is about to gain from a function. The value is
// removed if the bound, its unary cost and its gain together reach upperBound. It returns the remaining values, in the memory of values,
// with their gains in the first entries of s.gains. ok is false if x has no value left.
func (s *mover) removeTooCostly(x int32, values []int32) (remaining []int32, ok bool) {
	v := &s.vars[x]
	gap := s.gap()
	remaining = values[:0]
	for k, a := range values {
		if s.unaryCost(v, a)+s.gains[k] >= gap { // gap is upperBound less the bound
			if !s.removeValue(x, a) {
				return nil, false
			}
			continue
		}
		s.gains[len(remaining)] = s.gains[k]
		remaining = append(remaining, a)
	}
	return remaining, true
}

// takeFromPartner moves unary costs of the second variable of arc id into the arc's function. Afterwards s.gains[k] can be moved out of
// the function to values[k] of the first variable, for each k, without a cost below 0. Value b of the second variable gives
// max_k (s.gains[k] − cost of the function at (values[k], b)), if that is above 0. The value that needs most is recorded as support of b,
// since it will cost 0 with b.
func (s *mover) takeFromPartner(id int32, values []int32) {
	e, reverse := &s.arcs[id], &s.arcs[reverseOf(id)]
	dx, vy := s.vars[e.from].domainSize, &s.vars[e.to]
	for _, b := range s.liveValues(e.to) {
		unary, moved := s.unaryCost(vy, b), s.movedOut(reverse, b)
		if unary == 0 || s.exceedsMaxMoved(reverse.movedCell+int(b)) {
			continue
		}
		loss, support := int64(0), int32(-1)
		column := reverse.table[int(b)*dx:][:dx]
		for k, a := range values {
			if need := s.gains[k] - (column[a] - s.movedOut(e, a) - moved); need > loss {
				loss, support = need, a
			}
		}
		s.work += int64(len(values))
		if support >= 0 {
			reverse.support[b] = support
			s.set(reverse.movedCell+int(b), moved-loss)
			s.set(vy.unaryCell+int(b), unary-loss)
		}
	}
}

// projectRow takes the function of arc id out of the network, after its first variable was assigned value a. What remains of the
// function, its costs with a, is added to the unary costs of the second variable. It returns false on a conflict.
func (s *mover) projectRow(id int32, a int32) bool {
	e, reverse := &s.arcs[id], &s.arcs[reverseOf(id)]
	y := e.to
	d := s.vars[y].domainSize
	row := e.table[int(a)*d:][:d]
	moved := s.movedOut(e, a) // a value b costs row[b] − moved − the cost that was moved to b
	s.set(e.activeCell, 0)
	s.enqueue(&s.maybeEliminable, y)
	changed := false
	for _, b := range s.liveValues(y) {
		if c := row[b] - moved - s.movedOut(reverse, b); c > 0 {
			s.raiseUnary(y, b, c)
			changed = true
		}
	}
	if !changed {
		return true
	}
	s.enqueue(&s.doubtfulSupport, y)
	return s.makeNodeConsistent(y)
}
