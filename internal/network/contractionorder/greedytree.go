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
	alpha       log2Fixed // in units of 2^−16
	temperature log2Fixed // in units of 2^−16 bits
}

// greedyTree merges the tensors of n pair by pair until no two tables share an index, and returns the pool of the tables that remain. Each
// time it merges the pair with the lowest score by the rule. A table is paired only with the first maxPerIndex tables of each of its
// indices. It stops early if the search ends. Time: O(Σ over merges of the tensors that share an index with the result), times log for the
// queue.
func greedyTree(n *network, rule greedyRule, rng *rand.PCG) *pool {
	g := &greedyRun{pool: newPool(n), rule: rule, rng: rng}
	tables := 2 * len(n.edges) // the tensors, and at most as many results of merges
	g.commonSize = make([]log2Fixed, tables)
	g.closedSize = make([]log2Fixed, tables)
	g.stamp = make([]int32, tables)

	// Queue every pair of tensors once, from the one with the smaller number.
	for t := range n.edges {
		if n.hasEnded() {
			break
		}
		firstPartner := int32(t) // pairs with earlier tensors are queued already
		g.queuePairs(int32(t), firstPartner)
	}

	for len(g.queue) > 0 && !n.hasEnded() {
		best := g.queue.pop()
		if g.isAlive[best.a] && g.isAlive[best.b] { // else one of them was merged since
			const anyPartner = 0
			g.queuePairs(g.merge(best.a, best.b), anyPartner)
		}
	}
	return g.pool
}

// maxPerIndex is the number of tables of one index that a table is paired with.
const maxPerIndex = 64

// greedyRun is the state of greedyTree.
type greedyRun struct {
	*pool
	rule  greedyRule
	rng   *rand.PCG
	queue pairQueue
	// By neighbour of the table whose pairs are queued: log2 of the size of their common indices, and of those common indices that no third
	// table has, so that their merge sums them.
	commonSize, closedSize []log2Fixed
	stamp                  []int32 // by neighbour: one more than the table that it was last a neighbour of; 0 if of none
	neighbours             []int32 // of the table whose pairs are queued
	pairCount              uint64  // the number of pairs queued so far
}

// queuePairs puts the pairs of a table with its neighbours, tables that share an index with it, into the queue, with their scores. It
// leaves out neighbours with a number below firstPartner, and looks only at the first maxPerIndex tables of each index. All sizes are log2.
func (g *greedyRun) queuePairs(table, firstPartner int32) {
	g.listNeighbours(table, firstPartner)
	// The result of a merge has the indices of both tables, each once, without those that it sums out.
	for _, neighbour := range g.neighbours {
		resultSize := g.size[table] + g.size[neighbour] - g.commonSize[neighbour] - g.closedSize[neighbour]
		g.pairCount++
		score := g.score(resultSize, g.size[table], g.size[neighbour])
		g.queue.push(pair{score: score, number: g.pairCount, a: neighbour, b: table})
	}
	g.movesSpent += int64(100 * len(g.neighbours)) // 100 elementary operations for each pair, most of them for the queue
}

// listNeighbours sets neighbours to the tables that share an index with a table and have a number of firstPartner or more. It looks only
// at the first maxPerIndex tables of each index. For every neighbour it sets two sums of log2 dimensions: commonSize is over the indices
// that the neighbour shares with the table, closedSize is over those of them that no third table has, so that a merge sums them out. stamp
// of a neighbour becomes table+1, since 0 means that it was never listed. It tells whether the neighbour is in the list already, so
// listNeighbours must be called only once for each table.
func (g *greedyRun) listNeighbours(table, firstPartner int32) {
	g.neighbours = g.neighbours[:0]
	for _, v := range g.scope[table] {
		tables := g.tablesWith[v]
		tables = tables[:min(len(tables), maxPerIndex)]
		log2Dim := g.network.log2DimOf(v)
		isClosed := len(g.tablesWith[v]) == 2
		for _, neighbour := range tables {
			if neighbour == table || neighbour < firstPartner {
				continue
			}
			isNew := g.stamp[neighbour] != table+1 // else it shares an earlier index, too
			if isNew {
				g.stamp[neighbour], g.commonSize[neighbour], g.closedSize[neighbour] = table+1, 0, 0
				g.neighbours = append(g.neighbours, neighbour)
			}
			g.commonSize[neighbour] += log2Dim
			if isClosed {
				g.closedSize[neighbour] += log2Dim
			}
		}
		g.movesSpent += int64(4 * len(tables)) // 4 elementary operations for each table
	}
}

// score returns the score of a pair of tables; the pair of the lowest score is merged. The score is sign(x) · log2(|x| + 1) with x = |c| −
// α (|a| + |b|) if the rule is linear, otherwise log2 |c| − α log2 (|a| + |b|). result, a and b are log2 of |c|, |a| and |b|, the numbers
// of entries of the result and of the two tables. If the rule has a temperature, random noise times the temperature is subtracted. A
// product of two fixed-point numbers has twice their binary digits after the point; a shift by fractionBits makes it one again.
func (g *greedyRun) score(result, a, b log2Fixed) log2Fixed {
	var score log2Fixed
	if g.rule.isLinear {
		difference := pow2(result) - float64(float64(g.rule.alpha)/float64(oneBit)*(pow2(a)+pow2(b)))
		score = log2Float(max(difference, -difference, 0) + 1)
		if difference < 0 {
			score = -score
		}
	} else {
		score = result - g.rule.alpha*logAdd(a, b)>>fractionBits
	}
	if g.rule.temperature > 0 {
		score -= g.rule.temperature * gumbel(g.rng.Uint64()) >> fractionBits
	}
	return score
}

// exponential returns −log2 u for the uniform variable u = random / 2^64, made odd so that it is not 0: an exponential variable in bits.
// The result is in fixed point with fractionBits binary digits after the point.
func exponential(random uint64) log2Fixed { return 64<<fractionBits - log2Quick(random|1) }

// gumbel returns −log2(−log2 u) for the uniform variable u = random / 2^64: a Gumbel variable in bits, up to a constant. The exponential
// variable −log2 u is an integer multiple of 2^−fractionBits, so its log2 is that of the integer less fractionBits. The result is in fixed
// point, too.
func gumbel(random uint64) log2Fixed {
	return fractionBits<<fractionBits - log2Quick(uint64(exponential(random))|1)
}

// pair is a possible merge of tables a and b. A refinement queues vertices in place of pairs of tables: then a is the vertex.
type pair struct {
	score  log2Fixed
	number uint64 // pairs are numbered as they are queued: of those with one score the oldest is first
	a, b   int32
}

// precedes reports whether p comes out of the queue before other: by a lower score, or if it is older with the same score.
func (p pair) precedes(other pair) bool {
	return p.score < other.score || p.score == other.score && p.number < other.number
}

// pairQueue is a binary min-heap. It does not use container/heap, which would allocate every element. It is no queue of keys, since these
// are half as long again: with them greedy trees and bisections take 15 % longer.
type pairQueue []pair

// push adds a pair. It moves later parents down, from the end of the heap upwards, until p fits.
func (q *pairQueue) push(p pair) {
	*q = append(*q, p)
	heap := *q
	i := len(heap) - 1 // where p is to go
	for i > 0 {
		parent := (i - 1) / 2
		if !p.precedes(heap[parent]) {
			break
		}
		heap[i] = heap[parent]
		i = parent
	}
	heap[i] = p
}

// pop removes the first pair of the queue, a binary heap, and returns it. The queue must not be empty. The last pair of the heap fills the
// gap: children move up, from the top downwards, until it fits.
func (q *pairQueue) pop() pair {
	heap := *q
	top := heap[0]
	last := heap[len(heap)-1]
	heap = heap[:len(heap)-1]
	*q = heap
	for i := 0; len(heap) > 0; { // i is the position of the gap
		child := 2*i + 1
		if child+1 < len(heap) && heap[child+1].precedes(heap[child]) {
			child++
		}
		if child >= len(heap) || !heap[child].precedes(last) {
			heap[i] = last
			break
		}
		heap[i] = heap[child]
		i = child
	}
	return top
}
