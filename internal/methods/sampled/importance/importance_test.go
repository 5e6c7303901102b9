package importance

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/engine/minibuckets"
	"github.com/basetensor/basetensor/internal/methods/truncated/sweeps"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/internal/testing/orders"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// drawExpression draws an expression of tables over one to three of some indices of one to three values, with entries e^±strength and a
// share of them 0.
func drawExpression(r *rand.Rand) *sumproduct.Expression {
	n := 3 + r.IntN(6)
	e := &sumproduct.Expression{Scale: scaled.FromFloat(math.Exp(3 * r.NormFloat64()))}
	for range n {
		e.Dims = append(e.Dims, []int{1, 2, 2, 2, 2, 3}[r.IntN(6)])
	}
	strength, zeros := 2*r.Float64(), 0.0
	if r.IntN(3) == 0 {
		zeros = 0.2 * r.Float64()
	}
	e.Tables = oracle.RandomTables(r, e.Dims, 2*n+r.IntN(2*n), strength, zeros)
	return e
}

// exactStates returns all states, ψ of each, and ln Z.
func exactStates(e *sumproduct.Expression) (states [][]int, psi []float64, lnZ float64) {
	z := 0.0
	oracle.Each(e.Dims, func(x []int) {
		v := math.Exp(oracle.LnWeight(e, x))
		z += v
		states, psi = append(states, slices.Clone(x)), append(psi, v)
	})
	return states, psi, math.Log(z)
}

// newBound returns the bound by mini-buckets with a limit of entries along an order, and their plan.
func newBound(t *testing.T, e *sumproduct.Expression, order []int, entries float64) (*minibuckets.Bound, *minibuckets.Plan) {
	t.Helper()
	plan, err := minibuckets.NewPlan(e.Hypergraph(), order, entries)
	if err != nil {
		t.Fatal(err)
	}
	bound, err := minibuckets.Run(t.Context(), e, plan, 0)
	if err != nil {
		t.Fatal(err)
	}
	return bound, plan
}

// newTestProposal returns a proposal of mini-buckets with a limit of entries, and of a sweep if bond is above 0. It returns nil if the
// sweep is lost.
func newTestProposal(t *testing.T, e *sumproduct.Expression, entries float64, bond int, share float64) (*Proposal, *sweeps.Sampler) {
	t.Helper()
	h := e.Hypergraph()
	bound, _ := newBound(t, e, orders.MinFill(h), entries)
	var sweep *sweeps.Sampler
	if bond > 0 {
		own, _, err := sweeps.Search(t.Context(), h, sweeps.SearchOptions{Bond: bond, Memory: 1 << 30, Moves: 1})
		if err != nil {
			t.Fatal(err)
		}
		if sweep, err = sweeps.NewSampler(t.Context(), e, own, sweeps.Options{Bond: bond}); err != nil {
			return nil, nil
		}
	}
	p, err := New(e, bound, sweep, share)
	if err != nil {
		t.Fatal(err)
	}
	return p, sweep
}

// TestDensitiesAreNormalised: the densities of a sweep add up to 1 over all states, are above 0 wherever ψ is, and are the model's where
// nothing is truncated.
func TestDensitiesAreNormalised(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	models := 0
	for k := range 300 {
		e := drawExpression(r)
		states, psi, lnZ := exactStates(e)
		bond := []int{1, 2, 64}[k%3]
		_, sweep := newTestProposal(t, e, 4, bond, 0.5)
		if sweep == nil {
			if !math.IsInf(lnZ, -1) && bond == 64 {
				t.Errorf("model %d: nothing is left of the state, ln Z %v", k, lnZ)
			}
			continue
		}
		models++
		d := sweep.NewDrawer(1e-3)
		sum := 0.0
		for s, x := range states {
			q := math.Exp(d.LnDensity(slices.Clone(x)))
			sum += q
			if psi[s] > 0 && !(q > 0) {
				t.Fatalf("model %d, bond %d: density 0 where ψ is %v", k, bond, psi[s])
			}
			if want := psi[s] / math.Exp(lnZ); bond == 64 && math.Abs(q-want) > 2e-3 {
				t.Fatalf("model %d: density %v, want %v", k, q, want)
			}
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Errorf("model %d, bond %d: densities add up to %v", k, bond, sum)
		}
	}
	if models < 200 {
		t.Errorf("only %d models have a sweep", models)
	}
}

// TestWeightsAreUnbiased: means over 1,000 seeds of a few draws each are Z, and shares of the weights are the marginals, for mini-buckets
// and for sweeps that truncate.
func TestWeightsAreUnbiased(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	var c meanChecks
	for k := range 40 {
		e := drawExpression(r)
		_, _, lnZ := exactStates(e)
		bond := []int{0, 1, 2, 1}[k%4]
		defence := []float64{0.3, 0.02}[k/2%2]
		p, _ := newTestProposal(t, e, []float64{2, 6}[k%2], bond, defence)
		if p == nil || math.IsInf(lnZ, -1) {
			continue
		}
		m := measureMeans(t, e, p, lnZ)
		deviation := m.deviation()
		if bond > 0 {
			deviation = max(deviation, rareDeviation(defence))
		}
		name := fmt.Sprintf("model %d, bond %d", k, bond)
		c.unbiased(t, name, &m, deviation)
		m.marginals(t, name, e, deviation)
	}
	c.enough(t, 25)
}

// TestNoWeightExceedsTheBound: on 5,000 models; Run says so itself if one does.
func TestNoWeightExceedsTheBound(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	near := 0
	for k := range 5000 {
		e := drawExpression(r)
		p, _ := newTestProposal(t, e, []float64{2, 4, 9}[k%3], k%3, 0.1)
		if p == nil {
			continue
		}
		if isNearBound(t, p, k) {
			near++
		}
	}
	if near < 500 {
		t.Errorf("only %d models come near the bound", near)
	}
}

// TestSameBits for any share of the draws and any number of goroutines.
func TestSameBits(t *testing.T) {
	e := drawExpression(rand.New(rand.NewPCG(4, 1)))
	p, _ := newTestProposal(t, e, 4, 2, 0.2)
	checkSameBits(t, p)
}

// TestWhatIsRefused: shares that are none, entries below 0, a context that is over.
func TestWhatIsRefused(t *testing.T) {
	e := drawExpression(rand.New(rand.NewPCG(5, 1)))
	p, sweep := newTestProposal(t, e, 4, 2, 0.2)
	for _, share := range []float64{0, -1, 2, math.NaN()} {
		if _, err := New(e, p.bound, sweep, share); err == nil {
			t.Errorf("a share of %v is accepted", share)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Run(ctx, 1, 0, 10, 1, false); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{}, Data: []float64{-1}})
	h := e.Hypergraph()
	own, _, err := sweeps.Search(t.Context(), h, sweeps.SearchOptions{Bond: 2, Memory: 1 << 30, Moves: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sweeps.NewSampler(t.Context(), e, own, sweeps.Options{Bond: 2}); err == nil {
		t.Error("an entry below 0 is accepted")
	}
}
