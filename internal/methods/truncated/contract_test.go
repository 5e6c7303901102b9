package truncated

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/nightly"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

// Along both families, with room for everything, Z and all marginals of random models are exact, zeros and all: also where
// wires could be cut down to the rank that the weights as they are leave them.
func TestContractionsWithRoomAreExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 9))
	compared := 0
	for range nightly.Rounds(70, 150) {
		m := modeltest.Small(rng, modeltest.SmallOptions{})
		net, err := reparam.Build(context.Background(), m, reparam.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var hard []factorgraph.Observation
		for v, d := range m.Domains {
			if rng.IntN(5) == 0 {
				hard = append(hard, factorgraph.Observation{Var: v, Value: rng.IntN(d)})
			}
		}
		if net, err = net.Condition(factorgraph.Evidence{Hard: hard}); err != nil {
			t.Fatal(err)
		}
		p, err := Prepare(context.Background(), net, true)
		if err != nil {
			t.Fatal(err)
		}
		if p.IsDecided() {
			continue
		}
		given, err := lower.Build(context.Background(), net)
		if err != nil {
			t.Fatal(err)
		}
		want, index := exactly(t, given)
		if want.Sign() <= 0 {
			continue
		}
		o := SearchOptions{Bond: 4, Memory: query.DefaultMemory, Seed: 1, Marginals: true}
		tree, err := p.searchTree(t.Context(), o, truncatedLeast)
		if err != nil {
			t.Fatal(err)
		}
		sweep, err := p.searchSweep(t.Context(), o, 1, truncatedLeast)
		if err != nil {
			t.Fatal(err)
		}
		for _, plan := range []TruncatedPlan{tree.plan, sweep.plan, reverseSweep(sweep.plan)} {
			bond := 1 << 12
			if plan.Family == query.FamilyTree {
				bond = 2 // for marginals trees truncate nothing, whatever the bond
			}
			a, err := p.Contract(t.Context(), &plan, bond, 0, true)
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(a.Z.LogAbs()-want.LogAbs()) > 1e-9 || a.Truncation.Truncated {
				t.Fatalf("%s: ln Z %v, want %v, %+v", plan.Family, a.Z.LogAbs(), want.LogAbs(), a.Truncation)
			}
			for v, i := range given.Variables {
				for k, q := range index[i] {
					x := k
					if s := given.Support[i]; s != nil {
						x = s[k]
					}
					if math.Abs(a.Rows[v][x]-q) > 1e-7 {
						t.Fatalf("%s: P(x_%d = %d) is %v, want %v", plan.Family, v, x, a.Rows[v][x], q)
					}
					compared++
				}
			}
		}
	}
	if compared < 500 {
		t.Errorf("only %d probabilities compared", compared)
	}
}
