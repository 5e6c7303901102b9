package branching

// far bounds what is moved to or from one value, so that no sum overflows. Beyond it costs stay where they are.
const far = 1 << 60

// isFar reports whether a cell is beyond far.
func (s *state) isFar(cell int) bool { return uint64(s.mem[cell]+far) > 2*far }

// cheapest returns the least c(a, b) + plus[b] over the live values of the other side, and where it is. It ends at 0.
func (s *mover) cheapest(e *arc, a int32, other, plus []int64, live []int32) (least int64, at int32) {
	d := len(other)
	row := e.table[int(a)*d:][:d]
	moved := s.mem[e.moved+int(a)]
	least = int64(1) << 62
	if plus == nil {
		for _, b := range live {
			if c := row[b] - other[b]; c < least {
				least, at = c, b
				if c <= moved {
					break
				}
			}
		}
	} else {
		plus = plus[:d]
		for _, b := range live {
			if c := row[b] - other[b] + plus[b]; c < least {
				least, at = c, b
				if c <= moved {
					break
				}
			}
		}
	}
	s.work += int64(len(live))
	return least - moved, at
}

// simpleSupport moves to every value of an arc's first variable the least cost that it has with the other one. It reports false for a
// conflict.
func (s *mover) simpleSupport(id int32) bool {
	e, r := &s.arcs[id], &s.arcs[id^1]
	x, y := e.from, e.to
	other := s.mem[r.moved:][:s.vars[y].d]
	live := s.alive(y)
	d := len(other)
	changed := false
	s.work += s.mem[s.vars[x].size] + 4
	for _, a := range s.alive(x) {
		if b := e.support[a]; s.isLive(y, b) && e.table[int(a)*d+int(b)]-other[b] == s.mem[e.moved+int(a)] {
			continue
		}
		least, at := s.cheapest(e, a, other, nil, live)
		e.support[a] = at
		if least > 0 && !s.isFar(e.moved+int(a)) {
			s.set(e.moved+int(a), s.mem[e.moved+int(a)]+least)
			s.raise(x, a, least)
			changed = true
		}
	}
	if !changed {
		return true
	}
	s.check.add(s.vars[x].rank)
	return s.settle(x)
}

// fullSupport moves to every value of an arc's first variable the least cost that it has with the other one and its unary cost, which is
// moved into the function as far as that takes. It reports false for a conflict.
func (s *mover) fullSupport(id int32) bool {
	e, r := &s.arcs[id], &s.arcs[id^1]
	x, y := e.from, e.to
	vx, vy := &s.vars[x], &s.vars[y]
	d := vy.d
	other, plus := s.mem[r.moved:][:d], s.mem[vy.unary:][:d]
	live, mine := s.alive(y), s.alive(x)
	room := s.ub - s.mem[s.bound]

	list := s.hit[:0] // values of x to be raised
	s.work += int64(len(mine)) + 4
	for _, a := range mine {
		if b := e.support[a]; plus[b] == 0 && s.isLive(y, b) && e.table[int(a)*d+int(b)]-other[b] == s.mem[e.moved+int(a)] {
			continue
		}
		least, at := s.cheapest(e, a, other, plus, live)
		e.support[a] = at
		if least > 0 && !s.isFar(e.moved+int(a)) {
			s.p[len(list)] = least
			list = append(list, a)
		}
	}
	if len(list) == 0 {
		return true
	}
	// Values that cost too much now go, and take no cost from y.
	kept := 0
	for k, a := range list {
		if s.mem[vx.unary+int(a)]+s.p[k] >= room {
			if !s.remove(x, a) {
				return false
			}
			continue
		}
		list[kept], s.p[kept] = a, s.p[k]
		kept++
	}
	list = list[:kept]
	for _, b := range live {
		if plus[b] == 0 || s.isFar(r.moved+int(b)) {
			continue
		}
		take := int64(0)
		column := r.table[int(b)*vx.d:][:vx.d]
		at := int32(-1)
		for k, a := range list {
			if t := s.p[k] - (column[a] - s.mem[e.moved+int(a)] - other[b]); t > take {
				take, at = t, a
			}
		}
		s.work += int64(len(list))
		if at >= 0 {
			r.support[b] = at
			s.set(r.moved+int(b), other[b]-take)
			s.set(vy.unary+int(b), plus[b]-take)
		}
	}
	for k, a := range list {
		s.set(e.moved+int(a), s.mem[e.moved+int(a)]+s.p[k])
		s.raise(x, a, s.p[k])
	}
	s.check.add(vx.rank)
	return s.settle(x)
}

// settleRow moves the costs of an arc from a fixed variable to the other one, and takes the function out.
func (s *mover) settleRow(id int32, a int32) bool {
	e, r := &s.arcs[id], &s.arcs[id^1]
	y := e.to
	d := s.vars[y].d
	row := e.table[int(a)*d:][:d]
	moved := s.mem[e.moved+int(a)]
	s.set(e.on, 0)
	s.loose.add(s.vars[y].rank)
	changed := false
	for _, b := range s.alive(y) {
		if c := row[b] - moved - s.mem[r.moved+int(b)]; c > 0 {
			s.raise(y, b, c)
			changed = true
		}
	}
	if !changed {
		return true
	}
	s.check.add(s.vars[y].rank)
	return s.settle(y)
}
