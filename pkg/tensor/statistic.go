// Factors that are functions of a statistic.

package tensor

import (
	"math"

	"github.com/basetensor/basetensor/pkg/fault"
)

// MostStatistic bounds the numbers of the vectors of ExpSquare: 64 MiB.
const MostStatistic = 1 << 23

// ExpSquare returns e^{λ s(x)²/2}, for λ ≥ 0 and the statistic s(x) = Σ_l v[l][x_l], as a sum of rank-one terms. Each entry is right to a
// relative 1e-16 and rounding. The terms are those of the trapezoidal rule,
//
//	e^{λ s²/2} ≈ Σ_y h/√(2π) e^{−y²/2} Π_l e^{√λ y v[l][x_l]},   h = 0.72
//
// for the multiples y of h that are within 8.8 of some √λ s (docs/explanation/structure.md, lemma λ > 0). With S the largest s less the
// smallest, these are about (√λ S + 17.6)/0.72 + 1 terms. The product of tables φ_ij(a, b) = e^{λ v[i][a] v[j][b]} of all pairs i < j is
// this times e^{−λ v[i][a]²/2} for every variable. Errors: bad input if λ is below 0, if a number is not finite, or if it makes an entry
// that is not; over budget above MostStatistic numbers.
func ExpSquare(lambda float64, v [][]float64) (*CP, error) {
	if !(lambda >= 0) || math.IsInf(lambda, 1) || len(v) == 0 {
		return nil, fault.New(fault.BadInput, "tensor: a low-rank factor over %d variables with weight %v, 0 or above is needed",
			len(v), lambda)
	}

	root := math.Sqrt(lambda)
	low, high, values, err := statisticRange(root, v)
	if err != nil {
		return nil, err
	}
	const step, reach = 0.72, 8.8 // h, and how far beyond the range of √λ s a y counts; lemma λ > 0 has the errors of both
	first, last := math.Floor((low-reach)/step), math.Ceil((high+reach)/step)
	terms := last - first + 1
	if !(terms*float64(values) <= MostStatistic) { // also if terms is NaN, as the range of √λ s has left float64
		return nil, fault.New(fault.OverBudget, "tensor: a low-rank factor of %.3g terms over %d values, %d numbers at most",
			terms, values, MostStatistic)
	}

	n := int(terms)
	t := &CP{Weights: make([]float64, n), Vectors: make([][]float64, len(v))}
	for m := range t.Weights {
		t.Weights[m] = step / math.Sqrt(2*math.Pi)
	}
	for l, row := range v {
		t.Shape = append(t.Shape, len(row))
		t.Vectors[l] = make([]float64, 0, n*len(row))
		for m := range n {
			y := step * (first + float64(m))
			for _, x := range row {
				// e^{√λ y x}, with this position's share of e^{−y²/2}, which as a whole may be far below float64
				entry := math.Exp(root*y*x - y*y/2/float64(len(v)))
				if math.IsInf(entry, 1) {
					return nil, fault.New(fault.BadInput, "tensor: position %d of a low-rank factor has numbers beyond float64", l)
				}
				t.Vectors[l] = append(t.Vectors[l], entry)
			}
		}
	}
	return t, nil
}

// statisticRange returns the smallest and the largest value of root · Σ_l v[l][x_l] over all x, and the number of values of all
// positions. A position without values, or with some that are not finite, is an error.
func statisticRange(root float64, v [][]float64) (low, high float64, values int, err error) {
	for l, row := range v {
		smallest, largest := math.Inf(1), math.Inf(-1)
		for _, x := range row {
			smallest, largest = min(smallest, x), max(largest, x)
		}
		isFinite := largest >= smallest && largest-smallest < math.Inf(1)
		if !isFinite { // or there is no value
			return 0, 0, 0, fault.New(fault.BadInput, "tensor: position %d of a low-rank factor has no values, or some that are not finite", l)
		}
		low, high, values = low+root*smallest, high+root*largest, values+len(row)
	}
	return low, high, values, nil
}
