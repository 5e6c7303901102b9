package importance

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/sampled/cutset"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/internal/testing/orders"
)

// newSliceProposal returns a proposal of slices whose products have at most slice entries, the proposal of states along the same order, and
// the number of drawn indices.
func newSliceProposal(t *testing.T, e *sumproduct.Expression, entries, slice float64) (ofSlices, ofStates *Proposal, drawn int) {
	t.Helper()
	h := e.Hypergraph()
	order, rest, ok := cutset.Choose(h, orders.MinFill(h), slice, math.MaxInt)
	if !ok {
		t.Fatal("no cut-set")
	}
	bound, plan := newBound(t, e, order, entries)
	program, err := cutset.New(t.Context(), e, plan.Order, rest, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if ofSlices, err = NewSlices(e, bound, program, rest); err != nil {
		t.Fatal(err)
	}
	if ofStates, err = New(e, bound, nil, 1); err != nil {
		t.Fatal(err)
	}
	return ofSlices, ofStates, len(order) - rest
}

// TestSlicesAreUnbiased: means over 1,000 seeds of a few slices each are Z, and their shares the marginals, with no larger a variance than
// states have that are drawn likewise.
func TestSlicesAreUnbiased(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 1))
	var c meanChecks
	less := 0
	for k := range 40 {
		e := drawExpression(r)
		_, _, lnZ := exactStates(e)
		of, plain, drawn := newSliceProposal(t, e, []float64{2, 6}[k%2], []float64{2, 4}[k/2%2])
		if math.IsInf(lnZ, -1) || drawn == 0 {
			continue
		}
		m, states := measureMeans(t, e, of, lnZ), measureMeans(t, e, plain, lnZ)
		name := fmt.Sprintf("model %d, %d drawn", k, drawn)
		c.unbiased(t, name, &m, m.deviation())
		m.marginals(t, name, e, m.deviation())
		if m.variance < 0.7*states.variance {
			less++
		}
		if m.variance > 2*states.variance+1e-4 { // rare draws are seen by one and not by the other
			t.Errorf("%s: slices have a variance of %v, states %v", name, m.variance, states.variance)
		}
	}
	c.enough(t, 25)
	if less < c.models/3 {
		t.Errorf("of %d models %d vary less than states", c.models, less)
	}
}

// TestNoSliceExceedsTheBound: on 2,000 models; Run says so itself if one does.
func TestNoSliceExceedsTheBound(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 1))
	near := 0
	for k := range 2000 {
		e := drawExpression(r)
		of, _, _ := newSliceProposal(t, e, []float64{2, 4, 9}[k%3], []float64{1, 2, 4}[k/3%3])
		if isNearBound(t, of, k) {
			near++
		}
	}
	if near < 200 {
		t.Errorf("only %d models come near the bound", near)
	}
}

// TestSlicesHaveTheSameBits for any share of the draws and any number of goroutines.
func TestSlicesHaveTheSameBits(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 1))
	e := drawExpression(r)
	of, _, drawn := newSliceProposal(t, e, 4, 2)
	for drawn < 2 {
		e = drawExpression(r)
		of, _, drawn = newSliceProposal(t, e, 4, 2)
	}
	checkSameBits(t, of)
}

// TestSharesOfSlicesAddUp: a slice alone has the shares of its values, which add up to 1, and several those times their weights and the
// squares of their weights.
func TestSharesOfSlicesAddUp(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 1))
	checked := 0
	for range 30 {
		e := drawExpression(r)
		of, _, drawn := newSliceProposal(t, e, 4, 2)
		const draws = 70
		all, err := of.Run(t.Context(), 3, 0, draws, 2, true)
		if err != nil {
			t.Fatal(err)
		}
		if math.IsInf(all.Top, -1) || drawn == 0 {
			continue
		}
		checked++
		share, squares := newShareSums(e.Dims).share, newShareSums(e.Dims).squares
		for c := range int64(draws) {
			one, err := of.Run(t.Context(), 3, c, c+1, 1, true)
			if err != nil {
				t.Fatal(err)
			}
			if math.IsInf(one.Top, -1) {
				continue
			}
			w := math.Exp(one.Top - all.Top)
			for i, row := range one.Share {
				sum := 0.0
				for a, x := range row {
					sum += x
					share[i][a] += w * x
					squares[i][a] += w * w * x
				}
				if math.Abs(sum-1) > 1e-9 {
					t.Fatalf("shares of index %d add up to %v", i, sum)
				}
			}
		}
		for i := range share {
			for a := range share[i] {
				if math.Abs(share[i][a]-all.Share[i][a]) > 1e-9*draws || math.Abs(squares[i][a]-all.Squares[i][a]) > 1e-9*draws {
					t.Fatalf("index %d, value %d: %v and %v, want %v and %v", i, a, all.Share[i][a], all.Squares[i][a], share[i][a], squares[i][a])
				}
			}
		}
	}
	if checked < 15 {
		t.Errorf("only %d models have a cut-set", checked)
	}
}
