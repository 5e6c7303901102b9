package sampled

// The placement of the rungs of chains, by how far the weights of a pilot spread along a linear ladder.

import (
	"math"
)

// ladderParts is the number of equal parts of β for which the pilot measures the spread of weights. evenShare is the share of rungs that
// are placed evenly, whatever that spread.
// Measured with 1,024 rungs placed by 64 chains: the variance of ln w is 0.7 to 1 times the
// variance on an even ladder on seven kinds of large models, 0.8 in the middle.
const (
	ladderParts = 16
	evenShare   = 0.25
)

// placeKnots returns knots of β (Annealing.Knots) by gains[k], the gain in ln w of each chain in part k of a linear ladder. A part of β
// adds to the variance of ln w the variance of its gains and their covariance with those of the parts next to it, over its number of
// rungs. The sum is smallest if the density of rungs is the square root of what a part adds. That is smoothed and mixed with an even
// ladder. It returns nil, an even ladder, if there are too few parts or the variance is 0 or infinite.
func placeKnots(gains [][]float64) []float64 {
	parts := len(gains)
	variance := make([]float64, parts) // that a part adds
	for k := range gains {
		variance[k] = covariance(gains[k], gains[k])
		for _, neighbour := range []int{k - 1, k + 1} {
			if neighbour >= 0 && neighbour < parts {
				variance[k] += covariance(gains[k], gains[neighbour])
			}
		}
		variance[k] = max(variance[k], 0)
	}
	density, total := make([]float64, parts), 0.0
	for k := range variance {
		density[k] = math.Sqrt(variance[max(k-1, 0)]/4 + variance[k]/2 + variance[min(k+1, parts-1)]/4)
		total += density[k]
	}
	if !(total > 0) || math.IsInf(total, 1) || parts < ladderParts {
		return nil
	}
	// Knot k is the β up to which the shares of rungs add up to (k+1)/parts: part whole parts of β, and a fraction of the next one.
	out := make([]float64, parts)
	part, sum := 0, 0.0
	for k := range out {
		share := func() float64 { return (1-evenShare)*density[part]/total + evenShare/float64(parts) }
		target := float64(k+1) / float64(parts)
		for ; part < parts-1 && sum+share() < target; part++ {
			sum += share()
		}
		out[k] = min((float64(part)+(target-sum)/share())/float64(parts), 1)
	}
	out[parts-1] = 1
	return out
}

// covariance returns the covariance of pairs (x[k], y[k]).
func covariance(x, y []float64) (c float64) {
	mx, my := 0.0, 0.0
	for k := range x {
		mx += x[k] / float64(len(x))
		my += y[k] / float64(len(x))
	}
	for k := range x {
		c += (x[k] - mx) * (y[k] - my) / float64(len(x)-1)
	}
	return c
}
