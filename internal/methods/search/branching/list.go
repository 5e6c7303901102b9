package branching

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/ranked"
)

// listed is an assignment of a list.
type listed struct {
	values []int
	cost   int64 // as rounded
	real   float64
}

// enlist adds an assignment that costs less than ub.
func (s *finder) enlist(l listed) {
	at := len(s.top)
	for at > 0 && s.top[at-1].cost >= l.cost {
		if at--; slices.Equal(s.top[at].values, l.values) {
			return
		}
	}
	s.top = slices.Insert(s.top, at, l)
	s.top = s.top[:min(len(s.top), s.count)]
	if len(s.top) == s.count {
		s.ub = s.top[s.count-1].cost
		s.bestCost = s.ub
	}
}

// completions offers the assignments of a node without open variables, the cheapest first, as far as they are of interest.
func (s *solver) completions() {
	s.certain()
	bound := s.mem[s.bound]
	_, err := ranked.List(s.ctx, int(s.mem[s.nGone]), choices{s}, s.count, func(more float64) float64 {
		s.offer(s.values)
		if cost := bound + int64(more); s.costOfAll(s.values) > cost { // costs that were too far to be moved
			s.floor = min(s.floor, cost)
		}
		return float64(s.ub - 1 - bound)
	})
	if err != nil {
		s.floor = min(s.floor, bound)
	}
}

// choices are the values of the eliminated variables of a node, the last one's first.
type choices struct{ s *solver }

func (c choices) at(level int) *elimination { return &c.s.gone[int(c.s.mem[c.s.nGone])-1-level] }

// Choose implements ranked.Choices.
func (c choices) Choose(level, option int) { c.s.values[c.at(level).x] = option }

// Costs implements ranked.Choices.
func (c choices) Costs(level int) []float64 {
	el := c.at(level)
	costs := slices.Repeat([]float64{math.Inf(1)}, c.s.vars[el.x].d)
	least := math.Inf(1)
	for _, a := range c.s.alive(el.x) {
		costs[a] = float64(c.s.owing(el, a))
		least = min(least, costs[a])
	}
	c.s.work += int64(len(costs) * (1 + el.arcs + el.wide))
	for a := range costs {
		costs[a] -= least
	}
	return costs
}
