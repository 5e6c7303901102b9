package aggregate

import (
	"math"
	"testing"

	"github.com/basetensor/basetensor/pkg/query"
)

// TestLostPhases: legs whose statement is 7e-12 had dropped a phase of 0.62 of the first one's weight, with all that would show it.
func TestLostPhases(t *testing.T) {
	settled := func() Input {
		return ladder(1e-9, step{0, 8, []float64{10}, true}, step{1, 8, []float64{10}, true},
			step{0, 16, []float64{10}, true}, step{1, 16, []float64{10}, true})
	}
	for name, c := range map[string]struct {
		phases   []float64
		together float64
		lost     float64
	}{
		"one phase of two":        {[]float64{10, 9.5}, 10 + math.Log1p(math.Exp(-0.5)), math.Log1p(math.Exp(-0.5))},
		"the lesser phase of two": {[]float64{11, 10}, 11 + math.Log1p(math.Exp(-1)), 1 + math.Log1p(math.Exp(-1))},
		"both":                    {[]float64{9.4, 9.2}, 9.4 + math.Log1p(math.Exp(-0.2)), 0},
		"both, of Bethe values that are too high": {[]float64{9.4, 9.4}, 10.09, 0},
		"some of many":                          {[]float64{9, 9, 9}, 10 - math.Log(0.4), -math.Log(0.4)},
		"far below what the phases promise":     {[]float64{30, 30}, 30 + math.Ln2, 0},
		"one of twenty, that mirror each other": {[]float64{10, 3}, 10 + math.Log(20), math.Log(20)},
	} {
		in := settled()
		for k := range in.Values {
			in.Values[k].Value.Truncation.Discarded = 0
		}
		alone := *AddUp(in).Uncertainty
		in.Assignment.Propagation = &query.Propagation{Converged: true, LogZ: &c.phases[0], Phases: c.phases, Together: &c.together}
		r := AddUp(in)
		if want := max(1e-6, c.lost); alone > 1e-9 || math.Abs(*r.Uncertainty-want) > 2e-6 || r.Ended == "settled" {
			t.Errorf("%s: want %v: %s", name, want, text(t, r.Result))
		}
	}
}

// TestLostPhasesOfOneFamily: chains that saw the lesser of two phases do not speak against legs that saw both.
func TestLostPhasesOfOneFamily(t *testing.T) {
	together := 10.0
	lesser := together - math.Log1p(math.Exp(0.1))
	in := withSampled(legs(), 0.1, even(lesser-0.0005, 0.01, 1000))
	alone := *AddUp(legs()).Uncertainty
	in.Assignment.Propagation = &query.Propagation{
		Converged: true, LogZ: finite(lesser + 0.1), Phases: []float64{lesser + 0.1, lesser}, Together: &together,
	}
	if r := AddUp(in); math.Abs(*r.LogZ-10) > 1e-9 || *r.Uncertainty > 2*alone {
		t.Errorf("%s", text(t, r.Result))
	}
}
