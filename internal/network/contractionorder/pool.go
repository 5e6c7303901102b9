package contractionorder

// pool: the live tables while a tree is built from the leaves up.

import (
	"slices"
)

// pool is the set of tables of a network while they are merged, one pair at a time. Tables are numbered: the tensors first, then the
// results of the merges. A table is alive until it is merged.
type pool struct {
	network *network
	scope   [][]int32 // by table, sorted; nil for a table that is not alive
	// listPosition[t][k] is the position of table t in tablesWith of the k-th index of its scope.
	listPosition [][]int32
	size         []log2Fixed // by table
	isAlive      []bool      // by table
	tablesWith   [][]int32   // by index: the live tables that have it, in no particular sequence
	merges       [][2]int
	movesSpent   int64
}

// newPool returns a pool of the tensors of n before any merge.
func newPool(n *network) *pool {
	p := &pool{network: n, tablesWith: make([][]int32, len(n.indexOf))}
	tensorCount := make([]int, len(n.indexOf)) // by index: the number of tensors that have it
	for _, edge := range n.edges {
		for _, v := range edge {
			tensorCount[v]++
		}
	}
	for v, count := range tensorCount {
		p.tablesWith[v] = make([]int32, 0, count)
	}

	for _, edge := range n.edges {
		p.addTable(slices.Clone(edge))
	}
	return p
}

// addTable adds a live table over scope, which it keeps, and returns its number. It appends the table to the list of each of its indices.
func (p *pool) addTable(scope []int32) int32 {
	t := int32(len(p.scope))
	positions := make([]int32, len(scope)) // by position in scope: where t is in the list of the index
	for k, v := range scope {
		positions[k] = int32(len(p.tablesWith[v]))
		p.tablesWith[v] = append(p.tablesWith[v], t)
	}
	p.scope = append(p.scope, scope)
	p.listPosition = append(p.listPosition, positions)
	p.size = append(p.size, p.log2Size(scope))
	p.isAlive = append(p.isAlive, true)
	p.movesSpent += int64(16 * len(scope)) // 16 elementary operations for each index
	return t
}

// removeTable removes t from the pool: it is no longer alive. tablesWith[v] lists the live tables with index v, and listPosition[t][k] is
// the position of t in the list of the k-th index of its scope. In each list that has t, the last table takes the place of t.
func (p *pool) removeTable(t int32) {
	for k, v := range p.scope[t] {
		list, position := p.tablesWith[v], p.listPosition[t][k]
		lastTable := list[len(list)-1]
		list[position] = lastTable
		j, _ := slices.BinarySearch(p.scope[lastTable], v) // v is the j-th index of its scope
		p.listPosition[lastTable][j] = position
		p.tablesWith[v] = list[:len(list)-1]
	}

	p.movesSpent += int64(16 * len(p.scope[t])) // 16 elementary operations for each list, most of them for the search
	p.isAlive[t] = false
	p.scope[t], p.listPosition[t] = nil, nil
}

// log2Size returns log2 of the number of entries of a table over scope.
func (p *pool) log2Size(scope []int32) log2Fixed {
	var size log2Fixed
	for _, v := range scope {
		size += p.network.log2DimOf(v)
	}
	return size
}

// merge replaces tables a and b by their product, summed over their common indices that no third table has, and returns the number of the
// product.
func (p *pool) merge(a, b int32) int32 {
	restA, restB := p.scope[a], p.scope[b]
	p.removeTable(a)
	p.removeTable(b)

	// The result has three kinds of indices: those that a has and b has not, those that b has and a has not, and the common ones that a
	// third table has. a and b are no longer in tablesWith. Scopes are sorted.
	scope := make([]int32, 0, len(restA)+len(restB))
	for len(restA) > 0 && len(restB) > 0 {
		switch v, u := restA[0], restB[0]; {
		case v < u:
			scope, restA = append(scope, v), restA[1:]
		case u < v:
			scope, restB = append(scope, u), restB[1:]
		default:
			if isInThird := len(p.tablesWith[v]) > 0; isInThird {
				scope = append(scope, v)
			}
			restA, restB = restA[1:], restB[1:]
		}
	}
	scope = append(append(scope, restA...), restB...)

	p.merges = append(p.merges, [2]int{int(a), int(b)})
	return p.addTable(scope)
}

// liveTables returns the numbers of the live tables, ascending.
func (p *pool) liveTables() []int32 {
	var live []int32
	for t, isAlive := range p.isAlive {
		if isAlive {
			live = append(live, int32(t))
		}
	}
	return live
}

// mergeRemaining merges the live tables into one: always the two that are first in a list, which begins as all live tables, the smallest
// first; the product takes their place in front. It returns all merges of the pool so far. Callers have merged all tables that share an
// index, unless the search has ended.
func (p *pool) mergeRemaining() [][2]int {
	remaining := p.liveTables()
	slices.SortStableFunc(remaining,
		func(a, b int32) int { return int(min(max(p.size[a]-p.size[b], -1), 1)) }) // the sign of the difference
	for len(remaining) > 1 {
		remaining[1] = p.merge(remaining[0], remaining[1]) // it appends to p.merges
		remaining = remaining[1:]
	}
	return p.merges
}

// unionSize returns log2 of the size of a table over the union of the scopes of tables a and b: the sum of their sizes, less the log2
// dimensions of common indices, which the sum has twice. Scopes are sorted.
func (p *pool) unionSize(a, b int32) log2Fixed {
	restA, restB := p.scope[a], p.scope[b]
	p.movesSpent += int64(len(restA) + len(restB))
	size := p.size[a] + p.size[b]
	for len(restA) > 0 && len(restB) > 0 {
		switch v, u := restA[0], restB[0]; {
		case v < u:
			restA = restA[1:]
		case u < v:
			restB = restB[1:]
		default:
			size -= p.network.log2DimOf(v)
			restA, restB = restA[1:], restB[1:]
		}
	}
	return size
}
