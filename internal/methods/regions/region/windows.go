package region

// Windows of a lattice and their intersections, counted without making a list of them.

// line is a row of points. If it is closed, the last point is next to the first.
type line struct {
	points   int
	isClosed bool
}

// windows are the k × k windows of a lattice and the intersections of windows, all of which are rectangles.
//
// A rectangle is an interval of rows times an interval of columns, and counting numbers of products multiply. Along a line the windows
// [p, p+k) have α = 1, the intersections [p+1, p+k) of two windows next to each other α = −1, and all smaller ones 0. On a closed line
// this holds as long as two windows meet in one interval. For larger k the whole line is the only interval.
//
// Example: 3 points and k = 2 give [0, 2) with 1, [1, 2) with −1, [1, 3) with 1.
type windows struct {
	*lattice
	size int // k, the points along a side of a window
}

// isOneInterval reports whether the whole line is the only interval, for windows of k points.
func (l line) isOneInterval(k int) bool { return k >= l.points || l.isClosed && 2*k > l.points+1 }

// intervals returns the number of intervals on a line of n points that have a counting number other than 0. These are the windows of k
// points, and the intersections of two windows next to each other.
func (l line) intervals(k int) int {
	switch {
	case l.isOneInterval(k):
		return 1
	case l.isClosed:
		return 2 * l.points // n windows, n intersections
	}
	return 2*(l.points-k) + 1 // n−k+1 windows, n−k intersections
}

// interval returns the j-th interval from ≤ p < to with α ≠ 0, and its α, for windows of k points. Even j are windows, and odd j are
// intersections of the windows j−1 and j+1. On a closed line of n points the interval may end beyond n, where point n is point 0 again.
func (l line) interval(k, j int) (from, to int, alpha int64) {
	if l.isOneInterval(k) {
		return 0, l.points, 1
	}
	return (j + 1) / 2, j/2 + k, 1 - 2*int64(j%2) // α is 1 for even j, −1 for odd j
}

// len returns the number of rectangles with α ≠ 0.
func (w *windows) len() int { return w.rows.intervals(w.size) * w.cols.intervals(w.size) }

// region returns the legs of rectangle r, cut to its 2-core, and its counting number. A leg is one index of one table. There are no legs if
// the rectangle has no cycle. Rectangles are numbered row by row: an interval of rows times an interval of columns. If the rows or the
// columns are a closed line, an interval may go on at the beginning of the line. The 2-core is what remains after indices and tables with a
// single leg have been removed, again and again.
func (w *windows) region(r int, m *worker) (legs []int32, alpha int64) {
	across, n := w.cols.intervals(w.size), w.cols.points
	top, bottom, rowAlpha := w.rows.interval(w.size, r/across)
	left, right, colAlpha := w.cols.interval(w.size, r%across)
	legs = m.legs[:0]
	for row := top; row < bottom; row++ {
		// Append the columns below n, then those beyond n of a closed line, which begin at 0 again.
		rowStart := row % w.rows.points * n // a closed line of rows begins at 0 again, too
		legs = w.appendLegs(legs, m.graph, rowStart+min(left, n), rowStart+min(right, n))
		legs = w.appendLegs(legs, m.graph, rowStart+max(left-n, 0), rowStart+max(right-n, 0))
	}
	m.legs = legs
	return m.cut.core(legs), rowAlpha * colAlpha
}

// appendLegs appends all legs of the indices at the points from ≤ p < to. Points of the lattice are numbered row by row.
func (w *windows) appendLegs(legs []int32, g *graph, from, to int) []int32 {
	for _, i := range w.indices[w.pointStart[from]:w.pointStart[to]] {
		legs = append(legs, g.legsOf(i)...)
	}
	return legs
}

// mayBeLargest reports whether rectangle r is a window, and not an intersection of windows, which is inside one. Its two intervals then
// have even numbers.
func (w *windows) mayBeLargest(r int) bool {
	across := w.cols.intervals(w.size)
	return r/across%2 == 0 && r%across%2 == 0
}
