package branching

import "slices"

// longest bounds the variables of a wide function of several values each: 2^27 entries.
const longest = 28

// eachTuple goes through the live combinations of a wide function, with the cost of each and, where plus is set, the unary costs of all
// variables but i. With only ≥ 0 variable i has that value alone.
func (s *mover) eachTuple(w *wide, i int, only int32, plus bool, visit func(tuple []int32, at int32, cost int64)) {
	var tuple, next, base [longest]int32
	var costs [longest]int64
	n := len(w.scope)
	for k := 0; k >= 0; {
		x := w.scope[k]
		v := &s.vars[x]
		if int64(next[k]) >= s.mem[v.size] {
			k--
			continue
		}
		a := v.live[next[k]]
		next[k]++
		if k == i && only >= 0 {
			a, next[k] = only, int32(v.d)
		}
		tuple[k] = a
		c := costs[k] - s.mem[w.moved[k]+int(a)]
		if plus && k != i {
			c += s.mem[v.unary+int(a)]
		}
		here := base[k] + a*w.stride[k]
		if k == n-1 {
			s.work++
			visit(tuple[:n], here, c+w.table[here])
			continue
		}
		k++
		costs[k], base[k], next[k] = c, here, 0
	}
}

// wideCheapest is the least cost of value a of variable i with the others' unary costs, and where it is.
func (s *mover) wideCheapest(w *wide, i int, a int32) (least int64, at int32) {
	least = 1 << 62
	s.eachTuple(w, i, a, true, func(_ []int32, here int32, cost int64) {
		if cost < least {
			least, at = cost, here
		}
	})
	return least, at
}

// supported reports whether value a of variable i has a combination of cost 0 where it had one last, with unary costs where full is set.
func (s *mover) supported(w *wide, i int, a int32, full bool) bool {
	at := w.support[i][a]
	cost := w.table[at]
	for k, x := range w.scope {
		b := at / w.stride[k] % int32(s.vars[x].d)
		if k == i && b != a || !s.isLive(x, b) {
			return false
		}
		cost -= s.mem[w.moved[k]+int(b)]
		if full && k != i {
			cost += s.mem[s.vars[x].unary+int(b)]
		}
	}
	return cost == 0
}

// wideCosts writes to s.p the least cost of every live value of variable i, with the others' unary costs where full is set, and reports
// whether one is above 0.
func (s *mover) wideCosts(w *wide, i int, full bool) (above bool) {
	x := w.scope[i]
	all := true
	for _, a := range s.alive(x) {
		if !s.supported(w, i, a, full) {
			all = false
			break
		}
	}
	if all {
		return false
	}
	live := s.alive(x)
	for _, a := range live {
		s.p[a] = 1 << 62
	}
	support := w.support[i]
	s.eachTuple(w, i, -1, full, func(t []int32, at int32, cost int64) {
		if a := t[i]; cost < s.p[a] {
			s.p[a], support[a] = cost, at
		}
	})
	for _, a := range live {
		if s.isFar(w.moved[i] + int(a)) {
			s.p[a] = 0
		}
		above = above || s.p[a] > 0
	}
	return above
}

// wideSimple is simpleSupport for variable i of a wide function.
func (s *mover) wideSimple(id int32, i int) bool {
	w := &s.wides[id]
	if !s.wideCosts(w, i, false) {
		return true
	}
	return s.wideMove(w, i)
}

// wideMove moves the costs of s.p to variable i.
func (s *mover) wideMove(w *wide, i int) bool {
	x := w.scope[i]
	for _, a := range s.alive(x) {
		if s.p[a] > 0 {
			s.set(w.moved[i]+int(a), s.mem[w.moved[i]+int(a)]+s.p[a])
			s.raise(x, a, s.p[a])
		}
	}
	s.check.add(s.vars[x].rank)
	return s.settle(x)
}

// wideFull is fullSupport for variable i of a wide function. The others' unary costs are moved into it, one variable after another, each
// by the least that leaves no combination below 0.
func (s *mover) wideFull(id int32, i int) bool {
	w := &s.wides[id]
	if !s.wideCosts(w, i, true) {
		return true
	}
	for k, y := range w.scope {
		if slices.ContainsFunc(s.alive(y), func(b int32) bool { return s.isFar(w.moved[k] + int(b)) }) {
			return true
		}
	}
	room := s.ub - s.mem[s.bound]
	x := w.scope[i]
	live := s.alive(x)
	for k := len(live) - 1; k >= 0; k-- {
		if a := live[k]; s.mem[s.vars[x].unary+int(a)]+s.p[a] >= room && !s.remove(x, a) {
			return false
		}
	}
	for j, y := range w.scope {
		if j == i || !s.isOpen(y) {
			continue
		}
		vy := &s.vars[y]
		if !slices.ContainsFunc(s.alive(y), func(b int32) bool { return s.mem[vy.unary+int(b)] > 0 }) {
			continue
		}
		for _, b := range s.alive(y) {
			s.e[b] = 0
		}
		// The costs of the variables before j are in the function already; those of the variables after j may still come.
		s.eachTuple(w, i, -1, false, func(t []int32, _ int32, cost int64) {
			need := s.p[t[i]] - cost
			for k := j + 1; k < len(t); k++ {
				if k != i {
					need -= s.mem[s.vars[w.scope[k]].unary+int(t[k])]
				}
			}
			s.e[t[j]] = max(s.e[t[j]], need)
		})
		for _, b := range s.alive(y) {
			if s.e[b] > 0 {
				s.set(w.moved[j]+int(b), s.mem[w.moved[j]+int(b)]-s.e[b])
				s.set(vy.unary+int(b), s.mem[vy.unary+int(b)]-s.e[b])
			}
		}
	}
	return s.wideMove(w, i)
}
