package branching

import (
	"math/rand/v2"
	"slices"
)

// mostRounds bounds the rounds of a local search.
const mostRounds = 32

// begin offers the assignment of the least unary costs, improved.
func (s *finder) begin() {
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
func (s *finder) improve(values []int) {
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

// Exploring takes a part of the search's work each time that the work has doubled, one in firstShare after a better assignment was found.
// The part is halved after each time without one, down to one in leastShare. Wandering and refining share it in so many turns.
const (
	firstShare = 4
	leastShare = 16
	turns      = 4
)

// explore looks for better assignments near the best one.
func (s *solver) explore() {
	if s.best == nil {
		return
	}
	before, work := s.ub, s.work/s.share/(2*turns)
	for range turns {
		s.wander(work)
		s.refine(work)
	}
	if s.share = min(2*s.share, leastShare); s.ub < before {
		s.share = firstShare
	}
}

// mostMoved bounds the variables that wandering moves at once.
const mostMoved = 8

// wander looks for better assignments near the best one, for so much work: some connected variables take values at random, then all around
// them take the cheapest ones in turn (iterated local search). It goes on from there where that does not cost more.
func (s *finder) wander(work int64) {
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

// A neighbourhood has firstFreed variables at first, and its search refineLimit backtracks.
const (
	firstFreed  = 8
	refineLimit = 64
)

// refine searches neighbourhoods of the best assignment for so much work, depth first: some connected variables are free, all others keep
// their values. The next neighbourhood is larger after a complete search without a better assignment, and smaller after an incomplete one
// (Shaw, CP 1998).
func (s *solver) refine(work int64) {
	rng := rand.New(rand.NewPCG(uint64(s.work), 2))
	floor, weight := s.floor, slices.Clone(s.weight)
	free := make([]bool, len(s.vars))
	for end := s.work + work; s.work < end && !s.over(); {
		s.choose(free, s.freed, rng)
		before := s.ub
		s.push()
		whole := !s.holds(free) || !s.propagate() || s.deepen(s.path[:0], refineLimit, end, nil)
		s.pop()
		switch {
		case s.ub < before:
		case whole:
			s.freed = min(s.freed+1+s.freed/8, len(s.vars))
		default:
			s.freed -= s.freed / 8
		}
	}
	s.floor = floor
	copy(s.weight, weight) // conflicts with values that are held say little of the whole
}

// choose marks so many variables that are free: connected ones from one on that is drawn.
func (s *finder) choose(free []bool, size int, rng *rand.Rand) {
	clear(free)
	s.work += int64(len(s.vars))
	x := int32(rng.IntN(len(s.vars)))
	edge := []int32{x}
	free[x] = true
	for n := 0; n < size && len(edge) > 0; {
		k := rng.IntN(len(edge))
		x := edge[k]
		edge[k] = edge[len(edge)-1]
		edge = edge[:len(edge)-1]
		if s.isOpen(x) {
			n++
		}
		s.neighbours(x, func(y int32) {
			s.work++
			if !free[y] {
				free[y] = true
				edge = append(edge, y)
			}
		})
	}
}

// holds gives the other variables their values in the best assignment, except values that are removed already. It reports false for a
// conflict.
func (s *solver) holds(free []bool) bool {
	value := []int32{0}
	for x := range s.vars {
		value[0] = int32(s.best[x])
		if !free[x] && s.isOpen(int32(x)) && s.isLive(int32(x), value[0]) && !s.apply(step{int32(x), false, value}) {
			return false
		}
	}
	return true
}

// formerValue is the value that a variable had before a move.
type formerValue struct {
	x     int32
	value int
}

// neighbours visits the variables that share a function of the network with x, some of them more than once.
func (s *finder) neighbours(x int32, visit func(y int32)) {
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
func (s *finder) beside(x int32, values []int, costs []int64) {
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
