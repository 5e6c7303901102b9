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
	real   float64 // in nats
}

// insertListed inserts an assignment that costs less than upperBound in the list of the best ones, unless it is there already. When the
// list is full, upperBound is the cost of its last one.
func (s *finder) insertListed(l listedAssignment) {
	position := len(s.bestList)
	for position > 0 && s.bestList[position-1].cost >= l.cost {
		if position--; slices.Equal(s.bestList[position].values, l.values) {
			return
		}
	}
	s.bestList = slices.Insert(s.bestList, position, l)
	s.bestList = s.bestList[:min(len(s.bestList), s.count)]
	if len(s.bestList) == s.count {
		s.upperBound = s.bestList[s.count-1].cost
		s.bestCost = s.upperBound
	}
}

// offerCompletions offers the assignments of a node without open variables: all values of the eliminated variables, the cheapest first, as
// long as they cost less than upperBound.
func (s *solver) offerCompletions() {
	s.assignFixed()
	bound := s.lowerBound()
	_, err := ranked.List(s.ctx, int(s.cells[s.eliminationCountCell]), choices{s}, s.count, func(extra float64) float64 {
		s.offer(s.values)
		if cost := bound + int64(extra); s.costOfAll(s.values) > cost { // costs beyond maxMoved are not in the bound
			s.leafFloor = min(s.leafFloor, cost)
		}
		return float64(s.upperBound - 1 - bound)
	})
	if err != nil {
		s.leafFloor = min(s.leafFloor, bound)
	}
}

// choices are the values of the eliminated variables of a node. Level 0 is the variable that was eliminated last.
type choices struct{ s *solver }

// eliminationAt returns the elimination of a level.
func (c choices) eliminationAt(level int) *elimination {
	return &c.s.eliminations[int(c.s.cells[c.s.eliminationCountCell])-1-level]
}

// Choose implements ranked.Choices: it sets the variable of a level to a value.
func (c choices) Choose(level, option int) { c.s.values[c.eliminationAt(level).x] = option }

// Costs implements ranked.Choices: it returns by value what the variable of a level costs above its cheapest value, given the values of the
// levels before it. A removed value costs +Inf.
func (c choices) Costs(level int) []float64 {
	el := c.eliminationAt(level)
	costs := slices.Repeat([]float64{math.Inf(1)}, c.s.vars[el.x].domainSize)
	least := math.Inf(1)
	for _, a := range c.s.liveValues(el.x) {
		costs[a] = float64(c.s.costOfEliminated(el, a))
		least = min(least, costs[a])
	}
	c.s.work += int64(len(costs) * (1 + el.arcCount + el.wideCount))
	for a := range costs {
		costs[a] -= least
	}
	return costs
}
