package structured

// The search for structure: by rank, with and without pairs apart.

import (
	"context"

	"github.com/basetensor/basetensor/internal/network/btn"
)

// find looks for the structure of a network: few linear statistics that give all interactions but those of a few pairs of variables. These
// pairs are apart: their interactions become tables, the rest of the fit. find tries one statistic first, then more, and for each number
// the factors of apartFactors, the first of which sets no pairs apart but those with zeros. It stops at the first search that gives a fit.
//
// It returns a fit for a quadrature, and one for a histogram if the statistics are integers. Each is nil if there is none. find reads the
// network once, and multiplies its matrix of interactions some hundreds of times. Cost O(entries + rounds · K · (Σ(d−1))²).
func find(ctx context.Context, net *btn.Network, memory int64) (quadrature, histogram *Fit, err error) {
	m, err := readInteractions(ctx, net, memory, true)
	if err != nil || m == nil {
		return nil, nil, err
	}
	pairs := m.allPairs()
	if looksLowRank, err := m.looksLowRank(ctx, pairs); err != nil || !looksLowRank {
		return nil, nil, err
	}
	for k := 1; k <= MaxStatistics; k++ {
		for _, factor := range apartFactors {
			s, apart, residual, err := m.searchRank(ctx, pairs, k, factor)
			if err != nil {
				return nil, nil, err
			}
			if s == nil {
				continue
			}
			if histogram, err = m.integerFit(ctx, net, s, memory); err != nil {
				return nil, nil, err
			}
			if residual <= exactError && len(s.lambda) > 1 { // turn the statistics to groups of variables, if they stay exact
				if s, residual, err = m.groupedOrSame(pairs, s, apart, residual); err != nil {
					return nil, nil, err
				}
			}
			if residual <= exactError {
				quadrature, err = m.writeFit(ctx, s, apart, residual)
			}
			if quadrature != nil || histogram != nil || err != nil {
				return quadrature, histogram, err
			}
			// The residual is too large, or the tables of the pairs apart are too wide: search on.
		}
	}
	return nil, nil, nil
}

// looksLowRank reports whether a few rounds of a search for the largest rank remove most of a typical interaction. It returns true if the
// matrix is too small for that to tell anything, and false if it has no interactions.
func (m *interactions) looksLowRank(ctx context.Context, pairs [][2]int) (bool, error) {
	c, largest := m.newCompletion(pairs, MaxStatistics, true)
	if m.order < 8*MaxStatistics || largest == 0 {
		return largest > 0, nil
	}
	before := c.typicalResidual()
	for range probeRounds {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if c.improve() != nil {
			return true, nil // it has fewer directions
		}
		_, worst := c.medianResiduals(c.typicalResidual())
		c.divideAbove(apartFactors[2] * worst)
	}
	return c.typicalResidual() < probeShare*before, nil
}
