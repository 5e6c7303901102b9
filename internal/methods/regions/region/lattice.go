package region

// Lattices: indices at integer points of the plane, recognised by their squares, and windows of
// them.

import (
	"slices"

	"github.com/basetensor/basetensor/pkg/fault"
)

// lattice places indices at the points of a rectangle. A point has at most one index that is in a square. Indices in no square are at the
// point of a neighbour. Windows of a lattice are closed under intersection wherever indices are; how well they catch cycles depends on it.
type lattice struct {
	rows, cols line
	// Point p, counted row by row, has the indices indices[pointStart[p]:pointStart[p+1]].
	pointStart, indices []int32
}

// errNoLattice returns the error that a model is no lattice.
func errNoLattice(why string) error {
	return fault.New(fault.Unsupported, "region: no windows: the model is not a lattice (%s)", why)
}

// maxNeighbours bounds the degree of a lattice's index; a few more than 4, for corners after
// simplification.
const maxNeighbours = 8

// point is a row and a column.
type point [2]int32

// embedder finds the points of the indices of a graph. A square is a cycle of four neighbours without chords. An edge between two
// neighbours is in at most two squares, one on each side. So if the square on one side has its points, the points of the square on the
// other side follow, and a whole component follows from one square.
type embedder struct {
	neighbours [][]int32 // by index: the indices that share a table of two indices with it
	isPlaced   []bool    // by index: it has a point
	pointOf    []point   // by index, if it is placed
	hasSquare  []bool    // by index: the square with this index at its upper left corner has been met
	period     point     // the number of rows, and of columns, after which the lattice closes on itself; 0 if it does not
	component  []int32   // the placed indices of the current connected component
	unexplored []edge    // edges whose second square has not been looked for
}

// edge is the edge a–b of a square a–b–behindB–behindA that has its points. It waits for the square on its other side.
type edge struct{ a, b, behindA, behindB int32 }

// findLattice returns the lattice of a graph, in which every index of the 2-core has a point. The 2-core is what remains after indices and
// tables at the end of a branch have been removed, again and again. Connected components are put one below the other. Linear time. Errors:
// fault.Unsupported if the graph is no lattice.
func findLattice(g *graph, cut *cutter) (*lattice, error) {
	e := &embedder{
		neighbours: findNeighbours(g),
		isPlaced:   make([]bool, len(g.dims)),
		hasSquare:  make([]bool, len(g.dims)),
		pointOf:    make([]point, len(g.dims)),
	}
	inCore, err := e.coreIndices(g, cut)
	if err != nil {
		return nil, err
	}

	// Place each component, beginning at a square, below those before it.
	var placed []int32 // all placed indices
	row, components := int32(0), 0
	for i := range g.dims {
		if !inCore[i] || e.isPlaced[i] || !e.placeFirstSquare(int32(i)) {
			continue
		}
		if err := e.placeSquares(); err != nil {
			return nil, err
		}
		row = e.moveToRow(row) + 1 // one row stays free between components
		components++
		placed = append(placed, e.component...)
	}

	// Place the indices that are in no square.
	inSquares := len(placed)
	placed = e.placeNextToSquares(g, placed, inCore)
	hasManySquareless := len(placed)-inSquares > len(placed)/minIndicesPerSquareless
	if !e.isComplete(inCore) || hasManySquareless {
		return nil, errNoLattice("many indices are in no square")
	}
	if components > 1 && e.period != (point{}) {
		return nil, errNoLattice("it closes on itself, and has several pieces")
	}
	return e.buildLattice(placed, inSquares)
}

// coreIndices returns for every index whether it is in the 2-core of the graph. It returns an error if the 2-core is empty, or if an index
// in it has too many neighbours for a lattice. The 2-core is what remains after indices and tables with a single leg (index of a table)
// have been removed, again and again.
func (e *embedder) coreIndices(g *graph, cut *cutter) (inCore []bool, err error) {
	core := cut.core(zeroTo(len(g.indexOf)))
	if len(core) == 0 {
		return nil, errNoLattice("it has no cycles")
	}
	inCore = make([]bool, len(g.dims))
	for _, leg := range core {
		i := g.indexOf[leg]
		inCore[i] = true
		if len(e.neighbours[i]) > maxNeighbours {
			return nil, errNoLattice("an index has too many neighbours")
		}
	}
	return inCore, nil
}

// minIndicesPerSquareless: at most one of this many placed indices may be in no square.
const minIndicesPerSquareless = 4

// placeNextToSquares places the indices in the 2-core (inCore) that are in no square, most of them around holes: each gets the point of the
// nearest placed index. It returns placed with these indices appended. A component without any square stays without points. The 2-core is
// what remains after indices and tables at the end of a branch have been removed.
func (e *embedder) placeNextToSquares(g *graph, placed []int32, inCore []bool) []int32 {
	for k := 0; k < len(placed); k++ { // breadth first, since placed grows
		for _, leg := range g.legsOf(placed[k]) {
			for _, j := range g.indicesOf(g.tableOf[leg]) {
				if inCore[j] && !e.isPlaced[j] {
					e.isPlaced[j], e.pointOf[j] = true, e.pointOf[placed[k]]
					placed = append(placed, j)
				}
			}
		}
	}
	return placed
}

// isComplete reports whether all indices of the 2-core have a point.
func (e *embedder) isComplete(inCore []bool) bool {
	for i, isInCore := range inCore {
		if isInCore && !e.isPlaced[i] {
			return false
		}
	}
	return true
}

// findNeighbours returns for every index the indices that share a table of two indices with it. It stops at one more than an index of a
// lattice may have.
func findNeighbours(g *graph) [][]int32 {
	neighbours := make([][]int32, len(g.dims))
	for t := range g.edges {
		if indices := g.indicesOf(int32(t)); len(indices) == 2 {
			a, b := indices[0], indices[1]
			if len(neighbours[a]) <= maxNeighbours && !slices.Contains(neighbours[a], b) {
				neighbours[a] = append(neighbours[a], b)
			}
			if len(neighbours[b]) <= maxNeighbours && !slices.Contains(neighbours[b], a) {
				neighbours[b] = append(neighbours[b], a)
			}
		}
	}
	return neighbours
}

// forEachSquare calls yield with d and c for every square a–b–c–d on the edge a–b: a cycle of neighbours without the chords a–c and b–d.
func (e *embedder) forEachSquare(a, b int32, yield func(d, c int32)) {
	for _, d := range e.neighbours[a] {
		if d == b || slices.Contains(e.neighbours[b], d) {
			continue
		}
		for _, c := range e.neighbours[b] {
			if c != a && slices.Contains(e.neighbours[d], c) && !slices.Contains(e.neighbours[a], c) {
				yield(d, c)
			}
		}
	}
}

// placeFirstSquare begins a component: it places a square with the corner a at rows and columns 0 and 1, and queues its edges. ok is false
// if a is in no square of indices without points.
func (e *embedder) placeFirstSquare(a int32) (ok bool) {
	e.component, e.unexplored = e.component[:0], e.unexplored[:0]
	for _, b := range e.neighbours[a] {
		e.forEachSquare(a, b, func(d, c int32) {
			if ok || e.isPlaced[b] || e.isPlaced[c] || e.isPlaced[d] {
				return
			}
			ok = true
			e.place(a, point{0, 0})
			e.place(b, point{0, 1})
			e.place(c, point{1, 1})
			e.place(d, point{1, 0})
			e.queueEdges(a, b, c, d)
		})
	}
	return ok
}

// place gives index i a point, and adds it to the current component.
func (e *embedder) place(i int32, at point) {
	e.isPlaced[i], e.pointOf[i] = true, at
	e.component = append(e.component, i)
}

// queueEdges adds the four edges of the square a–b–c–d to e.unexplored, each with the opposite edge behind it, unless the square has been
// met before. A square is recognised by its upper left corner. e.unexplored has the edges whose other side is to be searched for a square.
func (e *embedder) queueEdges(a, b, c, d int32) {
	corner := a // the upper left one
	for _, i := range [3]int32{b, c, d} {
		if e.pointOf[i][0] <= e.pointOf[corner][0] && e.pointOf[i][1] <= e.pointOf[corner][1] {
			corner = i
		}
	}
	if e.hasSquare[corner] {
		return
	}
	e.hasSquare[corner] = true
	e.unexplored = append(e.unexplored, edge{a, b, d, c}, edge{b, c, a, d}, edge{c, d, b, a}, edge{d, a, c, b})
}

// placeSquares places the square on the other side of each unexplored edge, and so on until no edge is unexplored. It returns an error if
// an edge is in three squares.
func (e *embedder) placeSquares() (err error) {
	for len(e.unexplored) > 0 && err == nil {
		side := e.unexplored[len(e.unexplored)-1]
		e.unexplored = e.unexplored[:len(e.unexplored)-1]
		newSquares := 0
		e.forEachSquare(side.a, side.b, func(d, c int32) {
			isBehind := d == side.behindA && c == side.behindB // the square from which this edge was queued
			if isBehind || err != nil {
				return
			}
			if newSquares++; newSquares > 1 {
				err = errNoLattice("an edge is in more than two squares")
				return
			}
			e.placeSquare(side, d, c)
		})
	}
	return err
}

// placeSquare places the square a–b–c–d on the other side of the edge a–b: d at the point of behindA mirrored at a, and c at that of
// behindB mirrored at b. If one of them has another point already, the lattice closes on itself (notePeriod). side is the edge a–b with the
// opposite edge behindA–behindB of the square that is placed already.
func (e *embedder) placeSquare(side edge, d, c int32) {
	for _, corner := range [2]struct{ index, mirror, behind int32 }{{d, side.a, side.behindA}, {c, side.b, side.behindB}} {
		i, mirror, behind := corner.index, e.pointOf[corner.mirror], e.pointOf[corner.behind]
		at := point{2*mirror[0] - behind[0], 2*mirror[1] - behind[1]}
		if !e.isPlaced[i] {
			e.place(i, at)
		} else {
			e.notePeriod(at[0]-e.pointOf[i][0], at[1]-e.pointOf[i][1])
		}
	}
	e.queueEdges(side.a, side.b, c, d)
}

// notePeriod changes the periods of the lattice after one index was found at two points, which differ by rows and cols. The differences
// have to be multiples of the periods, so the periods become their greatest common divisors with rows and cols; 0 leaves a period
// unchanged. If the model is twisted or knotted, the periods become so small that two indices have one point, and buildLattice returns an
// error.
func (e *embedder) notePeriod(rows, cols int32) {
	for axis, difference := range [2]int32{rows, cols} {
		for difference != 0 { // Euclid's algorithm
			e.period[axis], difference = difference, e.period[axis]%difference
		}
		e.period[axis] = max(e.period[axis], -e.period[axis])
	}
}

// moveToRow shifts the points (row, column) of the current component: its first row becomes the given row, and its first column 0. It
// returns the first row below it.
func (e *embedder) moveToRow(row int32) int32 {
	first, lastRow := e.pointOf[e.component[0]], e.pointOf[e.component[0]][0]
	for _, i := range e.component {
		first[0], first[1] = min(first[0], e.pointOf[i][0]), min(first[1], e.pointOf[i][1])
		lastRow = max(lastRow, e.pointOf[i][0])
	}
	for _, i := range e.component {
		e.pointOf[i][0] += row - first[0]
		e.pointOf[i][1] -= first[1]
	}
	return row + lastRow - first[0] + 1
}

// maxPointsPerIndex bounds the points of a lattice by a multiple of its indices.
const maxPointsPerIndex = 64

// buildLattice returns the lattice of all placed indices, of which the first inSquares are in squares. It returns an error if two of these
// have the same point, or if most points have no index. A lattice may close on itself: e.period is the number of rows, and of columns,
// after which it does, or 0.
func (e *embedder) buildLattice(placed []int32, inSquares int) (*lattice, error) {
	l := &lattice{indices: make([]int32, len(placed))}
	var size point // rows and columns
	for _, i := range placed {
		for axis, period := range e.period {
			if period > 0 {
				e.pointOf[i][axis] %= period
			}
			size[axis] = max(size[axis], e.pointOf[i][axis]+1)
		}
	}

	l.rows = line{int(size[0]), e.period[0] > 0}
	l.cols = line{int(size[1]), e.period[1] > 0}
	if l.rows.points > maxPointsPerIndex*len(placed)/l.cols.points {
		return nil, errNoLattice("it is mostly holes")
	}
	hasSharedPoint := l.sortByPoint(e.pointOf, placed, inSquares)
	if hasSharedPoint {
		return nil, errNoLattice("two indices have one place")
	}
	return l, nil
}

// sortByPoint sets indices to the placed indices, sorted by point, and pointStart to where each point begins in it. pointOf is by index. If
// two of the first inSquares placed indices have the same point, it ends early and returns true.
func (l *lattice) sortByPoint(pointOf []point, placed []int32, inSquares int) (hasSharedPoint bool) {
	// Sort by counting. First pointStart[p+2] is the number of indices at point p. Summed up, pointStart[p+1] is where the indices at
	// point p begin. This entry grows by 1 with each index that is filled in, so that in the end it is where the indices at point p end.
	pointNumber := func(i int32) int { return int(pointOf[i][0])*l.cols.points + int(pointOf[i][1]) }
	points := l.rows.points * l.cols.points
	l.pointStart = make([]int32, points+2)
	for k, i := range placed {
		p := pointNumber(i)
		if l.pointStart[p+2]++; k < inSquares && l.pointStart[p+2] > 1 {
			return true
		}
	}
	for p := 2; p < len(l.pointStart); p++ {
		l.pointStart[p] += l.pointStart[p-1]
	}
	for _, i := range placed {
		p := pointNumber(i)
		l.indices[l.pointStart[p+1]] = i
		l.pointStart[p+1]++
	}
	l.pointStart = l.pointStart[:points+1]
	return false
}
