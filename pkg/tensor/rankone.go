// Closed forms of one and two terms, read off the table's own entries.

package tensor

import (
	"math"
	"slices"
)

// cross returns the rank-one table that agrees with data on the fibres through its largest entry p:
// data[p] ⊗_ℓ (fibre_ℓ / data[p]). It is data itself if that has rank one. Zeros stay zeros.
func cross(data []float64, dims []int) (weight float64, term [][]float64) {
	p := 0
	for i, x := range data {
		if math.Abs(x) > math.Abs(data[p]) {
			p = i
		}
	}
	weight = data[p]
	if weight == 0 {
		return 0, ones(dims)
	}

	term = make([][]float64, len(dims))
	for leg, step := range strides(dims) {
		d := dims[leg]
		start := p - p/step%d*step
		term[leg] = make([]float64, d)
		for x := range d {
			term[leg][x] = data[start+x*step] / weight
		}
	}
	return weight, term
}

// rankOne returns the rank-one table through the largest entry of t.
func rankOne(t *Dense) *CP {
	weight, term := cross(t.Data, t.Shape)
	return newCP(t.Shape, []float64{weight}, [][][]float64{term})
}

// backgroundPlusOne finds c + rank one, c the most frequent entry: a clause, or any table constant
// but for one point or slab. Elimination would find these too; this is far quicker (3 µs against 45
// µs for a clause of four) and takes c and the point as they are.
func backgroundPlusOne(t *Dense) (*CP, bool) {
	c, times := mostFrequent(t.Data)
	if times == 1 || c == 0 {
		return nil, false
	}

	rest := make([]float64, len(t.Data))
	for i, x := range t.Data {
		rest[i] = x - c
	}
	weight, term := cross(rest, t.Shape)
	return newCP(t.Shape, []float64{c, weight}, [][][]float64{ones(t.Shape), term}), true
}

// mostFrequent returns the value that a list has most often,
// the smallest of several, and how often.
func mostFrequent(list []float64) (value float64, times int) {
	sorted := slices.Clone(list)
	slices.Sort(sorted)

	run := 0
	for i, x := range sorted {
		if i > 0 && x == sorted[i-1] {
			run++
		} else {
			run = 1
		}
		if run > times {
			value = x
			times = run
		}
	}
	return value, times
}
