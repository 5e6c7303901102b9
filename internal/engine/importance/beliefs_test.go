package importance

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/engine/beliefs"
	"github.com/basetensor/basetensor/internal/engine/minibuckets"
	"github.com/basetensor/basetensor/internal/orders"
	"github.com/basetensor/basetensor/internal/sumproduct"
)

// believed is a proposal from messages; nil where they contradict one another.
func believed(t *testing.T, e *sumproduct.Expression, entries, follow, share float64) *Proposal {
	t.Helper()
	h := e.Hypergraph()
	plan, err := minibuckets.NewPlan(h, orders.MinFill(h), entries)
	if err != nil {
		t.Fatal(err)
	}
	bound, err := minibuckets.Run(t.Context(), e, plan, 0)
	if err != nil {
		t.Fatal(err)
	}
	state, err := beliefs.Messages(t.Context(), e)
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

// TestWeightsOfBeliefsAreUnbiased: means over 1,000 seeds of a few draws each are Z by enumeration, and no weight exceeds the bound, which
// Run says itself.
func TestWeightsOfBeliefsAreUnbiased(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 1))
	models, off, moved := 0, 0, 0
	for k := range 30 {
		e := random(r)
		_, _, lnZ := enumerate(e)
		share := []float64{0.3, 0.05}[k/2%2]
		p := believed(t, e, []float64{2, 6}[k%2], []float64{0, 0.2, 1e-3}[k%3], share)
		if p == nil || math.IsInf(lnZ, -1) {
			continue
		}
		models++
		var sum, squares float64
		const seeds, draws = 1000, 4
		for seed := range uint64(seeds) {
			w, err := p.Run(t.Context(), seed, 8, 8+draws, 1, false)
			if err != nil {
				t.Fatal(err)
			}
			mean := 0.0
			for _, l := range w.Ln {
				mean += math.Exp(l-lnZ) / draws
			}
			sum += mean / seeds
			squares += mean * mean / seeds
		}
		deviation := math.Sqrt(max(0, squares-sum*sum)/seeds) + 1e-9
		if deviation > 1e-6 {
			moved++
		}
		z := (sum - 1) / deviation
		if math.Abs(z) > 5 {
			t.Errorf("model %d: the mean is %v of Z, %.1f standard errors", k, sum, z)
		}
		if math.Abs(z) > 2 {
			off++
		}
	}
	if models < 20 || off > models/6 || moved < models/2 {
		t.Errorf("of %d models %d are two standard errors off, %d have weights that differ", models, off, moved)
	}
}

// TestSharesOfBeliefsAreRefused that are none.
func TestSharesOfBeliefsAreRefused(t *testing.T) {
	e := random(rand.New(rand.NewPCG(5, 1)))
	p := believed(t, e, 4, 0, 0.2)
	for _, share := range []float64{0, -1, 2, math.NaN()} {
		if _, err := NewBeliefs(e, p.bound, nil, share); err == nil {
			t.Errorf("a share of %v is accepted", share)
		}
	}
}
