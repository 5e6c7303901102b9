package message

import (
	"math"
	"testing"

	"github.com/basetensor/basetensor/internal/network/btn"
)

// TestWeightsAreChecked: what does not fit together, and what is no weight, is refused.
func TestWeightsAreChecked(t *testing.T) {
	good := func() *btn.Weights {
		return &btn.Weights{
			Ln: []float64{1, math.Inf(-1)}, Top: 1, Domains: []int{2, 1}, Share: []float64{1, 0, 1}, Squares: []float64{1, 0, 1},
			Picked: &btn.Picked{First: 2, Ln: []float64{1, math.Inf(-1)}, Values: []int{0, 1, 0, 0}},
		}
	}
	if err := checkWeights(good()); err != nil {
		t.Fatal(err)
	}
	if err := checkWeights(&btn.Weights{Ln: []float64{0}}); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*btn.Weights){
		"weight NaN":       func(w *btn.Weights) { w.Ln[0] = math.NaN() },
		"weight +Inf":      func(w *btn.Weights) { w.Ln[0] = math.Inf(1) },
		"no values":        func(w *btn.Weights) { w.Domains[0] = 0 },
		"values below 0":   func(w *btn.Weights) { w.Domains[0] = -1 },
		"values that wrap": func(w *btn.Weights) { w.Domains[0] = math.MaxInt },
		"too few values":   func(w *btn.Weights) { w.Domains = w.Domains[:1] },
		"too few squares":  func(w *btn.Weights) { w.Squares = w.Squares[:2] },
		"top NaN":          func(w *btn.Weights) { w.Top = math.NaN() },
		"top −Inf":         func(w *btn.Weights) { w.Top = math.Inf(-1) },
		"share below 0":    func(w *btn.Weights) { w.Share[0] = -1 },
		"share NaN":        func(w *btn.Weights) { w.Share[0] = math.NaN() },
		"square infinite":  func(w *btn.Weights) { w.Squares[2] = math.Inf(1) },
		"bundle below 0":   func(w *btn.Weights) { w.Picked.First = -1 },
		"no bundles":       func(w *btn.Weights) { w.Picked.Ln = nil },
		"states cut short": func(w *btn.Weights) { w.Picked.Values = w.Picked.Values[:3] },
		"state below 0":    func(w *btn.Weights) { w.Picked.Values[1] = -1 },
		"bundle NaN":       func(w *btn.Weights) { w.Picked.Ln[1] = math.NaN() },
		"bundle +Inf":      func(w *btn.Weights) { w.Picked.Ln[0] = math.Inf(1) },
	} {
		w := good()
		spoil(w)
		if checkWeights(w) == nil {
			t.Errorf("%s passes", name)
		}
	}
}
