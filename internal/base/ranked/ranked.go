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
	serial        int64 // in the sequence in which ways were met
	earlier       int32 // the number of the earlier way among the visited ones, or noWay
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

// noWay is the field earlier of the first way, which leaves no other.
const noWay = -1

// listing is the state of List between two ways.
type listing struct {
	queue      ways      // those that wait to be visited
	visited    [][]int32 // the options of each visited way, by level
	maxCost    float64   // dearer ways are not wanted
	serial     int64     // of the next way that is met
	hasDropped bool      // if a way of finite cost was met and is not in the queue
}

// List visits at most count ways through a sequence of choices, the cheapest first. Among ways of equal cost, the way that was met first
// is visited first. When List calls visit, the choices of the way are made; visit returns the cost above which no further way is wanted.
// isAll is true if every way of finite cost was visited. Errors: the context's, looked at once per way. Cost: for each way and level a call
// of Choose and at most one of Costs; memory for the choices of all ways.
func List(ctx context.Context, levels int, c Choices, count int, visit func(cost float64) float64) (isAll bool, err error) {
	l := listing{maxCost: math.Inf(1)}
	next := way{earlier: noWay, level: -1} // the cheapest option at every level
	for {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		l.follow(next, levels, c)
		l.maxCost = min(l.maxCost, visit(next.cost))

		if len(l.visited) >= count || len(l.queue) == 0 {
			return len(l.queue) == 0 && !l.hasDropped, nil
		}
		l.dropSurplus(count)
		next = heap.Pop(&l.queue).(way)
		if next.cost > l.maxCost {
			return false, nil // all ways that wait are too dear
		}
	}
}

// follow makes the choices of a way and adds them to those of the visited ways. Up to its own level they are given, at later levels the
// cheapest option is chosen. Each other option of a later level begins a further way, which joins the queue.
func (l *listing) follow(w way, levels int, c Choices) {
	options := make([]int32, levels)
	if w.earlier != noWay {
		copy(options, l.visited[w.earlier][:w.level])
		options[w.level] = w.option
	}
	for level := range levels {
		if level > int(w.level) {
			costs := c.Costs(level)
			best := 0
			for option, cost := range costs {
				if cost < costs[best] {
					best = option
				}
			}
			l.meet(w, level, best, costs)
			options[level] = int32(best)
		}
		c.Choose(level, int(options[level]))
	}
	l.visited = append(l.visited, options)
}

// meet adds to the queue the ways that leave the way w, the next one of the visited ways, at a level: one for each option but the best.
// costs[o] is what option o adds to the cost of w.
func (l *listing) meet(w way, level, best int, costs []float64) {
	for option, extra := range costs {
		if option == best || math.IsInf(extra, 1) {
			continue
		}
		branch := way{w.cost + extra, l.serial, int32(len(l.visited)), int32(level), int32(option)}
		l.serial++
		if branch.cost > l.maxCost {
			l.hasDropped = true
			continue
		}
		heap.Push(&l.queue, branch)
	}
}

// leastKept is the number of waiting ways above which those that cannot be visited any more are dropped.
const leastKept = 1024

// dropSurplus keeps the cheapest waiting ways, as many as may still be visited, if there are many more.
func (l *listing) dropSurplus(count int) {
	if len(l.queue) <= max(leastKept, 2*count) { // sorting at twice the count: rarely
		return
	}
	slices.SortFunc(l.queue, way.compare) // a sorted list is a heap
	l.queue, l.hasDropped = l.queue[:count-len(l.visited)], true
}
