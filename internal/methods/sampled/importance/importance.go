// Package importance weighs independent draws from a proposal q, so that the mean of their weights ψ/q is Z (importance sampling): from
// mini-buckets, whose weights are bounded, or from a truncated sweep, messages or a learned mixture, mixed with a share of mini-buckets;
// or slices with a cut-set drawn by mini-buckets.
//
// The density of the mixture q = (1−ε) q' + ε q_WMB weighs a draw from either part. Its weights are at most Z⁺/ε, Z⁺ being the
// mini-buckets' bound, and it is above 0 wherever ψ is (docs/explanation/estimates.md). Lou, Dechter, Ihler,
// Dynamic importance sampling, 2017.
//
// The random numbers of a draw depend on the seed and on its number alone: any share of the draws has the same bits on any worker.
package importance

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/basetensor/basetensor/internal/engine/minibuckets"
	"github.com/basetensor/basetensor/internal/methods/sampled/beliefs"
	"github.com/basetensor/basetensor/internal/methods/sampled/cutset"
	"github.com/basetensor/basetensor/internal/methods/sampled/mixture"
	"github.com/basetensor/basetensor/internal/methods/truncated/sweeps"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Proposal is a distribution that states are drawn from. It does not change and may be used by several
// goroutines.
type Proposal struct {
	e     *sumproduct.Expression
	bound *minibuckets.Bound
	other func() drawer   // nil for mini-buckets alone
	share float64         // ε, 1 for mini-buckets alone; also the share of values which the others may have lost
	rest  *cutset.Program // the indices summed out instead of drawn, the first ones of the mini-buckets' order; nil where all are drawn
	drawn int
}

// drawer draws states with a density that is known: of a sweep, of messages, or of a mixture.
type drawer interface {
	Draw(r *rand.Rand, x []int) (ln float64)
	LnDensity(x []int) (ln float64)
}

// New returns the proposal of an upper bound by mini-buckets, and, unless it is nil, of a sweep of the same expression, in which the
// mini-buckets have a share above 0. Errors: bad input for another share; unsupported where an index has more than 65,536 values.
func New(e *sumproduct.Expression, bound *minibuckets.Bound, sweep *sweeps.Sampler, share float64) (*Proposal, error) {
	if sweep == nil {
		return mixed(e, bound, nil, 1)
	}
	return mixed(e, bound, func() drawer { return sweep.NewDrawer(share) }, share)
}

// NewBeliefs returns the proposal of an upper bound by mini-buckets, which have a share above 0, and of messages of the same expression.
// Errors as of New.
func NewBeliefs(e *sumproduct.Expression, bound *minibuckets.Bound, messages *beliefs.Sampler, share float64) (*Proposal, error) {
	return mixed(e, bound, func() drawer { return messages.NewDrawer(share) }, share)
}

// NewMixture returns the proposal of an upper bound by mini-buckets, which have a share above 0, and of a learned mixture over the same
// indices. Errors as of New.
func NewMixture(e *sumproduct.Expression, bound *minibuckets.Bound, learned *mixture.Sampler, share float64) (*Proposal, error) {
	return mixed(e, bound, func() drawer { return learned }, share)
}

// mixed is a proposal of mini-buckets and of another density.
func mixed(e *sumproduct.Expression, bound *minibuckets.Bound, other func() drawer, share float64) (*Proposal, error) {
	if !(share > 0 && share <= 1) {
		return nil, fault.New(fault.BadInput, "importance: mini-buckets have a share of %v", share)
	}
	for i, d := range e.Dims {
		if d > 1<<16 {
			return nil, fault.New(fault.Unsupported, "importance: index %d has %d values, at most %d", i, d, 1<<16)
		}
	}
	return &Proposal{e: e, bound: bound, other: other, share: share}, nil
}

// NewSlices returns the proposal of slices: mini-buckets draw the indices that their order has from drawn on, and the rest of the same
// expression is summed out for them, along the same order. No weight exceeds the bound, as no state's weight does. Errors: those of
// New.
func NewSlices(e *sumproduct.Expression, bound *minibuckets.Bound, rest *cutset.Program, drawn int) (*Proposal, error) {
	p, err := New(e, bound, nil, 1)
	if err == nil {
		p.rest, p.drawn = rest, drawn
	}
	return p, err
}

// LnMost is ln of an upper bound of all weights, nats; −Inf where Z is 0.
func (p *Proposal) LnMost() float64 { return p.bound.Ln - math.Log(p.share) }

// Bytes is the memory of so many draws beside the proposal.
func Bytes(draws int64, indices int, marginals bool) float64 {
	each := 8.0
	if marginals {
		each += 2 * float64(indices)
	}
	return each * float64(draws)
}

// Weights are the weights of some draws.
type Weights struct {
	// Ln are ln w of every draw in sequence, −Inf for 0: their mean is Z.
	Ln []float64
	// Top is the largest of Ln. Share[i][a] is Σ e^{Ln−Top} over the draws with index i at value a, Squares the same with e^{2(Ln−Top)};
	// nil where they were not asked for. A slice counts by the share that the value has in it, as if its state had been drawn:
	// squares of weights overstate their variation.
	Top            float64
	Share, Squares [][]float64
}

// block is the number of draws that a goroutine takes at a time.
const block = 16

// rounding bounds the excess of a weight's logarithm over its bound by rounding, per nat and one nat: it is cut
// there.
const rounding = 1e-9

// Run returns the weights of draws from ≤ c < to, by so many goroutines (0: one a processor). The same input gives the same bits for any
// number of them. Errors: internal where a weight exceeds the bound, which a right density does not let happen; slices' errors; the
// context's, which is looked at after every block of draws. Cost: a draw of each part of the mixture, twice; a slice.
func (p *Proposal) Run(ctx context.Context, seed uint64, from, to int64, threads int, marginals bool) (*Weights, error) {
	threads = sumproduct.Threads(threads)
	if p.rest != nil {
		threads = min(threads, p.rest.Goroutines())
	}
	w := &Weights{Ln: make([]float64, to-from), Top: math.Inf(-1)}
	n := len(p.e.Dims)
	blocks := (len(w.Ln) + block - 1) / block
	var states []uint16
	sums := &sums{waiting: map[int]*tally{}, all: newTally(p.e.Dims)}
	if marginals && p.rest == nil {
		states = make([]uint16, len(w.Ln)*n)
	}
	rooms := make([]*room, min(threads, blocks))
	err := sumproduct.Share(ctx, len(rooms), blocks, func(worker, chunk int) error {
		if rooms[worker] == nil {
			rooms[worker] = p.newRoom(marginals)
		}
		own := rooms[worker]
		var t *tally
		if own.shares != nil {
			t = newTally(p.e.Dims)
		}
		for c := chunk * block; c < min((chunk+1)*block, len(w.Ln)); c++ {
			r := rand.New(rand.NewPCG(seed, uint64(from)+uint64(c)))
			if p.rest != nil {
				l, err := p.slice(ctx, r, own)
				if err != nil {
					return err
				}
				if w.Ln[c] = l; t != nil {
					t.add(min(l, p.LnMost()), own.shares)
				}
				continue
			}
			w.Ln[c] = p.draw(r, own.drawer, own.x)
			if marginals {
				for i, a := range own.x {
					states[c*n+i] = uint16(a)
				}
			}
		}
		if t != nil {
			sums.put(chunk, t)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	most := p.LnMost()
	for c, l := range w.Ln {
		if math.IsNaN(l) || l > most+rounding*(1+math.Abs(most)) {
			return nil, fault.New(fault.Internal, "importance: draw %d weighs e^%v, at most e^%v is possible", from+int64(c), l, most)
		}
		w.Ln[c] = min(l, most)
		w.Top = max(w.Top, w.Ln[c])
	}
	switch {
	case marginals && p.rest != nil:
		w.Share, w.Squares = sums.all.share, sums.all.squares
	case marginals:
		w.count(p.e.Dims, states)
	}
	return w, nil
}

// Weigh returns ln of the weights of these states as draws, nats: for slices, of the slices that contain the states. Errors:
// slices' and the context's. Cost: a draw each.
func (p *Proposal) Weigh(ctx context.Context, states [][]int) ([]float64, error) {
	own := p.newRoom(false)
	ln := make([]float64, len(states))
	for c, state := range states {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		copy(own.x, state)
		if ln[c] = math.Inf(-1); p.rest == nil && math.IsInf(p.bound.LnProduct(own.x, p.e), -1) {
			continue // no density is asked for where there may be none
		}
		switch {
		case p.rest != nil:
			lnq := p.bound.LnDensityLast(own.x, p.drawn)
			z, err := own.space.LnSlice(ctx, rand.New(rand.NewPCG(uint64(c), 0)), own.x, nil)
			if err != nil {
				return nil, err
			}
			if !math.IsInf(z, -1) {
				ln[c] = z - lnq
			}
		case p.other != nil:
			ln[c] = p.weight(own.x, own.drawer.LnDensity(own.x), p.bound.LnDensity(own.x))
		default:
			ln[c] = p.bound.LnProduct(own.x, p.e) - p.bound.LnDensity(own.x)
		}
	}
	return ln, nil
}

// room is a goroutine's memory.
type room struct {
	x      []int
	drawer drawer        // beside mini-buckets
	space  *cutset.Space // of slices
	shares [][]float64   // of the values of indices in a slice
}

// newRoom returns room for draws.
func (p *Proposal) newRoom(marginals bool) *room {
	own := &room{x: make([]int, len(p.e.Dims))}
	if p.other != nil {
		own.drawer = p.other()
	}
	if p.rest != nil {
		own.space = p.rest.NewSpace()
		if marginals {
			own.shares = make([][]float64, len(p.e.Dims))
			for i, d := range p.e.Dims {
				own.shares[i] = make([]float64, d)
			}
		}
	}
	return own
}

// draw draws a state x and returns ln of its weight.
func (p *Proposal) draw(r *rand.Rand, drawer drawer, x []int) float64 {
	if drawer == nil {
		return p.bound.Draw(r, x, p.e)
	}
	var other, buckets float64 // ln of the densities
	if r.Float64() < p.share {
		p.bound.Draw(r, x, p.e)
		other, buckets = drawer.LnDensity(x), p.bound.LnDensity(x)
	} else {
		other = drawer.Draw(r, x)
		buckets = p.bound.LnDensity(x)
	}
	return p.weight(x, other, buckets)
}

// weight is ln ψ/q of a state of these logarithms of its densities.
func (p *Proposal) weight(x []int, other, buckets float64) float64 {
	ln := p.bound.LnProduct(x, p.e)
	if math.IsInf(ln, -1) {
		return ln
	}
	other += math.Log1p(-p.share)
	buckets += math.Log(p.share)
	top := max(other, buckets)
	return ln - top - math.Log(math.Exp(other-top)+math.Exp(buckets-top))
}

// count adds up the weights of the states.
func (w *Weights) count(dims []int, states []uint16) {
	w.Share, w.Squares = make([][]float64, len(dims)), make([][]float64, len(dims))
	for i, d := range dims {
		w.Share[i], w.Squares[i] = make([]float64, d), make([]float64, d)
	}
	if math.IsInf(w.Top, -1) {
		return
	}
	for c, l := range w.Ln {
		v := math.Exp(l - w.Top)
		for i, a := range states[c*len(dims) : (c+1)*len(dims)] {
			w.Share[i][a] += v
			w.Squares[i][a] += v * v
		}
	}
}
