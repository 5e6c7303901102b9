package region

// Windows of a lattice and their intersections, counted without making a list of them.

// windows are the rectangles that k × k windows of a lattice and their intersections are. A rectangle is an interval of
// rows times one of columns, and Möbius numbers of products multiply: along a line, windows [p, p+k) have α = 1, the
// intersections of two next to each other [p+1, p+k) have α = −1, and all smaller ones 0.
type windows struct {
	*lattice
	k int
}

// line returns how many intervals with α ≠ 0 a line of n points has.
func (w *windows) line(n int) int { return 2*max(0, n-w.k) + 1 }

// interval returns the j-th of them.
func (w *windows) interval(n, j int) (from, to int, alpha int64) {
	return (j + 1) / 2, min(n, j/2+w.k), 1 - 2*int64(j%2)
}

func (w *windows) len() int { return w.line(w.rows) * w.line(w.cols) }

func (w *windows) region(r int, m *worker) (legs []int32, alpha int64) {
	across := w.line(w.cols)
	top, bottom, a := w.interval(w.rows, r/across)
	left, right, b := w.interval(w.cols, r%across)
	legs = m.legs[:0]
	for row := top; row < bottom; row++ {
		for _, i := range w.list[w.start[row*w.cols+left]:w.start[row*w.cols+right]] {
			legs = append(legs, m.g.legsOf(i)...)
		}
	}
	m.legs = legs
	return m.cut.core(legs), a * b
}

func (w *windows) largest(r int) bool {
	across := w.line(w.cols)
	return r/across%2 == 0 && r%across%2 == 0
}
