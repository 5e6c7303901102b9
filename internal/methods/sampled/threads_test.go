package sampled_test

import (
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/sampled"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// TestChainsRunOnTheThreadsThatTheMemoryHolds: a plan is priced on one thread, and every part of it failed on machines of two processors.
func TestChainsRunOnTheThreadsThatTheMemoryHolds(t *testing.T) {
	const n = 400
	m := &factorgraph.Model{Domains: slices.Repeat([]int{2}, n)}
	for i := range n {
		for _, j := range []int{(i + 1) % n, (i + 7) % n, (i + 31) % n} {
			table := &tensor.Dense{Shape: []int{2, 2}, Data: []float64{2, 1, 1, 2}}
			m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{i, j}, Table: table})
		}
	}
	net, err := reparam.Build(t.Context(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := problem.New(net, problem.Options{})
	chains, err := sampled.PrepareChains(t.Context(), p, false)
	if err != nil {
		t.Fatal(err)
	}
	along := &sampled.Annealing{Base: sampled.Base{Kind: sampled.ByAnnealing, Shape: chains.Prepared.Shape()}, Rungs: 16}
	part := &sampled.Sampled{To: 32, Sampling: along}
	one := int64(chains.Model.Bytes(along.Path(), part.To, 1, false)) + 1

	var want []float64
	for _, o := range []problem.Options{{Threads: 1}, {Threads: 8}, {Threads: 8, Memory: one}} {
		v, err := contraction.Part(t.Context(), problem.New(net, o), part, btn.Want{})
		if err != nil {
			t.Fatalf("%d threads, %d bytes: %v", o.Threads, o.Memory, err)
		}
		if want == nil {
			want = v.Weights.Ln
		}
		if !slices.Equal(v.Weights.Ln, want) {
			t.Errorf("%d threads, %d bytes: other weights", o.Threads, o.Memory)
		}
	}
	_, err = contraction.Part(t.Context(), problem.New(net, problem.Options{Threads: 8, Memory: one - 2}), part, btn.Want{})
	if fault.CodeOf(err) != fault.OverBudget {
		t.Errorf("without room for one thread: %v", err)
	}
}
