package region

// The 2-core of a set of legs, and its connected parts.

// cutter cuts sets of legs to their 2-cores, and into connected parts. A leg joins an index and a table. The memory serves one call after
// the other.
type cutter struct {
	graph *graph
	// For core, all 0 between calls: the number of legs that are left of each index and of each table, and the exclusive or of the numbers
	// of these legs. If one leg is left, the exclusive or is that leg.
	indexDegree, indexXor []int32
	tableDegree, tableXor []int32
	isRemoved             []bool // by leg; all false between calls
	// For split, valid for the indices of the current legs only: parent is that of an index in a union-find forest, whose trees are the
	// parts; partOfRoot is the number of the part whose tree has the index as its root, or −1 if it has none yet.
	parent, partOfRoot []int32
	bounds             []int   // by part: its number of legs, then its start in sorted, then its end
	sorted             []int32 // legs, part after part
}

// newCutter returns a cutter for the legs of a graph, with memory for marks by index, table and leg.
func newCutter(g *graph) *cutter {
	n, m := len(g.dims), len(g.edges)
	return &cutter{
		graph:       g,
		indexDegree: make([]int32, n), indexXor: make([]int32, n),
		tableDegree: make([]int32, m), tableXor: make([]int32, m),
		isRemoved: make([]bool, len(g.indexOf)),
		parent:    make([]int32, n), partOfRoot: make([]int32, n),
	}
}

// core returns the legs of the 2-core, in their order: those that remain after indices and tables with a single leg have been removed until
// none has a single leg. It overwrites legs, and the result is a part of the same array. Linear time. A leg is one index of one table.
func (c *cutter) core(legs []int32) []int32 {
	// Count the legs of each index and table. The exclusive or of their numbers is the number of the last one, once only one is left.
	for _, leg := range legs {
		i, t := c.graph.indexOf[leg], c.graph.tableOf[leg]
		c.indexDegree[i]++
		c.indexXor[i] ^= leg
		c.tableDegree[t]++
		c.tableXor[t] ^= leg
	}

	for _, leg := range legs {
		c.peel(leg)
	}

	// Collect the legs that remain, and clear the marks.
	remaining := legs[:0]
	for _, leg := range legs {
		i, t := c.graph.indexOf[leg], c.graph.tableOf[leg]
		c.indexDegree[i], c.indexXor[i], c.tableDegree[t], c.tableXor[t] = 0, 0, 0, 0
		if c.isRemoved[leg] {
			c.isRemoved[leg] = false
		} else {
			remaining = append(remaining, leg)
		}
	}

	return remaining
}

// peel removes a leg if its index or its table has no other leg. If the table or the index at the other end then has a single leg, it
// removes that leg, too, and so on. It does nothing if the leg was removed before. A degree is the number of legs that an index or a table
// has left, and the exclusive or of their numbers is the number of the leg if only one is left. A leg is one index of one table.
func (c *cutter) peel(leg int32) {
	for !c.isRemoved[leg] {
		i, t := c.graph.indexOf[leg], c.graph.tableOf[leg]
		if c.indexDegree[i] > 1 && c.tableDegree[t] > 1 {
			break
		}
		c.isRemoved[leg] = true
		c.indexDegree[i]--
		c.indexXor[i] ^= leg
		c.tableDegree[t]--
		c.tableXor[t] ^= leg

		// The index or the table has no legs any more, so at most one of them has a single leg: go on with it. If neither has, the loop
		// ends, since leg is removed.
		switch {
		case c.indexDegree[i] == 1:
			leg = c.indexXor[i]
		case c.tableDegree[t] == 1:
			leg = c.tableXor[t]
		}
	}
}

// split calls yield with the legs of every connected part of a set of legs. The set is ascending and not empty. The legs of a part are
// ascending, and the parts come in the order of their first legs. The slices are valid until the next call of split. Near-linear time. A
// leg is one index of one table.
func (c *cutter) split(legs []int32, yield func(part []int32)) {
	c.joinIndices(legs)
	if c.isConnected(legs) {
		yield(legs)
		return
	}

	c.sortByPart(legs)
	start := 0
	for _, end := range c.bounds {
		yield(c.sorted[start:end])
		start = end
	}
}

// joinIndices joins the indices of each connected part of a set of legs into one union-find tree. A leg is one index of one table, and all
// indices of a table are in one part. The legs of a table follow each other, since legs are ascending.
func (c *cutter) joinIndices(legs []int32) {
	g := c.graph
	for _, leg := range legs {
		c.parent[g.indexOf[leg]] = g.indexOf[leg]
		c.partOfRoot[g.indexOf[leg]] = -1
	}
	for k := 1; k < len(legs); k++ {
		if g.tableOf[legs[k]] == g.tableOf[legs[k-1]] {
			a, b := c.root(g.indexOf[legs[k]]), c.root(g.indexOf[legs[k-1]])
			c.parent[a] = b
		}
	}
}

// isConnected reports whether all legs are in one part, after joinIndices. A leg is one index of one table; c.root is the root of an index
// in the union-find tree of its part.
func (c *cutter) isConnected(legs []int32) bool {
	first := c.root(c.graph.indexOf[legs[0]])
	for _, leg := range legs {
		if c.root(c.graph.indexOf[leg]) != first {
			return false
		}
	}
	return true
}

// sortByPart sets c.sorted to the legs, part after part, and c.bounds to the end of each part there. It comes after joinIndices. Parts are
// numbered in the order of their first legs. A leg is one index of one table.
func (c *cutter) sortByPart(legs []int32) {
	// Number the parts and count their legs.
	g := c.graph
	c.bounds = c.bounds[:0]
	for _, leg := range legs {
		root := c.root(g.indexOf[leg])
		if c.partOfRoot[root] < 0 {
			c.partOfRoot[root] = int32(len(c.bounds))
			c.bounds = append(c.bounds, 0)
		}
		c.bounds[c.partOfRoot[root]]++
	}

	// Turn the counts into starts, and fill in the legs.
	start := 0
	for p, n := range c.bounds {
		c.bounds[p] = start
		start += n
	}

	c.sorted = append(c.sorted[:0], legs...) // for the length: all entries are set below
	for _, leg := range legs {
		p := c.partOfRoot[c.root(g.indexOf[leg])]
		c.sorted[c.bounds[p]] = leg
		c.bounds[p]++ // from the start of the part to its end
	}
}

// root returns the root of the union-find tree of index i, and shortens the path to it.
func (c *cutter) root(i int32) int32 {
	for c.parent[i] != i {
		c.parent[i] = c.parent[c.parent[i]]
		i = c.parent[i]
	}
	return i
}
