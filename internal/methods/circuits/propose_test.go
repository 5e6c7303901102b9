package circuits

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// TestLogicIsSearchedBeforeItIsSimplified: a formula whose search ends is never simplified as a whole; without a search it is, once.
func TestLogicIsSearchedBeforeItIsSimplified(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 40))
	m := &factorgraph.Model{Domains: slices.Repeat([]int{2}, 70)}
	for range 270 {
		data := slices.Repeat([]float64{1}, 8)
		data[rng.IntN(8)] = 0
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: rng.Perm(70)[:3], Table: &tensor.Dense{Shape: []int{2, 2, 2}, Data: data}})
	}
	net, err := reparam.Build(t.Context(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	j := &proposal.Job{Net: net, Settings: query.Settings{Memory: 1 << 31}, Facts: proposal.NewFacts(net, nil)}
	simplified := func() bool { // the slot has a value that this does not make
		known := true
		proposal.Fact(j.Facts, wide{circuitBytes}, func() (bool, error) {
			known = false
			return false, errors.New("not known")
		})
		return known
	}
	if plan, err := compile(t.Context(), t.Context(), j, net, circuitProbe); err != nil || plan.Estimates[0].Cost.Edges == 0 {
		t.Fatal(plan, err)
	}
	if simplified() {
		t.Error("simplified as a whole though a search found a circuit")
	}
	if _, err := compile(t.Context(), t.Context(), j, net, 0); !errors.Is(err, errNoCircuit) || !simplified() {
		t.Errorf("without a search: %v, simplified %v", err, simplified())
	}
}
