package search

// eliminate takes out open variables with at most two functions, whose least costs go to their neighbours. It reports false for a
// conflict.
func (s *solver) eliminate() (changed, ok bool) {
	for x := range s.vars {
		v := &s.vars[x]
		if s.mem[v.state] != open {
			continue
		}
		arcs, n := s.few(v)
		if n > 2 || n == 2 && !s.worthwhile(v, arcs) {
			continue
		}
		changed = true
		if !s.out(int32(x), arcs, n) {
			return true, false
		}
		if len(s.fixed) > 0 {
			break
		}
	}
	return changed, true
}

// few are the functions of a variable, as far as they are at most two and none is wide; else n is 3.
func (s *solver) few(v *variable) (arcs [2]int32, n int) {
	for _, id := range v.wide {
		if s.mem[s.wides[id].on] != 0 {
			return arcs, 3
		}
	}
	for k := len(v.arcs) - 1; k >= 0; k-- {
		if id := v.arcs[k]; s.mem[s.arcs[id].on] != 0 {
			if n == 2 {
				return arcs, 3
			}
			arcs[n] = id
			n++
		}
	}
	return arcs, n
}

// worthwhile reports whether the table that an elimination makes is not much work.
func (s *solver) worthwhile(v *variable, arcs [2]int32) bool {
	product := s.mem[v.size]
	for _, id := range arcs {
		product *= s.mem[s.vars[s.arcs[id].to].size]
	}
	return product <= 1<<18
}

// out eliminates x, whose n functions are given.
func (s *solver) out(x int32, arcs [2]int32, n int) bool {
	v := &s.vars[x]
	el := elimination{x: x, a: -1, b: -1}
	if n > 0 {
		el.a = arcs[0]
	}
	if n > 1 {
		el.b = arcs[1]
	}
	if n == 1 && !s.fullSupport(el.a^1) {
		return false
	}
	count := int(s.mem[s.nGone])
	s.gone = append(s.gone[:count], el)
	s.set(s.nGone, int64(count+1))
	s.set(v.state, eliminated)
	s.set(s.openVars, s.mem[s.openVars]-1)
	for _, id := range arcs[:n] {
		s.set(s.arcs[id].on, 0)
	}
	if n < 2 {
		return true
	}
	first, second := &s.arcs[el.a], &s.arcs[el.b]
	y, z := first.to, second.to
	dy, dz := s.vars[y].d, s.vars[z].d
	// moved costs of y and z go with the new table
	movedY, movedZ := s.arcs[el.a^1].moved, s.arcs[el.b^1].moved
	s.joined = s.joined[:0]
	for _, b := range s.alive(y) {
		for _, c := range s.alive(z) {
			least := int64(1) << 62
			for _, a := range s.alive(x) {
				cost := s.mem[v.unary+int(a)] + first.table[int(a)*dy+int(b)] - s.mem[first.moved+int(a)] +
					second.table[int(a)*dz+int(c)] - s.mem[second.moved+int(a)]
				least = min(least, cost)
			}
			s.joined = append(s.joined, least-s.mem[movedY+int(b)]-s.mem[movedZ+int(c)])
		}
	}
	s.work += int64(len(s.joined)) * s.mem[v.size]
	width := int32(s.mem[s.vars[z].size])
	return s.join(y, z, func(b, c int32) int64 {
		return s.joined[s.vars[y].place[b]*width+s.vars[z].place[c]]
	})
}

// complete writes the assignment of a node without open variables: eliminated ones take their cheapest values, the last one first.
func (s *solver) complete() {
	for x := range s.vars {
		if s.mem[s.vars[x].state] == assigned {
			s.values[x] = int(s.vars[x].live[0])
		}
	}
	for k := int(s.mem[s.nGone]) - 1; k >= 0; k-- {
		el := s.gone[k]
		v := &s.vars[el.x]
		least := int64(1) << 62
		for _, a := range s.alive(el.x) {
			cost := s.mem[v.unary+int(a)]
			for _, id := range [2]int32{el.a, el.b} {
				if id < 0 {
					continue
				}
				e := &s.arcs[id]
				cost += e.table[int(a)*s.vars[e.to].d+s.values[e.to]] - s.mem[e.moved+int(a)]
			}
			if cost < least {
				least, s.values[el.x] = cost, int(a)
			}
		}
	}
}
