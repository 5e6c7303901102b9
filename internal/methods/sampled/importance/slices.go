package importance

// Slices: a cut-set is drawn, and the rest summed out.

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
)

// drawSlice draws the values of the cut-set from mini-buckets and returns ln of the weight of the slice: its sum over the density of the
// draw. If s.shares is not nil, it sets s.shares[i][a] to the share of value a of index i in the slice.
func (p *Proposal) drawSlice(ctx context.Context, r *rand.Rand, s *scratch) (ln float64, err error) {
	lnDensity := p.bound.DrawLast(r, s.state, p.firstDrawn)
	for _, row := range s.shares {
		clear(row)
	}
	ln, err = s.space.LnSlice(ctx, r, s.state, s.shares)
	return ln - lnDensity, err
}

// shareSums are sums over slices of weight times share, and of squared weight times share, by index and value. Weights are relative to
// e^top, the largest of them.
type shareSums struct {
	top            float64
	share, squares [][]float64
}

// newShareSums returns sums over no slices.
func newShareSums(dims []int) *shareSums {
	t := &shareSums{top: math.Inf(-1), share: make([][]float64, len(dims)), squares: make([][]float64, len(dims))}
	for i, d := range dims {
		t.share[i], t.squares[i] = make([]float64, d), make([]float64, d)
	}
	return t
}

// raiseTop sets the top to ln if that is higher, and scales the sums, which are relative to e^top.
func (t *shareSums) raiseTop(ln float64) {
	if ln <= t.top {
		return
	}
	scale := math.Exp(t.top - ln)
	t.top = ln
	for i, row := range t.share {
		for a := range row {
			row[a] *= scale
			t.squares[i][a] *= scale * scale
		}
	}
}

// add adds a slice with log-weight ln. shares[i][a] is the share of value a of index i in the slice.
func (t *shareSums) add(ln float64, shares [][]float64) {
	if math.IsInf(ln, -1) {
		return
	}
	t.raiseTop(ln)
	w := math.Exp(ln - t.top)
	for i, row := range shares {
		for a, x := range row {
			t.share[i][a] += w * x
			t.squares[i][a] += w * w * x // x once, not squared: it overstates the variation (Weights.Squares)
		}
	}
}

// merge adds the sums over further slices, scaled to the top of t.
func (t *shareSums) merge(further *shareSums) {
	if math.IsInf(further.top, -1) { // all weights are 0
		return
	}
	t.raiseTop(further.top)
	w := math.Exp(further.top - t.top)
	for i, row := range further.share {
		for a, x := range row {
			t.share[i][a] += w * x
			t.squares[i][a] += w * w * further.squares[i][a]
		}
	}
}

// orderedSums adds up the sums of blocks in the order of their numbers, although goroutines deliver them in any order. So the total always
// has the same bits.
type orderedSums struct {
	mu        sync.Mutex
	nextBlock int
	waiting   map[int]*shareSums // by block: those that came before an earlier one
	total     *shareSums
}

// newOrderedSums returns sums over no blocks.
func newOrderedSums(dims []int) *orderedSums {
	return &orderedSums{waiting: map[int]*shareSums{}, total: newShareSums(dims)}
}

// add takes the sums t of a block. It adds to the total all blocks that have come without a gap before them.
func (s *orderedSums) add(block int, t *shareSums) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[block] = t
	for ; s.waiting[s.nextBlock] != nil; s.nextBlock++ {
		s.total.merge(s.waiting[s.nextBlock])
		delete(s.waiting, s.nextBlock)
	}
}
