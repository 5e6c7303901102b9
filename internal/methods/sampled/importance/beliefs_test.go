package importance

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/sampled/beliefs"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/internal/testing/orders"
)

// newBeliefProposal returns a proposal from messages, or nil if they contradict one another.
func newBeliefProposal(t *testing.T, e *sumproduct.Expression, entries, follow, share float64) *Proposal {
	t.Helper()
	bound, _ := newBound(t, e, orders.MinFill(e.Hypergraph()), entries)
	state, err := beliefs.Propagate(t.Context(), e)
	if err != nil {
		return nil
	}
	messages, err := beliefs.New(t.Context(), e, state, follow)
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewBeliefs(e, bound, messages, share)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestWeightsOfBeliefsAreUnbiased: means over 1,000 seeds of a few draws each are Z by enumeration, shares of the weights are the
// marginals, and no weight exceeds the bound, which Run says itself.
func TestWeightsOfBeliefsAreUnbiased(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 1))
	var c meanChecks
	for k := range 30 {
		e := drawExpression(r)
		_, _, lnZ := exactStates(e)
		share := []float64{0.3, 0.05}[k/2%2]
		p := newBeliefProposal(t, e, []float64{2, 6}[k%2], []float64{0, 0.2, 1e-3}[k%3], share)
		if p == nil || math.IsInf(lnZ, -1) {
			continue
		}
		m := measureMeans(t, e, p, lnZ)
		c.unbiased(t, fmt.Sprint("model ", k), &m, m.deviation())
		m.marginals(t, fmt.Sprint("model ", k), e, max(m.deviation(), rareDeviation(share)))
	}
	c.enough(t, 20)
}

// TestSharesOfBeliefsAreRefused that are none.
func TestSharesOfBeliefsAreRefused(t *testing.T) {
	e := drawExpression(rand.New(rand.NewPCG(5, 1)))
	p := newBeliefProposal(t, e, 4, 0, 0.2)
	for _, share := range []float64{0, -1, 2, math.NaN()} {
		if _, err := NewBeliefs(e, p.bound, nil, share); err == nil {
			t.Errorf("a share of %v is accepted", share)
		}
	}
}
