package region

// Families kept as a list of regions with their weights.

import (
	"slices"
)

// list holds regions with α ≠ 0. The legs of each are in the order in which a walk from its first
// leg meets them, so that regions of one shape look alike.
type list struct {
	legs  []int32
	off   []int
	alpha []int64
}

func (l *list) len() int { return len(l.alpha) }

func (l *list) region(r int, _ *worker) (legs []int32, alpha int64) {
	return l.legs[l.off[r]:l.off[r+1]], l.alpha[r]
}

func (l *list) largest(int) bool { return true }

// newList takes the regions with α ≠ 0, in lexicographic order of their legs.
func newList(g *graph, s *store, alpha []int64) *list {
	l := &list{off: []int{0}}
	var order []int32
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
		l.legs = w.walk(l.legs, s.region(int(r)))
		l.off = append(l.off, len(l.legs))
		l.alpha = append(l.alpha, alpha[r])
	}
	return l
}

// walker orders the legs of a region along a breadth-first walk.
type walker struct {
	g            *graph
	have         []bool // legs of the region not yet met
	seenI, seenT []bool
}

// newWalker has room for the legs of a graph.
func newWalker(g *graph) *walker {
	return &walker{
		g:     g,
		have:  make([]bool, len(g.index)),
		seenI: make([]bool, len(g.dims)),
		seenT: make([]bool, len(g.edges)),
	}
}

// walk appends the legs of a connected region to out.
func (w *walker) walk(out, region []int32) []int32 {
	g := w.g
	for _, leg := range region {
		w.have[leg] = true
	}
	from := len(out)
	out = append(out, region[0])
	w.have[region[0]] = false
	for k := from; k < len(out); k++ {
		i, t := g.index[out[k]], g.table[out[k]]
		if !w.seenI[i] {
			w.seenI[i] = true
			out = w.take(out, g.legsOf(i))
		}
		if !w.seenT[t] {
			w.seenT[t] = true
			for leg := g.first[t]; leg < g.first[t+1]; leg++ {
				if w.have[leg] {
					w.have[leg] = false
					out = append(out, leg)
				}
			}
		}
	}

	for _, leg := range region {
		w.seenI[g.index[leg]], w.seenT[g.table[leg]] = false, false
	}
	return out
}

// take appends the given legs that belong to the region and are not yet met.
func (w *walker) take(out, legs []int32) []int32 {
	for _, leg := range legs {
		if w.have[leg] {
			w.have[leg] = false
			out = append(out, leg)
		}
	}
	return out
}

// withFreeLegs adds to every region the legs of its tables that no region has. They dangle, so
// ratios stay as they are, and the region knows the marginal at their end, which does not follow
// from the single marginals of the table's other indices.
func (l *list) withFreeLegs(g *graph) *list {
	taken, met := make([]bool, len(g.index)), make([]bool, len(g.edges))
	for _, leg := range l.legs {
		taken[leg] = true
	}
	out := &list{off: []int{0}, alpha: l.alpha}
	for r := range l.alpha {
		legs := l.legs[l.off[r]:l.off[r+1]]
		out.legs = append(out.legs, legs...)
		for _, leg := range legs {
			t := g.table[leg]
			for other := g.first[t]; other < g.first[t+1] && !met[t]; other++ {
				if !taken[other] {
					out.legs = append(out.legs, other)
				}
			}
			met[t] = true
		}
		for _, leg := range legs {
			met[g.table[leg]] = false
		}
		out.off = append(out.off, len(out.legs))
	}

	return out
}
