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

// Proposal is a distribution that states are drawn from. It does not change and may be used by several goroutines.
type Proposal struct {
	expression *sumproduct.Expression
	bound      *minibuckets.Bound
	newDrawer  func() stateDrawer // of the other density in the mixture; nil if there are only mini-buckets
	share      float64            // ε, the share of mini-buckets in the mixture, 1 if there are only mini-buckets
	// For slices, else nil: program sums out the first firstDrawn indices of the mini-buckets' order, and the others are drawn.
	program    *cutset.Program
	firstDrawn int
}

// stateDrawer draws states of a known density: that of a sweep, of messages, or of a mixture. Its methods return the logarithm of the
// density.
type stateDrawer interface {
	Draw(r *rand.Rand, x []int) (ln float64)
	LnDensity(x []int) (ln float64)
}

// New returns a mixture of mini-buckets and of the states of a sweep, for expression e. The mini-buckets have the given share, above 0
// and at most 1. If sweep is nil, there are only mini-buckets. Errors: bad input for another share; unsupported if an index has more than
// 65,536 values.
func New(e *sumproduct.Expression, bound *minibuckets.Bound, sweep *sweeps.Sampler, share float64) (*Proposal, error) {
	if sweep == nil {
		return newProposal(e, bound, nil, 1) // 1: the share of mini-buckets
	}
	return newProposal(e, bound, func() stateDrawer { return sweep.NewDrawer(share) }, share)
}

// NewBeliefs returns a mixture of mini-buckets, which have the given share, and of draws from messages of the same expression. Errors:
// those of New.
func NewBeliefs(e *sumproduct.Expression, bound *minibuckets.Bound, messages *beliefs.Sampler, share float64) (*Proposal, error) {
	return newProposal(e, bound, func() stateDrawer { return messages.NewDrawer(share) }, share)
}

// NewMixture returns a mixture of mini-buckets, which have the given share, and of a learned mixture over the same indices. Errors: those
// of New.
func NewMixture(e *sumproduct.Expression, bound *minibuckets.Bound, learned *mixture.Sampler, share float64) (*Proposal, error) {
	return newProposal(e, bound, func() stateDrawer { return learned }, share)
}

// newProposal returns a mixture of mini-buckets, which have the given share, and of the density that newDrawer draws from. newDrawer is nil
// if there are only mini-buckets. Errors: those of New.
func newProposal(e *sumproduct.Expression, bound *minibuckets.Bound, newDrawer func() stateDrawer, share float64) (*Proposal, error) {
	if !(share > 0 && share <= 1) {
		return nil, fault.New(fault.BadInput, "importance: mini-buckets have a share of %v", share)
	}
	for i, d := range e.Dims {
		if d > 1<<16 { // states have values of type uint16
			return nil, fault.New(fault.Unsupported, "importance: index %d has %d values, at most %d", i, d, 1<<16)
		}
	}
	return &Proposal{expression: e, bound: bound, newDrawer: newDrawer, share: share}, nil
}

// NewSlices returns a proposal that draws slices: mini-buckets draw the indices of their order from place firstDrawn on, and the program
// sums out those before, along the same order. As for states, no weight exceeds the mini-buckets' bound. Errors: those of New.
func NewSlices(e *sumproduct.Expression, bound *minibuckets.Bound, program *cutset.Program, firstDrawn int) (*Proposal, error) {
	const onlyBuckets = 1 // their share
	p, err := New(e, bound, nil, onlyBuckets)
	if err == nil {
		p.program, p.firstDrawn = program, firstDrawn
	}
	return p, err
}

// LnLargestWeight returns ln of an upper bound of all weights, nats, −Inf if Z is 0.
func (p *Proposal) LnLargestWeight() float64 { return p.bound.Ln - math.Log(p.share) }

// Bytes returns the memory that the results of that many draws take, without that of the proposal.
func Bytes(draws int64, indices int, marginals bool) float64 {
	perDraw := 8.0 // ln of the weight
	if marginals {
		perDraw += 2 * float64(indices) // the state: an uint16 for each index
	}
	return perDraw * float64(draws)
}

// Weights are the weights of some draws.
type Weights struct {
	// Ln are ln w of every draw in sequence, −Inf for 0. The mean of w estimates Z.
	Ln []float64
	// Top is the largest of Ln. Share[i][a] is Σ e^{Ln−Top} over the draws with value a of index i, and Squares[i][a] is Σ e^{2(Ln−Top)}.
	// They are nil if marginals were not asked for. A slice has several values of an index: each term is multiplied by the value's share in
	// the slice, so that Squares overstates the variation.
	Top            float64
	Share, Squares [][]float64
}

// blockSize is the number of draws that a goroutine takes at a time.
const blockSize = 16

// roundingAllowance limits by how much rounding may lift a weight's logarithm above its bound, relative to the bound and 1 nat. Such a
// weight is cut to the bound.
const roundingAllowance = 1e-9

// Run makes draws from ≤ c < to and returns their weights. A draw is a state or, if the proposal has a program, a slice: values of some
// indices, whose sum over all other indices is the weight. It takes the given number of goroutines (0: one per processor); the bits do not
// depend on the number. Cost per draw: two draws of each part of the mixture, or a slice. Errors: internal if a weight exceeds the bound,
// which cannot happen with right densities; those of slices; that of the context, which is looked at after every block of draws.
func (p *Proposal) Run(ctx context.Context, seed uint64, from, to int64, threads int, marginals bool) (*Weights, error) {
	// Goroutines take blocks of draws, each with a scratch memory of its own.
	threads = sumproduct.Threads(threads)
	if p.program != nil {
		threads = min(threads, p.program.Goroutines())
	}
	w := &Weights{Ln: make([]float64, to-from), Top: math.Inf(-1)}
	run := &run{Proposal: p, seed: seed, from: from, ln: w.Ln, sums: newOrderedSums(p.expression.Dims)}
	if marginals && p.program == nil {
		run.states = make([]uint16, len(w.Ln)*len(p.expression.Dims))
	}
	blocks := (len(w.Ln) + blockSize - 1) / blockSize
	scratches := make([]*scratch, min(threads, blocks))
	err := sumproduct.RunChunks(ctx, len(scratches), blocks, func(worker, block int) error {
		if scratches[worker] == nil {
			scratches[worker] = p.newScratch(marginals)
		}
		if p.program != nil {
			return run.sliceBlock(ctx, block, scratches[worker])
		}
		run.drawBlock(block, scratches[worker])
		return nil
	})
	if err != nil {
		return nil, err
	}

	if err := w.cutToBound(p.LnLargestWeight(), from); err != nil {
		return nil, err
	}
	switch {
	case marginals && p.program != nil:
		w.Share, w.Squares = run.sums.total.share, run.sums.total.squares
	case marginals:
		w.addShares(p.expression.Dims, run.states)
	}
	return w, nil
}

// cutToBound cuts the weights that rounding has lifted above the bound, and sets Top. The error is internal if a weight is above the bound
// by more. from is the number of the first draw.
func (w *Weights) cutToBound(lnBound float64, from int64) error {
	for c, l := range w.Ln {
		if math.IsNaN(l) || l > lnBound+roundingAllowance*(1+math.Abs(lnBound)) {
			return fault.New(fault.Internal, "importance: draw %d weighs e^%v, at most e^%v is possible", from+int64(c), l, lnBound)
		}
		w.Ln[c] = min(l, lnBound)
		w.Top = max(w.Top, w.Ln[c])
	}
	return nil
}

// run has the results of a Run. Blocks of draws write to different parts of it.
type run struct {
	*Proposal
	seed   uint64
	from   int64        // number of the first draw
	ln     []float64    // by draw
	states []uint16     // draw by draw, a value for each index; nil: marginals are not asked for, or draws are slices
	sums   *orderedSums // of slices with marginals
}

// drawRange returns the range of the draws of a block, as indices in ln.
func (r *run) drawRange(block int) (first, end int) {
	return block * blockSize, min((block+1)*blockSize, len(r.ln))
}

// newRandom returns the generator of the random numbers of draw c, an index in ln. They depend on the seed and the number of the draw
// alone.
func (r *run) newRandom(c int) *rand.Rand {
	return rand.New(rand.NewPCG(r.seed, uint64(r.from)+uint64(c)))
}

// drawBlock draws the states of a block. It writes ln of their weights to r.ln, and the states to r.states if marginals are wanted.
func (r *run) drawBlock(block int, s *scratch) {
	n := len(r.expression.Dims)
	for c, end := r.drawRange(block); c < end; c++ {
		r.ln[c] = r.drawWeight(r.newRandom(c), s.drawer, s.state)
		if r.states != nil {
			for i, a := range s.state {
				r.states[c*n+i] = uint16(a)
			}
		}
	}
}

// sliceBlock draws the slices of a block. It writes ln of their weights to r.ln, and adds up their shares in r.sums if marginals are
// wanted. Errors: those of slices.
func (r *run) sliceBlock(ctx context.Context, block int, s *scratch) error {
	var blockSums *shareSums
	if s.shares != nil {
		blockSums = newShareSums(r.expression.Dims)
	}
	for c, end := r.drawRange(block); c < end; c++ {
		ln, err := r.drawSlice(ctx, r.newRandom(c), s)
		if err != nil {
			return err
		}
		r.ln[c] = ln
		if blockSums != nil {
			blockSums.add(min(ln, r.LnLargestWeight()), s.shares) // rounding may exceed the bound
		}
	}
	if blockSums != nil {
		r.sums.add(block, blockSums)
	}
	return nil
}

// LnWeights returns ln of the weights ψ/q that draws would have if they had these states, nats. If the proposal draws slices, the result
// has the weights of the slices that contain the states. A slice is values of some indices, and its weight is a sum over all other indices.
// Cost: a draw for each state. Errors: those of slices and of the context.
func (p *Proposal) LnWeights(ctx context.Context, states [][]int) ([]float64, error) {
	const marginals = false
	s := p.newScratch(marginals)
	ln := make([]float64, len(states))
	for c, state := range states {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		copy(s.state, state)
		var err error
		if p.program != nil {
			ln[c], err = p.lnSliceWeight(ctx, rand.New(rand.NewPCG(uint64(c), 0)), s)
		} else {
			ln[c] = p.lnStateWeight(s)
		}
		if err != nil {
			return nil, err
		}
	}
	return ln, nil
}

// lnSliceWeight returns ln of the weight of the slice that contains the state s.state: its sum over the density of its drawn values. r is
// not used, since no shares are wanted.
func (p *Proposal) lnSliceWeight(ctx context.Context, r *rand.Rand, s *scratch) (float64, error) {
	lnDensity := p.bound.LnDensityLast(s.state, p.firstDrawn)
	lnSlice, err := s.space.LnSlice(ctx, r, s.state, nil) // nil: no shares
	if err != nil || math.IsInf(lnSlice, -1) {            // a slice whose sum is 0 has weight 0
		return math.Inf(-1), err
	}
	return lnSlice - lnDensity, nil
}

// lnStateWeight returns ln of the weight ψ/q of the state s.state. If ψ is 0, the densities need not be defined.
func (p *Proposal) lnStateWeight(s *scratch) float64 {
	lnProduct := p.bound.LnProduct(s.state, p.expression)
	switch {
	case math.IsInf(lnProduct, -1):
		return lnProduct
	case p.newDrawer != nil:
		return p.lnWeight(s.state, s.drawer.LnDensity(s.state), p.bound.LnDensity(s.state))
	}
	return lnProduct - p.bound.LnDensity(s.state) // only mini-buckets
}

// scratch is the memory of a goroutine.
type scratch struct {
	state  []int
	drawer stateDrawer   // of the other density; nil if there are only mini-buckets
	space  *cutset.Space // for slices
	shares [][]float64   // by index and value: share in a slice; nil if they are not asked for
}

// newScratch returns the memory that a goroutine draws with: a state, and what the kind of draws needs. Slices have shares if marginals are
// wanted.
func (p *Proposal) newScratch(marginals bool) *scratch {
	s := &scratch{state: make([]int, len(p.expression.Dims))}
	if p.newDrawer != nil {
		s.drawer = p.newDrawer()
	}
	if p.program != nil {
		s.space = p.program.NewSpace()
		if marginals {
			s.shares = make([][]float64, len(p.expression.Dims))
			for i, d := range p.expression.Dims {
				s.shares[i] = make([]float64, d)
			}
		}
	}
	return s
}

// drawWeight draws a state x and returns ln of its weight. The state is from mini-buckets with probability p.share, and from drawer
// otherwise; its weight is the same in either case. If drawer is nil, all states are from mini-buckets.
func (p *Proposal) drawWeight(r *rand.Rand, drawer stateDrawer, x []int) float64 {
	if drawer == nil {
		return p.bound.Draw(r, x, p.expression)
	}
	var lnDrawer, lnBuckets float64 // ln of the densities of x
	if r.Float64() < p.share {
		p.bound.Draw(r, x, p.expression)
		lnDrawer, lnBuckets = drawer.LnDensity(x), p.bound.LnDensity(x)
	} else {
		lnDrawer = drawer.Draw(r, x)
		lnBuckets = p.bound.LnDensity(x)
	}
	return p.lnWeight(x, lnDrawer, lnBuckets)
}

// lnWeight returns ln ψ/q of state x for the mixture q = (1−ε) q_drawer + ε q_buckets, with ε = p.share. lnDrawer and lnBuckets are the
// logarithms of the two densities at x.
func (p *Proposal) lnWeight(x []int, lnDrawer, lnBuckets float64) float64 {
	lnProduct := p.bound.LnProduct(x, p.expression) // ln ψ
	if math.IsInf(lnProduct, -1) {
		return lnProduct
	}
	lnDrawer += math.Log1p(-p.share)
	lnBuckets += math.Log(p.share)
	top := max(lnDrawer, lnBuckets)
	return lnProduct - top - math.Log(math.Exp(lnDrawer-top)+math.Exp(lnBuckets-top))
}

// addShares sets Share and Squares: for each value of each index, it adds up the weights of the draws with the value. states has the state
// of each draw, one after the other.
func (w *Weights) addShares(dims []int, states []uint16) {
	w.Share, w.Squares = make([][]float64, len(dims)), make([][]float64, len(dims))
	for i, d := range dims {
		w.Share[i], w.Squares[i] = make([]float64, d), make([]float64, d)
	}
	if math.IsInf(w.Top, -1) {
		return
	}
	for c, l := range w.Ln {
		weight := math.Exp(l - w.Top)
		for i, a := range states[c*len(dims) : (c+1)*len(dims)] {
			w.Share[i][a] += weight
			w.Squares[i][a] += weight * weight
		}
	}
}
