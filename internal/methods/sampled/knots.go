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

// placeKnots returns knots of β (Annealing.Knots) that put more rungs, the steps of a chain, where weights spread more. gains[k][c] is how
// much ln w of chain c grew in part k of β, which is divided into equal parts. It returns nil, which stands for equal steps of β, if there
// are too few parts or the variance is 0 or infinite.
//
// A part adds v_k to the variance of ln w: the variance of its gains and their covariance with those of the parts next to it. With r_k
// rungs it adds v_k/r_k, so that the sum is smallest for r_k proportional to √v_k. That density is smoothed and mixed with an even one.
func placeKnots(gains [][]float64) []float64 {
	// Take the roots of the variances, smoothed with weights 1/4, 1/2 and 1/4.
	parts := len(gains)
	variance := partVariances(gains) // v_k
	density, total := make([]float64, parts), 0.0
	for k := range variance {
		density[k] = math.Sqrt(variance[max(k-1, 0)]/4 + variance[k]/2 + variance[min(k+1, parts-1)]/4)
		total += density[k]
	}
	if !(total > 0) || math.IsInf(total, 1) || parts < ladderParts {
		return nil
	}

	// Knot k is the β up to which the shares of rungs add up to (k+1)/parts. It lies in a part of β, and sum is that of the shares of the
	// parts before it.
	knots := make([]float64, parts)
	part, sum := 0, 0.0
	for k := range knots {
		share := func() float64 { return (1-evenShare)*density[part]/total + evenShare/float64(parts) }
		target := float64(k+1) / float64(parts)
		for ; part < parts-1 && sum+share() < target; part++ {
			sum += share()
		}
		knots[k] = min((float64(part)+(target-sum)/share())/float64(parts), 1)
	}
	knots[parts-1] = 1
	return knots
}

// partVariances returns what each part adds to the variance of ln w: the variance of its gains plus their covariances with the gains of the
// two parts next to it. It is at least 0.
func partVariances(gains [][]float64) []float64 {
	variance := make([]float64, len(gains))
	for k := range gains {
		variance[k] = covariance(gains[k], gains[k])
		for _, neighbour := range []int{k - 1, k + 1} {
			if neighbour >= 0 && neighbour < len(gains) {
				variance[k] += covariance(gains[k], gains[neighbour])
			}
		}
		variance[k] = max(variance[k], 0)
	}
	return variance
}

// covariance returns the covariance of pairs (x[k], y[k]).
func covariance(x, y []float64) (sum float64) {
	meanX, meanY := 0.0, 0.0
	for k := range x {
		meanX += x[k] / float64(len(x))
		meanY += y[k] / float64(len(x))
	}
	for k := range x {
		sum += (x[k] - meanX) * (y[k] - meanY) / float64(len(x)-1)
	}
	return sum
}
