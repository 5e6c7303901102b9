package contractionorder

// Random greedy trees: the pair with the best score is merged next,
// with seeded noise on the scores.

import (
	"math/rand/v2"
)

// greedyRule scores a pair (a, b) with result c, |·| the size of a table;
// the lowest score is merged first:
//
//	linear      |c| − α (|a| + |b|), as sign · log2
//	otherwise   log2 |c| − α log2 (|a| + |b|)
//
// from which temperature × a Gumbel variable is subtracted,
// the same as drawing a pair with probability ∝ 2^(−score/T).
type greedyRule struct {
	linear      bool
	alpha       logs // in units of 2^−16
	temperature logs // in units of 2^−16 bits
}

// greedyTree builds a tree over n. Neighbours are pairs that share an index; of an index in more
// than hub tensors the first ones only. Once the search has ended it stops where it is. Time: O(Σ
// over merges of the tensors that share an index with the result), times log for the queue.
func greedyTree(n *network, r greedyRule, rng *rand.PCG) *pool {
	g := &greedyRun{pool: newPool(n), rule: r, rng: rng}
	tables := 2 * len(n.edges)
	g.common = make([]logs, tables)
	g.closed = make([]logs, tables)
	g.stamp = make([]int32, tables)

	for t := range n.edges {
		if n.over() {
			break
		}
		g.offer(int32(t), true)
	}

	for len(g.queue) > 0 && !n.over() {
		k := g.queue.pop()
		if g.alive[k.a] && g.alive[k.b] {
			g.offer(g.merge(k.a, k.b), false)
		}
	}
	return g.pool
}

// hub is the number of tables of one index that are scored against each other.
const hub = 64

// greedyRun carries one greedy tree.
type greedyRun struct {
	*pool
	rule  greedyRule
	rng   *rand.PCG
	queue pairQueue
	// by table, against the table that is scored:
	// log2 of the indices of both, and of those that end here
	common, closed []logs
	stamp          []int32 // stamp[o] == t+1: o has been met as a neighbour of t
	near           []int32 // the neighbours of the table that is scored
	count          uint64  // of offers
}

// offer scores table t with every neighbour;
// with later tables only when they are all offered in turn.
func (g *greedyRun) offer(t int32, laterOnly bool) {
	g.near = g.near[:0]
	for _, v := range g.scope[t] {
		list := g.at[v]
		list = list[:min(len(list), hub)]
		w, last := g.n.weight(v), len(g.at[v]) == 2
		for _, o := range list {
			if o == t || laterOnly && o < t {
				continue
			}
			if g.stamp[o] != t+1 {
				g.stamp[o], g.common[o], g.closed[o] = t+1, 0, 0
				g.near = append(g.near, o)
			}
			g.common[o] += w
			if last {
				g.closed[o] += w
			}
		}
		g.moves += int64(4 * len(list))
	}

	for _, o := range g.near {
		out := g.size[t] + g.size[o] - g.common[o] - g.closed[o]
		g.count++
		g.queue.push(pair{score: g.score(out, g.size[t], g.size[o]), count: g.count, a: o, b: t})
	}
	g.moves += int64(100 * len(g.near)) // most of it for the queue
}

// score is the rule's, with its random part.
func (g *greedyRun) score(out, a, b logs) logs {
	var s logs
	if g.rule.linear {
		x := pow2(out) - float64(float64(g.rule.alpha)/float64(oneBit)*(pow2(a)+pow2(b)))
		if s = log2Float(max(x, -x, 0) + 1); x < 0 {
			s = -s
		}
	} else {
		s = out - g.rule.alpha*logAdd(a, b)>>fraction
	}
	if g.rule.temperature > 0 {
		s -= g.rule.temperature * gumbel(g.rng.Uint64()) >> fraction
	}
	return s
}

// exponential returns −log2 of a uniform variable in (0, 1) made of 64 random bits.
func exponential(random uint64) logs { return 64<<fraction - log2Quick(random|1) }

// gumbel returns −log2(−log2 u): a Gumbel variable in bits, but for a constant.
func gumbel(random uint64) logs {
	return fraction<<fraction - log2Quick(uint64(exponential(random))|1)
}

// pair is a merge on offer.
type pair struct {
	score logs
	count uint64 // of offers: older first among equals
	a, b  int32
}

func (p pair) before(o pair) bool {
	return p.score < o.score || p.score == o.score && p.count < o.count
}

// pairQueue is a binary heap. Its own code, since container/heap boxes every element, and since
// the keys of queue are half as long again: with them greedy trees and bisections take 15 % longer.
type pairQueue []pair

func (q *pairQueue) push(p pair) {
	*q = append(*q, p)
	s := *q
	i := len(s) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !p.before(s[up]) {
			break
		}
		s[i] = s[up]
		i = up
	}
	s[i] = p
}

func (q *pairQueue) pop() pair {
	s := *q
	top := s[0]
	last := s[len(s)-1]
	s = s[:len(s)-1]
	*q = s
	for i := 0; len(s) > 0; {
		c := 2*i + 1
		if c+1 < len(s) && s[c+1].before(s[c]) {
			c++
		}
		if c >= len(s) || !s[c].before(last) {
			s[i] = last
			break
		}
		s[i] = s[c]
		i = c
	}
	return top
}
