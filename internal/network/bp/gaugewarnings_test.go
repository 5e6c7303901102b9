package bp_test

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
		net, err := bp.GaugedNetwork(context.Background(), m, query.CoresAreFactors, bp.Options{Updates: c.updates})
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(net.Warnings, "; ")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%d updates: %q, want %q", c.updates, got, c.want)
		}
	}
	net, err := reparam.Build(context.Background(), m, reparam.Options{})
	if err != nil || net.Warnings != nil {
		t.Error("identity maps are no gauge")
	}
}
