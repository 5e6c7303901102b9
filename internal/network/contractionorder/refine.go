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
	hypergraph *hypergraph
	side       []uint8     // by vertex: 0 or 1
	maxSide    int64       // limit of the weight of a side
	weight     [2]int64    // by side
	countOn    [2][]int32  // by side, by net: the number of the net's vertices on that side
	gain       []log2Fixed // by vertex: by how much its flip lowers cut
	hasMoved   []bool      // by vertex: it was flipped in this pass, or while a side grows
	queue      pairQueue   // of vertices, with the score −gain
	queued     uint64      // the number of entries that were queued so far
	cut        log2Fixed   // the cost of the nets with vertices on both sides
	movesSpent int64
	pace       *pace.Pace
}

// newRefinement returns a refinement of a split. side gives the side of every vertex; the refinement will change it in place. A side may
// weigh at most maxSide. Gains are not yet computed. cut is the cost of the nets with vertices on both sides.
func newRefinement(g *hypergraph, side []uint8, maxSide int64, pace *pace.Pace) *refinement {
	f := &refinement{
		hypergraph: g,
		side:       side,
		maxSide:    maxSide,
		pace:       pace,
		gain:       make([]log2Fixed, len(side)),
		hasMoved:   make([]bool, len(side)),
	}

	f.countOn = [2][]int32{make([]int32, len(g.nets)), make([]int32, len(g.nets))}
	for v, s := range side {
		f.weight[s] += g.weight[v]
	}

	// Count the vertices of every net on each side, and add up the cost of the nets that have some on both.
	for net, vertices := range g.nets {
		for _, v := range vertices {
			f.countOn[side[v]][net]++
		}
		isCut := f.countOn[0][net] > 0 && f.countOn[1][net] > 0
		if isCut {
			f.cut += g.cost[net]
		}
		f.movesSpent += int64(4 * len(vertices)) // 4 elementary operations for each vertex
	}
	return f
}

// gainOf returns the gain of v, the cost that is saved if v moves to the other side: the cost of the nets that are no longer cut then,
// less the cost of the nets that are cut only then. countOn[s][net] is the number of the net's vertices on side s.
func (f *refinement) gainOf(v int32) log2Fixed {
	side := f.side[v]
	var gain log2Fixed
	for _, net := range f.hypergraph.netsOf[v] {
		// A net whose only vertex is v meets both conditions, and its costs cancel.
		if isAloneOnSide := f.countOn[side][net] == 1; isAloneOnSide {
			gain += f.hypergraph.cost[net]
		}
		if isUncut := f.countOn[1-side][net] == 0; isUncut {
			gain -= f.hypergraph.cost[net]
		}
	}
	f.movesSpent += int64(4 * len(f.hypergraph.netsOf[v])) // 4 elementary operations for each net
	return gain
}

// queueMove adds v to the queue with its present gain: the largest gain, which is the lowest score, comes out first.
func (f *refinement) queueMove(v int32) {
	f.queued++
	f.movesSpent += 60 // most of it for taking it out again
	f.queue.push(pair{score: -f.gain[v], number: f.queued, a: v})
}

// flip moves v to the other side and updates the cost of the cut, the weights of the sides and the gains of v and of vertices that share a
// net with it.
func (f *refinement) flip(v int32) {
	oldSide := f.side[v]
	newSide := 1 - oldSide
	f.cut -= f.gain[v] // a gain is what the flip saves
	f.side[v] = newSide
	f.weight[oldSide] -= f.hypergraph.weight[v]
	f.weight[newSide] += f.hypergraph.weight[v]

	for _, net := range f.hypergraph.netsOf[v] {
		f.countOn[oldSide][net]--
		f.countOn[newSide][net]++
		f.updateGains(net, v, oldSide)
	}

	f.gain[v] = f.gainOf(v)
	f.pace.Over(int64(16 + 4*len(f.hypergraph.netsOf[v]))) // roughly the operations for v and its nets; the caller reads pace.Err
}

// updateGains changes the gains of the other vertices of a net after v has left side oldSide, and queues those that were not flipped in
// this pass with their new gains. The gain of u is the cost that its own flip would save. countOn, the number of the net's vertices on each
// side, already counts v on its new side. Gains change only if at most one other vertex is on the old side or on the new side. In each case
// below, the share of the net in the gain of u is given before and after the flip of v.
func (f *refinement) updateGains(net, v int32, oldSide uint8) {
	cost := f.hypergraph.cost[net]
	othersOnOldSide := f.countOn[oldSide][net]
	othersOnNewSide := f.countOn[1-oldSide][net] - 1 // without v
	if othersOnOldSide > 1 && othersOnNewSide > 1 {
		return
	}
	for _, u := range f.hypergraph.nets[net] {
		if u == v {
			continue
		}
		var change log2Fixed
		if f.side[u] == oldSide {
			if othersOnNewSide == 0 { // −cost → 0: the net was uncut, and a flip of u would have cut it; now v has cut it
				change += cost
			}
			if othersOnOldSide == 1 { // 0 → +cost: u is the last vertex on its side, so its flip would end the cut
				change += cost
			}
		} else {
			if othersOnNewSide == 1 { // +cost → 0: u was the only vertex on its side; now v is there, too
				change -= cost
			}
			if othersOnOldSide == 0 { // 0 → −cost: the net is uncut now, and the flip of u would cut it
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
	f.movesSpent += int64(4 * len(f.hypergraph.nets[net])) // 4 elementary operations for each vertex
}

// grow flips vertices from side 1, where all are at first, to side 0 until one more would give side 0 more than half of the weight. It
// flips seed even if that is too heavy. Then it always takes the vertex of the largest gain among those that share a net with a flipped
// vertex; if there is none, the first vertex that was not flipped. The gain of a vertex is the cost of the cut that its flip would save.
func (f *refinement) grow(seed int32) {
	for v := range f.gain {
		f.gain[v] = f.gainOf(int32(v))
	}

	total := f.weight[0] + f.weight[1]
	firstRest := int32(0) // all vertices with a smaller number were flipped
	for next := seed; next != none; {
		isTooHeavy := 2*(f.weight[0]+f.hypergraph.weight[next]) > total
		if isTooHeavy && f.weight[0] > 0 { // the seed is flipped anyhow
			return
		}
		f.hasMoved[next] = true
		f.flip(next) // changes f.weight, and queues the vertices whose gains it changes
		if f.pace.Err() != nil {
			return
		}

		next = f.popQueued()
		for next == none && int(firstRest) < len(f.side) {
			if !f.hasMoved[firstRest] {
				next = firstRest
			}
			firstRest++
		}
	}
}

// popQueued removes entries from the queue until one is current: its vertex was not flipped, and still has the gain with which it was
// queued. It returns that vertex, which has the largest gain of the queue, or none. Vertex entry.a was queued with the gain −entry.score.
func (f *refinement) popQueued() int32 {
	for len(f.queue) > 0 {
		entry := f.queue.pop()
		isCurrent := -entry.score == f.gain[entry.a]
		if !f.hasMoved[entry.a] && isCurrent {
			return entry.a
		}
	}
	return none
}

// improve makes one pass. It flips every vertex to the other side at most once, the largest gain first, even if the split gets worse for a
// while; the gain of a vertex is the cost of the cut that its flip saves. Then it undoes the flips after the best split. improve reports
// whether the split is better than before. After the context has ended it returns false.
func (f *refinement) improve() bool {
	f.queue = f.queue[:0]
	for v := range f.gain {
		f.hasMoved[v] = false
		f.gain[v] = f.gainOf(int32(v))
		f.queueMove(int32(v))
	}

	var moved []int32 // the flipped vertices in sequence
	start := f.quality()
	best, bestLength := start, 0 // of the best split, after bestLength flips
	for len(f.queue) > 0 && f.pace.Err() == nil {
		entry := f.queue.pop()
		v := entry.a
		isOutdated := -entry.score != f.gain[v]           // the queue has a newer entry of v
		if f.hasMoved[v] || isOutdated || !f.mayMove(v) { // mayMove: the flip makes no side too heavy, and leaves none empty
			continue
		}

		f.hasMoved[v] = true
		f.flip(v) // it updates f.cut and the weights, and queues the vertices whose gains it changes
		moved = append(moved, v)
		if quality := f.quality(); quality.isBetterThan(best) {
			best, bestLength = quality, len(moved)
		}
		if len(moved) > bestLength+100+len(f.side)/8 { // chosen; an improvement after so many flips without one is rare
			break
		}
	}

	// Undo the flips after the best split.
	for i := len(moved) - 1; i >= bestLength; i-- {
		f.flip(moved[i])
	}
	return f.pace.Err() == nil && best.isBetterThan(start)
}

// splitQuality tells how good a split is: the weight of a side above its limit, and the cost of the nets with vertices on both sides.
type splitQuality struct {
	excess int64
	cut    log2Fixed
}

// isBetterThan reports whether q has less excess than p, or the same excess and a lower cost of cut nets.
func (q splitQuality) isBetterThan(p splitQuality) bool {
	return q.excess < p.excess || q.excess == p.excess && q.cut < p.cut
}

// quality returns the quality of the present split.
func (f *refinement) quality() splitQuality { return splitQuality{excess: f.excess(), cut: f.cut} }

// excess returns the weight by which the heavier side is above the limit, or 0 if it is not.
func (f *refinement) excess() int64 { return max(f.weight[0]-f.maxSide, f.weight[1]-f.maxSide, 0) }

// mayMove reports whether v may move to the other side. The last vertex of a side may not. The other side must stay within the limit, or at
// least become lighter than the side of v was.
func (f *refinement) mayMove(v int32) bool {
	oldSide := f.side[v]
	if isLastOnSide := f.weight[oldSide] == f.hypergraph.weight[v]; isLastOnSide {
		return false
	}
	newWeight := f.weight[1-oldSide] + f.hypergraph.weight[v] // of the other side
	return newWeight <= f.maxSide || newWeight < f.weight[oldSide]
}
