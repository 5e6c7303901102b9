package structured

// The choice of a path: the statistics that a fit begins with and the rungs, by the variance that pilots see.

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/sampling"
	"github.com/basetensor/basetensor/internal/network/problem"
)

const (
	// nearRounds are the rounds of a fit by least squares.
	nearRounds = 24
	// mostNear bounds the statistics of a fit that draws begin with.
	mostNear = 3
	// nearRungs are the rungs of the pilot, and nearChains the chains.
	nearRungs, nearChains = 8, 32
	// mostNearNodes bounds the nodes of such a fit.
	mostNearNodes = 1 << 17
	// mostVariance is the variance of ln of a weight, nats², above which the low-rank part says too little.
	mostVariance = 2.5
	// goodVariance is the variance that the rungs are chosen for: weights of a larger one have tails that pilots do not see, and more rungs
	// cost as much as they save.
	goodVariance = 0.1
	// closeVariance is the variance with one rung up to which these chains beat those of package annealing, whose loops are eight side by
	// side; networks of more than fewTables tables have no others in time. Measured on complete graphs of 100 with noise: 0.06 gains a
	// factor of 6 in the error, 3 nothing, 30 loses one of 9.
	closeVariance = 1.5
	fewTables     = 20_000
	// fewChains is the number of chains that a tenth of the budget has to hold.
	fewChains = 100
)

// Near returns the path to a network under its evidence whose low-rank part carries most of the interaction, with the relative variance of
// a weight that a pilot saw, and the flops of a chain and before the first; nil where there is none within the work, flops. Pilots draw
// with a seed of their own.
func Near(ctx context.Context, p *problem.Problem, seed uint64, work float64) (path *Path, spread, each, setup float64, err error) {
	m, err := read(ctx, p.Net, p.Memory, false)
	if err != nil || m == nil || p.Net.Scale.Sign() <= 0 {
		return nil, 0, 0, 0, err
	}
	best := math.Inf(1)
	for k := 1; k <= mostNear; k++ {
		s, err := m.nearest(ctx, k)
		if err != nil {
			return nil, 0, 0, 0, err
		}
		if len(s.lambda) < k {
			break
		}
		f, err := m.fit(ctx, s, nil, 0)
		if err != nil || f == nil {
			return nil, 0, 0, 0, err
		}
		count := 1.0
		for _, a := range f.axes() {
			count *= float64(a.last - a.first + 1)
		}
		if count > mostNearNodes {
			break
		}
		own := &Path{Fit: f, Rungs: nearRungs}
		c, err := m.chains(ctx, p.Net, own)
		if err != nil {
			return nil, 0, 0, 0, err
		}
		if math.IsInf(c.lnZ, -1) {
			return nil, 0, 0, 0, nil
		}
		chains := int64(max(8, min(nearChains, work/(3*c.flops()))))
		w, err := c.draw(ctx, ^seed, 0, chains, 1, false)
		if err != nil {
			return nil, 0, 0, 0, err
		}
		variance := sampling.Variance(w.Ln) * nearRungs
		c.rungs = max(1, int(min(variance/goodVariance, 1<<20)))
		for c.rungs > 1 && c.flops() > work/fewChains {
			c.rungs /= 2
		}
		left := variance / float64(c.rungs)
		if left > mostVariance || variance > closeVariance && len(p.Net.Cores) <= fewTables {
			continue
		}
		if cost := math.Expm1(left) * c.flops(); cost < best {
			best = cost
			path, spread, each = &Path{Fit: f, Rungs: c.rungs}, math.Expm1(left), c.flops()
			setup = float64(len(c.list))*c.evaluator.flops(false) + 2*float64(len(c.axes)+4)*float64(m.order)*float64(m.order)
			if m.order <= mostBounded {
				setup += math.Pow(float64(m.order), 3)
			}
		}
	}
	return path, spread, each, setup, nil
}

// nearest is the part of rank k with λ > 0 that fits the matrix best, by least squares with the blocks of single variables free.
func (m *interactions) nearest(ctx context.Context, k int) (*spectrum, error) {
	c, largest := m.completion(m.all(), 2*k, false)
	if largest == 0 || 4*k > m.order {
		return &spectrum{}, nil
	}
	for range nearRounds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if c.interactions.step(c.s, c.of) != nil {
			break
		}
		c.s.drop()
	}
	order := make([]int, len(c.s.lambda))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(c.s.lambda[b], c.s.lambda[a]), a-b) })
	out := &spectrum{}
	for _, i := range order {
		if len(out.lambda) < k && c.s.lambda[i] > 0 {
			out.lambda = append(out.lambda, c.s.lambda[i])
			out.w = append(out.w, c.s.w[i*m.order:(i+1)*m.order]...)
		}
	}
	return out, nil
}
