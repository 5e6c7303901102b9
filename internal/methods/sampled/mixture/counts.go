package mixture

// Components that count: independent indices, given the number of them that are not at the centre.

import (
	"math"
	"math/rand/v2"
)

// leastCount is the least probability of a count under independent indices at which S is learned: below it float64 loses the recursion.
const leastCount = 1e-200

// counts is S of a component and the recursion by which states are drawn.
type counts struct {
	centre []int
	away   []float64 // by index: the probability under R that it is not at the centre
	of     []float64 // P(k): of the component
	ln     []float64 // ln S(k) = ln P(k)/P_R(k)
	// rest[i][k] is the probability under R that k of the indices from i on are not at the centre
	rest [][]float64
}

// newCounts returns S for a distribution of the counts. A count that R has less often than leastCount has probability 0, and the others
// have it in their place.
func newCounts(centre []int, away, of []float64) *counts {
	n := len(away)
	c := &counts{centre: centre, away: away, rest: make([][]float64, n+1), of: make([]float64, n+1), ln: make([]float64, n+1)}
	c.rest[n] = []float64{1}
	for i := n - 1; i >= 0; i-- {
		later := c.rest[i+1]
		row := make([]float64, len(later)+1)
		for k, p := range later {
			row[k] += (1 - away[i]) * p
			row[k+1] += away[i] * p
		}
		c.rest[i] = row
	}
	total := 0.0
	for k, p := range of {
		if c.rest[0][k] >= leastCount {
			c.of[k] = p
			total += p
		}
	}
	for k := range c.of {
		if c.of[k] /= total; !(total > 0) {
			c.of[k] = c.rest[0][k] // none of the counts: R alone
		}
		c.ln[k] = math.Inf(-1)
		if c.of[k] > 0 {
			c.ln[k] = math.Log(c.of[k]) - math.Log(c.rest[0][k])
		}
	}
	return c
}

// count is the number of indices of a state that are not at the centre.
func (c *counts) count(x []int) (k int) {
	for i, a := range x {
		if a != c.centre[i] {
			k++
		}
	}
	return k
}

// next is the probability that index i is not at the centre where k of the indices from i on are not.
func (c *counts) next(i, k int) float64 {
	if k == 0 {
		return 0
	}
	if k == len(c.away)-i {
		return 1
	}
	return c.away[i] * c.rest[i+1][k-1] / c.rest[i][k]
}

// draw draws the count, then the indices in their sequence.
func (c *counts) draw(r *rand.Rand, values [][]float64, x []int) {
	k := choose(r, len(c.of), func(k int) float64 { return c.of[k] })
	for i, row := range values {
		x[i] = c.centre[i]
		if r.Float64() >= c.next(i, k) {
			continue
		}
		k--
		x[i] = choose(r, len(row), func(a int) float64 {
			if a == c.centre[i] {
				return 0
			}
			return row[a] / c.away[i]
		})
	}
}

// marginals returns the probabilities that the indices are not at the centre. Cost: the square of the indices.
func (c *counts) marginals() []float64 {
	n := len(c.away)
	out := make([]float64, n)
	left := append([]float64(nil), c.of...) // of so many of the indices from i on
	for i := range out {
		later := make([]float64, n-i)
		for k, p := range left {
			if p == 0 {
				continue // the recursion may have lost it, too
			}
			q := p * c.next(i, k)
			out[i] += q
			if k > 0 {
				later[k-1] += q
			}
			if k < len(later) {
				later[k] += p - q
			}
		}
		left = later
	}
	return out
}
