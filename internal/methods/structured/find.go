package structured

// The search for structure: by rank, with and without pairs apart.

import (
	"context"

	"github.com/basetensor/basetensor/internal/network/btn"
)

// find looks for the structure of a network. f is a fit for a quadrature, counted one for a histogram, if the statistics are integers. Each
// is nil if there is none. It reads the network once, and multiplies its matrix of interactions some hundreds of times. Cost O(entries +
// rounds · K · (Σ(d−1))²).
func find(ctx context.Context, net *btn.Network, memory int64) (f, counted *Fit, err error) {
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
			if counted, err = m.integerFit(ctx, net, s, memory); err != nil {
				return nil, nil, err
			}
			if residual <= exactError && len(s.lambda) > 1 {
				if s, residual, err = m.groupedOrSame(pairs, s, apart, residual); err != nil {
					return nil, nil, err
				}
			}
			if residual <= exactError {
				f, err = m.writeFit(ctx, s, apart, residual)
			}
			if f != nil || counted != nil || err != nil { // else the rest is too wide
				return f, counted, err
			}
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
