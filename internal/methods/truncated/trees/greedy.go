package trees

// Greedy trees: the pair with the best score is merged next.

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"slices"
)

// rule scores a merge of nodes a and b into c. The pair with the lowest score is merged first:
//
//	log2 |c| − alpha·log2(|a| + |b|) − centre·max(distance of a, distance of b) − temperature·Gumbel
//
// |c| is the number of entries after every bundle of c is truncated to the bond. Distances are from a random root, so that pairs far from
// it are merged first. Gumbel is a random number of that distribution.
type rule struct {
	alpha       float64 // weight of the inputs, whose memory is freed
	centre      float64 // bits for a wire of distance; 0: distances do not count
	temperature float64 // bits of noise
}

// candidate is a pair that may be merged, with its score. Its noise is drawn once and is a part of the score.
type candidate struct {
	score, noise float64
	number       int // in the order of creation: among equal scores the lowest goes first
	a, b         int32
}

// candidates is a heap, the lowest score first.
type candidates []candidate

// Len implements heap.Interface.
func (q candidates) Len() int { return len(q) }

// Less implements heap.Interface. The lowest score comes first, of equal scores the one that was created first.
func (q candidates) Less(i, j int) bool {
	return q[i].score < q[j].score || q[i].score == q[j].score && q[i].number < q[j].number
}

// Swap implements heap.Interface.
func (q candidates) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push implements heap.Interface. It appends x, a candidate.
func (q *candidates) Push(x any) { *q = append(*q, x.(candidate)) }

// Pop implements heap.Interface. It removes the last candidate and returns it.
func (q *candidates) Pop() any {
	list := *q
	last := list[len(list)-1]
	*q = list[:len(list)-1]
	return last
}

// mergeGreedily merges pairs of neighbours until no wires are left. The next pair is always the one with the lowest score by rule r.
// distance is that of each node from the root, or nil if distances do not count. It calls shouldStop after each merge. It returns false if
// the answer was true or a merge failed.
func (b *builder) mergeGreedily(r rule, distance []float64, rng *rand.Rand, shouldStop func() bool) (ok bool) {
	n := b.net
	s := scorer{net: n, rule: r, bond: b.bond, distance: distance, rng: rng}
	q := s.allCandidates()
	heap.Init(&q)
	for len(q) > 0 {
		c := heap.Pop(&q).(candidate)
		if !n.nodes[c.a].isAlive || !n.nodes[c.b].isAlive { // one of them is merged already
			continue
		}
		b.moves += 100 // about the time of a candidate, in the unit of b.moves
		// Scores change as neighbours are merged. If that of the candidate is now worse than the next one, put it back into the heap.
		if score := s.score(c.a, c.b) + c.noise; score > c.score+1e-9 && len(q) > 0 && score > q[0].score { // 1e-9: more than rounding
			c.score = score
			heap.Push(&q, c)
			continue
		}
		id, isMerged := b.join(c.a, c.b)
		if !isMerged || shouldStop() {
			return false
		}
		if distance != nil {
			s.distance = append(s.distance, min(s.distance[c.a], s.distance[c.b])) // of the new node
		}
		for _, y := range slices.Clone(n.neighbours(id)) {
			heap.Push(&q, s.newCandidate(id, y.to))
			b.moves += 200 // about the time of a new candidate
		}
	}
	return true
}

// scorer makes the candidates of one greedy tree.
type scorer struct {
	net      *network
	rule     rule
	bond     int
	distance []float64 // by node: from the root; nil: distances do not count
	rng      *rand.Rand
	created  int // number of candidates so far
}

// allCandidates returns all pairs of neighbours, in the sequence of their nodes.
func (s *scorer) allCandidates() candidates {
	var q candidates
	for x := range s.net.nodes {
		if s.net.nodes[x].isAlive {
			for _, y := range slices.Clone(s.net.neighbours(int32(x))) { // a copy, since scores change the list of neighbours
				if int(y.to) > x {
					q = append(q, s.newCandidate(int32(x), y.to))
				}
			}
		}
	}
	return q
}

// newCandidate returns the candidate of merging x and y. If the rule has a temperature, it draws the noise of the score.
func (s *scorer) newCandidate(x, y int32) candidate {
	s.created++
	noise := 0.0
	if s.rule.temperature > 0 {
		// Minus Gumbel's distribution: the lowest score is a draw with probabilities in proportion to 2^{−score/temperature}.
		noise = s.rule.temperature * math.Log2(-math.Log(s.rng.Float64()+1e-300)+1e-300) // 1e-300: no logarithm of 0
	}
	return candidate{s.score(x, y) + noise, noise, s.created, x, y}
}

// score returns the score of merging a and b, without noise.
func (s *scorer) score(a, b int32) float64 {
	size := s.net.mergedSize(a, b, float64(s.bond))
	score := math.Log2(size) - s.rule.alpha*math.Log2(s.net.storedSize(a)+s.net.storedSize(b))
	if s.distance != nil {
		score -= s.rule.centre * max(s.distance[a], s.distance[b])
	}
	return score
}

// storedSize returns the number of entries of a node. A copy tensor that no merge has touched is not stored, and counts as a vector.
func (n *network) storedSize(a int32) float64 {
	if nd := &n.nodes[a]; !nd.isCopy {
		return nd.size
	}
	return float64(n.wires[n.nodes[a].legs[0]].dim)
}

// mergedSize returns the number of entries of the result of merging a and b, after every bundle of the result is truncated to the bond. A
// bundle is all wires between two nodes.
func (n *network) mergedSize(a, b int32, bond float64) float64 {
	// Multiply the dimensions of the wires that lead to each neighbour of a or b.
	n.beginWalk()
	n.bundleList = n.bundleList[:0]
	for k, i := range [2]int32{a, b} {
		for _, w := range n.nodes[i].legs {
			neighbour := n.wires[w].other(i)
			if neighbour == a || neighbour == b {
				continue
			}
			d := float64(n.wires[w].dim)
			if !n.isMet(neighbour) {
				n.markMet(neighbour)
				n.position[neighbour] = int32(len(n.bundleList))
				n.bundleList = append(n.bundleList, bundle{to: neighbour, dim: d})
				continue
			}
			isBetween := n.nodes[neighbour].isCopy && k == 1 // a copy tensor with wires to a and b
			if isBetween {                                   // the merge takes it in, and its third wire has the dimension that is counted
				continue
			}
			n.bundleList[n.position[neighbour]].dim *= d
		}
	}

	size := 1.0
	for _, bundle := range n.bundleList {
		size *= min(bundle.dim, bond)
	}
	return size
}
