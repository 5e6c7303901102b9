package structured

// The search for structure: by rank, with and without pairs apart.

import (
	"context"

	"github.com/basetensor/basetensor/internal/network/btn"
)

// find looks for the structure of a network: few linear statistics that give all interactions but those of a few pairs of variables. These
// pairs are set apart as outliers: their interactions become tables of the fit's rest.
//
// It returns a fit for a quadrature, and one for a histogram if the statistics are integers. Each is nil if there is none. find tries one
// statistic first, then more, and for each number the factors of outlierFactors. With the first factor only pairs with zeros are outliers.
// It stops at the first search that gives a fit. Cost O(entries + rounds · K · (Σ(d−1))²) for K statistics and variables of d values, some
// hundreds of rounds.
func find(ctx context.Context, net *btn.Network, memory int64) (quadrature, histogram *Fit, err error) {
	const sumsLeaves = true
	m, err := readInteractions(ctx, net, memory, sumsLeaves)
	if err != nil || m == nil {
		return nil, nil, err
	}
	pairs := m.allPairs()
	if looksLowRank, err := m.looksLowRank(ctx, pairs); err != nil || !looksLowRank {
		return nil, nil, err
	}
	for rank := 1; rank <= MaxStatistics; rank++ {
		for _, factor := range outlierFactors {
			approximation, outliers, residual, err := m.searchRank(ctx, pairs, rank, factor)
			if err != nil {
				return nil, nil, err
			}
			if approximation == nil {
				continue
			}
			if histogram, err = m.integerFit(ctx, net, approximation, memory); err != nil {
				return nil, nil, err
			}
			isExact := residual <= exactError
			if isExact && len(approximation.lambda) > 1 { // take statistics of fewer variables each, if they stay exact
				if approximation, residual, err = m.groupedOrSame(pairs, approximation, outliers, residual); err != nil {
					return nil, nil, err
				}
			}
			if residual <= exactError {
				quadrature, err = m.writeFit(ctx, approximation, outliers, residual)
			}
			if quadrature != nil || histogram != nil || err != nil {
				return quadrature, histogram, err
			}
			// The residual is too large, or the outliers' tables have no narrow elimination: search on.
		}
	}
	return nil, nil, nil
}

// looksLowRank reports whether a few rounds of a search for the largest rank remove most of a typical interaction. Each round improves the
// approximation and then chooses anew the outliers, which it need not fit. It returns false if the matrix has no interactions, and true if
// it is too small for the test to tell anything.
func (m *interactions) looksLowRank(ctx context.Context, pairs [][2]int) (bool, error) {
	const hasOutliers = true
	c, largest := m.newCompletion(pairs, MaxStatistics, hasOutliers)
	if m.order < 8*MaxStatistics || largest == 0 {
		return largest > 0, nil
	}
	residualBefore := c.typicalResidual()
	for range probeRounds {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if c.improve() != nil {
			return true, nil // the matrix has a lower rank
		}
		_, worstMedian := c.medianResiduals(c.typicalResidual())
		c.chooseOutliers(outlierFactors[2] * worstMedian) // chosen: a factor that finds many outliers
	}
	return c.typicalResidual() < probeShare*residualBefore, nil
}
