package judge

import (
	"math"
	"testing"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
)

// TestSampledBoundsThatFail: if sampled bounds contradict the proved ones, only the proved ones count.
func TestSampledBoundsThatFail(t *testing.T) {
	for name, sampled := range map[string][2]float64{"above": {8, 9}, "below": {1, 2}, "both": {6.5, 6}} {
		var b Bounds
		b.AddProved(5, 7, 5, "a")
		b.AddSampled(Side{Ln: sampled[0]}, Side{Ln: sampled[1]})
		if lower, upper, level := b.Tightest(); math.Abs(lower.Ln-5) > 1e-9 || math.Abs(upper.Ln-7) > 1e-9 || level != 1 {
			t.Errorf("%s: from %v to %v, level %v", name, lower, upper, level)
		}
	}
	var b Bounds
	b.AddProved(5, 7, 5, "a")
	b.AddSampled(Side{Ln: 5.5}, Side{Ln: 6})
	if lower, upper, level := b.Tightest(); lower.Ln != 5.5 || upper.Ln != 6 || level == 1 {
		t.Errorf("better ones: from %v to %v, level %v", lower, upper, level)
	}
}

// modes is a part with hidden modes.
type modes struct{ btn.Part }

func (modes) About() btn.About { return btn.About{Sample: btn.Sample{Modes: true}} }

// TestContractionsThatHaveSettled state what they do, also beside hidden modes. Others are uncertain by their distance from credible
// components that are drawn.
func TestContractionsThatHaveSettled(t *testing.T) {
	value := func(ln float64, part btn.Part) *Estimate {
		return &Estimate{Plan: &btn.Estimate{Parts: []btn.Part{part}}, EstimateResult: query.EstimateResult{LogZ: &ln}}
	}
	drawn := value(10, modes{})
	drawn.StandardError = Finite(0.01)
	s := &Sequence{Estimates: []*Estimate{drawn}}
	for _, c := range []struct{ stated, want float64 }{{1e-10, 1e-10}, {1e-8, 0.5}} {
		own := &Statement{Best: value(10.5, nil), Uncertainty: &c.stated}
		if s.RaiseForHiddenModes(own, []*Statement{{Best: drawn, IsCredible: true}}); *own.Uncertainty != c.want {
			t.Errorf("contractions that stated %v state %v", c.stated, *own.Uncertainty)
		}
	}
}
