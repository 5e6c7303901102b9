package plan

import (
	"testing"

	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// TestSignsHaveEstimatesBehindThem: an exact plan of terms of both signs beyond wide numbers stands among estimates, which go on if its
// digits all cancel. One without signs stands for itself.
func TestSignsHaveEstimatesBehindThem(t *testing.T) {
	for _, isSigned := range []bool{false, true} {
		m, err := generate.Complete(32, generate.Ising{Delta: 1, Seed: 3})
		if err != nil {
			t.Fatal(err)
		}
		if isSigned {
			m.Factors[0].Table.(*tensor.Dense).Data[0] *= -1
		}
		net, err := reparam.Build(t.Context(), m, reparam.Options{})
		if err != nil {
			t.Fatal(err)
		}
		a := assigned(t, t.Context(), net, query.Settings{Method: query.MethodAuto, Memory: 1 << 30}, nil)
		if a.Error != nil {
			t.Fatal(a.Error.Message)
		}
		hasExact := false
		for _, e := range a.Plan.Estimates {
			hasExact = hasExact || e.Quality != nil && e.Parts[0].Class() == btn.ClassSlices
		}
		if !hasExact || a.Plan.Grows() != isSigned {
			t.Errorf("signed %v: an exact plan %v, among estimates %v", isSigned, hasExact, a.Plan.Grows())
		}
	}
}
