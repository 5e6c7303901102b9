// Package ranked lists the ways through a sequence of choices, the cheapest first, where the least cost of the rest is known at every
// choice: best first, with one descent per way (Lawler, A procedure for computing the K best solutions, 1972).
package ranked

import (
	"cmp"
	"container/heap"
	"context"
	"math"
	"slices"
)

// Choices is a sequence of choices, made level by level.
type Choices interface {
	// Costs returns, for each option of a level, how much more it costs than the cheapest one, given the choices at all earlier levels and
	// the best ones at all later levels; +Inf for an impossible one. The list is read before the next call.
	Costs(level int) []float64
	// Choose makes a choice.
	Choose(level, option int)
}

// way is a way through all levels that is not visited yet. It has the choices of an earlier way before a level, another option at that
// level, and the cheapest options behind it.
type way struct {
	cost          float64
	serial        int64 // by which ways were met
	earlier       int32 // the number of the earlier way
	level, option int32
}

// compare orders ways by their cost, those of the same cost by when they were met.
func (a way) compare(b way) int {
	return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(a.serial, b.serial))
}

// ways is a heap of ways, the cheapest on top.
type ways []way

// Len implements heap.Interface.
func (w ways) Len() int { return len(w) }

// Less implements heap.Interface.
func (w ways) Less(i, j int) bool { return w[i].compare(w[j]) < 0 }

// Swap implements heap.Interface.
func (w ways) Swap(i, j int) { w[i], w[j] = w[j], w[i] }

// Push implements heap.Interface.
func (w *ways) Push(x any) { *w = append(*w, x.(way)) }

// Pop implements heap.Interface.
func (w *ways) Pop() any {
	last := (*w)[len(*w)-1]
	*w = (*w)[:len(*w)-1]
	return last
}

// leastKept is the number of waiting ways above which those that cannot be visited any more are dropped.
const leastKept = 1024

// List visits at most count ways through a sequence of choices, the cheapest first, of equal ones the first that was met. When it calls
// visit, the choices of the way are made; visit returns the cost above which no further way is wanted. isAll is true if every way of finite
// cost was visited. Errors: the context's, looked at once per way. Cost: for each way and level a call of Choose and at most one of Costs;
// memory for the choices of all ways.
func List(ctx context.Context, levels int, c Choices, count int, visit func(cost float64) float64) (isAll bool, err error) {
	var queue ways
	var visited [][]int32 // the options of each way, by level
	next := way{earlier: -1, level: -1}
	maxCost, serial, hasDropped := math.Inf(1), int64(0), false
	for {
		if err := ctx.Err(); err != nil {
			return false, err
		}

		// Make the choices of the next way: up to its level those that are given, then the cheapest. Each other option behind its level
		// begins a further way.
		options := make([]int32, levels)
		if next.earlier >= 0 {
			copy(options, visited[next.earlier][:next.level])
			options[next.level] = next.option
		}
		for level := range levels {
			if level <= int(next.level) {
				c.Choose(level, int(options[level]))
				continue
			}
			costs := c.Costs(level)
			best := 0
			for o, x := range costs {
				if x < costs[best] {
					best = o
				}
			}
			for o, x := range costs {
				if o == best || math.IsInf(x, 1) {
					continue
				}
				w := way{next.cost + x, serial, int32(len(visited)), int32(level), int32(o)}
				if serial++; w.cost > maxCost {
					hasDropped = true
					continue
				}
				heap.Push(&queue, w)
			}
			options[level] = int32(best)
			c.Choose(level, best)
		}
		visited = append(visited, options)
		maxCost = min(maxCost, visit(next.cost))

		// Take the cheapest way that waits.
		if len(visited) >= count || len(queue) == 0 {
			return len(queue) == 0 && !hasDropped, nil
		}
		if len(queue) > max(leastKept, 2*count) {
			slices.SortFunc(queue, way.compare) // a sorted list is a heap
			queue, hasDropped = queue[:count-len(visited)], true
		}
		next = heap.Pop(&queue).(way)
		if next.cost > maxCost {
			return false, nil
		}
	}
}
