package branching

import "slices"

// rank orders the variables for directional consistency, as they are numbered.
func (s *propagator) rank() {
	s.order = make([]int32, len(s.vars))
	for x := range s.order {
		s.order[x] = int32(x)
		s.vars[x].rank = x
	}
}

// turn reverses the order and makes the network consistent in it: costs move the other way. It reports false for a conflict.
func (s *solver) turn() bool {
	slices.Reverse(s.order)
	for r, x := range s.order {
		s.vars[x].rank = r
	}
	return s.everywhere()
}

// Sweeps of the root's message passing: at most mostSweeps, ended where the bound rises by less than a part in slowest of what it has
// risen, or of the rest to the best assignment. After every roundEvery of them an assignment is read off.
const (
	mostSweeps = 200
	slowest    = 1 << 11
	roundEvery = 8
)

// spread moves costs at the root by message passing: every variable takes the least costs from all of its functions, gives the least one
// to the bound, and shares the rest among the functions that lead on, in turn up and down the order. The bound never falls. It reports
// false where no assignment of interest is left.
func (s *solver) spread() bool {
	begin, tried := s.mem[s.bound], int64(0)
	for k := 0; k < mostSweeps && !s.stopped; k++ {
		before := s.mem[s.bound]
		if s.work >= 2*tried {
			if s.try(s.work / tryShare) {
				return false
			}
			tried = s.work
		}
		for i := range s.order {
			x := s.order[i]
			if k%2 == 1 {
				x = s.order[len(s.order)-1-i]
			}
			if s.over() {
				return true
			}
			if !s.pass(x, k%2 == 0, k == 0) {
				return false
			}
		}
		s.trail = s.trail[:0]
		if k%roundEvery == roundEvery-1 {
			s.round()
		}
		if rise := s.mem[s.bound] - before; k > 4 && rise <= min(s.mem[s.bound]-begin, s.ub-s.mem[s.bound])/slowest {
			break
		}
	}
	return true
}

// tryShare is the part of the work so far, as a divisor, that a try takes each time that the work has doubled.
const tryShare = 2

// try searches depth first from the root for so much work, and reports whether that was the whole search. But for better assignments and
// the weights of conflicts the state stays as it was.
func (s *solver) try(work int64) bool {
	floor := s.floor
	complete := aside(s, func() bool { return !s.propagate() || s.deepen(s.path[:0], mostDive, s.work+work, nil) })
	if !complete {
		s.floor = floor // its leaves are met again
	}
	return complete
}

// aside returns the result of f, which leaves nothing behind in the network.
func aside(s *solver, f func() bool) bool {
	var pending [4]queue
	queues := [...]*queue{&s.lost, &s.raised, &s.check, &s.loose}
	for k, q := range queues {
		pending[k] = queue{slices.Clone(q.words), q.count}
	}
	fixed := slices.Clone(s.fixed)
	s.push()
	result := f()
	s.pop()
	for k, q := range queues {
		*q = pending[k]
	}
	s.fixed = fixed
	return result
}

// pass is a step of spread: one variable. Functions of variables behind it alone give nothing since the pass before, but in the first one.
func (s *propagator) pass(x int32, up, first bool) bool {
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
		lower := s.vars[e.to].rank < v.rank
		if lower {
			before++
		} else {
			after++
		}
		if (first || lower == up) && !s.simpleSupport(id) {
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
		if !first && (up && !lower || !up && !higher) {
			continue
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

// round offers assignments that the moved costs suggest: up and down the order, every open variable takes the value of least cost beside
// those of the variables before it (Kolmogorov, PAMI 2006). They are improved.
func (s *finder) round() {
	for _, up := range []bool{true, false} {
		s.certain()
		for i := range s.order {
			x := s.order[i]
			if !up {
				x = s.order[len(s.order)-1-i]
			}
			if s.isOpen(x) {
				s.values[x] = s.cheapestBeside(x, up)
			}
		}
		s.complete()
		s.offer(s.values)
		s.improve(s.values)
		s.offer(s.values)
	}
}

// cheapestBeside is the value of x that costs least beside the values of the variables before it in the order, or after it.
func (s *finder) cheapestBeside(x int32, before bool) int {
	v := &s.vars[x]
	costs := s.u[:v.d]
	copy(costs, s.mem[v.unary:])
	for _, id := range v.arcs {
		e := &s.arcs[id]
		if s.mem[e.on] == 0 || (s.vars[e.to].rank < v.rank) != before {
			continue
		}
		back := &s.arcs[id^1]
		for a, c := range back.table[s.values[e.to]*v.d:][:v.d] {
			costs[a] += c - s.mem[e.moved+a]
		}
		s.work += int64(v.d)
	}
	for _, id := range v.wide {
		w := &s.wides[id]
		if lower, higher := s.sides(w, v.rank); s.mem[w.on] == 0 || before && higher || !before && lower {
			continue
		}
		at, step, moved := 0, 0, 0
		for i, y := range w.scope {
			if y == x {
				step, moved = int(w.stride[i]), w.moved[i]
			} else {
				at += s.values[y] * int(w.stride[i])
			}
		}
		for a := range costs {
			costs[a] += w.table[at+a*step] - s.mem[moved+a]
		}
		s.work += int64(v.d)
	}
	best := -1
	for a, c := range costs { // of equal ones the first, whatever was searched before
		if s.isLive(x, int32(a)) && (best < 0 || c < costs[best]) {
			best = a
		}
	}
	return best
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
