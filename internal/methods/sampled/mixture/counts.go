package mixture

// Components that count: independent indices, given the number of them that are not at the centre.

import (
	"math"
	"math/rand/v2"
)

// leastCountProbability is the least probability of a count under independent indices at which S is learned: below it float64 loses the
// recursion.
const leastCountProbability = 1e-200

// countDensity is the factor S of a component, which depends on a state's count, and the recursion by which states are drawn. The count is
// the number of indices that are away: not at the centre. R is the distribution of independent indices that S multiplies.
type countDensity struct {
	centre          []int
	awayProbability []float64   // by index: the probability under R that it is not at the centre
	probability     []float64   // by count, of the component
	lnS             []float64   // by count: ln of its probability over that under R
	suffixCounts    [][]float64 // suffixCounts[i][k]: the probability under R that k of the indices from i on are not at the centre
}

// newCountDensity returns the density with S such that count k has probability wanted[k]. The count is the number of indices that are not
// at the centre, and R the distribution of independent indices that S multiplies: away[i] is the probability under R that index i is not at
// the centre. A count whose probability under R is below leastCountProbability gets probability 0, and its share goes to the others. If no
// count remains, S is 1.
func newCountDensity(centre []int, away, wanted []float64) *countDensity {
	n := len(away)
	c := &countDensity{centre: centre, awayProbability: away, suffixCounts: suffixCountsOf(away)}
	c.probability, c.lnS = make([]float64, n+1), make([]float64, n+1)

	// S is the wanted probability of a count over that under R.
	independent := c.suffixCounts[0]
	total := 0.0
	for k, p := range wanted {
		if independent[k] >= leastCountProbability {
			c.probability[k] = p
			total += p
		}
	}
	for k := range c.probability {
		if c.probability[k] /= total; !(total > 0) { // no count remains
			c.probability[k] = independent[k]
		}
		c.lnS[k] = math.Inf(-1)
		if c.probability[k] > 0 {
			c.lnS[k] = math.Log(c.probability[k]) - math.Log(independent[k])
		}
	}
	return c
}

// suffixCountsOf returns the distributions of counts of independent indices, from the last index to the first (Poisson's binomial
// recursion). suffixCounts[i][k] is the probability that k of the indices from i on are away from the centre, and away[i] the probability
// that index i is.
func suffixCountsOf(away []float64) (suffixCounts [][]float64) {
	n := len(away)
	suffixCounts = make([][]float64, n+1)
	suffixCounts[n] = []float64{1}
	for i := n - 1; i >= 0; i-- {
		later := suffixCounts[i+1]
		row := make([]float64, len(later)+1)
		for k, p := range later {
			row[k] += (1 - away[i]) * p
			row[k+1] += away[i] * p
		}
		suffixCounts[i] = row
	}
	return suffixCounts
}

// countAway returns the number of indices of a state that are not at the centre.
func (c *countDensity) countAway(x []int) (k int) {
	for i, a := range x {
		if a != c.centre[i] {
			k++
		}
	}
	return k
}

// nextAway returns the probability that index i is not at the centre, given that k of the indices from i on are not.
func (c *countDensity) nextAway(i, k int) float64 {
	if k == 0 {
		return 0
	}
	if k == len(c.awayProbability)-i {
		return 1
	}
	return c.awayProbability[i] * c.suffixCounts[i+1][k-1] / c.suffixCounts[i][k]
}

// draw draws a state x: first the count, the number of indices that are away from the centre, then whether each index is away, and if so
// its value. values[i][a] is the probability of value a of index i under R, the distribution of independent indices.
func (c *countDensity) draw(r *rand.Rand, values [][]float64, x []int) {
	// remaining is the number of indices from i on that are away.
	remaining := drawNumber(r, len(c.probability), func(k int) float64 { return c.probability[k] })
	for i, row := range values {
		x[i] = c.centre[i]
		isAway := r.Float64() < c.nextAway(i, remaining)
		if !isAway {
			continue
		}
		remaining--
		x[i] = drawNumber(r, len(row), func(a int) float64 {
			if a == c.centre[i] {
				return 0
			}
			return row[a] / c.awayProbability[i]
		})
	}
}

// awayMarginals returns the probability of every index that it is not at the centre. It carries the distribution of the count of the
// indices from i on, for i = 0, 1 and so on. Cost: the square of the number of indices.
func (c *countDensity) awayMarginals() []float64 {
	n := len(c.awayProbability)
	marginals := make([]float64, n)
	remaining := append([]float64(nil), c.probability...) // by count of the indices from i on
	for i := range marginals {
		later := make([]float64, n-i) // by count of the indices from i+1 on
		for k, p := range remaining {
			if p == 0 {
				continue // suffixCounts[i][k], by which nextAway divides, may be 0 as well
			}
			q := p * c.nextAway(i, k)
			marginals[i] += q
			if k > 0 {
				later[k-1] += q
			}
			if k < len(later) {
				later[k] += p - q
			}
		}
		remaining = later
	}
	return marginals
}
