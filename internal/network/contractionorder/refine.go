package contractionorder

// Fiduccia–Mattheyses refinement of a bisection.
// Source: C. M. Fiduccia, R. M. Mattheyses,
// A linear-time heuristic for improving network partitions (1982).

import (
	"github.com/basetensor/basetensor/internal/base/pace"
)

// refinement is a split of a hypergraph that changes by flips: a flip moves one vertex to the other side. The gain of a vertex is what its
// flip saves. Gains are kept up to date. A queue, some of whose entries are outdated, finds the largest gain.
type refinement struct {
	g        *hypergraph
	side     []uint8    // by vertex: 0 or 1
	maxSide  int64      // limit of the weight of a side
	weight   [2]int64   // by side
	pinsOn   [2][]int32 // by side, by net: the number of the net's vertices on that side
	gain     []logs     // by vertex: by how much its flip lowers cut
	hasMoved []bool     // by vertex: it was flipped in this pass, or while a side grows
	queue    pairQueue  // of vertices, with the score −gain
	offers   uint64     // the number of entries that were queued so far
	cut      logs       // the cost of the nets with vertices on both sides
	moves    int64
	pace     *pace.Pace
}

// newRefinement returns a refinement of a split, which it changes in place. Gains are not yet known.
func newRefinement(g *hypergraph, side []uint8, maxSide int64, pace *pace.Pace) *refinement {
	f := &refinement{
		g:        g,
		side:     side,
		maxSide:  maxSide,
		pace:     pace,
		gain:     make([]logs, len(side)),
		hasMoved: make([]bool, len(side)),
	}

	f.pinsOn = [2][]int32{make([]int32, len(g.nets)), make([]int32, len(g.nets))}
	for v, s := range side {
		f.weight[s] += g.weight[v]
	}

	for e, pins := range g.nets {
		for _, v := range pins {
			f.pinsOn[side[v]][e]++
		}
		if f.pinsOn[0][e] > 0 && f.pinsOn[1][e] > 0 {
			f.cut += g.cost[e]
		}
		f.moves += int64(4 * len(pins))
	}
	return f
}

// gainOf computes the gain of v. A net whose only vertex on the side of v is v is cut no more after the flip, if it has other vertices. A
// net that is on the side of v as a whole is cut then. A net with the only vertex v counts as both.
func (f *refinement) gainOf(v int32) logs {
	s := f.side[v]
	var gain logs
	for _, e := range f.g.netsOf[v] {
		if f.pinsOn[s][e] == 1 {
			gain += f.g.cost[e]
		}
		if f.pinsOn[1-s][e] == 0 {
			gain -= f.g.cost[e]
		}
	}
	f.moves += int64(4 * len(f.g.netsOf[v]))
	return gain
}

// queueMove adds v to the queue with its present gain.
func (f *refinement) queueMove(v int32) {
	f.offers++
	f.moves += 60 // most of it for taking it out again
	f.queue.push(pair{score: -f.gain[v], offer: f.offers, a: v})
}

// flip moves v to the other side and updates cut, weights and gains.
func (f *refinement) flip(v int32) {
	from := f.side[v]
	to := 1 - from
	f.cut -= f.gain[v]
	f.side[v] = to
	f.weight[from] -= f.g.weight[v]
	f.weight[to] += f.g.weight[v]

	for _, e := range f.g.netsOf[v] {
		f.pinsOn[from][e]--
		f.pinsOn[to][e]++
		f.updateGains(e, v, from)
	}

	f.gain[v] = f.gainOf(v)
	f.pace.Over(int64(16 + 4*len(f.g.netsOf[v])))
}

// updateGains changes the gains of the other vertices of net e after v has left side from, and queues the changed ones that were not
// flipped in this pass. pinsOn already counts v on its new side. Gains change only if v was one of the last two vertices of the net on its
// old side, or is now one of the first two on its new side. In each case below, the share of e in the gain of u is given before and after
// the move of v; see gainOf.
func (f *refinement) updateGains(e, v int32, from uint8) {
	cost := f.g.cost[e]
	leftBehind := f.pinsOn[from][e]
	othersOnNewSide := f.pinsOn[1-from][e] - 1 // without v
	if leftBehind > 1 && othersOnNewSide > 1 {
		return
	}
	for _, u := range f.g.nets[e] {
		if u == v {
			continue
		}
		var change logs
		if f.side[u] == from {
			if othersOnNewSide == 0 { // −cost → 0: the net was whole, and a flip of u would have cut it; now v has cut it
				change += cost
			}
			if leftBehind == 1 { // 0 → +cost: u is the last vertex on its side, so its flip would make the net whole
				change += cost
			}
		} else {
			if othersOnNewSide == 1 { // +cost → 0: u was the only vertex on its side; now v is there, too
				change -= cost
			}
			if leftBehind == 0 { // 0 → −cost: the net is whole now, and the flip of u would cut it
				change -= cost
			}
		}
		if change != 0 {
			f.gain[u] += change
			if !f.hasMoved[u] {
				f.queueMove(u)
			}
		}
	}
	f.moves += int64(4 * len(f.g.nets[e]))
}

// grow flips vertices from side 1 to side 0 until side 0 has about half of the weight. It begins with seed and goes on with the vertex of
// the largest gain that shares a net with a flipped one; if there is none, with the first vertex of side 1.
func (f *refinement) grow(seed int32) {
	for v := range f.gain {
		f.gain[v] = f.gainOf(int32(v))
	}

	total := f.weight[0] + f.weight[1]
	next := seed
	for unconnected := int32(0); 2*(f.weight[0]+f.g.weight[next]) <= total || f.weight[0] == 0; {
		f.hasMoved[next] = true
		f.flip(next)
		if f.pace.Err() != nil {
			return
		}

		next = none
		for len(f.queue) > 0 && next == none {
			if offer := f.queue.pop(); !f.hasMoved[offer.a] && -offer.score == f.gain[offer.a] {
				next = offer.a
			}
		}

		for next == none && int(unconnected) < len(f.side) { // no neighbour of a flipped vertex is left
			if !f.hasMoved[unconnected] {
				next = unconnected
			}
			unconnected++
		}

		if next == none {
			return
		}
	}
}

// pass flips every vertex at most once, the largest gain first, even if the split gets worse for a while. Then it undoes the flips after
// the best split. It reports whether the split is better than before: first by the weight above the limit, then by the cut. After the pace
// has ended it returns false.
func (f *refinement) pass() bool {
	f.queue = f.queue[:0]
	for v := range f.gain {
		f.hasMoved[v] = false
		f.gain[v] = f.gainOf(int32(v))
		f.queueMove(int32(v))
	}

	var moved []int32
	startCut, startExcess := f.cut, f.excess()
	bestCut, bestExcess, bestLength := startCut, startExcess, 0

	for len(f.queue) > 0 && f.pace.Err() == nil {
		offer := f.queue.pop()
		v := offer.a
		if f.hasMoved[v] || -offer.score != f.gain[v] || !f.mayMove(v) {
			continue
		}

		f.hasMoved[v] = true
		f.flip(v)
		moved = append(moved, v)
		if excess := f.excess(); excess < bestExcess || excess == bestExcess && f.cut < bestCut {
			bestCut, bestExcess, bestLength = f.cut, excess, len(moved)
		}
		if len(moved) > bestLength+100+len(f.side)/8 { // after so many flips without improvement there will be none
			break
		}
	}

	for i := len(moved) - 1; i >= bestLength; i-- {
		f.flip(moved[i])
	}
	return f.pace.Err() == nil && (bestExcess < startExcess || bestExcess == startExcess && bestCut < startCut)
}

// excess returns by how much the heavier side is above the limit, 0 if it is not.
func (f *refinement) excess() int64 { return max(f.weight[0]-f.maxSide, f.weight[1]-f.maxSide, 0) }

// mayMove reports whether v may be flipped. The last vertex of a side may not. Otherwise the other side must stay within the limit, or at
// least become lighter than this one was.
func (f *refinement) mayMove(v int32) bool {
	from := f.side[v]
	weight := f.g.weight[v]
	if f.weight[from] == weight {
		return false
	}
	return f.weight[1-from]+weight <= f.maxSide || f.weight[1-from]+weight < f.weight[from]
}
