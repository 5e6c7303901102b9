package search

import "math/rand/v2"

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

// wanderShare is the part of the work that goes to wandering, as a divisor. It is given each time that the work has doubled.
const wanderShare = 8

// mostMoved bounds the variables that wandering moves at once.
const mostMoved = 8

// wander looks for better assignments near the best one, for so much work: some connected variables take values at random, then all around
// them take the cheapest ones in turn (iterated local search). It goes on from there where that does not cost more.
func (s *solver) wander(work int64) {
	if s.best == nil {
		return
	}
	rng := rand.New(rand.NewPCG(uint64(s.work), 1))
	at := append([]int(nil), s.best...)
	cost := s.costOfAll(at)
	var changed []formerValue
	queued := newQueue(len(s.vars))
	for end := s.work + work; s.work < end && !s.over(); {
		s.work += mostMoved
		changed = changed[:0]
		delta := int64(0)
		move := func(x int32, a int, costs []int64) {
			changed = append(changed, formerValue{x, at[x]})
			delta += costs[a] - costs[at[x]]
			at[x] = a
			s.neighbours(x, func(y int32) { queued.add(s.vars[y].rank) })
		}
		x := int32(rng.IntN(len(s.vars)))
		for range 1 + rng.IntN(mostMoved) {
			if d := s.vars[x].d; d > 1 {
				s.beside(x, at, s.u[:d])
				move(x, (at[x]+1+rng.IntN(d-1))%d, s.u[:d])
			}
			near, n := x, 0
			s.neighbours(x, func(y int32) {
				if n++; rng.IntN(n) == 0 {
					near = y
				}
			})
			x = near
		}
		for steps := 0; queued.count > 0 && steps < mostRounds*len(s.vars); steps++ {
			x := s.order[queued.first()]
			d := s.vars[x].d
			if d < 2 {
				continue
			}
			costs := s.u[:d]
			s.beside(x, at, costs)
			best := at[x]
			for a, c := range costs {
				if c < costs[best] {
					best = a
				}
			}
			if best != at[x] {
				move(x, best, costs)
			}
		}
		queued.empty()
		if delta > 0 {
			for k := len(changed) - 1; k >= 0; k-- {
				at[changed[k].x] = changed[k].value
			}
			continue
		}
		if cost += delta; cost < s.ub {
			s.offer(at)
		}
	}
}

// formerValue is the value that a variable had before a move.
type formerValue struct {
	x     int32
	value int
}

// neighbours visits the variables that share a function of the network with x, some of them more than once.
func (s *solver) neighbours(x int32, visit func(y int32)) {
	v := &s.vars[x]
	for _, id := range v.arcs {
		if int(id) >= 2*s.wideAt {
			break
		}
		visit(s.arcs[id].to)
	}
	for _, id := range v.wide {
		if int(id) >= s.nWide {
			break
		}
		for _, y := range s.wides[id].scope {
			if y != x {
				visit(y)
			}
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
