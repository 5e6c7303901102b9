package importance

// Slices: a cut-set is drawn, and the rest summed out.

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
)

// slice draws a slice and returns ln of its weight, and the shares of the values in it where there is room for them.
func (p *Proposal) slice(ctx context.Context, r *rand.Rand, own *room) (ln float64, err error) {
	lnq := p.bound.DrawLast(r, own.x, p.drawn)
	for _, row := range own.shares {
		clear(row)
	}
	ln, err = own.space.LnSlice(ctx, r, own.x, own.shares)
	return ln - lnq, err
}

// tally sums the weights of shares, relative to the largest weight.
type tally struct {
	top            float64
	share, squares [][]float64
}

func newTally(dims []int) *tally {
	t := &tally{top: math.Inf(-1), share: make([][]float64, len(dims)), squares: make([][]float64, len(dims))}
	for i, d := range dims {
		t.share[i], t.squares[i] = make([]float64, d), make([]float64, d)
	}
	return t
}

// raise makes a larger weight the largest.
func (t *tally) raise(ln float64) {
	if ln <= t.top {
		return
	}
	by := math.Exp(t.top - ln)
	t.top = ln
	for i, row := range t.share {
		for a := range row {
			row[a] *= by
			t.squares[i][a] *= by * by
		}
	}
}

// add counts a slice.
func (t *tally) add(ln float64, shares [][]float64) {
	if math.IsInf(ln, -1) {
		return
	}
	t.raise(ln)
	w := math.Exp(ln - t.top)
	for i, row := range shares {
		for a, x := range row {
			t.share[i][a] += w * x
			t.squares[i][a] += w * w * x
		}
	}
}

// merge adds another tally.
func (t *tally) merge(other *tally) {
	if math.IsInf(other.top, -1) {
		return
	}
	t.raise(other.top)
	w := math.Exp(other.top - t.top)
	for i, row := range other.share {
		for a, x := range row {
			t.share[i][a] += w * x
			t.squares[i][a] += w * w * other.squares[i][a]
		}
	}
}

// sums adds blocks up in their sequence, whichever is there first.
type sums struct {
	mu      sync.Mutex
	next    int
	waiting map[int]*tally
	all     *tally
}

func (s *sums) put(block int, t *tally) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[block] = t
	for ; s.waiting[s.next] != nil; s.next++ {
		s.all.merge(s.waiting[s.next])
		delete(s.waiting, s.next)
	}
}
