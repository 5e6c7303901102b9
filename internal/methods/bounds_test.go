package methods_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/bounding"
	"github.com/basetensor/basetensor/internal/methods/truncated"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// pairwise is a complete model of n variables of d values; couplings attract where attract says so.
func pairwise(rng *rand.Rand, n, d int, zeros float64, attract bool) *factorgraph.Model {
	m := &factorgraph.Model{}
	for i := range n {
		m.Domains = append(m.Domains, d)
		for j := range i {
			table := &tensor.Dense{Shape: []int{d, d}}
			for k := range d * d {
				x := rng.NormFloat64()
				if attract {
					x = math.Abs(x)
					if k/d != k%d {
						x = 0
					}
				}
				x = math.Exp(x)
				if rng.Float64() < zeros {
					x = 0
				}
				table.Data = append(table.Data, x)
			}
			m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{j, i}, Table: table})
		}
		unary := []float64{1, math.Exp(rng.NormFloat64()), 0.5}[:d]
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{i}, Table: &tensor.Dense{Shape: []int{d}, Data: unary}})
	}
	return m
}

// TestBoundsHold on every model, by enumeration, with evidence and without.
func TestBoundsHold(t *testing.T) {
	said := map[bounding.Kind]int{}
	for seed := range uint64(120) {
		rng := rand.New(rand.NewPCG(seed, 41))
		m := pairwise(rng, 7, 2+int(seed%4/3), 0.05*float64(seed%2), seed%3 == 0)
		var ev factorgraph.Evidence
		if seed%5 == 0 {
			ev.Hard = []factorgraph.Observation{{Var: 2, Value: 1}}
		}
		want, sign := oracle.LogZ(m, ev)
		if sign <= 0 {
			continue
		}
		net, err := reparam.Build(t.Context(), m, reparam.Options{})
		if err == nil {
			net, err = net.Condition(ev)
		}
		if err != nil {
			t.Fatal(err)
		}
		p := problem.New(net, problem.Options{})
		prepared, err := truncated.Simplify(t.Context(), p, false)
		if err != nil {
			t.Fatal(err)
		}
		order, err := contractionorder.MinFill(t.Context(), prepared.Hypergraph())
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range []*bounding.Bound{
			{Kind: bounding.MiniBuckets, Order: order, Entries: 4}, {Kind: bounding.MiniBuckets, Order: order, Entries: 16},
			{Kind: bounding.Determinant, Rounds: 40}, {Kind: bounding.Bethe, Rounds: 40}, {Kind: bounding.Modes},
			{Kind: bounding.Messages},
		} {
			b.Shape = prepared.Shape()
			v, err := contraction.Part(t.Context(), p, b, btn.Want{})
			if fault.CodeOf(err) == fault.Unsupported && (b.Kind == bounding.Determinant || b.Kind == bounding.Bethe) {
				continue // no positive tables over spins
			}
			if err != nil {
				t.Fatalf("seed %d, %s: %v", seed, b.Kind, err)
			}
			const rounding = 1e-9
			if v.Bound == nil || v.Bound.Lower > want+rounding || v.Bound.Upper < want-rounding || !v.Z.IsZero() {
				t.Errorf("seed %d, %s: %+v, ln Z %v", seed, b.Kind, v.Bound, want)
			}
			if b.Kind != bounding.Messages && (v.Bound.Least == nil || *v.Bound.Least > want+rounding) {
				t.Errorf("seed %d, %s: a state weighs e^%v at least, ln Z is %v", seed, b.Kind, v.Bound.Least, want)
			}
			if !math.IsInf(v.Bound.Lower, -1) || !math.IsInf(v.Bound.Upper, 1) {
				said[b.Kind]++
			}
		}
		other := &bounding.Bound{Kind: bounding.Determinant, Rounds: 1, Shape: "other"}
		if _, err := contraction.Part(t.Context(), p, other, btn.Want{}); fault.CodeOf(err) != fault.Internal {
			t.Fatalf("a bound for another network: %v", err)
		}
	}
	if said[bounding.MiniBuckets] < 150 || said[bounding.Modes] < 100 || said[bounding.Determinant] < 20 || said[bounding.Bethe] < 10 ||
		said[bounding.Messages] < 100 {
		t.Errorf("bounds that say something: %v", said)
	}
}

// TestBoundsHoldUnderMasks: bounds of the network without evidence are those of every query whose evidence enters as a mask, by
// enumeration; where that leaves nothing they say nothing.
func TestBoundsHoldUnderMasks(t *testing.T) {
	said := map[bounding.Kind]int{}
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 43))
		m := pairwise(rng, 7, 2+int(seed%4/3), 0.05*float64(seed%2), seed%3 == 0)
		ev := factorgraph.Evidence{Hard: []factorgraph.Observation{{Var: 2, Value: int(seed % 2)}, {Var: 5, Value: 1}}}
		if seed%3 == 0 {
			ev.Soft = []factorgraph.Likelihood{{Var: 4, Weights: []float64{0.5, float64(seed % 2), 2}[:m.Domains[4]]}}
		}
		base, err := reparam.Build(t.Context(), m, reparam.Options{})
		if err != nil {
			t.Fatal(err)
		}
		net, err := base.Condition(ev)
		if err != nil {
			t.Fatal(err)
		}
		p := new(problem.Shared).ConditionedProblem(base, net, ev, problem.Options{Memory: 1 << 20})
		prepared, err := truncated.SimplifyBase(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		order, err := contractionorder.MinFill(t.Context(), prepared.Hypergraph())
		if err != nil {
			t.Fatal(err)
		}
		want, sign := oracle.LogZ(m, ev)
		for _, b := range []*bounding.Bound{
			{Kind: bounding.MiniBuckets, Order: order, Entries: 8}, {Kind: bounding.Determinant, Rounds: 20, Slices: 9},
			{Kind: bounding.Bethe, Rounds: 40},
		} {
			b.Shape, b.Masked = prepared.Shape(), true
			v, err := contraction.Part(t.Context(), p, b, btn.Want{})
			if err != nil {
				t.Fatalf("seed %d, %s: %v", seed, b.Kind, err)
			}
			rounding := 1e-9 * (1 + math.Abs(want))
			if sign > 0 && (v.Bound.Lower > want+rounding || v.Bound.Upper < want-rounding) || sign == 0 && !math.IsInf(v.Bound.Lower, -1) ||
				math.IsInf(v.Bound.Upper, -1) {
				t.Errorf("seed %d, %s: %+v, ln Z %v", seed, b.Kind, v.Bound, want)
			}
			if !math.IsInf(v.Bound.Lower, -1) || !math.IsInf(v.Bound.Upper, 1) {
				said[b.Kind]++
			}
		}
	}
	if said[bounding.MiniBuckets] < 50 || said[bounding.Determinant] < 15 || said[bounding.Bethe] < 5 {
		t.Errorf("bounds that say something: %v", said)
	}
}
