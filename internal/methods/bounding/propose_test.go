package bounding

import (
	"math"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/bounding/isingbounds"
	"github.com/basetensor/basetensor/internal/methods/truncated"
	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// simple is the problem of a model, and its network simplified.
func simple(t *testing.T, m *factorgraph.Model) (*problem.Problem, *truncated.Prepared) {
	t.Helper()
	net, err := reparam.Build(t.Context(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := problem.New(net, problem.Options{})
	own, err := truncated.Simplify(t.Context(), p, false)
	if err != nil {
		t.Fatal(err)
	}
	return p, own
}

// TestStartIsABound of ln Z by enumeration, without a round, and is proposed where no round fits; of a dense model where it takes up to
// three quarters of the work for bounds.
func TestStartIsABound(t *testing.T) {
	m, err := generate.Complete(14, generate.Ising{Delta: 1, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	p, own := simple(t, m)
	flops, _ := isingbounds.DeterminantCost(14, 0, 1)
	for _, budget := range []float64{1.5e7, 1.4 * flops / policy.BoundsShare} {
		list, err := Propose(t.Context(), own, query.Settings{Budget: budget, Memory: 64 << 20})
		if err != nil || len(list) == 0 {
			t.Fatal(list, err)
		}
		at := slices.IndexFunc(list[0].Parts, func(p btn.Part) bool { return p.(*Bound).Kind == Determinant })
		if at < 0 {
			t.Errorf("%g flops: no determinant among %d bounds", budget, len(list[0].Parts))
			continue
		}
		b := list[0].Parts[at].(*Bound)
		v, err := contraction.Part(t.Context(), p, b, btn.Want{})
		truth, _ := oracle.LogZ(m, factorgraph.Evidence{})
		if err != nil || !b.Start || v.Flops != flops || v.Bound.Upper < truth || v.Bound.Upper > truth+10 {
			t.Errorf("%+v: %+v of %g flops, ln Z %v; %v", b, v.Bound, v.Flops, truth, err)
		}
	}
}

// TestBoundsFitTheirShare: the kinds that a model allows, within their share of the budget and the memory, more slices and larger
// mini-buckets with more of either; and they hold, by enumeration.
func TestBoundsFitTheirShare(t *testing.T) {
	for work, want := range map[float64][2]int{1e9: {-1, 0}, 2e9: {0, 1}, 1.05e10: {1, 1}, 2e10: {3, 1}, 2e11: {12, 28}} {
		if rounds, slices := determinantSize(1000, work, 1<<30); rounds != want[0] || slices != want[1] {
			t.Errorf("1,000 spins within %g flops: %d rounds, %d slices", work, rounds, slices)
		} else if flops, _ := isingbounds.DeterminantCost(1000, rounds, slices); rounds >= 0 && flops > work {
			t.Errorf("1,000 spins within %g flops: they take %g", work, flops)
		}
	}
	if rounds, _ := determinantSize(14, 1e9, 1000); rounds >= 0 {
		t.Errorf("%d rounds in 1000 bytes", rounds)
	}
	ising := func(attractive bool) generate.Ising { return generate.Ising{Delta: 1, Attractive: attractive, Seed: 3} }
	const modes, spins, bethe, buckets = Modes, Determinant, Bethe, MiniBuckets
	signed := func() (*factorgraph.Model, error) {
		m, err := generate.Complete(5, ising(false))
		m.Factors[len(m.Factors)-1].Table.(*tensor.Dense).Data[0] *= -1
		return m, err
	}
	for _, c := range []struct {
		name string
		make func() (*factorgraph.Model, error)
		want []Kind
	}{
		{"complete", func() (*factorgraph.Model, error) { return generate.Complete(14, ising(false)) }, []Kind{modes, spins, buckets}},
		{
			"attractive", func() (*factorgraph.Model, error) { return generate.Complete(12, ising(true)) },
			[]Kind{modes, spins, bethe, buckets},
		},
		{
			"three values", func() (*factorgraph.Model, error) {
				return generate.Random(generate.RandomOptions{Variables: 10, Degree: 4, MinDomain: 3, MaxDomain: 3, Strength: 1, Seed: 2})
			}, []Kind{modes, buckets},
		},
		{"an entry below 0", signed, nil},
	} {
		m, err := c.make()
		if err != nil {
			t.Fatal(err)
		}
		p, own := simple(t, m)
		truth, _ := oracle.LogZ(m, factorgraph.Evidence{})
		wider := 0
		var before *btn.Estimate
		for _, s := range []query.Settings{{Budget: 3e8, Memory: 64 << 10}, {Budget: 3e9, Memory: 64 << 20}} {
			list, err := Propose(t.Context(), own, s)
			if err != nil {
				t.Fatal(err)
			}
			if c.want == nil {
				if len(list) != 0 {
					t.Errorf("%s: %d estimates", c.name, len(list))
				}
				continue
			}
			e := &list[0]
			var kinds []Kind
			for k, part := range e.Parts {
				b := part.(*Bound)
				kinds = append(kinds, b.Kind)
				if before != nil {
					less := before.Parts[k].(*Bound)
					if b.Slices < less.Slices || b.Entries < less.Entries {
						t.Errorf("%s: %+v with less, %+v with more", c.name, less, b)
					}
					wider += b.Slices - less.Slices
				}
				v, err := contraction.Part(t.Context(), p, b, btn.Want{})
				if err != nil || b.Fits(p.Net) != nil {
					t.Fatalf("%s, %s: %v, %v", c.name, b.Kind, err, b.Fits(p.Net))
				}
				rounding := 1e-9 * (1 + math.Abs(truth))
				if v.Bound.Lower > truth+rounding || v.Bound.Upper < truth-rounding {
					t.Errorf("%s, %s: %+v, ln Z %v", c.name, b.Kind, v.Bound, truth)
				}
			}
			if !slices.Equal(kinds, c.want) || e.Rule != btn.Bounding {
				t.Errorf("%s: %v by rule %v, not %v", c.name, kinds, e.Rule, c.want)
			}
			if e.Cost.Flops > policy.BoundsShare*s.Budget || e.Cost.Flops <= 0 || e.Cost.Bytes > float64(s.Memory) {
				t.Errorf("%s: %g flops and %g bytes of %g and %d", c.name, e.Cost.Flops, e.Cost.Bytes, s.Budget, s.Memory)
			}
			before = e
		}
		if slices.Contains(c.want, spins) && wider < 1 {
			t.Errorf("%s: more budget and memory give no more slices", c.name)
		}
	}
}
