package frobenius

// The last digits: sweeps below the point where ρ can tell them apart.

import (
	"context"
	"math"
)

const (
	// mostPolish bounds the sweeps after ρ has reached its rounding.
	mostPolish = 200
	// polished is the change of unit vectors in one sweep at which nothing more can be gained.
	polished = 16 * epsilon
	// patience bounds the sweeps in a row that fail to lower the change: beyond, the change is rounding.
	patience = 10
)

// polish runs further sweeps when ρ is down to the rounding of its own computation. ρ is a
// difference of squares: 1e-15 of it leaves components off by 3e-8, while the steps themselves,
// quotients of sums, go on converging to full precision. Steps are kept although ρ cannot confirm
// them, as long as it stays within its rounding, and end when they stop getting smaller.
func (l *learner) polish(ctx context.Context) error {
	before := l.snapshot()
	l.slack = l.fit.floor
	defer func() { l.slack = 0 }()
	least, waited := math.Inf(1), 0
	for range mostPolish {
		parts := append([]*part(nil), l.parts...)
		for i := range l.parts {
			if _, err := l.improve(ctx, i); err != nil {
				return err
			}
		}

		if l.opts.LearnMaps {
			if err := l.procrustes(ctx); err != nil {
				return err
			}
		}

		change := largestChange(parts, l.parts)
		if change < least {
			least, waited = change, 0
		} else if waited++; waited >= patience {
			break
		}

		if change <= polished {
			break
		}
	}

	if !l.fit.vanished() {
		l.model = before
	}
	return nil
}

// largestChange returns the largest change of an entry of any unit vector.
func largestChange(before, after []*part) float64 {
	most := 0.0
	for i, p := range after {
		for leg, v := range p.r {
			for x := range v {
				most = math.Max(most, math.Abs(v[x]-before[i].r[leg][x]))
			}
		}
	}
	return most
}
