package trees

// Greedy trees: the pair with the best score is merged next.

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"slices"
)

// rule scores a merge of a and b into c, with every bundle counted as at most the bond; the lowest is merged first:
//
//	log2 |c| − alpha·log2(|a| + |b|) + centre·(distance from the middle) − temperature·Gumbel
type rule struct {
	alpha       float64 // weight of the inputs, which are freed
	centre      float64 // bits a wire of distance; 0: distances do not count
	temperature float64 // bits of noise
}

// offer is a pair with its score; noise is drawn once.
type offer struct {
	score, noise float64
	count        int // of offers: older first among equals
	a, b         int32
}

// offers is a heap, the best offer first.
type offers []offer

func (q offers) Len() int { return len(q) }
func (q offers) Less(i, j int) bool {
	return q[i].score < q[j].score || q[i].score == q[j].score && q[i].count < q[j].count
}
func (q offers) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *offers) Push(x any)   { *q = append(*q, x.(offer)) }
func (q *offers) Pop() any {
	old := *q
	x := old[len(old)-1]
	*q = old[:len(old)-1]
	return x
}

// greedy merges the rest of the network. It returns false when it was stopped.
func (b *builder) greedy(r rule, depth []float64, rng *rand.Rand, stop func() bool) bool {
	n := b.n
	var q offers
	count := 0
	offered := func(x, y int32) offer {
		count++
		noise := 0.0
		if r.temperature > 0 {
			noise = r.temperature * math.Log2(-math.Log(rng.Float64()+1e-300)+1e-300)
		}
		return offer{n.score(x, y, b.bond, r, depth) + noise, noise, count, x, y}
	}
	for x := range n.node {
		if n.node[x].alive {
			for _, y := range slices.Clone(n.neighbours(int32(x))) {
				if int(y.to) > x {
					q = append(q, offered(int32(x), y.to))
				}
			}
		}
	}
	heap.Init(&q)
	for len(q) > 0 {
		o := heap.Pop(&q).(offer)
		if !n.node[o.a].alive || !n.node[o.b].alive {
			continue
		}
		b.moves += 100
		// Scores change as neighbours are merged: an offer that has become worse waits for its turn.
		if s := n.score(o.a, o.b, b.bond, r, depth) + o.noise; s > o.score+1e-9 && len(q) > 0 && s > q[0].score {
			o.score = s
			heap.Push(&q, o)
			continue
		}
		id, ok := b.join(o.a, o.b)
		if !ok || stop() {
			return false
		}
		if depth != nil {
			depth = append(depth, min(depth[o.a], depth[o.b]))
		}
		for _, y := range slices.Clone(n.neighbours(id)) {
			heap.Push(&q, offered(id, y.to))
			b.moves += 200
		}
	}
	return true
}

// score estimates a merge; see rule.
func (n *network) score(a, b int32, bond int, r rule, depth []float64) float64 {
	out := n.estimate(a, b, float64(bond))
	s := math.Log2(out) - r.alpha*math.Log2(n.stored(a)+n.stored(b))
	if depth != nil {
		s -= r.centre * max(depth[a], depth[b])
	}
	return s
}

// stored is the size of a node; a copy tensor that no merge has touched is counted as a vector.
func (n *network) stored(a int32) float64 {
	if nd := &n.node[a]; !nd.copy {
		return nd.size
	}
	return float64(n.wire[n.node[a].legs[0]].dim)
}

// estimate is the size of the result of merging a and b with every bundle at most bond.
func (n *network) estimate(a, b int32, bond float64) float64 {
	n.begin()
	n.bundles = n.bundles[:0]
	for k, i := range [2]int32{a, b} {
		for _, w := range n.node[i].legs {
			o := n.wire[w].other(i)
			if o == a || o == b {
				continue
			}
			d := float64(n.wire[w].dim)
			if n.stamp[o] != n.counter {
				n.stamp[o] = n.counter
				n.count[o] = int32(len(n.bundles))
				n.bundles = append(n.bundles, bundle{to: o, dim: d})
				continue
			}
			if n.node[o].copy && k == 1 { // two of its three wires: one is left
				continue
			}
			n.bundles[n.count[o]].dim *= d
		}
	}
	out := 1.0
	for _, x := range n.bundles {
		out *= min(x.dim, bond)
	}
	return out
}
