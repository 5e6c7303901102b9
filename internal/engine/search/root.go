package search

// rank orders the variables for directional consistency, as they are numbered.
func (s *propagator) rank() {
	s.order = make([]int32, len(s.vars))
	for x := range s.order {
		s.order[x] = int32(x)
	}
	for r, x := range s.order {
		s.vars[x].rank = r
	}
}

// Sweeps of the root's message passing: at most mostSweeps, ended where the bound rises by less than a part in slowest of what it has
// risen, or of the rest to the best assignment.
const (
	mostSweeps = 200
	slowest    = 1 << 11
)

// spread moves costs at the root by message passing: every variable takes the least costs from all of its functions, gives the least one
// to the bound, and shares the rest among the functions that lead on, in turn up and down the order. The bound never falls. It reports
// false where no assignment of interest is left.
func (s *propagator) spread() bool {
	begin := s.mem[s.bound]
	for k := 0; k < mostSweeps && !s.stopped; k++ {
		before := s.mem[s.bound]
		for i := range s.order {
			x := s.order[i]
			if k%2 == 1 {
				x = s.order[len(s.order)-1-i]
			}
			if s.over() {
				return true
			}
			if !s.pass(x, k%2 == 0) {
				return false
			}
		}
		s.trail = s.trail[:0]
		if rise := s.mem[s.bound] - before; k > 4 && rise <= min(s.mem[s.bound]-begin, s.ub-s.mem[s.bound])/slowest {
			break
		}
	}
	return true
}

// pass is a step of spread: one variable.
func (s *propagator) pass(x int32, up bool) bool {
	v := &s.vars[x]
	if s.mem[v.state] != open {
		return true
	}
	before, after := int64(0), int64(0)
	leads := func(before, after bool) bool { return up && after || !up && before }
	for _, id := range v.arcs {
		e := &s.arcs[id]
		if s.mem[e.on] == 0 {
			continue
		}
		if s.vars[e.to].rank < v.rank {
			before++
		} else {
			after++
		}
		if !s.simpleSupport(id) {
			return false
		}
	}
	for _, id := range v.wide {
		w := &s.wides[id]
		if s.mem[w.on] == 0 {
			continue
		}
		lower, higher := s.sides(w, v.rank)
		if lower {
			before++
		}
		if higher {
			after++
		}
		for i, z := range w.scope {
			if z == x && !s.wideSimple(id, i) {
				return false
			}
		}
	}
	shares := max(before, after)
	if shares == 0 {
		return true
	}
	for _, a := range s.alive(x) {
		s.u[a] = s.mem[v.unary+int(a)] / shares
	}
	give := func(moved int) {
		for _, a := range s.alive(x) {
			if s.u[a] > 0 && !s.isFar(moved+int(a)) {
				s.set(moved+int(a), s.mem[moved+int(a)]-s.u[a])
				s.set(v.unary+int(a), s.mem[v.unary+int(a)]-s.u[a])
			}
		}
	}
	for _, id := range v.arcs {
		e := &s.arcs[id]
		if above := s.vars[e.to].rank > v.rank; s.mem[e.on] != 0 && leads(!above, above) {
			give(e.moved)
		}
	}
	for _, id := range v.wide {
		w := &s.wides[id]
		if lower, higher := s.sides(w, v.rank); s.mem[w.on] == 0 || !leads(lower, higher) {
			continue
		}
		for i, z := range w.scope {
			if z == x {
				give(w.moved[i])
			}
		}
	}
	return true
}

// sides reports whether a wide function has open variables before and after a rank.
func (s *propagator) sides(w *wide, rank int) (lower, higher bool) {
	for _, z := range w.scope {
		if r := s.vars[z].rank; s.isOpen(z) {
			lower = lower || r < rank
			higher = higher || r > rank
		}
	}
	return lower, higher
}
