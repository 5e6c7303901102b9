package contractionorder

// Reduction: merges that a good tree makes anyway, made before the search.

// maxPartners is the limit of the tables with which one table is compared.
const maxPartners = 256

// reduce makes the merges of the tensors of n that make no table larger, and returns the pool of the tables that remain. It merges
//
//   - a table whose scope is inside another's, with that one;
//   - the two tables of an index that only they have, if the result is no larger than the
//     larger of them.
//
// Chains, trees, and tensors that share indices with only one other tensor disappear so. A search goes on with the remaining tables. Time:
// near linear for bounded degrees.
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
		if partner := p.reductionPartner(t); partner != none {
			product := p.merge(partner, t)
			// The product and its neighbours may have partners now. A table may be in the queue several times.
			queue = append(append(queue, product), p.neighbours(product)...)
		}
	}
	return p
}

// reductionPartner returns a table whose merge with t makes no table that is larger than the larger one of t and its partner, or none. A
// partner either shares an index with t that no third table has, so that the merge sums it out; or it has all indices of t. Not more than
// maxPartners tables are compared with t for the second reason.
func (p *pool) reductionPartner(t int32) int32 {
	// Look for an index of two tables.
	rarest := none // the index of t that the fewest tables have
	for _, v := range p.scope[t] {
		tables := p.tablesWith[v]
		if rarest == none || len(tables) < len(p.tablesWith[rarest]) {
			rarest = v
		}
		if len(tables) != 2 {
			continue
		}
		partner := tables[0] + tables[1] - t // of the two tables, the one that is not t
		if p.resultSize(t, partner) <= max(p.size[t], p.size[partner]) {
			return partner
		}
	}

	// Look for a table whose scope contains that of t: the union of both is not larger than its own scope. It has the rarest index, too.
	if rarest == none {
		return none
	}
	tables := p.tablesWith[rarest]
	for _, partner := range tables[:min(len(tables), maxPartners)] {
		if partner != t && p.unionSize(t, partner) == p.size[partner] {
			return partner
		}
	}
	return none
}

// resultSize returns log2 of the size of the table that a merge of a and b would make: a table over the union of their scopes without the
// indices that no third table has, since these are summed out. The scopes are sorted.
func (p *pool) resultSize(a, b int32) log2Fixed {
	size := p.unionSize(a, b)
	restA, restB := p.scope[a], p.scope[b]
	for len(restA) > 0 && len(restB) > 0 {
		switch v, u := restA[0], restB[0]; {
		case v < u:
			restA = restA[1:]
		case u < v:
			restB = restB[1:]
		default:
			if len(p.tablesWith[v]) == 2 { // a and b; so the merge sums v out
				size -= p.network.log2DimOf(v)
			}
			restA, restB = restA[1:], restB[1:]
		}
	}
	return size
}

// neighbours returns tables that share an index with t; a table that shares several is listed several times. It takes at most
// maxPartners/8 tables of each index, and stops after the index with which there are more than maxPartners in all.
func (p *pool) neighbours(t int32) []int32 {
	var neighbours []int32
	for _, v := range p.scope[t] {
		tables := p.tablesWith[v]
		for _, neighbour := range tables[:min(len(tables), maxPartners/8)] {
			if neighbour != t {
				neighbours = append(neighbours, neighbour)
			}
		}
		if len(neighbours) > maxPartners {
			break
		}
	}
	p.movesSpent += int64(len(neighbours))
	return neighbours
}

// remainingNetwork returns the network whose tensors are the live tables of the pool, those not yet merged, and for each of them the
// number of its table in the pool. dims are the dimensions of the hypergraph's indices. Scopes in the pool have numbers of the reduced
// network, p.network.indexOf has those of the hypergraph.
func (p *pool) remainingNetwork(dims []int) (n *network, tables []int32) {
	tables = p.liveTables()
	edges := make([][]int, len(tables))
	for i, t := range tables {
		for _, v := range p.scope[t] {
			edges[i] = append(edges[i], p.network.indexOf[v])
		}
	}
	excludesNone := func(int) bool { return false }
	return newNetwork(dims, edges, excludesNone), tables
}

// expand returns the merges of a tree over the whole network: first those that the pool has made, then the given ones, which merge the
// tables that remained. Each list of merges numbers its results after its leaves. In merges, table t below len(remaining) is the table
// remaining[t] of the pool, and table len(remaining)+k is the result of merges[k].
func (p *pool) expand(remaining []int32, merges [][2]int) [][2]int {
	allMerges := make([][2]int, 0, len(p.merges)+len(merges))
	allMerges = append(allMerges, p.merges...)
	firstResult := len(p.network.edges) + len(p.merges) // the number of the first result of merges
	wholeNumber := func(t int) int {
		if t < len(remaining) {
			return int(remaining[t])
		}
		return firstResult + t - len(remaining)
	}
	for _, m := range merges {
		allMerges = append(allMerges, [2]int{wholeNumber(m[0]), wholeNumber(m[1])})
	}
	return allMerges
}
