package search

// mostRounds bounds the rounds of a local search.
const mostRounds = 32

// begin offers the assignment of the least unary costs, improved.
func (s *solver) begin() {
	for x := range s.vars {
		v := &s.vars[x]
		at := v.live[0]
		for _, a := range s.alive(int32(x)) {
			if s.mem[v.unary+int(a)] < s.mem[v.unary+int(at)] {
				at = a
			}
		}
		s.values[x] = int(at)
	}
	s.improve(s.values)
	s.offer(s.values)
}

// improve changes one value after another to the cheapest one beside the others, until none is cheaper.
func (s *solver) improve(values []int) {
	for range mostRounds {
		changed := false
		for x := range s.vars {
			if d := s.vars[x].d; d > 1 {
				costs := s.u[:d]
				s.beside(int32(x), values, costs)
				at := values[x]
				for a, c := range costs {
					if c < costs[at] {
						at = a
					}
				}
				changed = changed || at != values[x]
				values[x] = at
			}
		}
		if !changed || s.ctx.Err() != nil {
			return
		}
	}
}

// beside writes the costs of all values of x beside the others' values, by the functions of the network.
func (s *solver) beside(x int32, values []int, costs []int64) {
	v := &s.vars[x]
	copy(costs, s.given[x])
	for _, id := range v.arcs {
		if int(id) >= 2*s.wideAt {
			break
		}
		back := &s.arcs[id^1]
		for a, c := range back.table[values[back.from]*v.d:][:v.d] {
			costs[a] += c
		}
		s.work += int64(v.d)
	}
	for _, id := range v.wide {
		if int(id) >= s.nWide {
			break
		}
		w := &s.wides[id]
		at, step := 0, 0
		for i, y := range w.scope {
			if y == x {
				step = int(w.stride[i])
			} else {
				at += values[y] * int(w.stride[i])
			}
		}
		for a := range costs {
			costs[a] += w.table[at+a*step]
		}
		s.work += int64(v.d)
	}
}
