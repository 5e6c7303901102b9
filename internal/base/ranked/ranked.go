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
	// Costs returns the cost of each option of a level above the cheapest one, beside the choices at all earlier levels and with the
	// best ones at all later levels; +Inf for an impossible one. It is read before the next call.
	Costs(level int) []float64
	// Choose makes a choice.
	Choose(level, option int)
}

// way is one that leaves an earlier one at a level.
type way struct {
	cost          float64
	serial        int64
	from          int32 // the earlier one's number
	level, option int32
}

func (a way) compare(b way) int {
	return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(a.serial, b.serial))
}

type ways []way

func (w ways) Len() int           { return len(w) }
func (w ways) Less(i, j int) bool { return w[i].compare(w[j]) < 0 }
func (w ways) Swap(i, j int)      { w[i], w[j] = w[j], w[i] }
func (w *ways) Push(x any)        { *w = append(*w, x.(way)) }
func (w *ways) Pop() any {
	last := (*w)[len(*w)-1]
	*w = (*w)[:len(*w)-1]
	return last
}

// leastKept is the number of ways from which those that come too late are dropped.
const leastKept = 1024

// List visits at most so many ways, the cheapest first, of equal ones the first that was met. At visit the choices of a way are made; it
// returns the cost above which no further one is wanted. All says that every way of finite cost was visited. Errors: the context's,
// looked at once per way. Cost: a call of Choose, and one of Costs at most, per way and level; memory for the choices of all ways.
func List(ctx context.Context, levels int, c Choices, most int, visit func(cost float64) float64) (all bool, err error) {
	var queue ways
	var made [][]int32
	next := way{from: -1, level: -1}
	limit, serial, dropped := math.Inf(1), int64(0), false
	for {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		own := make([]int32, levels)
		if next.from >= 0 {
			copy(own, made[next.from][:next.level])
			own[next.level] = next.option
		}
		for level := range levels {
			if level <= int(next.level) {
				c.Choose(level, int(own[level]))
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
				w := way{next.cost + x, serial, int32(len(made)), int32(level), int32(o)}
				if serial++; w.cost > limit {
					dropped = true
					continue
				}
				heap.Push(&queue, w)
			}
			own[level] = int32(best)
			c.Choose(level, best)
		}
		made = append(made, own)
		limit = min(limit, visit(next.cost))
		if len(made) >= most || len(queue) == 0 {
			return len(queue) == 0 && !dropped, nil
		}
		if len(queue) > max(leastKept, 2*most) {
			slices.SortFunc(queue, way.compare)
			queue, dropped = queue[:most-len(made)], true
		}
		next = heap.Pop(&queue).(way)
		if next.cost > limit {
			return false, nil
		}
	}
}
