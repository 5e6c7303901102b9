package branching

import "slices"

// mostNear is the most neighbours of a variable that is eliminated.
const mostNear = 3

// Limits of the tables that an elimination goes through.
const (
	mostPairs   = 1 << 16 // live combinations with two neighbours
	mostTriples = 1 << 10 // the same with three
	mostTriple  = 1 << 14 // combinations of all their values
)

// elimination is a variable taken out, and its functions.
type elimination struct {
	x          int32
	from       int // among refs: arcs, then wide functions
	arcs, wide int
}

// near are the neighbours of a variable, as far as they are few.
type near struct {
	list [mostNear]int32
	n    int
}

// add reports false where there are too many.
func (n *near) add(y int32) bool {
	for _, z := range n.list[:n.n] {
		if z == y {
			return true
		}
	}
	if n.n == mostNear {
		return false
	}
	n.list[n.n] = y
	n.n++
	return true
}

// eliminate takes a loose variable out where it is open and has few neighbours, to whom its least costs go. It reports false for a
// conflict.
func (s *eliminator) eliminate() bool {
	x := s.order[s.loose.first()]
	v := &s.vars[x]
	if s.mem[v.state] != open {
		return true
	}
	near, few := s.around(x)
	if !few || !s.worthwhile(v, &near) {
		return true
	}
	for _, y := range near.list[:near.n] {
		s.loose.add(s.vars[y].rank)
	}
	return s.out(x, &near)
}

// around returns the neighbours of x; few is false where there are too many.
func (s *eliminator) around(x int32) (all near, few bool) {
	v := &s.vars[x]
	for k := len(v.arcs) - 1; k >= 0; k-- {
		if e := &s.arcs[v.arcs[k]]; s.mem[e.on] != 0 && !all.add(e.to) {
			return all, false
		}
	}
	for k := len(v.wide) - 1; k >= 0; k-- {
		w := &s.wides[v.wide[k]]
		if s.mem[w.on] == 0 {
			continue
		}
		for _, y := range w.scope {
			if y != x && s.isOpen(y) && !all.add(y) {
				return all, false
			}
		}
	}
	return all, true
}

// worthwhile reports whether the table that an elimination makes is little work.
func (s *eliminator) worthwhile(v *variable, near *near) bool {
	live, full := s.mem[v.size], int64(1)
	for _, y := range near.list[:near.n] {
		live *= s.mem[s.vars[y].size]
		full *= int64(s.vars[y].d)
	}
	if near.n < mostNear {
		return live <= mostPairs || near.n < 2
	}
	return live <= mostTriples && full <= mostTriple
}

// term is a function of an eliminated variable: a table, and the costs moved out of it.
type term struct {
	table    []int64
	constant int64
	base, at int
	stride   int // of the variable
	moved    int // cell; 0: the variable is not in its scope
	strides  [mostNear]int
	moves    [mostNear]int // cells; 0: not in its scope
}

// terms are the functions of x, seen from its neighbours.
func (s *eliminator) terms(x int32, near *near) []term {
	v := &s.vars[x]
	list := s.list[:0]
	for _, id := range v.arcs {
		e := &s.arcs[id]
		if s.mem[e.on] == 0 {
			continue
		}
		t := term{table: e.table, stride: s.vars[e.to].d, moved: e.moved}
		at := slices.Index(near.list[:near.n], e.to)
		t.strides[at], t.moves[at] = 1, s.arcs[id^1].moved
		list = append(list, t)
	}
	for _, id := range v.wide {
		if w := &s.wides[id]; s.mem[w.on] != 0 {
			list = append(list, s.wideTerm(w, x, near))
		}
	}
	s.list = list
	return list
}

// wideTerm is a wide function as a term of x.
func (s *eliminator) wideTerm(w *wide, x int32, near *near) term {
	t := term{table: w.table}
	for k, y := range w.scope {
		switch at := slices.Index(near.list[:near.n], y); {
		case y == x:
			t.stride, t.moved = int(w.stride[k]), w.moved[k]
		case at >= 0:
			t.strides[at], t.moves[at] = int(w.stride[k]), w.moved[k]
		default:
			a := s.vars[y].live[0]
			t.base += int(a * w.stride[k])
			t.constant -= s.mem[w.moved[k]+int(a)]
		}
	}
	return t
}

// out eliminates x.
func (s *eliminator) out(x int32, near *near) bool {
	v := &s.vars[x]
	count := int(s.mem[s.nGone])
	el := elimination{x: x}
	if count > 0 {
		last := &s.gone[count-1]
		el.from = last.from + last.arcs + last.wide
	}
	s.refs = s.refs[:el.from]
	for _, id := range v.arcs {
		if s.mem[s.arcs[id].on] != 0 {
			s.refs = append(s.refs, id)
			el.arcs++
		}
	}
	for _, id := range v.wide {
		if s.mem[s.wides[id].on] != 0 {
			s.refs = append(s.refs, id)
			el.wide++
		}
	}
	if near.n == 1 && !s.fullSupport(s.refs[el.from]^1) {
		return false
	}
	var terms []term
	if near.n > 1 {
		terms = s.terms(x, near)
	}
	s.gone = append(s.gone[:count], el)
	s.set(s.nGone, int64(count+1))
	s.set(v.state, eliminated)
	s.set(s.openVars, s.mem[s.openVars]-1)
	for k, id := range s.refs[el.from:] {
		if k < el.arcs {
			s.set(s.arcs[id].on, 0)
		} else {
			s.set(s.wides[id].on, 0)
		}
	}
	switch near.n {
	case 2:
		return s.toPair(v, near, terms)
	case 3:
		return s.toTriple(v, near, terms)
	}
	return true
}

// least is the least cost over v's values of the terms, at values of its neighbours.
func (s *eliminator) least(v *variable, near *near, terms []term, at *[mostNear]int32) int64 {
	rest := int64(0)
	for k := range terms {
		t := &terms[k]
		t.at = t.base
		rest += t.constant
		for i := range near.n {
			if t.moves[i] > 0 {
				t.at += int(at[i]) * t.strides[i]
				rest -= s.mem[t.moves[i]+int(at[i])]
			}
		}
		if t.moved == 0 {
			rest += t.table[t.at]
		}
	}
	least := int64(1) << 62
	for _, a := range v.live[:s.mem[v.size]] {
		cost := s.mem[v.unary+int(a)]
		for k := range terms {
			if t := &terms[k]; t.moved > 0 {
				cost += t.table[t.at+int(a)*t.stride] - s.mem[t.moved+int(a)]
			}
		}
		least = min(least, cost)
	}
	s.work += s.mem[v.size] * int64(len(terms))
	return least + rest
}

// toPair makes the function of two neighbours.
func (s *eliminator) toPair(v *variable, near *near, terms []term) bool {
	y, z := near.list[0], near.list[1]
	d := s.vars[z].d
	costs := sized(&s.joins[0], s.vars[y].d*d)
	for _, b := range s.alive(y) {
		for _, c := range s.alive(z) {
			costs[int(b)*d+int(c)] = s.least(v, near, terms, &[mostNear]int32{b, c})
		}
	}
	return s.join(y, z, func(b, c int32) int64 { return costs[int(b)*d+int(c)] })
}

// sized makes a buffer n long.
func sized(b *[]int64, n int) []int64 {
	*b = slices.Grow((*b)[:0], n)[:n]
	return *b
}

// toTriple makes the function of three neighbours, with those that they have. What two values cost at least goes to a function of pairs.
func (s *eliminator) toTriple(v *variable, near *near, terms []term) bool {
	for _, id := range s.vars[near.list[0]].wide {
		if w := &s.wides[id]; s.mem[w.on] != 0 && s.mem[w.left] == mostNear && s.within(w, near) {
			terms = append(terms, s.wideTerm(w, -1, near))
			s.set(w.on, 0)
		}
	}
	s.list = terms
	id := s.newTriple(near.list)
	w := &s.wides[id]
	any := false
	for _, b := range s.alive(w.scope[0]) {
		for _, c := range s.alive(w.scope[1]) {
			for _, d := range s.alive(w.scope[2]) {
				cost := s.least(v, near, terms, &[mostNear]int32{b, c, d})
				w.table[b*w.stride[0]+c*w.stride[1]+d] = cost
				any = any || cost > 0
			}
		}
	}
	if !any {
		s.set(w.on, 0)
		return true
	}
	for skip := range mostNear {
		i, j := (skip+1)%mostNear, (skip+2)%mostNear
		d := s.vars[w.scope[j]].d
		costs := sized(&s.joins[skip], s.vars[w.scope[i]].d*d)
		rest := s.alive(w.scope[skip])
		for _, b := range s.alive(w.scope[i]) {
			for _, c := range s.alive(w.scope[j]) {
				base := b*w.stride[i] + c*w.stride[j]
				least := int64(1) << 62
				for _, e := range rest {
					least = min(least, w.table[base+e*w.stride[skip]])
				}
				for _, e := range rest {
					w.table[base+e*w.stride[skip]] -= least
				}
				costs[int(b)*d+int(c)] = least
			}
		}
	}
	for skip := range mostNear {
		i, j := (skip+1)%mostNear, (skip+2)%mostNear
		d := s.vars[w.scope[j]].d
		if !s.join(w.scope[i], w.scope[j], func(b, c int32) int64 { return s.joins[skip][int(b)*d+int(c)] }) {
			return false
		}
	}
	first := s.firstOf(w)
	for i, x := range w.scope {
		s.check.add(s.vars[x].rank)
		if i != first && !s.wideSimple(id, i) {
			return false
		}
	}
	return s.wideFull(id, first)
}

// within reports whether all open variables of a wide function are among near.
func (s *eliminator) within(w *wide, near *near) bool {
	for _, x := range w.scope {
		if s.isOpen(x) && !slices.Contains(near.list[:], x) {
			return false
		}
	}
	return true
}

// newTriple adds a wide function whose table is to be filled, with the buffers of an earlier one that is gone.
func (s *eliminator) newTriple(scope [mostNear]int32) int32 {
	id := len(s.wides)
	if cap(s.wides) < id+1 {
		s.wides = slices.Grow(s.wides, 1)
	}
	s.wides = s.wides[:id+1]
	w := &s.wides[id]
	if cap(w.scope) < mostNear {
		w.scope, w.stride = make([]int32, mostNear), make([]int32, mostNear)
		w.moved, w.support = make([]int, mostNear), make([][]int32, mostNear)
	}
	w.left, w.on = s.cells(1), s.cells(1)
	s.mem[w.left], s.mem[w.on] = mostNear, 1
	step := 1
	for k := mostNear - 1; k >= 0; k-- {
		x := scope[k]
		d := s.vars[x].d
		w.scope[k], w.stride[k], w.moved[k] = x, int32(step), s.cells(d)
		w.support[k] = slices.Grow(w.support[k][:0], d)[:d]
		clear(w.support[k])
		step *= d
		s.vars[x].wide = append(s.vars[x].wide, int32(id))
	}
	sized(&w.table, step)
	return int32(id)
}

// complete writes the assignment of a node without open variables.
func (s *eliminator) complete() {
	s.certain()
	s.cheapest()
}

// cheapest writes the cheapest values of the eliminated variables beside those of all others, the last one first.
func (s *eliminator) cheapest() {
	for k := int(s.mem[s.nGone]) - 1; k >= 0; k-- {
		el := &s.gone[k]
		least := int64(1) << 62
		for _, a := range s.alive(el.x) {
			if cost := s.owing(el, a); cost < least {
				least, s.values[el.x] = cost, int(a)
			}
		}
	}
}

// certain writes the values of the assigned variables.
func (s *eliminator) certain() {
	for x := range s.vars {
		if s.mem[s.vars[x].state] == assigned {
			s.values[x] = int(s.vars[x].live[0])
		}
	}
}

// owing is the cost of a value of an eliminated variable beside the values of its neighbours, but for costs that depend on them alone.
func (s *eliminator) owing(el *elimination, a int32) int64 {
	cost := s.mem[s.vars[el.x].unary+int(a)]
	for _, id := range s.refs[el.from:][:el.arcs] {
		e := &s.arcs[id]
		cost += e.table[int(a)*s.vars[e.to].d+s.values[e.to]] - s.mem[e.moved+int(a)]
	}
	for _, id := range s.refs[el.from+el.arcs:][:el.wide] {
		w := &s.wides[id]
		at := 0
		for i, y := range w.scope {
			if y == el.x {
				at += int(a * w.stride[i])
				cost -= s.mem[w.moved[i]+int(a)]
			} else {
				at += s.values[y] * int(w.stride[i])
			}
		}
		cost += w.table[at]
	}
	return cost
}
