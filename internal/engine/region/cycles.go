package region

// Simple cycles of the bipartite graph of indices and tables.

import (
	"slices"
)

// cycles finds every cycle once: from its smallest index, through larger ones, in the direction that
// takes the smaller of the first index's two legs first. A path goes on only where the way back is
// short enough.
type cycles struct {
	g       *graph
	longest int
	root    int32
	back    []int32 // distance to the root through indices above it, plus 1; 0: too far
	reached []int32
	onPath  []bool  // indices
	used    []bool  // tables
	path    []int32 // legs
	left    *moves
	yield   func(legs []int32) error
}

// eachCycle calls yield with the legs of every simple cycle of at most longest indices, in the order
// of the cycle. The slice is used again.
// Cost: the number of paths of half that length, about.
func eachCycle(left *moves, g *graph, longest int, yield func(legs []int32) error) error {
	c := &cycles{g: g, longest: longest, back: make([]int32, len(g.dims)), onPath: make([]bool, len(g.dims)),
		used: make([]bool, len(g.edges)), yield: yield, left: left}
	for i := range g.dims {
		if err := left.spend(len(g.legsOf(int32(i)))); err != nil {
			return err
		}
		if len(g.legsOf(int32(i))) < 2 {
			continue
		}
		c.root = int32(i)
		c.distances()
		err := left.spend(len(c.reached))
		if err == nil {
			err = c.extend(c.root, 1)
		}
		for _, j := range c.reached {
			c.back[j] = 0
		}
		if err != nil {
			return err
		}
	}

	return nil
}

// distances marks the indices above the root from which a cycle can still close.
func (c *cycles) distances() {
	g := c.g
	c.reached = append(c.reached[:0], c.root)
	c.back[c.root] = 1
	for k := 0; k < len(c.reached); k++ {
		i := c.reached[k]
		if int(c.back[i]) > c.longest/2 {
			continue
		}
		for _, leg := range g.legsOf(i) {
			t := g.table[leg]
			for _, j := range g.index[g.first[t]:g.first[t+1]] {
				if j > c.root && c.back[j] == 0 {
					c.back[j] = c.back[i] + 1
					c.reached = append(c.reached, j)
				}
			}
		}
	}
}

// extend goes on from index i, the n-th of the path.
func (c *cycles) extend(i int32, n int) error {
	g := c.g
	c.onPath[i] = true
	defer func() { c.onPath[i] = false }()
	for _, leg := range g.legsOf(i) {
		t := g.table[leg]
		if c.used[t] {
			continue
		}
		c.used[t] = true
		for next := g.first[t]; next < g.first[t+1]; next++ {
			j := g.index[next]
			if err := c.left.spend(1); err != nil {
				return err
			}
			if next == leg || c.back[j] == 0 {
				continue
			}
			c.path = append(c.path, leg, next)
			var err error
			switch {
			case j == c.root && n > 1 && c.path[0] < next:
				err = c.yield(c.path)
			case j != c.root && !c.onPath[j] && n+int(c.back[j])-1 <= c.longest:
				err = c.extend(j, n+1)
			}

			c.path = c.path[:len(c.path)-2]
			if err != nil {
				return err
			}
		}

		c.used[t] = false
	}

	return nil
}

// addAmong adds the legs among a set of indices that cycles connect, unless they are too wide: chords count.
func (f *Family) addAmong(w *worker, s *store, set []int32) error {
	w.legs = w.legs[:0]
	for _, i := range set {
		w.legs = append(w.legs, w.g.legsOf(i)...)
	}
	slices.Sort(w.legs)
	core := w.cut.core(w.legs)
	if s.has(core) || !w.narrow(core, f.Options.MaxWidth) {
		return nil
	}
	_, _, err := s.add(core)
	return err
}
