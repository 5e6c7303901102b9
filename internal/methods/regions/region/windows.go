package region

// Windows of a lattice and their intersections, counted without making a list of them.

// line is a row of n points; the last of a closed one is beside the first.
type line struct {
	n      int
	closed bool
}

// windows are the rectangles that k × k windows of a lattice and their intersections are. A
// rectangle is an interval of rows times one of columns, and Möbius numbers of products multiply:
// along a line, windows [p, p+k) have α = 1, the intersections of two next to each other [p+1, p+k)
// have α = −1, and all smaller ones 0. On a closed line that holds as long as two windows meet in
// one interval; larger ones are replaced by the whole line.
type windows struct {
	*lattice
	k int
}

// whole reports whether one interval is all there is.
func (l line) whole(k int) bool { return k >= l.n || l.closed && 2*k > l.n+1 }

// intervals returns the number of intervals with α ≠ 0, for windows of k points.
func (l line) intervals(k int) int {
	switch {
	case l.whole(k):
		return 1
	case l.closed:
		return 2 * l.n
	}
	return 2*(l.n-k) + 1
}

// interval returns the j-th of them; on a closed line it may end beyond n.
func (l line) interval(k, j int) (from, to int, alpha int64) {
	if l.whole(k) {
		return 0, l.n, 1
	}
	return (j + 1) / 2, j/2 + k, 1 - 2*int64(j%2)
}

func (w *windows) len() int { return w.rows.intervals(w.k) * w.cols.intervals(w.k) }

// region returns the legs of window or intersection r, cut to its 2-core, and its counting number.
func (w *windows) region(r int, m *worker) (legs []int32, alpha int64) {
	across, n := w.cols.intervals(w.k), w.cols.n
	top, bottom, a := w.rows.interval(w.k, r/across)
	left, right, b := w.cols.interval(w.k, r%across)
	legs = m.legs[:0]
	for row := top; row < bottom; row++ {
		at := row % w.rows.n * n
		legs = w.add(legs, m.g, at+min(left, n), at+min(right, n))
		legs = w.add(legs, m.g, at+max(left-n, 0), at+max(right-n, 0))
	}
	m.legs = legs
	return m.cut.core(legs), a * b
}

// add appends the legs of the indices at points from ≤ p < to.
func (w *windows) add(legs []int32, g *graph, from, to int) []int32 {
	for _, i := range w.list[w.start[from]:w.start[to]] {
		legs = append(legs, g.legsOf(i)...)
	}
	return legs
}

func (w *windows) largest(r int) bool {
	across := w.cols.intervals(w.k)
	return r/across%2 == 0 && r%across%2 == 0
}
