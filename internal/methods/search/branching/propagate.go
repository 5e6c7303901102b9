package branching

// workAtOnce is the number of table entries between two looks at the context.
const workAtOnce = 1 << 20

// propagate makes the network consistent: nodes, directional arcs, existentially. It reports false for a conflict. Where the context ends
// it ends early, which leaves a bound that holds.
func (s *eliminator) propagate() bool {
	s.blame = len(s.weight) - 1
	ok := s.propagated()
	if !ok {
		s.weight[s.blame]++
		s.lost.empty()
		s.raised.empty()
		s.check.empty()
		s.fixed = s.fixed[:0]
	}
	return ok
}

// over reports whether the work or the context has ended.
func (s *propagator) over() bool {
	if s.most > 0 && s.work > s.most {
		s.stopped = true
	} else if s.work > s.look {
		s.look = s.work + workAtOnce
		s.stopped = s.ctx.Err() != nil
	}
	return s.stopped
}

func (s *eliminator) propagated() bool {
	idle := 0
	for {
		if s.over() {
			return true
		}
		switch {
		case len(s.fixed) > 0:
			x := s.fixed[len(s.fixed)-1]
			s.fixed = s.fixed[:len(s.fixed)-1]
			if !s.assign(x) {
				return false
			}
		case s.lost.count > 0:
			if !s.afterLoss(s.order[s.lost.first()]) {
				return false
			}
		case s.raised.count > 0:
			if !s.afterRaise(s.order[s.raised.last()]) {
				return false
			}
		case s.ub-s.mem[s.bound] <= s.mem[s.high]:
			if !s.sweep() {
				return false
			}
		case s.check.count > 0:
			before := s.mem[s.bound]
			if !s.existential(s.order[s.check.first()]) {
				return false
			}
			// Functions that share a variable count its cost twice: no use in trying that for ever.
			if s.raised.count > 0 && s.mem[s.bound] == before {
				idle++
			}
			if idle > len(s.vars) {
				s.check.empty()
			}
		case s.loose.count > 0:
			if !s.eliminate() {
				return false
			}
		default:
			return true
		}
	}
}

// assign moves all costs of a variable with one value left to its neighbours.
func (s *propagator) assign(x int32) bool {
	v := &s.vars[x]
	if s.mem[v.state] != open {
		return true
	}
	s.set(v.state, assigned)
	s.set(s.openVars, s.mem[s.openVars]-1)
	if !s.settle(x) {
		return false
	}
	a := v.live[0]
	for k := 0; k < len(v.arcs); k++ {
		id := v.arcs[k]
		if s.mem[s.arcs[id].on] == 0 {
			continue
		}
		s.blame = s.pair(id)
		if !s.settleRow(id, a) {
			return false
		}
	}
	for k := 0; k < len(v.wide); k++ {
		id := v.wide[k]
		w := &s.wides[id]
		if s.mem[w.on] == 0 {
			continue
		}
		s.set(w.left, s.mem[w.left]-1)
		s.blame = s.group(id)
		for _, y := range w.scope {
			s.loose.add(s.vars[y].rank)
		}
		if s.mem[w.left] <= 2 && !s.narrow(w) {
			return false
		}
	}
	return true
}

// narrow turns a wide function with at most two open variables into one of two.
func (s *propagator) narrow(w *wide) bool {
	s.set(w.on, 0)
	var free [2]int
	n, base := 0, int32(0)
	cost := int64(0)
	for k, x := range w.scope {
		if s.isOpen(x) {
			free[n] = k
			n++
			continue
		}
		a := s.vars[x].live[0]
		base += a * w.stride[k]
		cost -= s.mem[w.moved[k]+int(a)]
	}
	switch n {
	case 0: // its least cost is in the bound already
		s.set(s.bound, s.mem[s.bound]+cost+w.table[base])
		return s.mem[s.bound] < s.ub
	case 1:
		k := free[0]
		x := w.scope[k]
		for _, a := range s.alive(x) {
			if c := cost + w.table[base+a*w.stride[k]] - s.mem[w.moved[k]+int(a)]; c > 0 {
				s.raise(x, a, c)
			}
		}
		s.check.add(s.vars[x].rank)
		return s.settle(x)
	}
	i, j := free[0], free[1]
	x, y := w.scope[i], w.scope[j]
	return s.join(x, y, func(a, b int32) int64 {
		return cost + w.table[base+a*w.stride[i]+b*w.stride[j]] - s.mem[w.moved[i]+int(a)] - s.mem[w.moved[j]+int(b)]
	})
}

// join adds a function of two open variables to the one that they have, or makes one.
func (s *propagator) join(x, y int32, cost func(a, b int32) int64) bool {
	old := int32(-1)
	vx, vy := &s.vars[x], &s.vars[y]
	for k := len(vx.arcs) - 1; k >= 0; k-- {
		if e := &s.arcs[vx.arcs[k]]; e.to == y && s.mem[e.on] != 0 {
			old = vx.arcs[k]
			break
		}
	}
	any := false
	for _, a := range s.alive(x) {
		for _, b := range s.alive(y) {
			any = any || cost(a, b) != 0
		}
	}
	if !any {
		return true
	}
	at := s.newPair(x, y)
	e, r := &s.arcs[at], &s.arcs[at+1]
	for _, a := range s.alive(x) {
		for _, b := range s.alive(y) {
			c := cost(a, b)
			if old >= 0 {
				o, back := &s.arcs[old], &s.arcs[old^1]
				c += o.table[int(a)*vy.d+int(b)] - s.mem[o.moved+int(a)] - s.mem[back.moved+int(b)]
			}
			e.table[int(a)*vy.d+int(b)] = c
			r.table[int(b)*vx.d+int(a)] = c
		}
	}
	if old >= 0 {
		s.set(s.arcs[old].on, 0)
	}
	s.work += int64(vx.d * vy.d)
	return s.supports(int32(at)) && s.supports(int32(at+1))
}

// supports gives an arc's first variable support: full where it comes first.
func (s *propagator) supports(id int32) bool {
	e := &s.arcs[id]
	if s.vars[e.from].rank < s.vars[e.to].rank {
		return s.fullSupport(id)
	}
	s.check.add(s.vars[e.from].rank)
	return s.simpleSupport(id)
}

// afterLoss gives the values of y's neighbours support that they may have lost.
func (s *propagator) afterLoss(y int32) bool {
	v := &s.vars[y]
	if s.mem[v.state] != open {
		return true
	}
	for k := 0; k < len(v.arcs); k++ {
		id := v.arcs[k]
		if s.mem[s.arcs[id].on] == 0 {
			continue
		}
		s.blame = s.pair(id)
		s.loose.add(s.vars[s.arcs[id].to].rank)
		if !s.supports(id ^ 1) {
			return false
		}
	}
	return s.wideSupports(y, true)
}

// wideSupports gives the variables of y's wide functions support, all of them where values were lost.
func (s *propagator) wideSupports(y int32, lost bool) bool {
	for _, id := range s.vars[y].wide {
		w := &s.wides[id]
		if s.mem[w.on] == 0 {
			continue
		}
		s.blame = s.group(id)
		first := s.firstOf(w)
		for i, x := range w.scope {
			if x == y || !s.isOpen(x) || s.mem[w.on] == 0 {
				continue
			}
			if lost {
				s.loose.add(s.vars[x].rank)
			}
			if i == first {
				if !s.wideFull(id, i) {
					return false
				}
				continue
			}
			s.check.add(s.vars[x].rank)
			if lost && !s.wideSimple(id, i) {
				return false
			}
		}
	}
	return true
}

// firstOf is the position of the open variable of least rank.
func (s *propagator) firstOf(w *wide) int {
	first, least := -1, len(s.order)
	for i, x := range w.scope {
		if r := s.vars[x].rank; r < least && s.isOpen(x) {
			first, least = i, r
		}
	}
	return first
}

// afterRaise gives the values of y's neighbours before it full support, and doubts the existential support of those after it.
func (s *propagator) afterRaise(y int32) bool {
	v := &s.vars[y]
	if s.mem[v.state] != open {
		return true
	}
	s.check.add(v.rank)
	for k := 0; k < len(v.arcs); k++ {
		id := v.arcs[k]
		e := &s.arcs[id]
		if s.mem[e.on] == 0 {
			continue
		}
		if s.vars[e.to].rank > v.rank {
			s.check.add(s.vars[e.to].rank)
			continue
		}
		s.blame = s.pair(id)
		if !s.fullSupport(id ^ 1) {
			return false
		}
	}
	return s.wideSupports(y, false)
}

// existential looks for a value of x that costs nothing together with all its functions and its neighbours' unary costs. Where there is
// none the bound rises.
func (s *propagator) existential(x int32) bool {
	v := &s.vars[x]
	if s.mem[v.state] != open {
		return true
	}
	if s.isLive(x, v.best) && s.mem[v.unary+int(v.best)] == 0 && s.costOf(x, v.best, 1) == 0 {
		return true
	}
	least := int64(1) << 62
	for _, a := range s.alive(x) {
		if s.mem[v.unary+int(a)] >= least {
			continue
		}
		if c := s.costOf(x, a, least); c < least {
			least, v.best = c, a
			if c == 0 {
				return true
			}
		}
	}
	if least <= min((s.ub-s.mem[s.bound])>>12, s.small) {
		return true
	}
	for k := 0; k < len(v.arcs); k++ {
		id := v.arcs[k]
		e := &s.arcs[id]
		if s.mem[e.on] == 0 || s.vars[e.to].rank > v.rank {
			continue
		}
		s.blame = s.pair(id)
		if !s.fullSupport(id) {
			return false
		}
	}
	for _, id := range v.wide {
		w := &s.wides[id]
		if s.mem[w.on] == 0 {
			continue
		}
		s.blame = s.group(id)
		for i, z := range w.scope {
			if z == x && !s.wideFull(id, i) {
				return false
			}
		}
	}
	return true
}

// costOf is the unary cost of a value of x and the least that it costs with its functions, as far as it is below enough.
func (s *propagator) costOf(x, a int32, enough int64) int64 {
	v := &s.vars[x]
	cost := s.mem[v.unary+int(a)]
	for _, id := range v.arcs {
		e, r := &s.arcs[id], &s.arcs[id^1]
		y := e.to
		if s.mem[e.on] == 0 || s.vars[y].rank > v.rank {
			continue
		}
		vy := &s.vars[y]
		other, plus := s.mem[r.moved:][:vy.d], s.mem[vy.unary:][:vy.d]
		if b := e.support[a]; plus[b] == 0 && s.isLive(y, b) && e.table[int(a)*vy.d+int(b)]-other[b] == s.mem[e.moved+int(a)] {
			continue
		}
		least, at := s.cheapest(e, a, other, plus, s.alive(y))
		e.support[a] = at
		if cost += least; cost >= enough {
			return cost
		}
	}
	for _, id := range v.wide {
		w := &s.wides[id]
		if s.mem[w.on] == 0 {
			continue
		}
		for i, z := range w.scope {
			if z != x || s.supported(w, i, a, true) {
				continue
			}
			least, at := s.wideCheapest(w, i, a)
			w.support[i][a] = at
			if cost += least; cost >= enough {
				return cost
			}
		}
	}
	return cost
}
