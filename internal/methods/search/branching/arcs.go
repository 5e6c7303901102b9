package branching

// maxMoved limits the cost that is moved to or from one value, so that no sum overflows. Cost beyond it stays in its function.
const maxMoved = 1 << 60

// noCost is above every cost, the start of a search for the least one.
const noCost = int64(1) << 62

// isFar reports whether the cost in a cell is beyond maxMoved, above or below 0.
func (s *state) isFar(cell int) bool { return uint64(s.cells[cell]+maxMoved) > 2*maxMoved }

// cheapestPartner returns the least cost of value a of e's first variable with any value b in live of its second one, and that b.
// movedOut[b] is what was moved out of the function to b. If unary is not nil, the cost includes unary[b]. The scan ends early at a cost of
// 0, below which there is none.
func (s *mover) cheapestPartner(e *arc, a int32, movedOut, unary []int64, live []int32) (least int64, partner int32) {
	d := len(movedOut)
	row := e.table[int(a)*d:][:d]
	moved := s.cells[e.movedCell+int(a)]
	least = noCost
	if unary == nil {
		for _, b := range live {
			if c := row[b] - movedOut[b]; c < least {
				least, partner = c, b
				if c <= moved {
					break
				}
			}
		}
	} else {
		unary = unary[:d]
		for _, b := range live {
			if c := row[b] - movedOut[b] + unary[b]; c < least {
				least, partner = c, b
				if c <= moved {
					break
				}
			}
		}
	}
	s.work += int64(len(live))
	return least - moved, partner
}

// simpleSupport moves costs from a function of two variables to the first variable of arc id: every value gets the least cost that it has
// with a value of the other variable. It returns false on a conflict.
func (s *mover) simpleSupport(id int32) bool {
	e, reverse := &s.arcs[id], &s.arcs[id^1]
	x, y := e.from, e.to
	movedOut := s.cells[reverse.movedCell:][:s.vars[y].domainSize]
	partners := s.liveValues(y)
	d := len(movedOut)
	changed := false
	s.work += s.cells[s.vars[x].liveCountCell] + 4
	for _, a := range s.liveValues(x) {
		cell := e.movedCell + int(a)
		if b := e.support[a]; s.isLive(y, b) && e.table[int(a)*d+int(b)]-movedOut[b] == s.cells[cell] {
			continue // b still costs nothing with a
		}
		least, partner := s.cheapestPartner(e, a, movedOut, nil, partners)
		e.support[a] = partner
		if least > 0 && !s.isFar(cell) {
			s.set(cell, s.cells[cell]+least)
			s.raiseUnary(x, a, least)
			changed = true
		}
	}
	if !changed {
		return true
	}
	s.doubtful.insert(s.vars[x].rank)
	return s.makeNodeConsistent(x)
}

// fullSupport moves costs from a function of two variables to the first variable x of arc id: every value gets the least of its cost with a
// value of the other variable y plus that value's unary cost. What the function has not got is moved into it from y first. It returns false
// on a conflict.
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
		s.set(e.movedCell+int(a), s.cells[e.movedCell+int(a)]+s.gains[k])
		s.raiseUnary(e.from, a, s.gains[k])
	}
	s.doubtful.insert(s.vars[e.from].rank)
	return s.makeNodeConsistent(e.from)
}

// valuesWithoutFullSupport returns the values of the first variable of arc id that cost more than 0 with every value of the other one and
// its unary cost. s.gains[k] is the least such cost of the k-th value returned. The list is valid until the next call.
func (s *mover) valuesWithoutFullSupport(id int32) []int32 {
	e, reverse := &s.arcs[id], &s.arcs[id^1]
	y := e.to
	d := s.vars[y].domainSize
	movedOut, unary := s.cells[reverse.movedCell:][:d], s.cells[s.vars[y].unaryCell:][:d]
	partners, ownValues := s.liveValues(y), s.liveValues(e.from)
	values := s.gaining[:0]
	s.work += int64(len(ownValues)) + 4
	for _, a := range ownValues {
		cell := e.movedCell + int(a)
		if b := e.support[a]; unary[b] == 0 && s.isLive(y, b) && e.table[int(a)*d+int(b)]-movedOut[b] == s.cells[cell] {
			continue // b still costs nothing with a
		}
		least, partner := s.cheapestPartner(e, a, movedOut, unary, partners)
		e.support[a] = partner
		if least > 0 && !s.isFar(cell) {
			s.gains[len(values)] = least
			values = append(values, a)
		}
	}
	return values
}

// removeTooCostly removes the values of x whose unary cost and gain together leave no assignment of interest. It returns the remaining
// values, with their gains in the first entries of s.gains. ok is false if x has no value left.
func (s *mover) removeTooCostly(x int32, values []int32) (remaining []int32, ok bool) {
	v := &s.vars[x]
	slack := s.slack()
	remaining = values[:0]
	for k, a := range values {
		if s.cells[v.unaryCell+int(a)]+s.gains[k] >= slack {
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

// takeFromPartner moves unary costs of the second variable of arc id into the function, as much as the gains of values need: value b gives
// the largest excess of a gain over what its value costs with b already.
func (s *mover) takeFromPartner(id int32, values []int32) {
	e, reverse := &s.arcs[id], &s.arcs[id^1]
	dx, vy := s.vars[e.from].domainSize, &s.vars[e.to]
	for _, b := range s.liveValues(e.to) {
		unary, moved := s.cells[vy.unaryCell+int(b)], s.cells[reverse.movedCell+int(b)]
		if unary == 0 || s.isFar(reverse.movedCell+int(b)) {
			continue
		}
		taken, support := int64(0), int32(-1)
		column := reverse.table[int(b)*dx:][:dx]
		for k, a := range values {
			if t := s.gains[k] - (column[a] - s.cells[e.movedCell+int(a)] - moved); t > taken {
				taken, support = t, a
			}
		}
		s.work += int64(len(values))
		if support >= 0 {
			reverse.support[b] = support
			s.set(reverse.movedCell+int(b), moved-taken)
			s.set(vy.unaryCell+int(b), unary-taken)
		}
	}
}

// projectRow takes the function of arc id out of the network after its first variable was fixed to a: the costs of row a are added to the
// unary costs of the second variable. It returns false on a conflict.
func (s *mover) projectRow(id int32, a int32) bool {
	e, reverse := &s.arcs[id], &s.arcs[id^1]
	y := e.to
	d := s.vars[y].domainSize
	row := e.table[int(a)*d:][:d]
	moved := s.cells[e.movedCell+int(a)]
	s.set(e.activeCell, 0)
	s.eliminable.insert(s.vars[y].rank)
	changed := false
	for _, b := range s.liveValues(y) {
		if c := row[b] - moved - s.cells[reverse.movedCell+int(b)]; c > 0 {
			s.raiseUnary(y, b, c)
			changed = true
		}
	}
	if !changed {
		return true
	}
	s.doubtful.insert(s.vars[y].rank)
	return s.makeNodeConsistent(y)
}
