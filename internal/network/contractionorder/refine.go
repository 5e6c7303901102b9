package contractionorder

// Fiduccia–Mattheyses refinement of a bisection.
// Source: C. M. Fiduccia, R. M. Mattheyses,
// A linear-time heuristic for improving network partitions (1982).

import (
	"github.com/basetensor/basetensor/internal/base/pace"
)

// refinement moves single vertices between the sides.
// Gains are kept up to date; a heap that may hold outdated entries finds the largest.
type refinement struct {
	g      *hypergraph
	side   []uint8    // by vertex: 0 or 1
	half   int64      // maximum weight of a side
	weight [2]int64   // by side
	count  [2][]int32 // by net: its vertices on each side
	gain   []logs     // by vertex: saving of its move
	locked []bool     // by vertex: it has moved in this pass
	queue  pairQueue  // score −gain
	offers uint64     // so far
	cut    logs       // cost of the nets with vertices on both sides
	moves  int64
	pace   *pace.Pace
}

func newRefinement(g *hypergraph, side []uint8, half int64, p *pace.Pace) *refinement {
	f := &refinement{
		g:      g,
		side:   side,
		half:   half,
		pace:   p,
		gain:   make([]logs, len(side)),
		locked: make([]bool, len(side)),
	}

	f.count = [2][]int32{make([]int32, len(g.nets)), make([]int32, len(g.nets))}
	for v, s := range side {
		f.weight[s] += g.weight[v]
	}

	for e, pins := range g.nets {
		for _, v := range pins {
			f.count[side[v]][e]++
		}
		if f.count[0][e] > 0 && f.count[1][e] > 0 {
			f.cut += g.cost[e]
		}
		f.moves += int64(4 * len(pins))
	}
	return f
}

// gainOf computes the gain of v from its nets.
func (f *refinement) gainOf(v int32) logs {
	s := f.side[v]
	var gain logs
	for _, e := range f.g.of[v] {
		if f.count[s][e] == 1 {
			gain += f.g.cost[e]
		}
		if f.count[1-s][e] == 0 {
			gain -= f.g.cost[e]
		}
	}
	f.moves += int64(4 * len(f.g.of[v]))
	return gain
}

// offer queues v with its present gain.
func (f *refinement) offer(v int32) {
	f.offers++
	f.moves += 60 // most of it for taking it out again
	f.queue.push(pair{score: -f.gain[v], count: f.offers, a: v})
}

// move puts v on the other side and updates the gains around it.
func (f *refinement) move(v int32) {
	from := f.side[v]
	to := 1 - from
	f.cut -= f.gain[v]
	f.side[v] = to
	f.weight[from] -= f.g.weight[v]
	f.weight[to] += f.g.weight[v]

	for _, e := range f.g.of[v] {
		f.count[from][e]--
		f.count[to][e]++
		f.updateGains(e, v, from)
	}

	f.gain[v] = f.gainOf(v)
	f.pace.Over(int64(16 + 4*len(f.g.of[v])))
}

// updateGains changes the gains of the vertices of net e after v has left side from. Only the first
// and the last two vertices of a side matter to others.
func (f *refinement) updateGains(e, v int32, from uint8) {
	cost := f.g.cost[e]
	left := f.count[from][e]
	there := f.count[1-from][e] - 1 // before v came
	if left > 1 && there > 1 {
		return
	}
	for _, u := range f.g.nets[e] {
		if u == v {
			continue
		}
		var change logs
		if f.side[u] == from {
			if there == 0 { // cut from now on: following it no longer cuts
				change += cost
			}
			if left == 1 {
				change += cost
			}
		} else {
			if there == 1 { // no longer alone
				change -= cost
			}
			if left == 0 {
				change -= cost
			}
		}
		if change != 0 {
			f.gain[u] += change
			if !f.locked[u] {
				f.offer(u)
			}
		}
	}
	f.moves += int64(4 * len(f.g.nets[e]))
}

// grow moves vertices from side 1 to side 0,
// beginning with seed, until side 0 has half of the weight.
func (f *refinement) grow(seed int32) {
	for v := range f.gain {
		f.gain[v] = f.gainOf(int32(v))
	}

	total := f.weight[0] + f.weight[1]
	next := seed
	for v := int32(0); 2*(f.weight[0]+f.g.weight[next]) <= total || f.weight[0] == 0; {
		f.locked[next] = true
		f.move(next)
		if f.pace.Err() != nil {
			return
		}

		next = none
		for len(f.queue) > 0 && next == none {
			if k := f.queue.pop(); !f.locked[k.a] && -k.score == f.gain[k.a] {
				next = k.a
			}
		}

		for next == none && int(v) < len(f.side) { // nothing connected is left
			if !f.locked[v] {
				next = v
			}
			v++
		}

		if next == none {
			return
		}
	}
}

// pass moves every vertex once at most, the largest gain first,
// keeps the best prefix and says whether it gained.
func (f *refinement) pass() bool {
	f.queue = f.queue[:0]
	for v := range f.gain {
		f.locked[v] = false
		f.gain[v] = f.gainOf(int32(v))
		f.offer(int32(v))
	}

	var done []int32
	start, startOver := f.cut, f.over()
	best, bestOver, keep := start, startOver, 0

	for len(f.queue) > 0 && f.pace.Err() == nil {
		k := f.queue.pop()
		v := k.a
		if f.locked[v] || -k.score != f.gain[v] || !f.allowed(v) {
			continue
		}

		f.locked[v] = true
		f.move(v)
		done = append(done, v)
		if o := f.over(); o < bestOver || o == bestOver && f.cut < best {
			best, bestOver, keep = f.cut, o, len(done)
		}
		if len(done) > keep+100+len(f.side)/8 { // a valley this long is not left again
			break
		}
	}

	// Undo the moves after the best prefix.
	for i := len(done) - 1; i >= keep; i-- {
		f.move(done[i])
	}
	return f.pace.Err() == nil && (bestOver < startOver || bestOver == startOver && best < start)
}

// over is the excess weight of the heavier side.
func (f *refinement) over() int64 { return max(f.weight[0]-f.half, f.weight[1]-f.half, 0) }

// allowed says whether v may move: not into a side that becomes too heavy
// and heavier than the one it leaves, and never the last vertex of a side.
func (f *refinement) allowed(v int32) bool {
	from := f.side[v]
	w := f.g.weight[v]
	if f.weight[from] == w {
		return false
	}
	return f.weight[1-from]+w <= f.half || f.weight[1-from]+w < f.weight[from]
}
