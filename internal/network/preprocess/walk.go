package preprocess

// Walks over all values of some indices, with the place of each in several tables.

import (
	"math"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// walk is where it is: the values of the axes, the last fastest,
// and the entry of every table that belongs to them.
type walk struct {
	dims  []int   // of the axes
	step  [][]int // per table and axis
	x     []int   // the values
	place []int   // per table
}

// walk begins at the first values of the axes.
func (w *work) walk(tables, axes []int) *walk {
	at := &walk{
		dims:  make([]int, len(axes)),
		step:  make([][]int, len(tables)),
		x:     make([]int, len(axes)),
		place: make([]int, len(tables)),
	}

	for a, i := range axes {
		at.dims[a] = w.dims[i]
	}

	for k, n := range tables {
		at.step[k] = w.strides(w.tables[n], axes)
	}
	return at
}

// next goes one on, and from the last to the first.
func (at *walk) next() {
	for a := len(at.dims) - 1; a >= 0; a-- {
		at.x[a]++
		move := 1
		if at.x[a] == at.dims[a] {
			at.x[a] = 0
			move = 1 - at.dims[a]
		}

		for k := range at.place {
			at.place[k] += move * at.step[k][a]
		}
		if move == 1 {
			return
		}
	}
}

// seek goes to the n-th values of all.
func (at *walk) seek(n int) {
	clear(at.place)
	for a := len(at.dims) - 1; a >= 0; a-- {
		at.x[a] = n % at.dims[a]
		n /= at.dims[a]
		for k := range at.place {
			at.place[k] += at.x[a] * at.step[k][a]
		}
	}
}

// maxExactFactors bounds sum, whose cost doubles with every factor.
const maxExactFactors = 4

// sum returns the sum of the products of factors at the next n values, correctly rounded from the
// exact one: every product is written as a sum of numbers that are exact. The result may be beyond
// float64: ±Inf, or too small.
func (at *walk) sum(factors [][]float64, n int) float64 {
	var terms []scaled.Number
	for range n {
		from := len(terms)
		terms = append(terms, scaled.One)
		for k, f := range factors {
			x := scaled.FromFloat(f[at.place[k]])
			for t, y := range terms[from:] { // a product, and its rounding loss
				high := float64(x.Mant * y.Mant)
				terms[from+t] = scaled.Make(high, x.Exp+y.Exp)
				terms = append(terms, scaled.Make(math.FMA(x.Mant, y.Mant, -high), x.Exp+y.Exp))
			}
		}
		at.next()
	}
	return scaled.Sum(terms).Float64()
}
