package region

// The 2-core of a set of legs, and its connected parts.

// cutter cuts sets of legs. Its arrays are as long as the graph and clean between calls.
type cutter struct {
	g *graph
	// per index: legs left, and the exclusive or of their numbers: of one leg left, the leg
	degI, xorI []int32
	degT, xorT []int32
	dead       []bool
	part       []int32 // per index: its parent in the union-find forest
	label      []int32
	count      []int
	sorted     []int32
}

// newCutter has room for the legs of a graph.
func newCutter(g *graph) *cutter {
	n, m := len(g.dims), len(g.edges)
	return &cutter{
		g: g, degI: make([]int32, n), xorI: make([]int32, n), degT: make([]int32, m), xorT: make([]int32, m),
		dead: make([]bool, len(g.index)), part: make([]int32, n), label: make([]int32, n),
	}
}

// core keeps, in place and in order, the legs of the 2-core: the rest after indices and tables
// with one leg have been removed as long as there are any. Linear time.
func (c *cutter) core(legs []int32) []int32 {
	for _, leg := range legs {
		i, t := c.g.index[leg], c.g.table[leg]
		c.degI[i]++
		c.xorI[i] ^= leg
		c.degT[t]++
		c.xorT[t] ^= leg
	}

	for _, leg := range legs {
		c.peel(leg)
	}
	out := legs[:0]
	for _, leg := range legs {
		i, t := c.g.index[leg], c.g.table[leg]
		c.degI[i], c.xorI[i], c.degT[t], c.xorT[t] = 0, 0, 0, 0
		if c.dead[leg] {
			c.dead[leg] = false
		} else {
			out = append(out, leg)
		}
	}

	return out
}

// peel removes a leg that dangles, then the one that dangles because of it, and so on.
func (c *cutter) peel(leg int32) {
	for !c.dead[leg] {
		i, t := c.g.index[leg], c.g.table[leg]
		if c.degI[i] > 1 && c.degT[t] > 1 {
			break
		}
		c.dead[leg] = true
		c.degI[i]--
		c.xorI[i] ^= leg
		c.degT[t]--
		c.xorT[t] ^= leg
		switch {
		case c.degI[i] == 1:
			leg = c.xorI[i]
		case c.degT[t] == 1:
			leg = c.xorT[t]
		}
	}
}

// split calls yield for every connected part of a set of ascending legs, ascending too, in the order
// of their first legs. The slices are used again by the next call. Near-linear time.
func (c *cutter) split(legs []int32, yield func(part []int32)) {
	g := c.g
	for _, leg := range legs {
		c.part[g.index[leg]] = g.index[leg]
		c.label[g.index[leg]] = -1
	}

	same := true
	for k := 1; k < len(legs); k++ {
		if g.table[legs[k]] == g.table[legs[k-1]] {
			a, b := c.root(g.index[legs[k]]), c.root(g.index[legs[k-1]])
			c.part[a] = b
		}
	}

	first := c.root(g.index[legs[0]])
	for _, leg := range legs {
		same = same && c.root(g.index[leg]) == first
	}
	if same {
		yield(legs)
		return
	}

	c.count = c.count[:0]
	for _, leg := range legs {
		root := c.root(g.index[leg])
		if c.label[root] < 0 {
			c.label[root] = int32(len(c.count))
			c.count = append(c.count, 0)
		}
		c.count[c.label[root]]++
	}

	at := 0
	for p, n := range c.count {
		c.count[p] = at
		at += n
	}

	c.sorted = append(c.sorted[:0], legs...)
	for _, leg := range legs {
		p := c.label[c.root(g.index[leg])]
		c.sorted[c.count[p]] = leg
		c.count[p]++
	}

	at = 0
	for _, end := range c.count {
		yield(c.sorted[at:end])
		at = end
	}
}

// root finds the representative of the part that index i belongs to, and shortens the way there.
func (c *cutter) root(i int32) int32 {
	for c.part[i] != i {
		c.part[i] = c.part[c.part[i]]
		i = c.part[i]
	}
	return i
}
