package contractionorder

// Random greedy trees: the pair with the lowest score is merged next,
// with seeded noise on the scores.

import (
	"math/rand/v2"
)

// greedyRule scores pairs of tables. The pair with the lowest score is merged first. The score of a pair (a, b) with result c, where |·| is
// the size of a table, is
//
//	if isLinear   sign(x) · log2(|x| + 1),   x = |c| − α (|a| + |b|)
//	otherwise     log2 |c| − α log2 (|a| + |b|)
//
// less temperature times a Gumbel variable. This noise has the effect that a pair is drawn with a probability ∝ 2^(−score/temperature).
type greedyRule struct {
	isLinear    bool
	alpha       logs // in units of 2^−16
	temperature logs // in units of 2^−16 bits
}

// greedyTree merges tables of n by a rule as long as two tables share an index, and returns the pool. It compares a table only with the
// first maxPerIndex tables of each of its indices. It stops early if the search ends. Time: O(Σ over merges of the tensors that share an
// index with the result), times log for the queue.
func greedyTree(n *network, rule greedyRule, rng *rand.PCG) *pool {
	g := &greedyRun{pool: newPool(n), rule: rule, rng: rng}
	tables := 2 * len(n.edges)
	g.commonSize = make([]logs, tables)
	g.closedSize = make([]logs, tables)
	g.stamp = make([]int32, tables)

	for t := range n.edges {
		if n.hasEnded() {
			break
		}
		g.offerPairs(int32(t), true)
	}

	for len(g.queue) > 0 && !n.hasEnded() {
		best := g.queue.pop()
		if g.isAlive[best.a] && g.isAlive[best.b] {
			g.offerPairs(g.merge(best.a, best.b), false)
		}
	}
	return g.pool
}

// maxPerIndex is the number of tables of one index that are offered as partners.
const maxPerIndex = 64

// greedyRun is the state of greedyTree.
type greedyRun struct {
	*pool
	rule  greedyRule
	rng   *rand.PCG
	queue pairQueue
	// By neighbour of the table whose pairs are offered: log2 of the size of their common indices, and of those common indices that no third
	// table has, so that their merge sums them.
	commonSize, closedSize []logs
	stamp                  []int32 // stamp[o] == t+1: table o is in neighbours of table t
	neighbours             []int32 // of the table whose pairs are offered
	offers                 uint64  // the number of pairs offered so far
}

// offerPairs puts the pairs of a table with its neighbours into the queue, with their scores. If laterOnly, it takes only neighbours with a
// larger number, so that a loop over all tables offers each pair once.
func (g *greedyRun) offerPairs(table int32, laterOnly bool) {
	g.neighbours = g.neighbours[:0]
	for _, v := range g.scope[table] {
		tables := g.tablesWith[v]
		tables = tables[:min(len(tables), maxPerIndex)]
		weight, endsHere := g.n.log2DimOf(v), len(g.tablesWith[v]) == 2
		for _, other := range tables {
			if other == table || laterOnly && other < table {
				continue
			}
			if g.stamp[other] != table+1 {
				g.stamp[other], g.commonSize[other], g.closedSize[other] = table+1, 0, 0
				g.neighbours = append(g.neighbours, other)
			}
			g.commonSize[other] += weight
			if endsHere {
				g.closedSize[other] += weight
			}
		}
		g.moves += int64(4 * len(tables))
	}

	for _, other := range g.neighbours {
		resultSize := g.size[table] + g.size[other] - g.commonSize[other] - g.closedSize[other]
		g.offers++
		g.queue.push(pair{score: g.score(resultSize, g.size[table], g.size[other]), offer: g.offers, a: other, b: table})
	}
	g.moves += int64(100 * len(g.neighbours)) // most of it for the queue
}

// score returns the score of a pair by the rule. result, a and b are log2 of the sizes of the result and of the two tables.
func (g *greedyRun) score(result, a, b logs) logs {
	var score logs
	if g.rule.isLinear {
		difference := pow2(result) - float64(float64(g.rule.alpha)/float64(oneBit)*(pow2(a)+pow2(b)))
		if score = log2Float(max(difference, -difference, 0) + 1); difference < 0 {
			score = -score
		}
	} else {
		score = result - g.rule.alpha*logAdd(a, b)>>fraction
	}
	if g.rule.temperature > 0 {
		score -= g.rule.temperature * gumbel(g.rng.Uint64()) >> fraction
	}
	return score
}

// exponential returns −log2 u for a uniform variable u in (0, 1) that is made of 64 random bits: an exponential variable in bits.
func exponential(random uint64) logs { return 64<<fraction - log2Quick(random|1) }

// gumbel returns −log2(−log2 u) for a uniform variable u: a Gumbel variable in bits, up to a constant.
func gumbel(random uint64) logs {
	return fraction<<fraction - log2Quick(uint64(exponential(random))|1)
}

// pair is a possible merge of tables a and b. A refinement has vertices in place of pairs of tables: then a is the vertex.
type pair struct {
	score logs
	offer uint64 // the number of the offer: of pairs with one score the oldest is first
	a, b  int32
}

// before reports whether p comes out of the queue before other.
func (p pair) before(other pair) bool {
	return p.score < other.score || p.score == other.score && p.offer < other.offer
}

// pairQueue is a binary min-heap. It does not use container/heap, which would allocate every element. It is no queue of keys, since these
// are half as long again: with them greedy trees and bisections take 15 % longer.
type pairQueue []pair

// push adds a pair.
func (q *pairQueue) push(p pair) {
	*q = append(*q, p)
	heap := *q
	i := len(heap) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !p.before(heap[parent]) {
			break
		}
		heap[i] = heap[parent]
		i = parent
	}
	heap[i] = p
}

// pop removes the first pair and returns it. The queue must not be empty.
func (q *pairQueue) pop() pair {
	heap := *q
	top := heap[0]
	last := heap[len(heap)-1]
	heap = heap[:len(heap)-1]
	*q = heap
	for i := 0; len(heap) > 0; {
		child := 2*i + 1
		if child+1 < len(heap) && heap[child+1].before(heap[child]) {
			child++
		}
		if child >= len(heap) || !heap[child].before(last) {
			heap[i] = last
			break
		}
		heap[i] = heap[child]
		i = child
	}
	return top
}
