package region

// Families kept as a list of regions with their weights.

import (
	"slices"
)

// list holds regions with α ≠ 0. The legs of each region are in the order in which a walk from its first leg meets them, so that regions
// of one shape have the same order of legs.
type list struct {
	legs    []int32
	offsets []int   // region r has the legs legs[offsets[r]:offsets[r+1]]
	alpha   []int64 // by region
}

// len returns the number of regions.
func (l *list) len() int { return len(l.alpha) }

// legsOf returns the legs of region r in the order of the walk.
func (l *list) legsOf(r int) []int32 { return l.legs[l.offsets[r]:l.offsets[r+1]] }

// region returns the legs and the counting number of region r.
func (l *list) region(r int, _ *worker) (legs []int32, alpha int64) { return l.legsOf(r), l.alpha[r] }

// mayBeLargest returns true, since a list does not know which regions are inside others.
func (l *list) mayBeLargest(int) bool { return true }

// newList returns the list of those regions of s whose counting number alpha[r] is not 0, in lexicographic order of their legs. Region r of
// the list has the legs l.legs[l.offsets[r]:l.offsets[r+1]]. A leg is one index of one table.
func newList(g *graph, s *store, alpha []int64) *list {
	l := &list{offsets: []int{0}}
	var order []int32 // region numbers
	for r, a := range alpha {
		if a != 0 {
			order = append(order, int32(r))
		}
	}
	slices.SortFunc(order, func(a, b int32) int {
		return slices.Compare(s.region(int(a)), s.region(int(b)))
	})
	w := newWalker(g)
	for _, r := range order {
		l.legs = w.appendWalk(l.legs, s.region(int(r)))
		l.offsets = append(l.offsets, len(l.legs))
		l.alpha = append(l.alpha, alpha[r])
	}
	return l
}

// walker orders the legs of a region along a breadth-first walk. Its marks are all false between walks.
type walker struct {
	graph          *graph
	isAhead        []bool // by leg: it is in the region, and the walk has not met it
	isIndexVisited []bool // by index
	isTableVisited []bool // by table
}

// newWalker returns a walker for regions of a graph.
func newWalker(g *graph) *walker {
	return &walker{
		graph:          g,
		isAhead:        make([]bool, len(g.indexOf)),
		isIndexVisited: make([]bool, len(g.dims)),
		isTableVisited: make([]bool, len(g.edges)),
	}
}

// appendWalk appends the legs of a connected region to walk, in the order of a breadth-first walk. It begins with the first leg of the
// region. After each leg come all legs of the region with the same index, then those with the same table. A leg is one index of one table.
// w.isAhead marks the legs of the region that the walk has not met.
func (w *walker) appendWalk(walk, region []int32) []int32 {
	g := w.graph
	for _, leg := range region {
		w.isAhead[leg] = true
	}
	start := len(walk)
	walk = append(walk, region[0])
	w.isAhead[region[0]] = false
	for k := start; k < len(walk); k++ {
		i, t := g.indexOf[walk[k]], g.tableOf[walk[k]]
		if !w.isIndexVisited[i] {
			w.isIndexVisited[i] = true
			for _, leg := range g.legsOf(i) {
				walk = w.appendIfAhead(walk, leg)
			}
		}
		if !w.isTableVisited[t] {
			w.isTableVisited[t] = true
			first, end := g.legRange(t)
			for leg := first; leg < end; leg++ {
				walk = w.appendIfAhead(walk, leg)
			}
		}
	}

	for _, leg := range region {
		w.isIndexVisited[g.indexOf[leg]], w.isTableVisited[g.tableOf[leg]] = false, false
	}
	return walk
}

// appendIfAhead appends a leg if it is in the region and the walk has not met it.
func (w *walker) appendIfAhead(walk []int32, leg int32) []int32 {
	if w.isAhead[leg] {
		w.isAhead[leg] = false
		walk = append(walk, leg)
	}
	return walk
}

// withFreeLegs returns the same regions, but adds to each the free legs of its tables: those that are in no region. A leg is one index of
// one table. A free leg makes no cycle in the region, so the ratio Z_r / Z_BP stays as it is. But the region then has the marginal of the
// index at the leg, which does not follow from the marginals of the table's other indices.
func (l *list) withFreeLegs(g *graph) *list {
	isInRegion := make([]bool, len(g.indexOf))
	isTableDone := make([]bool, len(g.edges)) // by table: its free legs are in the present region already
	for _, leg := range l.legs {
		isInRegion[leg] = true
	}
	extended := &list{offsets: []int{0}, alpha: l.alpha}
	for r := range l.alpha {
		legs := l.legsOf(r)
		extended.legs = append(extended.legs, legs...)
		for _, leg := range legs {
			t := g.tableOf[leg]
			first, end := g.legRange(t)
			for tableLeg := first; tableLeg < end && !isTableDone[t]; tableLeg++ {
				if !isInRegion[tableLeg] {
					extended.legs = append(extended.legs, tableLeg)
				}
			}
			isTableDone[t] = true
		}
		for _, leg := range legs {
			isTableDone[g.tableOf[leg]] = false
		}
		extended.offsets = append(extended.offsets, len(extended.legs))
	}

	return extended
}
