package frobenius

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/network/bp"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/pkg/query"
)

// TestGaugeHasTwoLevels: in the gauge of belief propagation symmetric parts tell value 0 from the
// rest, for all domains.
func TestGaugeHasTwoLevels(t *testing.T) {
	m := modeltest.Small(rand.New(rand.NewPCG(1, 7)), modeltest.SmallOptions{
		MinDomain: 3,
		MaxDomain: 3,
		Variables: 4,
		Factors:   3,
		Kinds:     []modeltest.Kind{modeltest.Dense},
	})
	for maps, want := range map[query.MapKind]int{query.MapIdentity: 3, query.MapBP: 2} {
		net, err := reparam.Build(context.Background(), m, reparam.Options{})
		if maps == query.MapBP {
			net, err = bp.Network(context.Background(), m, query.CoresAreFactors, bp.Options{})
		}
		if err != nil {
			t.Fatal(err)
		}
		d, err := Learn(context.Background(), net,
			Options{Settings: query.Settings{Components: 1, Sweeps: 1, Starts: 1}})
		if err != nil {
			t.Fatal(err)
		}
		if frameOf(d).Levels.D != want {
			t.Errorf("maps %s: %d levels, want %d", maps, frameOf(d).Levels.D, want)
		}
	}
}

// TestGaugeWarnings: messages that have not converged are said to, converged ones are not.
func TestGaugeWarnings(t *testing.T) {
	m := modeltest.Small(rand.New(rand.NewPCG(2, 7)), modeltest.SmallOptions{
		Variables: 4,
		Factors:   8,
		MinDomain: 2,
		Kinds:     []modeltest.Kind{modeltest.Dense},
	})
	for _, c := range []struct {
		updates int64
		want    string
	}{{0, ""}, {1, "belief propagation did not converge"}} {
		net, err := bp.Network(context.Background(), m, query.CoresAreFactors, bp.Options{Updates: c.updates})
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(gaugeWarnings(net), "; ")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%d updates: %q, want %q", c.updates, got, c.want)
		}
	}
	net, err := reparam.Build(context.Background(), m, reparam.Options{})
	if err != nil || gaugeWarnings(net) != nil {
		t.Error("identity maps are no gauge")
	}
}
