package region

// Lattices: indices at integer points of the plane, recognised by their squares, and windows of
// them.

import (
	"slices"

	"github.com/basetensor/basetensor/pkg/fault"
)

// lattice has one index, or none, at every point of a rectangle, and indices in no square at the
// point of a neighbour. Windows of it are closed under intersection wherever indices are; how well
// they catch cycles depends on it.
type lattice struct {
	rows, cols line
	start      []int32 // of every point, row-major: list[start[p]:start[p+1]] are its indices
	list       []int32
}

// errNoLattice says that a model is no lattice.
func errNoLattice(why string) error {
	return fault.New(fault.Unsupported, "region: no windows: the model is not a lattice (%s)", why)
}

// mostNeighbours bounds the degree of a lattice's index; a few more than 4, for corners after
// simplification.
const mostNeighbours = 8

// embedder finds coordinates: an edge between two neighbours is in at most two squares, one on
// either side, and squares are cycles of four without chords. From one square on, every edge with
// one side known tells the other.
type embedder struct {
	near   [][]int32 // neighbours through tables of order two
	placed []bool
	at     [][2]int32
	done   []bool   // indices at the upper left of a square that has been met
	period [2]int32 // where rows and columns close on themselves, or 0
	order  []int32  // placed indices of the current component
	todo   []edge
}

// edge waits for the square on its far side; behind are the two indices of the known one, next to a
// and to b.
type edge struct{ a, b, behindA, behindB int32 }

// findLattice returns the lattice of a graph: every index of its 2-core must have a place.
// Components are put one below the other. Linear time.
func findLattice(g *graph, cut *cutter) (*lattice, error) {
	e := &embedder{
		near:   neighbours(g),
		placed: make([]bool, len(g.dims)),
		done:   make([]bool, len(g.dims)),
		at:     make([][2]int32, len(g.dims)),
	}
	core := make([]int32, len(g.index))
	for leg := range core {
		core[leg] = int32(leg)
	}

	core = cut.core(core)
	if len(core) == 0 {
		return nil, errNoLattice("it has no cycles")
	}
	inCore := make([]bool, len(g.dims))
	for _, leg := range core {
		i := g.index[leg]
		inCore[i] = true
		if len(e.near[i]) > mostNeighbours {
			return nil, errNoLattice("an index has too many neighbours")
		}
	}

	var all []int32
	row, pieces := int32(0), 0
	for i := range g.dims {
		if !inCore[i] || e.placed[i] || !e.begin(int32(i)) {
			continue
		}
		if err := e.grow(); err != nil {
			return nil, err
		}
		row = e.shift(row) + 1
		pieces++
		all = append(all, e.order...)
	}

	squares := len(all)
	all, complete := e.beside(g, all, inCore)
	if !complete || len(all)-squares > len(all)/mostBeside {
		return nil, errNoLattice("many indices are in no square")
	}
	if pieces > 1 && e.period != [2]int32{} {
		return nil, errNoLattice("it closes on itself, and has several pieces")
	}
	return e.lattice(all, squares)
}

// mostBeside: one in so many indices may be in no square.
const mostBeside = 4

// beside puts indices of the 2-core that are in no square, around holes above all, to the nearest
// index that is. It returns all that have a place, and whether that is the whole 2-core: a component
// may have no square at all.
func (e *embedder) beside(g *graph, all []int32, inCore []bool) ([]int32, bool) {
	for k := 0; k < len(all); k++ {
		for _, leg := range g.legsOf(all[k]) {
			t := g.table[leg]
			for _, j := range g.index[g.first[t]:g.first[t+1]] {
				if inCore[j] && !e.placed[j] {
					e.placed[j], e.at[j] = true, e.at[all[k]]
					all = append(all, j)
				}
			}
		}
	}

	for i, in := range inCore {
		if in && !e.placed[i] {
			return all, false
		}
	}
	return all, true
}

// neighbours lists the indices that share a table of two indices with each, at most one more than a
// lattice may have.
func neighbours(g *graph) [][]int32 {
	near := make([][]int32, len(g.dims))
	for t := range g.edges {
		if legs := g.index[g.first[t]:g.first[t+1]]; len(legs) == 2 {
			a, b := legs[0], legs[1]
			if len(near[a]) <= mostNeighbours && !slices.Contains(near[a], b) {
				near[a] = append(near[a], b)
			}
			if len(near[b]) <= mostNeighbours && !slices.Contains(near[b], a) {
				near[b] = append(near[b], a)
			}
		}
	}
	return near
}

// squares calls yield with d and c for every cycle a–b–c–d without chords.
func (e *embedder) squares(a, b int32, yield func(d, c int32)) {
	for _, d := range e.near[a] {
		if d == b || slices.Contains(e.near[b], d) {
			continue
		}
		for _, c := range e.near[b] {
			if c != a && slices.Contains(e.near[d], c) && !slices.Contains(e.near[a], c) {
				yield(d, c)
			}
		}
	}
}

// begin places a first square with corner a, if it has one.
func (e *embedder) begin(a int32) bool {
	e.order, e.todo = e.order[:0], e.todo[:0]
	found := false
	for _, b := range e.near[a] {
		e.squares(a, b, func(d, c int32) {
			if found || e.placed[b] || e.placed[c] || e.placed[d] {
				return
			}
			found = true
			e.put(a, [2]int32{0, 0})
			e.put(b, [2]int32{0, 1})
			e.put(c, [2]int32{1, 1})
			e.put(d, [2]int32{1, 0})
			e.push(a, b, c, d)
		})
	}
	return found
}

func (e *embedder) put(i int32, at [2]int32) {
	e.placed[i], e.at[i] = true, at
	e.order = append(e.order, i)
}

// push queues the four edges of a square that has not been met, each with the edge opposite.
func (e *embedder) push(a, b, c, d int32) {
	corner := a
	for _, i := range [3]int32{b, c, d} {
		if e.at[i][0] <= e.at[corner][0] && e.at[i][1] <= e.at[corner][1] {
			corner = i
		}
	}
	if e.done[corner] {
		return
	}
	e.done[corner] = true
	e.todo = append(e.todo, edge{a, b, d, c}, edge{b, c, a, d}, edge{c, d, b, a}, edge{d, a, c, b})
}

// grow places squares beside squares until none is left.
func (e *embedder) grow() (err error) {
	for len(e.todo) > 0 && err == nil {
		w := e.todo[len(e.todo)-1]
		e.todo = e.todo[:len(e.todo)-1]
		found := 0
		e.squares(w.a, w.b, func(d, c int32) {
			if d == w.behindA && c == w.behindB || err != nil {
				return
			}
			if found++; found > 1 {
				err = errNoLattice("an edge is in more than two squares")
				return
			}
			e.square(w, d, c)
		})
	}
	return err
}

// square places d beside w.a and c beside w.b, on the side that is not behind.
func (e *embedder) square(w edge, d, c int32) {
	for _, p := range [2][3]int32{{d, w.a, w.behindA}, {c, w.b, w.behindB}} {
		i, from, behind := p[0], e.at[p[1]], e.at[p[2]]
		at := [2]int32{2*from[0] - behind[0], 2*from[1] - behind[1]}
		if !e.placed[i] {
			e.put(i, at)
		} else {
			e.closes(at[0]-e.at[i][0], at[1]-e.at[i][1])
		}
	}
	e.push(w.a, w.b, c, d)
}

// closes notes that one index is at two points, apart by whole periods of rows and of columns. A
// twisted or knotted model breaks this rule: its periods come out so small that two indices have one
// place.
func (e *embedder) closes(rows, cols int32) {
	for axis, by := range [2]int32{rows, cols} {
		for by != 0 {
			e.period[axis], by = by, e.period[axis]%by
		}
		e.period[axis] = max(e.period[axis], -e.period[axis])
	}
}

// shift moves the current component to rows from row on, and returns the first row below it.
func (e *embedder) shift(row int32) int32 {
	low, high := e.at[e.order[0]], e.at[e.order[0]][0]
	for _, i := range e.order {
		low[0], low[1], high = min(low[0], e.at[i][0]), min(low[1], e.at[i][1]), max(high, e.at[i][0])
	}
	for _, i := range e.order {
		e.at[i][0] += row - low[0]
		e.at[i][1] -= low[1]
	}
	return row + high - low[0] + 1
}

// sparsest bounds the points of a lattice by a multiple of its indices.
const sparsest = 64

// lattice sorts indices by their points; the first so many are in squares, and have a point of their
// own.
func (e *embedder) lattice(all []int32, squares int) (*lattice, error) {
	l := &lattice{list: make([]int32, len(all))}
	var size [2]int32
	for _, i := range all {
		for axis, period := range e.period {
			if period > 0 {
				e.at[i][axis] %= period
			}
			size[axis] = max(size[axis], e.at[i][axis]+1)
		}
	}

	l.rows = line{int(size[0]), e.period[0] > 0}
	l.cols = line{int(size[1]), e.period[1] > 0}
	if l.rows.n > sparsest*len(all)/l.cols.n {
		return nil, errNoLattice("it is mostly holes")
	}

	l.start = make([]int32, l.rows.n*l.cols.n+2)
	for k, i := range all {
		p := int(e.at[i][0])*l.cols.n + int(e.at[i][1])
		if l.start[p+2]++; k < squares && l.start[p+2] > 1 {
			return nil, errNoLattice("two indices have one place")
		}
	}

	for p := 2; p < len(l.start); p++ {
		l.start[p] += l.start[p-1]
	}
	for _, i := range all {
		p := int(e.at[i][0])*l.cols.n + int(e.at[i][1])
		l.list[l.start[p+1]] = i
		l.start[p+1]++
	}

	l.start = l.start[:l.rows.n*l.cols.n+1]
	return l, nil
}
