package contractionorder

// Reduction: merges that a good tree makes anyway, made before the search.

// maxPartners is the limit of the tables with which one table is compared.
const maxPartners = 256

// reduce merges tables as long as no table gets larger:
//
//   - a tensor whose scope is inside another's, with that one;
//   - the two tensors of an index that only they have, if the result is no larger than the
//     larger of them.
//
// Chains, trees, and tensors that share indices with only one other tensor disappear so. The search begins with the live tables of the pool
// that it returns. Time: near linear for bounded degrees.
func reduce(n *network) *pool {
	p := newPool(n)
	queue := make([]int32, 0, 2*len(n.edges))
	for t := range n.edges {
		queue = append(queue, int32(t))
	}

	for len(queue) > 0 {
		t := queue[0]
		queue = queue[1:]
		if !p.isAlive[t] {
			continue
		}
		if o := p.reductionPartner(t); o != none {
			c := p.merge(o, t)
			queue = append(append(queue, c), p.neighbours(c)...)
		}
	}
	return p
}

// reductionPartner returns a table with which t is merged by a rule of reduce, or none.
func (p *pool) reductionPartner(t int32) int32 {
	rarest := none // the index of t that the fewest tables have
	for _, v := range p.scope[t] {
		tables := p.tablesWith[v]
		if rarest == none || len(tables) < len(p.tablesWith[rarest]) {
			rarest = v
		}
		if len(tables) != 2 {
			continue
		}
		other := tables[0] + tables[1] - t // of the two tables, the one that is not t
		if p.resultSize(t, other) <= max(p.size[t], p.size[other]) {
			return other
		}
	}

	// A table whose scope contains that of t has the rarest index, too.
	if rarest == none {
		return none
	}
	tables := p.tablesWith[rarest]
	for _, other := range tables[:min(len(tables), maxPartners)] {
		if other != t && p.unionSize(t, other) == p.size[other] {
			return other
		}
	}
	return none
}

// resultSize returns log2 of the size of the table that merge(a, b) would make.
func (p *pool) resultSize(a, b int32) logs {
	size := p.unionSize(a, b)
	restA, restB := p.scope[a], p.scope[b]
	for len(restA) > 0 && len(restB) > 0 {
		switch v, u := restA[0], restB[0]; {
		case v < u:
			restA = restA[1:]
		case u < v:
			restB = restB[1:]
		default:
			if len(p.tablesWith[v]) == 2 {
				size -= p.n.log2DimOf(v)
			}
			restA, restB = restA[1:], restB[1:]
		}
	}
	return size
}

// neighbours lists tables that share an index with t, some of them twice: the first few of each index, and not many more than maxPartners
// in all.
func (p *pool) neighbours(t int32) []int32 {
	var neighbours []int32
	for _, v := range p.scope[t] {
		tables := p.tablesWith[v]
		for _, other := range tables[:min(len(tables), maxPartners/8)] {
			if other != t {
				neighbours = append(neighbours, other)
			}
		}
		if len(neighbours) > maxPartners {
			break
		}
	}
	p.moves += int64(len(neighbours))
	return neighbours
}

// remainingNetwork returns the network of the live tables, and by its tensor the number of the table in the pool. dims are those of the
// hypergraph.
func (p *pool) remainingNetwork(dims []int) (*network, []int32) {
	remaining := p.liveTables()
	edges := make([][]int, len(remaining))
	for i, t := range remaining {
		for _, v := range p.scope[t] {
			edges[i] = append(edges[i], p.n.indexOf[v])
		}
	}
	return newNetwork(dims, edges, func(int) bool { return false }), remaining
}

// expand returns a tree over the whole network: the merges of the pool, then merges, which are a tree over the remaining tables,
// renumbered.
func (p *pool) expand(remaining []int32, merges [][2]int) [][2]int {
	all := make([][2]int, 0, len(p.merges)+len(merges))
	all = append(all, p.merges...)
	firstNew := len(p.n.edges) + len(p.merges)
	number := func(t int) int {
		if t < len(remaining) {
			return int(remaining[t])
		}
		return firstNew + t - len(remaining)
	}
	for _, m := range merges {
		all = append(all, [2]int{number(m[0]), number(m[1])})
	}
	return all
}
