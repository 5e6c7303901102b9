// Package annealing estimates a sum of products of tables that are at least 0 without bias, by populations of chains that are
// carried from a product of vectors to the product of the tables (annealed importance sampling with resampling).
//
// The path is ψ_β(x) = Π_i b_i(x_i)^{1−β} · Π_t T_t(x)^β, β from 0 to 1 along a ladder; an entry that is 0 counts e^{−λβ} times the least
// of its table before the end, and 0 there. A population begins with draws from Π b_i; from rung to rung every chain's weight is
// multiplied by the ratio of the two ψ, chains are drawn anew by their weights where those have become uneven, and every chain takes
// heat-bath steps that keep ψ_β. The product of the mean ratios is an unbiased estimate of Z for any ladder that was fixed beforehand:
// Neal, Annealed importance sampling, 2001; Del Moral, Doucet, Jasra, Sequential Monte Carlo samplers, 2006.
package annealing

import (
	"context"
	"errors"
	"math"

	"github.com/basetensor/basetensor/internal/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// ErrSigned says that an expression has entries below 0, which no chain can be weighted with.
var ErrSigned = errors.New("annealing: an entry is below 0")

// Model is an expression as chains walk over it. It does not change and may be used by several goroutines.
type Model struct {
	dims  []int
	scale scaled.Number
	walks walks
}

// New returns the model of an expression. Errors: ErrSigned (unsupported); unsupported where an index has more than 256 values.
// Cost: linear in the tables.
func New(e *sumproduct.Expression) (*Model, error) {
	if e.Signed() {
		return nil, fault.Wrap(fault.Unsupported, ErrSigned)
	}
	for i, d := range e.Dims {
		if d > 1<<8 {
			return nil, fault.New(fault.Unsupported, "annealing: index %d has %d values, at most 256", i, d)
		}
	}
	m := &Model{dims: e.Dims, scale: e.Scale}
	if s := newSpins(e); s != nil {
		m.walks = s
	} else {
		m.walks = newSites(e)
	}
	return m, nil
}

// Options say how a population is run.
type Options struct {
	Ladder []float64 // β of every rung, rising, the last one 1
	Chains int       // of a population
	Seed   uint64
}

// Population is the outcome of one population.
type Population struct {
	Z scaled.Number // an unbiased estimate
	// Share has of every index the weights of its values at the end, which add up to 1 for each; nil where Z is 0.
	Share [][]float64
	// Least is the smallest effective share of chains that there was before chains were drawn anew.
	Least float64
}

// Run returns population number k, whose random numbers depend on the seed and on k alone. Cost: chains times rungs sweeps. The error
// is the context's.
func (m *Model) Run(ctx context.Context, o Options, k uint64) (*Population, error) {
	p := m.start(o.Chains, o.Seed, k)
	for _, beta := range o.Ladder {
		if err := p.climb(ctx, beta); err != nil {
			return nil, err
		}
		if math.IsInf(p.ln, -1) {
			return &Population{}, nil
		}
	}
	return &Population{Z: scaled.FromLog(p.ln).Mul(m.scale), Share: p.shares(m.dims), Least: p.least}, nil
}

// Pilot returns the ladder along which the effective share of the chains falls to about even from rung to rung, from a population of its
// own, at most so many rungs.
func (m *Model) Pilot(ctx context.Context, o Options, even float64, most int) ([]float64, error) {
	p := m.start(o.Chains, o.Seed, math.MaxUint64)
	var ladder []float64
	for p.beta < 1 {
		beta := p.next(even)
		if len(ladder) >= most {
			beta = 1
		}
		if err := p.climb(ctx, beta); err != nil {
			return nil, err
		}
		if math.IsInf(p.ln, -1) { // all chains have died at the end: what was found is the best there is
			return append(ladder, 1), nil
		}
		ladder = append(ladder, beta)
	}
	return ladder, nil
}

// Stretch returns a ladder of so many rungs with the density of another.
func Stretch(ladder []float64, rungs int) []float64 {
	out := make([]float64, rungs)
	for k := range out {
		at := float64(k+1) / float64(rungs) * float64(len(ladder))
		i := min(int(at), len(ladder)-1)
		before := 0.0
		if i > 0 {
			before = ladder[i-1]
		}
		out[k] = before + (at-float64(i))*(ladder[i]-before)
	}
	out[rungs-1] = 1
	return out
}
