package sampled

import (
	"testing"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/pkg/query"
)

// TestParityCodesAreDrawnFromBeliefs: their messages say almost which word was sent, and mini-buckets have a larger share where tables
// forbid values together.
func TestParityCodesAreDrawnFromBeliefs(t *testing.T) {
	m, err := modeltest.Parity(126, 0.06, 4)
	if err != nil {
		t.Fatal(err)
	}
	chains := chainsOf(t, m)
	chosen, _, err := ChooseSampling(t.Context(), chains, query.Settings{Budget: 2e9, Memory: 1 << 31, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	along, ok := chosen.(*Beliefs)
	if !ok || along.Kind != ByBeliefs || along.Defence != policy.BeliefsHardDefence {
		t.Fatalf("components are drawn as %+v", chosen)
	}
	p, err := buildDistribution(t.Context(), chains.Prepared, along, 1<<31)
	if err != nil {
		t.Fatal(err)
	}
	if w, err := p.Run(t.Context(), 7, 0, 64, 0, false); err != nil || relativeVariance(w.Ln) > 10*along.Spread {
		t.Errorf("other draws vary by %v, the pilot's by %v, error %v", relativeVariance(w.Ln), along.Spread, err)
	}
	if _, err := buildDistribution(t.Context(), chains.Prepared, along, 1<<10); err == nil {
		t.Error("a kibibyte is enough")
	}
}
