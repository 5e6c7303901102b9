package branching

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/ranked"
)

// listedAssignment is one of several assignments that are looked for.
type listedAssignment struct {
	values []int
	cost   int64   // in units, each table's cost rounded down
	nats   float64 // the cost in nats, without rounding down
}

// insertListed inserts an assignment that costs less than upperBound into s.bestList, unless it is there already. The list has the
// s.wantedCount cheapest assignments in ascending order. When it is full, upperBound becomes the cost of the last one.
func (s *finder) insertListed(l listedAssignment) {
	position := len(s.bestList)
	for position > 0 && s.bestList[position-1].cost >= l.cost { // an equal assignment has the same cost
		if position--; slices.Equal(s.bestList[position].values, l.values) {
			return
		}
	}
	s.bestList = slices.Insert(s.bestList, position, l)
	s.bestList = s.bestList[:min(len(s.bestList), s.wantedCount)]
	if len(s.bestList) == s.wantedCount {
		s.upperBound = s.bestList[s.wantedCount-1].cost
		s.bestCost = s.upperBound
	}
}

// offerCompletions offers the assignments of a node without open variables, the cheapest first, as long as they cost less than upperBound
// and are no more than wanted. They differ in the values of the eliminated variables. ranked.List goes through them by their extra cost
// above the bound of the node. If the cost of one is above bound + extra, or the listing fails, leafFloor falls to that bound:
// assignments of the node may be missing.
func (s *solver) offerCompletions() {
	s.assignFixed()
	bound := s.lowerBound()
	levels := int(s.cells[s.eliminationCountCell])
	// visit takes the assignment in s.values, which costs extra above the bound, and returns the largest extra of interest.
	visit := func(extra float64) float64 {
		s.offer(s.values)
		if cost := bound + int64(extra); s.costOfAll(s.values) > cost { // costs beyond maxMoved are not in the bound
			s.leafFloor = min(s.leafFloor, cost)
		}
		return float64(s.upperBound - 1 - bound) // costs are integers: an assignment of interest costs at most upperBound − 1
	}
	if _, err := ranked.List(s.ctx, levels, choices{s}, s.wantedCount, visit); err != nil {
		s.leafFloor = min(s.leafFloor, bound)
	}
}

// choices are the values of the eliminated variables of a node, as levels of ranked.List. Level 0 is the variable that was eliminated last.
type choices struct{ s *solver }

// eliminationAt returns the elimination of the variable at a level. The levels go back from the last elimination in force.
func (c choices) eliminationAt(level int) *elimination {
	return &c.s.eliminations[int(c.s.cells[c.s.eliminationCountCell])-1-level]
}

// Choose implements ranked.Choices: it gives the eliminated variable of a level the value option.
func (c choices) Choose(level, option int) { c.s.values[c.eliminationAt(level).x] = option }

// Costs implements ranked.Choices. The variable of a level is an eliminated one. Costs returns the cost of each of its values less that of
// the cheapest value, given the values of the variables of the levels before in s.values. A removed value costs +Inf.
func (c choices) Costs(level int) []float64 {
	el := c.eliminationAt(level)
	costs := slices.Repeat([]float64{math.Inf(1)}, c.s.vars[el.x].domainSize)
	leastCost := math.Inf(1)
	for _, a := range c.s.liveValues(el.x) {
		costs[a] = float64(c.s.costOfEliminated(el, a))
		leastCost = min(leastCost, costs[a])
	}
	c.s.work += int64(len(costs) * (1 + el.arcCount + el.wideCount))
	for a := range costs {
		costs[a] -= leastCost
	}
	return costs
}
