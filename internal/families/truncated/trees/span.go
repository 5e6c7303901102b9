package trees

// Spanning trees, contracted from the outside in.

import (
	"container/heap"
	"math/rand/v2"
)

// span grows a tree over what is left of m's network from a node and merges every node into the one
// it hangs on, the last reached first. Nodes that are near are reached first, among them those with
// the most wires into the tree, but for noise. It uses the network up. It returns false when it was
// stopped.
func span(
	m *meter, merges [][2]int, root int32, rng *rand.Rand, stop func() bool,
) ([][2]int, bool) {
	n := m.n
	on := make([]int32, len(n.node)) // by node: what it hangs on, −1 the root, −2 nothing yet
	for i := range on {
		on[i] = -2
	}

	distance := make([]float64, len(n.node))
	var sequence []int32
	var q offers
	count := 0

	reach := func(a int32) {
		sequence = append(sequence, a)
		m.moves += int64(200 * len(n.node[a].legs))
		near := n.neighbours(a)
		rng.Shuffle(len(near), func(i, j int) { near[i], near[j] = near[j], near[i] })
		for _, b := range near {
			if on[b.to] == -2 {
				count++
				heap.Push(&q, offer{score: distance[a] + 1, count: count, a: a, b: b.to})
			}
		}
	}

	for start := -1; start < len(n.node); start++ {
		at := root
		if start >= 0 {
			at = int32(start)
		}
		if !n.node[at].alive || on[at] != -2 {
			continue
		}
		on[at] = -1
		reach(at)
		for len(q) > 0 {
			o := heap.Pop(&q).(offer)
			if on[o.b] == -2 {
				on[o.b] = o.a
				distance[o.b] = distance[o.a] + 1
				reach(o.b)
			}
		}
	}

	became := make(map[int32]int32) // what a node has been merged into
	now := func(i int32) int32 {
		for !n.node[i].alive {
			i = became[i]
		}
		return i
	}

	for k := len(sequence) - 1; k >= 0; k-- {
		i := sequence[k]
		if on[i] < 0 {
			continue
		}
		a, b := now(on[i]), now(i)
		if a == b {
			continue
		}

		id, err := m.merge(a, b, nil)
		if err != nil || stop() {
			return nil, false
		}
		for _, i := range n.members {
			became[i] = id
		}
		merges = append(merges, [2]int{int(a), int(b)})
	}
	return merges, true
}
