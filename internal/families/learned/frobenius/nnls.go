package frobenius

// Non-negative weights: the active-set method of Lawson and Hanson (Solving Least Squares Problems,
// 1974, chapter 23), in Gram form.

// nonNegativeLeastSquares minimises xᵀgx − 2xᵀy over x ≥ 0 and returns x and the size of its passive
// set.
//
// Every pass over the outer loop lowers the objective strictly, so no passive set comes twice; the
// count of passes is bounded all the same, because rounding on a singular g could break that.
func nonNegativeLeastSquares(g [][]float64, y []float64) ([]float64, int, error) {
	r := len(y)
	x := make([]float64, r)
	passive := make([]bool, r)
	blocked := make([]bool, r) // entered and came out at once: rounding, not descent
	tolerance := 16 * float64(r) * epsilon
	for pass := 0; pass < 10*r+10; pass++ {
		enter, most := -1, tolerance
		for i := range x {
			if passive[i] || blocked[i] {
				continue
			}
			if w := slope(g, y, x, i); w > most {
				enter, most = i, w
			}
		}

		if enter < 0 {
			break
		}
		passive[enter] = true
		before := gramGain(g, y, x)
		next, err := descend(g, y, x, passive)
		if err != nil {
			return nil, 0, err
		}
		if gramGain(g, y, next) <= before {
			passive[enter] = false
			for i := range passive {
				passive[i] = x[i] > 0
			}
			blocked[enter] = true
			continue
		}

		x = next
		clear(blocked)
	}

	size := 0
	for i := range x {
		if x[i] > 0 {
			size++
		}
	}
	return x, size, nil
}

// slope returns entry i of y − g x, half the negative gradient.
func slope(g [][]float64, y, x []float64, i int) float64 {
	var sum compensated
	sum.add(y[i])
	for j := range x {
		sum.addProduct(-g[i][j], x[j])
	}
	return sum.value()
}

// descend moves x to the least-squares solution on the passive set, dropping from the set the
// entries that would turn negative. Every pass drops at least one, so it ends.
func descend(g [][]float64, y, x []float64, passive []bool) ([]float64, error) {
	x = append([]float64(nil), x...)
	for {
		set := members(passive)
		if len(set) == 0 {
			return x, nil
		}
		sub, rhs := restrict(g, y, set)
		solution, _, _, err := leastSquares(sub, rhs)
		if err != nil {
			return nil, err
		}

		step, at := 1.0, -1
		for k, i := range set {
			if solution[k] <= 0 && x[i]-solution[k] > 0 {
				if t := x[i] / (x[i] - solution[k]); t < step || at < 0 {
					step, at = t, i
				}
			} else if solution[k] <= 0 {
				step, at = 0, i
			}
		}

		for k, i := range set {
			x[i] += step * (solution[k] - x[i])
			if at < 0 {
				x[i] = solution[k]
			}
		}

		if at < 0 {
			return x, nil
		}
		for _, i := range set {
			if i == at || x[i] <= 0 {
				x[i], passive[i] = 0, false
			}
		}
	}
}

// members lists the indices of a set.
func members(set []bool) []int {
	var out []int
	for i, in := range set {
		if in {
			out = append(out, i)
		}
	}
	return out
}

// restrict returns the rows and columns of a system that belong to a set.
func restrict(g [][]float64, y []float64, set []int) ([][]float64, []float64) {
	sub, rhs := make([][]float64, len(set)), make([]float64, len(set))
	for k, i := range set {
		rhs[k] = y[i]
		sub[k] = make([]float64, len(set))
		for l, j := range set {
			sub[k][l] = g[i][j]
		}
	}
	return sub, rhs
}
