package branching

import (
	"math/rand/v2"
	"slices"
)

// maxRounds limits the rounds of a local search.
const maxRounds = 32

// offerGreedyStart offers an assignment as a solution: each variable has the live value of least unary cost, then a local search (improve)
// changes s.values to a cheaper assignment.
func (s *finder) offerGreedyStart() {
	for x := range s.vars {
		v := &s.vars[x]
		best := v.live[0]
		for _, a := range s.liveValues(int32(x)) {
			if s.unaryCost(v, a) < s.unaryCost(v, best) {
				best = a
			}
		}
		s.values[x] = int(best)
	}
	s.improve(s.values)
	s.offer(s.values)
}

// improve makes an assignment cheaper by local search: one variable after another takes its cheapest value, given the values of all others.
// It ends when no single change makes the assignment cheaper, after maxRounds rounds, or with the context.
func (s *finder) improve(values []int) {
	for range maxRounds {
		hasChanged := false
		for x := range s.vars {
			if s.vars[x].domainSize > 1 {
				best, _ := s.cheapestValue(int32(x), values)
				hasChanged = hasChanged || best != values[x]
				values[x] = best
			}
		}
		if !hasChanged || s.ctx.Err() != nil {
			return
		}
	}
}

// cheapestValue returns the cheapest value of x, given the values of all others, and the costs of all its values, in the buffer
// s.valueCosts. Of equally cheap values it is the present one, else the first.
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

// explore looks for better assignments near the best one, and takes 1/s.exploreShare of the work so far for it. It takes turns between
// perturbations and searches of neighbourhoods, and sets s.exploreShare for the next time. It does nothing if there is no assignment yet.
func (s *solver) explore() {
	if s.best == nil {
		return
	}
	upperBefore, work := s.upperBound, s.work/s.exploreShare/(2*turns) // work: of one of the 2·turns searches below
	for range turns {
		s.perturb(work)
		s.searchNeighbourhoods(work)
	}

	// The next call takes half of the share, or the first share again if this one has found a better assignment.
	s.exploreShare = min(2*s.exploreShare, leastShare)
	if s.upperBound < upperBefore {
		s.exploreShare = firstShare
	}
}

// maxPerturbed is the largest number of variables that a perturbation changes at random.
const maxPerturbed = 8

// perturb looks for better assignments near the best one by iterated local search, with the given work. Each time some connected variables
// take random values, at most maxPerturbed of them. Then the variables around them take their cheapest values, one after the other. The
// change is taken back if the assignment costs more than before it.
func (s *finder) perturb(work int64) {
	rng := rand.New(rand.NewPCG(uint64(s.work), 1)) // a stream of its own: searchNeighbourhoods has stream 2
	p := perturbation{finder: s, values: append([]int(nil), s.best...), queued: newQueue(len(s.vars))}
	cost := s.costOfAll(p.values)
	for workEnd := s.work + work; s.work < workEnd && !s.isOver(); {
		s.work += maxPerturbed
		p.begin()
		p.changeAtRandom(rng)
		p.descend()
		if p.costChange > 0 {
			p.takeBack()
			continue
		}
		if cost += p.costChange; cost < s.upperBound {
			s.offer(p.values)
		}
	}
}

// perturbation is a change of an assignment that may be taken back.
type perturbation struct {
	*finder
	values     []int         // the assignment
	changed    []formerValue // in the order of the changes; a variable may come twice
	costChange int64         // cost after the change less that before
	queued     queue         // variables whose neighbours have changed
}

// begin starts a new change of the assignment.
func (p *perturbation) begin() { p.changed, p.costChange = p.changed[:0], 0 }

// setValue sets x to value a and queues its neighbours. costs are the costs of all values of x, given the values of all other variables.
func (p *perturbation) setValue(x int32, a int, costs []int64) {
	p.changed = append(p.changed, formerValue{x, p.values[x]})
	p.costChange += costs[a] - costs[p.values[x]]
	p.values[x] = a
	p.visitNeighbours(x, func(y int32) { p.queued.insert(p.vars[y].rank) })
}

// changeAtRandom walks over 1 to maxPerturbed variables, from a random one to a random neighbour each time, and gives each another value at
// random.
func (p *perturbation) changeAtRandom(rng *rand.Rand) {
	x := int32(rng.IntN(len(p.vars)))
	for range 1 + rng.IntN(maxPerturbed) {
		if d := p.vars[x].domainSize; d > 1 {
			costs := p.valueCosts[:d]
			p.writeValueCosts(x, p.values, costs)
			p.setValue(x, (p.values[x]+1+rng.IntN(d-1))%d, costs) // any value but the present one
		}
		// A random neighbour: the n-th one replaces the choice with probability 1/n, so that all are equally likely.
		chosen, n := x, 0
		p.visitNeighbours(x, func(y int32) {
			if n++; rng.IntN(n) == 0 {
				chosen = y
			}
		})
		x = chosen
	}
}

// descend gives queued variables their cheapest values, each given the values of all others. A changed variable queues its neighbours
// (setValue). It ends when none is queued, or after maxRounds steps per variable of the network, and then empties the queue.
func (p *perturbation) descend() {
	for steps := 0; p.queued.count > 0 && steps < maxRounds*len(p.vars); steps++ {
		x := p.order[p.queued.popFirst()]
		if p.vars[x].domainSize < 2 {
			continue
		}
		if best, costs := p.cheapestValue(x, p.values); best != p.values[x] {
			p.setValue(x, best, costs)
		}
	}
	p.queued.clear()
}

// takeBack restores the values before the change.
func (p *perturbation) takeBack() {
	for k := len(p.changed) - 1; k >= 0; k-- { // from the last one, since a variable may have changed twice
		p.values[p.changed[k].x] = p.changed[k].value
	}
}

const (
	firstFreed  = 8  // free variables in the first neighbourhood
	refineLimit = 64 // backtracks of the search of a neighbourhood
)

// searchNeighbourhoods searches neighbourhoods of the best assignment depth first, with the given work. In a neighbourhood some connected
// variables are free, and all others keep their values. The next neighbourhood has an eighth more free variables, and one, after a complete
// search without a better assignment. It has an eighth less after an incomplete one (Shaw, CP 1998).
func (s *solver) searchNeighbourhoods(work int64) {
	rng := rand.New(rand.NewPCG(uint64(s.work), 2)) // a stream of its own: perturb has stream 1
	leafFloor, weights := s.leafFloor, slices.Clone(s.weights)
	isFree := make([]bool, len(s.vars))
	for workEnd := s.work + work; s.work < workEnd && !s.isOver(); {
		s.chooseFree(isFree, s.freeCount, rng)
		upperBefore := s.upperBound
		s.push()
		// A conflict shows as well as a complete search that there is no better assignment.
		isComplete := !s.fixOthers(isFree) || !s.propagate() || s.searchDepthFirst(s.path[:0], refineLimit, workEnd, nil)
		s.pop()
		switch {
		case s.upperBound < upperBefore: // a better assignment: the same size again
		case isComplete:
			s.freeCount = min(s.freeCount+1+s.freeCount/8, len(s.vars))
		default:
			s.freeCount -= s.freeCount / 8
		}
	}
	s.leafFloor = leafFloor  // later searches will come to the same leaves
	copy(s.weights, weights) // conflicts with values that are kept tell little about the network
}

// chooseFree marks a random connected set of variables as free. It begins at a random variable, and visits further ones, each a neighbour
// of one visited before, until it has visited size open ones. The visited variables and all their neighbours are marked.
func (s *finder) chooseFree(isFree []bool, size int, rng *rand.Rand) {
	clear(isFree)
	s.work += int64(len(s.vars))
	start := int32(rng.IntN(len(s.vars)))
	frontier := []int32{start} // free variables that are not visited yet
	isFree[start] = true
	for openVisited := 0; openVisited < size && len(frontier) > 0; {
		k := rng.IntN(len(frontier))
		x := frontier[k]
		frontier[k] = frontier[len(frontier)-1]
		frontier = frontier[:len(frontier)-1]
		if s.isOpen(x) {
			openVisited++
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

// fixOthers assigns the variables that are not free their values in the best assignment. It leaves out variables that are not open or whose
// value was removed. It returns false on a conflict.
func (s *solver) fixOthers(isFree []bool) bool {
	onlyValue := []int32{0}
	for x := range s.vars {
		onlyValue[0] = int32(s.best[x])
		isFixed := !isFree[x] && s.isOpen(int32(x)) && s.isLive(int32(x), onlyValue[0])
		if isFixed && !s.apply(decision{x: int32(x), values: onlyValue}) { // keeps this value alone
			return false
		}
	}
	return true
}

// formerValue is the value that a variable had before a change.
type formerValue struct {
	x     int32
	value int
}

// visitNeighbours calls visit for each variable that shares a function of the network with x; a variable may come more than once. Functions
// that the search made do not count: they follow those of the network in the lists.
func (s *finder) visitNeighbours(x int32, visit func(y int32)) {
	v := &s.vars[x]
	for _, id := range v.arcs {
		if int(id) >= 2*s.networkPairs { // a function has two arcs
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

// writeValueCosts writes to costs[a] the sum of the functions of x if x has value a and the other variables have their values in values. It
// uses the functions of the network as they were given, and not the costs that were moved since. In the lists of x's functions those of the
// network come first; those that the search made do not count.
func (s *finder) writeValueCosts(x int32, values []int, costs []int64) {
	v := &s.vars[x]
	copy(costs, s.networkUnary[x])

	// Functions of two variables.
	for _, id := range v.arcs {
		if int(id) >= 2*s.networkPairs { // a function has two arcs
			break
		}
		reverse := &s.arcs[reverseOf(id)] // its table has a row of x's values for each value of the other variable
		for a, c := range reverse.table[values[reverse.from]*v.domainSize:][:v.domainSize] {
			costs[a] += c
		}
		s.work += int64(v.domainSize)
	}

	// Wide functions.
	for _, id := range v.wides {
		if int(id) >= s.networkWides {
			break
		}
		w := &s.wides[id]
		index, stride := 0, 0 // of value 0 of x in the table, and from there to the next value
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
