package branching

import (
	"math/rand/v2"
	"slices"
)

// maxRounds limits the rounds of a local search.
const maxRounds = 32

// offerGreedyStart offers the assignment of the least unary costs, after a local search has improved it.
func (s *finder) offerGreedyStart() {
	for x := range s.vars {
		v := &s.vars[x]
		best := v.live[0]
		for _, a := range s.liveValues(int32(x)) {
			if s.cells[v.unaryCell+int(a)] < s.cells[v.unaryCell+int(best)] {
				best = a
			}
		}
		s.values[x] = int(best)
	}
	s.improve(s.values)
	s.offer(s.values)
}

// improve is a local search: one variable after another takes its cheapest value, given the values of all others. It ends when no change
// makes the assignment cheaper, after maxRounds rounds, or with the context.
func (s *finder) improve(values []int) {
	for range maxRounds {
		changed := false
		for x := range s.vars {
			if s.vars[x].domainSize > 1 {
				best, _ := s.cheapestValue(int32(x), values)
				changed = changed || best != values[x]
				values[x] = best
			}
		}
		if !changed || s.ctx.Err() != nil {
			return
		}
	}
}

// cheapestValue returns the cheapest value of x, given the values of all others, and the costs of all its values in s.valueCosts. Of equal
// ones it is the present value, else the first.
func (s *finder) cheapestValue(x int32, values []int) (best int, costs []int64) {
	costs = s.valueCosts[:s.vars[x].domainSize]
	s.writeValueCosts(x, values, costs)
	best = values[x]
	for a, c := range costs {
		if c < costs[best] {
			best = a
		}
	}
	return best, costs
}

// Exploring takes a share of the search's work each time that the work has doubled: one part in firstShare after a better assignment was
// found. The share is halved after each time without one, down to one part in leastShare. Perturbing and the search of neighbourhoods have
// it half each, in turns.
const (
	firstShare = 4
	leastShare = 16
	turns      = 4
)

// explore looks for better assignments near the best one, and sets the share of work for the next time. It does nothing if there is none.
func (s *solver) explore() {
	if s.best == nil {
		return
	}
	before, work := s.upperBound, s.work/s.exploreShare/(2*turns)
	for range turns {
		s.perturb(work)
		s.searchNeighbourhoods(work)
	}
	if s.exploreShare = min(2*s.exploreShare, leastShare); s.upperBound < before {
		s.exploreShare = firstShare
	}
}

// maxPerturbed is the largest number of variables that a perturbation changes at random.
const maxPerturbed = 8

// perturb looks for better assignments near the best one, for that work, by iterated local search: some connected variables take random
// values, then the variables around them take their cheapest values in turn. A change that costs more is taken back.
func (s *finder) perturb(work int64) {
	rng := rand.New(rand.NewPCG(uint64(s.work), 1))
	w := perturbation{finder: s, values: append([]int(nil), s.best...), queued: newQueue(len(s.vars))}
	cost := s.costOfAll(w.values)
	for end := s.work + work; s.work < end && !s.isOver(); {
		s.work += maxPerturbed
		w.begin()
		w.changeAtRandom(rng)
		w.descend()
		if w.delta > 0 {
			w.takeBack()
			continue
		}
		if cost += w.delta; cost < s.upperBound {
			s.offer(w.values)
		}
	}
}

// perturbation is a change of an assignment that may be taken back.
type perturbation struct {
	*finder
	values  []int // the assignment
	changed []formerValue
	delta   int64 // cost of the change
	queued  queue // variables whose neighbours have changed
}

// begin starts a new change.
func (w *perturbation) begin() { w.changed, w.delta = w.changed[:0], 0 }

// move sets x to value a and queues its neighbours. costs are those of all values of x.
func (w *perturbation) move(x int32, a int, costs []int64) {
	w.changed = append(w.changed, formerValue{x, w.values[x]})
	w.delta += costs[a] - costs[w.values[x]]
	w.values[x] = a
	w.visitNeighbours(x, func(y int32) { w.queued.insert(w.vars[y].rank) })
}

// changeAtRandom walks over 1 to maxPerturbed variables, from a random one to a random neighbour each time, and gives each another value at
// random.
func (w *perturbation) changeAtRandom(rng *rand.Rand) {
	x := int32(rng.IntN(len(w.vars)))
	for range 1 + rng.IntN(maxPerturbed) {
		if d := w.vars[x].domainSize; d > 1 {
			costs := w.valueCosts[:d]
			w.writeValueCosts(x, w.values, costs)
			w.move(x, (w.values[x]+1+rng.IntN(d-1))%d, costs)
		}
		// The n-th neighbour replaces the choice with probability 1/n, so each is chosen with the same one.
		chosen, n := x, 0
		w.visitNeighbours(x, func(y int32) {
			if n++; rng.IntN(n) == 0 {
				chosen = y
			}
		})
		x = chosen
	}
}

// descend gives queued variables their cheapest values until none is queued, or for maxRounds steps per variable of the network. The queue
// is empty then.
func (w *perturbation) descend() {
	for steps := 0; w.queued.count > 0 && steps < maxRounds*len(w.vars); steps++ {
		x := w.order[w.queued.popFirst()]
		if w.vars[x].domainSize < 2 {
			continue
		}
		if best, costs := w.cheapestValue(x, w.values); best != w.values[x] {
			w.move(x, best, costs)
		}
	}
	w.queued.clear()
}

// takeBack restores the values before the change.
func (w *perturbation) takeBack() {
	for k := len(w.changed) - 1; k >= 0; k-- {
		w.values[w.changed[k].x] = w.changed[k].value
	}
}

const (
	firstFreed  = 8  // free variables in the first neighbourhood
	refineLimit = 64 // backtracks of the search of a neighbourhood
)

// searchNeighbourhoods searches neighbourhoods of the best assignment depth first, for that work: some connected variables are free, all
// others keep their values. The next neighbourhood is larger after a complete search without a better assignment, and smaller after an
// incomplete one (Shaw, CP 1998).
func (s *solver) searchNeighbourhoods(work int64) {
	rng := rand.New(rand.NewPCG(uint64(s.work), 2))
	leafFloor, weights := s.leafFloor, slices.Clone(s.weights)
	isFree := make([]bool, len(s.vars))
	for end := s.work + work; s.work < end && !s.isOver(); {
		s.chooseFree(isFree, s.freeCount, rng)
		before := s.upperBound
		s.push()
		isComplete := !s.fixOthers(isFree) || !s.propagate() || s.searchDepthFirst(s.path[:0], refineLimit, end, nil)
		s.pop()
		switch {
		case s.upperBound < before:
		case isComplete:
			s.freeCount = min(s.freeCount+1+s.freeCount/8, len(s.vars))
		default:
			s.freeCount -= s.freeCount / 8
		}
	}
	s.leafFloor = leafFloor
	copy(s.weights, weights) // conflicts with values that are kept tell little about the network
}

// chooseFree marks connected variables as free, from a random one on, until size open ones are among them. Variables next to them are
// marked, too.
func (s *finder) chooseFree(isFree []bool, size int, rng *rand.Rand) {
	clear(isFree)
	s.work += int64(len(s.vars))
	start := int32(rng.IntN(len(s.vars)))
	frontier := []int32{start} // free variables whose neighbours are not marked yet
	isFree[start] = true
	for n := 0; n < size && len(frontier) > 0; {
		k := rng.IntN(len(frontier))
		x := frontier[k]
		frontier[k] = frontier[len(frontier)-1]
		frontier = frontier[:len(frontier)-1]
		if s.isOpen(x) {
			n++
		}
		s.visitNeighbours(x, func(y int32) {
			s.work++
			if !isFree[y] {
				isFree[y] = true
				frontier = append(frontier, y)
			}
		})
	}
}

// fixOthers gives the open variables that are not free their values in the best assignment, unless such a value is removed. It returns
// false on a conflict.
func (s *solver) fixOthers(isFree []bool) bool {
	value := []int32{0}
	for x := range s.vars {
		value[0] = int32(s.best[x])
		if !isFree[x] && s.isOpen(int32(x)) && s.isLive(int32(x), value[0]) && !s.apply(step{int32(x), false, value}) {
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

// visitNeighbours visits the variables that share a function of the network with x, some of them more than once. It leaves out functions
// made on the way.
func (s *finder) visitNeighbours(x int32, visit func(y int32)) {
	v := &s.vars[x]
	for _, id := range v.arcs {
		if int(id) >= 2*s.networkPairs {
			break
		}
		visit(s.arcs[id].to)
	}
	for _, id := range v.wides {
		if int(id) >= s.networkWides {
			break
		}
		for _, y := range s.wides[id].scope {
			if y != x {
				visit(y)
			}
		}
	}
}

// writeValueCosts writes to costs what the functions of the network cost with each value of x, given the values of the others. It leaves
// out functions without x.
func (s *finder) writeValueCosts(x int32, values []int, costs []int64) {
	v := &s.vars[x]
	copy(costs, s.networkUnary[x])
	for _, id := range v.arcs {
		if int(id) >= 2*s.networkPairs {
			break
		}
		reverse := &s.arcs[id^1] // its table has a row of x's values for each value of the other variable
		for a, c := range reverse.table[values[reverse.from]*v.domainSize:][:v.domainSize] {
			costs[a] += c
		}
		s.work += int64(v.domainSize)
	}
	for _, id := range v.wides {
		if int(id) >= s.networkWides {
			break
		}
		w := &s.wides[id]
		index, stride := 0, 0 // in the table for value 0 of x, and from there to the next value
		for i, y := range w.scope {
			if y == x {
				stride = int(w.strides[i])
			} else {
				index += values[y] * int(w.strides[i])
			}
		}
		for a := range costs {
			costs[a] += w.table[index+a*stride]
		}
		s.work += int64(v.domainSize)
	}
}
