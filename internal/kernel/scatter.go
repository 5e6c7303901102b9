package kernel

// Copies into another sequence.

// Scatter copies lines: entry j of the line that begins at from[at[k]] goes to to[where[k]+places[j]], for
// all k < len(at).
func Scatter(to, from []float64, at, where []int, places *[Columns]int) {
	p0, p1, p2, p3 := places[0], places[1], places[2], places[3]
	p4, p5, p6, p7 := places[4], places[5], places[6], places[7]
	where = where[:len(at)]
	for k, d := range at {
		x, y := (*[Columns]float64)(from[d:]), to[where[k]:]
		y[p0] = x[0]
		y[p1] = x[1]
		y[p2] = x[2]
		y[p3] = x[3]
		y[p4] = x[4]
		y[p5] = x[5]
		y[p6] = x[6]
		y[p7] = x[7]
	}
}
