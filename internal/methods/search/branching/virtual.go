package branching

import "slices"

// struck is a value that no assignment without costs has: its own cost says so, or a function.
type struck struct {
	x, a int32
	by   int32 // the arc from x, or −2 less the number of a wide function; ownCost: its own
}

const ownCost = -1

// virtual is the closure of the network's values under arc consistency where costs up to theta are none, and a direction of moves that
// raises the bound where the closure is empty (virtual arc consistency: Cooper, de Givry, Sanchez, Schiex, Zytnicki and Werner,
// Artificial Intelligence 2010).
type virtual struct {
	*propagator
	theta int64
	list  []struck
	first []int          // by variable: of its values in when and need
	when  []int32        // by value: its number in list, from 1; 0: it is not struck
	need  []int64        // by value: units to be moved to it for a unit of the bound
	moves map[int]int64  // by cell: what is added to it for a unit of the bound
	asked map[int]int64  // by cell of moved costs: units that a value gives to the function
	used  map[int32]bool // functions that the last direction goes through, as in struck, pairs by their first arc
}

func (s *solver) newVirtual() *virtual {
	v := &virtual{propagator: &s.propagator, moves: map[int]int64{}, asked: map[int]int64{}, used: map[int32]bool{}}
	n := 0
	for x := range s.vars {
		v.first = append(v.first, n)
		n += s.vars[x].d
	}
	v.when, v.need = make([]int32, n), make([]int64, n)
	for x := range s.vars {
		if s.isOpen(int32(x)) {
			for _, a := range s.alive(int32(x)) {
				v.theta = max(v.theta, s.mem[s.vars[x].unary+int(a)])
			}
		}
	}
	v.theta = min(v.theta, s.ub-s.mem[s.bound]) / 2
	return v
}

// strike takes a value out of the closure. It reports false where none is left.
func (v *virtual) strike(x, a, by int32) bool {
	v.list = append(v.list, struck{x, a, by})
	v.when[v.first[x]+int(a)] = int32(len(v.list))
	return v.remove(x, a)
}

// wiped closes the network, and returns a variable without values in the closure, or −1.
func (v *virtual) wiped() int32 {
	for _, d := range v.list {
		v.when[v.first[d.x]+int(d.a)] = 0
	}
	v.list = v.list[:0]
	v.push()
	defer v.pop()
	for f := range v.used {
		if f >= 0 {
			v.lost.add(v.vars[v.arcs[f].from].rank)
			v.lost.add(v.vars[v.arcs[f].to].rank)
		} else {
			for _, x := range v.wides[-2-f].scope {
				v.lost.add(v.vars[x].rank)
			}
		}
	}
	for x := range v.vars {
		if !v.isOpen(int32(x)) {
			continue
		}
		live := v.alive(int32(x))
		v.work += int64(len(live))
		for k := len(live) - 1; k >= 0; k-- {
			if a := live[k]; v.mem[v.vars[x].unary+int(a)] > v.theta && !v.strike(int32(x), a, ownCost) {
				return int32(x)
			}
		}
	}
	for v.lost.count > 0 && !v.over() {
		y := v.order[v.lost.first()]
		if !v.isOpen(y) {
			continue
		}
		for _, id := range v.vars[y].arcs {
			if v.mem[v.arcs[id].on] != 0 && !v.strikePair(id^1) {
				return v.arcs[id].to
			}
		}
		for _, id := range v.vars[y].wide {
			w := &v.wides[id]
			for i, x := range w.scope {
				if v.mem[w.on] != 0 && x != y && v.isOpen(x) && !v.strikeWide(id, i) {
					return x
				}
			}
		}
	}
	return -1
}

// strikePair strikes the values of an arc's first variable that cost more than theta with every value left of the other one.
func (v *virtual) strikePair(id int32) bool {
	e, r := &v.arcs[id], &v.arcs[id^1]
	d := v.vars[e.to].d
	other, others := v.mem[r.moved:][:d], v.alive(e.to)
	mine := v.alive(e.from)
	v.work += int64(len(mine))
	for k := len(mine) - 1; k >= 0; k-- {
		a := mine[k]
		row, most := e.table[int(a)*d:][:d], v.mem[e.moved+int(a)]+v.theta
		if b := e.support[a]; v.isLive(e.to, b) && row[b]-other[b] <= most {
			continue
		}
		v.work += int64(len(others))
		at := slices.IndexFunc(others, func(b int32) bool { return row[b]-other[b] <= most })
		if at >= 0 {
			e.support[a] = others[at]
		} else if !v.strike(e.from, a, id) {
			return false
		}
	}
	return true
}

// strikeWide is strikePair for variable i of a wide function.
func (v *virtual) strikeWide(id int32, i int) bool {
	w := &v.wides[id]
	x := w.scope[i]
	mine := v.alive(x)
	for _, a := range mine {
		v.p[a] = 1 << 62
	}
	v.eachTuple(w, i, -1, false, func(t []int32, _ int32, cost int64) { v.p[t[i]] = min(v.p[t[i]], cost) })
	for k := len(mine) - 1; k >= 0; k-- {
		if a := mine[k]; v.p[a] > v.theta && !v.strike(x, a, -2-id) {
			return false
		}
	}
	return true
}

// raiseAlong moves costs along the reasons why a variable has no value in the closure, from the last to the first, as far as they go
// without a cost below 0. It returns the rise of the bound.
func (v *virtual) raiseAlong(wiped int32) int64 {
	clear(v.need)
	clear(v.moves)
	clear(v.asked)
	clear(v.used)
	for _, a := range v.alive(wiped) {
		v.need[v.first[wiped]+int(a)] = 1
	}
	rise := v.ub
	for n := len(v.list) - 1; n >= 0; n-- {
		d := v.list[n]
		need := v.need[v.first[d.x]+int(d.a)]
		switch {
		case need == 0:
		case need > 1<<30:
			return 0
		case d.by == ownCost:
			cell := v.vars[d.x].unary + int(d.a)
			v.moves[cell] -= need
			rise = min(rise, v.mem[cell]/need)
		case d.by >= 0:
			v.owePair(d, need)
		default:
			v.oweWide(d, need)
		}
	}
	for f := range v.used {
		if f >= 0 {
			e, r := &v.arcs[f], &v.arcs[f^1]
			dy := v.vars[e.to].d
			for _, a := range v.alive(e.from) {
				for _, b := range v.alive(e.to) {
					if owed := v.moves[e.moved+int(a)] + v.moves[r.moved+int(b)]; owed > 0 {
						rise = min(rise, (e.table[int(a)*dy+int(b)]-v.mem[e.moved+int(a)]-v.mem[r.moved+int(b)])/owed)
					}
				}
				v.work += int64(dy)
			}
			continue
		}
		w := &v.wides[-2-f]
		v.eachTuple(w, 0, -1, false, func(t []int32, _ int32, cost int64) {
			owed := int64(0)
			for i, a := range t {
				owed += v.moves[w.moved[i]+int(a)]
			}
			if owed > 0 {
				rise = min(rise, cost/owed)
			}
		})
	}
	for cell, n := range v.moves {
		if n != 0 {
			rise = min(rise, (far-max(v.mem[cell], -v.mem[cell]))/max(n, -n))
		}
	}
	if rise <= 0 {
		return 0
	}
	for cell, n := range v.moves {
		v.set(cell, v.mem[cell]+rise*n)
	}
	v.set(v.bound, v.mem[v.bound]+rise)
	return rise
}

// owe notes that a value is to give so much to a function, by the cell of what was moved between the two.
func (v *virtual) owe(value, cell int, need int64) {
	if more := need - v.asked[cell]; more > 0 {
		v.asked[cell] = need
		v.moves[cell] -= more
		v.need[value] += more
	}
}

// owePair moves units to a struck value from its pair, and to the pair from the values of the other variable that were struck before.
func (v *virtual) owePair(d struck, need int64) {
	e, r := &v.arcs[d.by], &v.arcs[d.by^1]
	dy := v.vars[e.to].d
	v.used[min(d.by, d.by^1)] = true
	v.moves[e.moved+int(d.a)] += need
	row, most := e.table[int(d.a)*dy:][:dy], v.mem[e.moved+int(d.a)]+v.theta
	limit := v.when[v.first[d.x]+int(d.a)]
	for _, b := range v.alive(e.to) {
		value := v.first[e.to] + int(b)
		if n := v.when[value]; n > 0 && n < limit && row[b]-v.mem[r.moved+int(b)] <= most {
			v.owe(value, r.moved+int(b), need)
		}
	}
	v.work += int64(dy)
}

// oweWide is owePair for a wide function: of several values that were struck before the first one gives.
func (v *virtual) oweWide(d struck, need int64) {
	w := &v.wides[-2-d.by]
	v.used[d.by] = true
	at := slices.Index(w.scope, d.x)
	v.moves[w.moved[at]+int(d.a)] += need
	limit := v.when[v.first[d.x]+int(d.a)]
	v.eachTuple(w, at, d.a, false, func(t []int32, _ int32, cost int64) {
		if cost > v.theta {
			return
		}
		best, given := -1, int64(0)
		first := limit
		for i, b := range t {
			if i == at {
				continue
			}
			given += v.asked[w.moved[i]+int(b)]
			if n := v.when[v.first[w.scope[i]]+int(b)]; n > 0 && n < first {
				best, first = i, n
			}
		}
		if best >= 0 && given < need {
			cell := w.moved[best] + int(t[best])
			v.owe(v.first[w.scope[best]]+int(t[best]), cell, v.asked[cell]+need-given)
		}
	})
}

// A chunk of virtual consistency is a part virtualShare, as a divisor, of the root's work so far. Another one follows where it has raised
// the bound by more than a part virtualWorth of itself, or of its distance to the best assignment. theta falls down to a part leastTheta
// of that distance; it is halved where the bound rises by less than a part mostRises of it. Costs moved by message passing lead dives to
// better assignments, so those moved virtually stay only where their bound is higher than that before, or than that of message passing, by
// more than a part virtualLead of its distance to the best assignment.
const (
	virtualShare = 4
	virtualWorth = 16
	leastTheta   = 1 << 16
	mostRises    = 16
	virtualLead  = 6
)

// raiseVirtually raises the bound by virtual arc consistency as long as that is worth its work. It reports false where no assignment of
// interest is left.
func (s *solver) raiseVirtually() bool {
	v, before := s.newVirtual(), s.mem[s.bound]
	for {
		begin, end := s.mem[s.bound], s.work+s.work/virtualShare
		for v.theta > (s.ub-s.mem[s.bound])/leastTheta && s.work < end && !s.over() {
			rise := int64(0)
			if x := v.wiped(); x >= 0 {
				rise = v.raiseAlong(x)
			}
			if s.mem[s.bound] >= s.ub {
				return false
			}
			if rise <= v.theta/mostRises {
				v.theta /= 2
			}
		}
		if s.work < end || s.stopped || s.mem[s.bound]-begin < min(begin, s.ub-begin)/virtualWorth {
			return s.mem[s.bound] == before || s.everywhere()
		}
	}
}
