package structured

// The search for structure: by rank, with and without pairs apart.

import (
	"context"

	"github.com/basetensor/basetensor/internal/network/btn"
)

// find returns the structure of a network for a quadrature, and for a histogram, if its statistics are integers; nil where it has none. It
// reads the network once, and multiplies its matrix of interactions some hundreds of times. Cost O(entries + rounds · K · (Σ(d−1))²).
func find(ctx context.Context, net *btn.Network, memory int64) (f, counted *Fit, err error) {
	m, err := read(ctx, net, memory, true)
	if err != nil || m == nil {
		return nil, nil, err
	}
	all := m.all()
	if promising, err := m.promising(ctx, all); err != nil || !promising {
		return nil, nil, err
	}
	for k := 1; k <= MostStatistics; k++ {
		for _, factor := range apartFactors {
			s, apart, off, err := m.complete(ctx, all, k, factor)
			if err != nil {
				return nil, nil, err
			}
			if s == nil {
				continue
			}
			if counted, err = m.counted(ctx, net, s, memory); err != nil {
				return nil, nil, err
			}
			if off <= exactError && len(s.lambda) > 1 {
				if s, off, err = m.grouped(all, s, apart, off); err != nil {
					return nil, nil, err
				}
			}
			if off <= exactError {
				f, err = m.fit(ctx, s, apart, off)
			}
			if f != nil || counted != nil || err != nil { // else the rest is too wide
				return f, counted, err
			}
		}
	}
	return nil, nil, nil
}

// promising reports whether most of a typical interaction is of the largest rank that is looked for: a few rounds say so.
func (m *interactions) promising(ctx context.Context, all [][2]int) (bool, error) {
	c, largest := m.completion(all, MostStatistics, true)
	if m.order < 8*MostStatistics || largest == 0 {
		return largest > 0, nil // too small for a typical interaction to tell
	}
	before := c.typical()
	for range probeRounds {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if c.step() != nil {
			return true, nil // it has fewer directions
		}
		_, worst := c.rows(c.typical())
		c.divide(apartFactors[2] * worst)
	}
	return c.typical() < probeShare*before, nil
}
